"""`validate --deep` proves what readers skip by, besides filters: wrong structures are found, and sound ones aren't.

A sound file is written, and one structure of it is patched by code that shares nothing with bloomcli.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support import patches as at
from support.skipped_rows import GROUP, NAN, PAGE, by_arrow, table, values
from support.thrift import Fields
from support.wrong_structures import KINDS

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.model.file import Severity

ROOT: Final = Path(__file__).parents[3]
PROVEN: Final = ("statistics-", "page-index-", "sorting-", "size-")


@cache
def sound() -> bytes:
    """The file of which a structure is patched: five pages in a row group, and page indexes."""
    return by_arrow(table())


def found(
    data: bytes, path: Path, *, deep: bool = True, columns: Sequence[str] = ("*",)
) -> list[tuple[str, Any, Any]]:
    """(rule, severity, column) of the findings about what readers skip by."""
    path.write_bytes(data)
    report = bloomcli.validate(path, deep=deep, columns=columns)
    return [(f.id, f.severity, f.column) for f in report.findings if f.id.startswith(PROVEN)]


IN_LAST: Final = [values(number) for number in range(GROUP, 2 * GROUP)]
LEAST: Final = min(row["id"] for row in IN_LAST)
GREATEST: Final = max(row["id"] for row in IN_LAST)
REAL: Final = max(row["real"] for row in IN_LAST if row["real"] == row["real"])
CUT: Final = b"text number 1"
"""The beginning of the greatest text: as a maximum it is too low."""
ERROR, NOTE = Severity.ERROR, Severity.NOTE


class Case(NamedTuple):
    """A fault, and its finding."""

    edit: at.Edit
    rule: str
    column: str
    severity: Severity = ERROR


def bounds(column: str, **fields: Any) -> Case:
    return Case(at.stats(column, **fields), "statistics-bounds", column)


def of_pages(what: str, column: str, edit: Callable[[Fields], None]) -> Case:
    return Case(at.column_index(column, edit), f"page-index-{what}", column)


def total_order(case: Case) -> Case:
    return case._replace(edit=at.in_turn(at.order("real", 2), case.edit))


CASES: Final[dict[str, Case]] = {
    "an old minimum that is too high": bounds("id", MIN=at.int64(0)),
    "a minimum that is too high": bounds("id", MIN_VALUE=at.int64(LEAST + 1)),
    "a minimum of half floats": bounds("half", MIN_VALUE=struct.pack("<e", -1)),
    "a maximum of half floats": bounds("half", MAX_VALUE=struct.pack("<e", 1)),
    "fixed bytes compared as signed": bounds("fixed", MAX_VALUE=struct.pack(">I", 2_140_000_000)),
    "a maximum of list elements": bounds("list", MAX_VALUE=at.int64(5)),
    "a minimum in total order": total_order(bounds("real", MIN_VALUE=at.double(0.5))),
    "a maximum beside NaN in total order": total_order(bounds("real", MAX_VALUE=at.double(REAL - 1))),
    "a minimum that is said to be exact": bounds("id", MIN_VALUE=at.int64(-100), MIN=None, MIN_EXACT=True),
    # parquet-java uses them, as no order changes one value
    "old bounds of texts that are one value": bounds("text", MIN=CUT, MAX=CUT, MIN_VALUE=None, MAX_VALUE=None),
    "more nulls than a list column has": Case(at.stats("list", NULLS=170), "statistics-counts", "list"),
    "too many nulls": Case(at.stats("text", NULLS=99), "statistics-counts", "text"),
    "a number of NaNs": Case(at.stats("real", NANS=3), "statistics-counts", "real"),
    "an order of dictionary entries": Case(at.sorted_by("word"), "sorting-columns", "word"),
    "an order of booleans": Case(at.sorted_by("flag"), "sorting-columns", "flag"),
    "a descending order of booleans": Case(at.sorted_by("flag", descending=True), "sorting-columns", "flag"),
    "a page's minimum of half floats": of_pages("bounds", "half", at.of_page(at.MINS, 1, struct.pack("<e", 99))),
    "a page's maximum in total order": total_order(
        of_pages("bounds", "real", at.of_page(at.MAXS, 1, at.double(-99)))
    ),
    "a page's maximum of list elements": of_pages("bounds", "list", at.of_page(at.MAXS, 1, at.int64(-1))),
    "a histogram of repetition levels": Case(
        at.meta("list", at.sizes(2, at.levels(1, 1))), "size-statistics", "list", NOTE
    ),
    "histograms of pages' repetition levels": Case(
        at.column_index("list", at.added(at.REPETITION, thrift.I64, [1] * 10)), "size-statistics", "list", NOTE
    ),
}
"""Beside `support.wrong_structures`, by what is wrong."""
ALL_CASES: Final = CASES | {
    kind.what: Case(kind.edit, kind.rule, kind.question.column, kind.severity)
    for kind in KINDS
    if kind.severity is not Severity.WARNING
}
"""Also its kinds, each once, in this module's file."""


def test_a_sound_file_has_no_finding(tmp_path: Path) -> None:
    for deep in (False, True):
        assert found(sound(), tmp_path / "f.parquet", deep=deep) == []


@pytest.mark.parametrize("what", CASES)
def test_a_wrong_structure_is_found_and_nothing_else(what: str, tmp_path: Path) -> None:
    case = CASES[what]
    leaf = "list.list.element" if case.column == "list" else case.column
    assert found(case.edit(sound()), tmp_path / "f.parquet") == [(case.rule, case.severity, leaf)]


def test_a_page_counts_once_however_much_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    nulls = [
        at.column_index("id", at.of_page(field, 2, value))
        for field, value in ((at.NULL_PAGES, True), (at.NULL_COUNTS, PAGE))
    ]
    path.write_bytes(at.in_turn(*nulls)(sound()))
    (one,) = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert one.message == "page 2 is said to have only nulls, and has 20 values"
    path.write_bytes(at.in_turn(*nulls, at.column_index("id", at.of_page(at.NULL_COUNTS, 3, PAGE)))(sound()))
    (one,) = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert one.message == "page 2 is said to have only nulls, and has 20 values (2 of 5 pages are wrong)"
    exchanged_bounds = [
        at.column_index("id", at.of_page(field, 1, at.int64(n))) for field, n in ((at.MINS, 99), (at.MAXS, -99))
    ]
    path.write_bytes(at.in_turn(*exchanged_bounds)(sound()))
    (one,) = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert one.message.startswith("page 1's minimum is 99, and a value is ")
    assert "pages are wrong" not in one.message


def test_a_number_of_values_that_is_too_high_is_found_though_the_pages_after_it_are_others(tmp_path: Path) -> None:
    for writer in (sound(), (ROOT / "fixtures/parquet/spark_pages.parquet").read_bytes()):
        wrong = at.meta("id", at.num_values(PAGE))(writer)
        assert found(wrong, tmp_path / "f.parquet") == [("statistics-counts", ERROR, "id")]


@pytest.mark.parametrize("version", ["1.0", "2.0"])  # PLAIN and RLE
def test_an_order_of_booleans_is_proven_within_and_across_pages(version: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    false, true = [False] * 13, [True] * 13
    layouts = {
        "rises": ([*false, *true, *true], [True, False]),
        "falls": ([*true, *true, *false], [False, True]),
        "is one value": (true * 3, [True, True]),
        "returns across pages": ([*false, *true, *false], [False, False]),
        "returns within a page": ([*false, True, *false, *true], [False, False]),
    }
    for what, (rows_, expected) in layouts.items():
        for descending, sorted_ in zip((False, True), expected, strict=True):
            pq.write_table(
                pa.table({"flag": rows_}),
                path,
                store_schema=False,
                data_page_version=version,
                write_batch_size=1,
                max_rows_per_page=13,
                sorting_columns=[pq.SortingColumn(0, descending=descending)],
            )
            rules = [rule for rule, _, _ in found(path.read_bytes(), path)]
            assert rules == ["sorting-columns"] * (not sorted_), (what, descending)


def test_old_bounds_of_texts_are_not_used_unless_they_are_one_value(tmp_path: Path) -> None:
    edit = at.stats("text", MIN=b"z", MAX=CUT, MIN_VALUE=None, MAX_VALUE=None)
    assert found(edit(sound()), tmp_path / "f.parquet") == []


def test_bounds_that_are_too_wide_are_no_faults(tmp_path: Path) -> None:
    inexact = {"MAX_EXACT": False, "MIN_EXACT": False}
    edit = at.in_turn(
        at.stats("id", MAX_VALUE=at.int64(1000), MIN_VALUE=at.int64(-1000), MAX=None, MIN=None, **inexact),
        at.stats("text", MAX_VALUE=b"u", MIN_VALUE=b"t", **inexact),
        at.stats(
            "real", MAX_VALUE=at.double(math.inf), MIN_VALUE=at.double(-math.inf), MAX=None, MIN=None, **inexact
        ),
        at.column_index("text", at.of_page(at.MAXS, 1, b"texu")),
        at.column_index("text", at.of_page(at.MINS, 2, b"")),
        at.stats("list", NULLS=0),
    )
    assert found(edit(sound()), tmp_path / "f.parquet") == []


def test_a_bound_that_is_nan_makes_no_claim(tmp_path: Path) -> None:
    edit = at.stats("real", MAX_VALUE=at.double(NAN), MIN_VALUE=at.double(NAN), MAX=None, MIN=None)
    assert found(edit(sound()), tmp_path / "f.parquet") == []


def test_a_zero_of_either_sign_is_one_value_in_type_order_and_two_in_total_order(tmp_path: Path) -> None:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [-0.0, 1.0]}), out, store_schema=False, use_dictionary=False)
    for number, faults in ((1, 0), (2, 1)):

        def edit(metadata: Fields, number: int = number) -> None:
            metadata[at.COLUMN_ORDERS][1].values[0] = {number: (thrift.STRUCT, {})}
            statistics = footers.meta(metadata, 0, 0)[footers.STATISTICS][1]
            for field in (at.MIN, at.MIN_VALUE):
                if field in statistics:
                    statistics[field] = (thrift.BINARY, at.double(0.0))

        found_in = found(footers.edited(out.getvalue().to_pybytes(), edit), tmp_path / "f.parquet")
        assert found_in == [("statistics-bounds", ERROR, "id")] * faults


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize(
    ("values", "falling"), [([-1.0, 0.0, -0.0, 0.0, 1.0], False), ([1.0, -0.0, 0.0, -1.0], True)]
)
def test_rows_are_sorted_with_zeros_of_both_signs_mixed(
    tmp_path: Path, values: list[float], falling: bool, dictionary: bool
) -> None:
    path = tmp_path / "a.parquet"
    order = [pq.SortingColumn(0, descending=falling)]
    pq.write_table(pa.table({"z": values}), path, sorting_columns=order, use_dictionary=dictionary)
    assert not bloomcli.validate(path, deep=True, columns=["*"]).findings


def test_int96_has_bounds_only_in_the_order_of_timestamps(tmp_path: Path) -> None:
    out = pa.BufferOutputStream()
    times = pa.array([1_700_000_000_000_000_000, -5, 3], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": times}), out, store_schema=False, use_deprecated_int96_timestamps=True)
    for number, faults in ((1, 0), (3, 1)):

        def edit(metadata: Fields, number: int = number) -> None:
            metadata[at.COLUMN_ORDERS][1].values[0] = {number: (thrift.STRUCT, {})}
            there = footers.meta(metadata, 0, 0)
            bound = struct.pack("<qi", 3, 2440588)  # after -5 ns, and before 2023
            statistics = {at.NULLS: (thrift.I64, 0)}
            statistics |= {at.MAX_VALUE: (thrift.BINARY, bound), at.MIN_VALUE: (thrift.BINARY, bound)}
            there[footers.STATISTICS] = (thrift.STRUCT, statistics)
            ordered = dict(sorted(there.items()))
            there.clear()
            there.update(ordered)

        found_in = found(footers.edited(out.getvalue().to_pybytes(), edit), tmp_path / "f.parquet")
        assert found_in == [("statistics-bounds", ERROR, "at")] * faults


def test_only_columns_with_filters_are_proven_unless_others_are_named(tmp_path: Path) -> None:
    data, path = at.stats("id", MAX_VALUE=at.int64(GREATEST - 1))(sound()), tmp_path / "f.parquet"
    assert found(data, path, columns=()) == []
    assert found(data, path, columns=("text",)) == []
    assert found(data, path, columns=("i*",)) == [("statistics-bounds", ERROR, "id")]
    report = bloomcli.validate(path, deep=True, exclude=["text"])
    assert (report.findings, report.values_checked) == ((), 0)
    bloomcli.add(path, ["id"], in_place=True)
    assert {f.id for f in bloomcli.validate(path, deep=True).findings} == {"statistics-bounds"}


def test_row_groups_that_are_not_read_keep_what_their_metadata_show(tmp_path: Path) -> None:
    edit = at.in_turn(
        at.stats("id", MAX_VALUE=at.int64(-100), MIN_VALUE=at.int64(50)),
        at.column_index("up", at.of_page(at.NULL_PAGES, 2, True)),
    )
    path = tmp_path / "f.parquet"
    assert found(edit(sound()), path, deep=False) == [
        ("page-index-bounds", ERROR, "id"),  # the pages' bounds aren't those of the row group
        ("page-index-counts", ERROR, "up"),
        ("statistics-bounds", ERROR, "id"),
    ]
    first = bloomcli.validate(path, deep=True, columns=["*"], sample_row_groups="1", seed=0)
    assert first.row_groups_read == 1
    assert {f.id for f in first.findings} == {"page-index-bounds", "page-index-counts", "statistics-bounds"}
    whole = bloomcli.validate(path, deep=True, columns=["*"])
    assert {f.id for f in whole.findings} == {"page-index-counts", "statistics-bounds"}


KNOWN: Final = {
    "polars_1.38.1_decimal.parquet": {"statistics-bounds"},
    "polars_1.38.1_nan.parquet": {"page-index-counts"},
    "polars_1.38.1_nulls.parquet": {"statistics-counts", "page-index-counts"},
    "parquet_go_0.32.0.parquet": {"page-index-bounds"},
    "segmentio_parquet_go.parquet": {"page-index-bounds"},
    "parquetjs_1.8.8.parquet": {"page-index-counts", "page-index-locations"},
    "clickhouse_25.8.parquet": {"page-index-bounds"},
    "polars_1.9.0_texts.parquet": {"statistics-bounds"},
}
"""Files of writers that are known to be wrong."""
FIXTURES: Final = [
    path
    for path in sorted((ROOT / "fixtures").rglob("*.parquet"))
    if "rules" not in path.parts or path.parent.name.startswith(PROVEN)
]
"""Those of rules about filters have the same columns as each other."""


@pytest.mark.parametrize("path", FIXTURES, ids=[str(p.relative_to(ROOT / "fixtures")) for p in FIXTURES])
def test_the_fixtures_have_the_faults_that_are_known_and_no_others(path: Path) -> None:
    try:
        report = bloomcli.validate(path, deep=True, columns=["*"])
    except BloomError as error:
        pytest.skip(f"can't be read: {error.reason}")
    rules = {f.id for f in report.findings if f.id.startswith(PROVEN)} - {"statistics-not-checked"}
    of_rule = path.parent.name if path.stem == "broken" and path.parent.name.startswith(PROVEN) else None
    assert rules == (KNOWN.get(path.name, set()) if of_rule is None else {of_rule} - {"statistics-not-checked"})


MENDED: Final = sorted({(case.rule, case.column): what for what, case in ALL_CASES.items()}.values())
"""One of the cases of each rule and column."""


@pytest.mark.slow
@pytest.mark.parametrize("what", MENDED)
def test_repair_mends_what_is_found_and_leaves_the_other_chunks_alone(what: str, tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "mended.parquet"
    case = ALL_CASES[what]
    wrong = case.edit(sound())
    findings = found(wrong, path)
    assert case.rule in {rule for rule, _, _ in findings}
    report = bloomcli.repair(path, output=out)
    assert found(out.read_bytes(), out) == []
    columns = {column for _, _, column in findings}
    assert {change.column for change in report.structures} <= columns | {"list.list.element"}
    assert repr(pq.read_table(out).to_pylist()) == repr(table().to_pylist())
    before, after = footers.tree(wrong), footers.tree(out.read_bytes())
    changed = {(one.row_group, one.column) for one in report.structures}
    names = [chunk.column for chunk in bloomcli.inspect(out).by_column]
    for group, number in footers.places(wrong):
        if (group, names[number]) not in changed:
            assert footers.meta(after, group, number) == footers.meta(before, group, number)


NUMBERS: Final[dict[str, at.Edit]] = {
    "values of a page less": at.meta("id", at.num_values(-PAGE)),
    "values of a page more": at.meta("id", at.num_values(PAGE)),
    "values of pages of other columns": at.meta("text", at.num_values(7 * PAGE)),
    "elements more than a list column has": at.meta("list", at.num_values(7)),
    "elements fewer than a list column has": at.meta("list", at.num_values(-7)),
    "rows of a row group more": at.in_turn(at.rows(GROUP + 1), at.rows(2 * GROUP + 1, whole_file=True)),
    "rows of a row group fewer": at.rows(GROUP - PAGE),
    "rows of the file": at.rows(7, whole_file=True),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_of_rows_and_values_are_set_right_where_the_pages_prove_them(what: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(NUMBERS[what](sound()))
    report = bloomcli.repair(path, in_place=True)
    assert footers.tree(path.read_bytes()) == footers.tree(sound())
    assert {(one.structure, one.action) for one in report.structures} >= {("num_rows", "replace")}


EMPTY_CHUNKS: Final[dict[str, Fields]] = {
    "no offset": {footers.DATA_PAGE_OFFSET: (thrift.I64, 0)},
    "no bytes": {footers.DATA_PAGE_OFFSET: (thrift.I64, 4), footers.COMPRESSED_BYTES: (thrift.I64, 0)},
}


@pytest.mark.parametrize("column", ["id", "list"])
@pytest.mark.parametrize("what", EMPTY_CHUNKS)
def test_values_of_a_chunk_without_rows_and_pages_are_set_to_0_and_stop_no_command(
    what: str, column: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.parquet"
    data = pa.table({"id": pa.array(range(8)), "list": [[number] for number in range(8)]})
    with pq.ParquetWriter(path, data.schema) as writer:
        for rows in (data[:4], data[:0], data[4:]):
            writer.write_table(rows)

    def edit(metadata: Fields) -> None:
        footers.meta(metadata, 1, data.column_names.index(column)).update(
            {**EMPTY_CHUNKS[what], footers.NUM_VALUES: (thrift.I64, 5)}
        )

    footers.edit_file(path, path, edit)
    assert pq.read_table(path).equals(data)
    leaf = "list.list.element" if column == "list" else column
    assert [row["record"] for part in bloomcli.find(path, 7, column=leaf) for row in part.to_pylist()] == [
        {"id": 7, "list": [7]}
    ]
    bloomcli.advise(path, columns=[leaf])
    bloomcli.add(path, columns=[leaf], output=tmp_path / "added.parquet")
    assert bloomcli.validate(tmp_path / "added.parquet", deep=True, columns=[leaf]).ok is False
    assert found(path.read_bytes(), path) == [("statistics-counts", ERROR, leaf)]
    report = bloomcli.repair(path, in_place=True)
    changes = [(change.structure, change.action, change.row_group) for change in report.structures]
    assert changes == [("num_rows", "replace", 1)]
    assert footers.meta(footers.tree(path.read_bytes()), 1, column == "list")[footers.NUM_VALUES][1] == 0
    assert found(path.read_bytes(), path) == []
    assert pq.read_table(path).equals(data)


def test_values_of_a_chunk_without_an_offset_whose_row_group_has_rows_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(at.meta("id", lambda there: there.update({footers.DATA_PAGE_OFFSET: (thrift.I64, 0)}))(sound()))
    with pytest.raises(BloomError, match=r"outside the file's data(?s:.*)get the file from its source again"):
        bloomcli.repair(path, in_place=True)


def test_a_number_of_rows_is_set_right_where_an_order_of_the_same_row_group_is_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(at.in_turn(at.rows(GROUP - 1), at.sorted_by("id"))(sound()))
    report = bloomcli.repair(path, in_place=True)
    changes = {(one.structure, one.action) for one in report.structures}
    assert changes == {("num_rows", "replace"), ("sorting_columns", "remove")}
    assert found(path.read_bytes(), path) == []


def test_a_number_of_rows_that_an_encrypted_column_may_have_stays(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(footers.with_encrypted(at.rows(GROUP + 1)(sound()), (1, 0)))
    before = path.read_bytes()
    report = bloomcli.repair(path, in_place=True, keys=footers.SIGNED_BY)
    assert path.read_bytes() == before
    kept = {(one.structure, one.action, one.row_group) for one in report.structures if one.structure == "num_rows"}
    assert kept == {("num_rows", "keep", 1), ("num_rows", "keep", None)}
    assert any("the pages don't prove the right number" in (one.reason or "") for one in report.structures)
