"""`validate --deep` proves what readers skip by, besides filters: wrong structures are found, and sound ones aren't.

A sound file is written, and one structure of it is patched by code that shares nothing with bloomcli.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.patches import (
    COLUMN_ORDERS,
    DEFINITION,
    LOCATIONS,
    MAX_VALUE,
    MAXS,
    MIN,
    MIN_VALUE,
    MINS,
    NAN_COUNTS,
    NULL_COUNTS,
    NULL_PAGES,
    NULLS,
    ORDER,
    REPETITION,
    UNENCODED,
    Edit,
    added,
    column_index,
    dictionary_pages,
    double,
    exchanged,
    in_location,
    in_turn,
    int64,
    levels,
    meta,
    num_values,
    of_page,
    offset_index,
    order,
    plain_dictionary,
    rows,
    sizes,
    sorted_by,
    stats,
    without_last,
)
from support.skipped_rows import GROUP, NAN, PAGE, by_arrow, table, values
from support.thrift import Fields

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.formats.parquet.measured import measured
from bloomcli.formats.parquet.proof import measure_of
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Severity
from bloomcli.storage.registry import open_source

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

CASES: Final[dict[str, tuple[Edit, str, Severity, str | None]]] = {
    "a maximum that is too low": (stats("id", MAX_VALUE=int64(GREATEST - 1)), "statistics-bounds", ERROR, "id"),
    "a minimum that is too high": (stats("id", MIN_VALUE=int64(LEAST + 1)), "statistics-bounds", ERROR, "id"),
    "an old maximum that is too low": (stats("id", MAX=int64(GREATEST - 1)), "statistics-bounds", ERROR, "id"),
    "an old minimum that is too high": (stats("id", MIN=int64(0)), "statistics-bounds", ERROR, "id"),
    "a bound of the wrong width": (stats("id", MAX_VALUE=b"\x7f\0\0\0"), "statistics-bounds", ERROR, "id"),
    "unsigned numbers compared as signed": (
        stats("unsigned", MAX_VALUE=struct.pack("<I", 2_140_000_000)),
        "statistics-bounds",
        ERROR,
        "unsigned",
    ),
    "a maximum of doubles": (stats("real", MAX_VALUE=double(REAL - 1)), "statistics-bounds", ERROR, "real"),
    "a minimum of doubles": (stats("real", MIN_VALUE=double(-19.5)), "statistics-bounds", ERROR, "real"),
    "a minimum of half floats": (stats("half", MIN_VALUE=struct.pack("<e", -1)), "statistics-bounds", ERROR, "half"),
    "a maximum of half floats": (stats("half", MAX_VALUE=struct.pack("<e", 1)), "statistics-bounds", ERROR, "half"),
    "a text that is cut, and not incremented": (stats("text", MAX_VALUE=CUT), "statistics-bounds", ERROR, "text"),
    "the empty text for a maximum": (stats("text", MAX_VALUE=b""), "statistics-bounds", ERROR, "text"),
    "a minimum of texts": (stats("text", MIN_VALUE=b"text number 1"), "statistics-bounds", ERROR, "text"),
    "decimals compared as unsigned bytes": (
        stats("money", MIN_VALUE=(1).to_bytes(9, "big")),
        "statistics-bounds",
        ERROR,
        "money",
    ),
    "a maximum of decimals": (stats("money", MAX_VALUE=(9).to_bytes(9, "big")), "statistics-bounds", ERROR, "money"),
    "a maximum of booleans": (stats("flag", MAX_VALUE=b"\0", MAX=b"\0"), "statistics-bounds", ERROR, "flag"),
    "fixed bytes compared as signed": (
        stats("fixed", MAX_VALUE=struct.pack(">I", 2_140_000_000)),
        "statistics-bounds",
        ERROR,
        "fixed",
    ),
    "a maximum of list elements": (
        stats("list", MAX_VALUE=int64(5)),
        "statistics-bounds",
        ERROR,
        "list.list.element",
    ),
    "a maximum of dictionary entries": (stats("word", MAX_VALUE=b"word 6"), "statistics-bounds", ERROR, "word"),
    "a maximum in total order": (
        in_turn(order("real", 2), stats("real", MAX_VALUE=double(REAL - 1))),
        "statistics-bounds",
        ERROR,
        "real",
    ),
    "a bound that is said to be exact": (
        stats("id", MAX_VALUE=int64(100), MAX=None, MAX_EXACT=True),
        "statistics-bounds",
        ERROR,
        "id",
    ),
    "a minimum that is said to be exact": (
        stats("id", MIN_VALUE=int64(-100), MIN=None, MIN_EXACT=True),
        "statistics-bounds",
        ERROR,
        "id",
    ),
    "a minimum in total order": (
        in_turn(order("real", 2), stats("real", MIN_VALUE=double(0.5))),
        "statistics-bounds",
        ERROR,
        "real",
    ),
    "no nulls": (stats("text", NULLS=0), "statistics-counts", ERROR, "text"),
    "too many nulls": (stats("text", NULLS=99), "statistics-counts", ERROR, "text"),
    "only nulls": (stats("text", NULLS=GROUP), "statistics-counts", ERROR, "text"),
    "fewer nulls than none": (stats("text", NULLS=-1), "statistics-counts", ERROR, "text"),
    "more nulls than a list column has": (stats("list", NULLS=170), "statistics-counts", ERROR, "list.list.element"),
    "a number of NaNs": (stats("real", NANS=3), "statistics-counts", ERROR, "real"),
    "a number of distinct values": (stats("word", DISTINCT=9), "statistics-counts", NOTE, "word"),
    "the footer's rows": (rows(2 * GROUP + 1, whole_file=True), "statistics-counts", ERROR, None),
    "a page beyond the number of values": (meta("id", num_values(-PAGE)), "statistics-counts", ERROR, "id"),
    "encoding statistics": (meta("text", dictionary_pages), "statistics-encodings", ERROR, "text"),
    "encodings, without statistics": (meta("text", plain_dictionary), "statistics-encodings", ERROR, "text"),
    "an ascending order": (sorted_by("id"), "sorting-columns", ERROR, "id"),
    "a descending order": (sorted_by("up", descending=True), "sorting-columns", ERROR, "up"),
    "an order of dictionary entries": (sorted_by("word"), "sorting-columns", ERROR, "word"),
    "an order of booleans": (sorted_by("flag"), "sorting-columns", ERROR, "flag"),
    "a descending order of booleans": (sorted_by("flag", descending=True), "sorting-columns", ERROR, "flag"),
    "old bounds of texts that are one value": (  # parquet-java uses them, as no order changes one value
        stats("text", MIN=CUT, MAX=CUT, MIN_VALUE=None, MAX_VALUE=None),
        "statistics-bounds",
        ERROR,
        "text",
    ),
    "an order of texts": (sorted_by("text"), "sorting-columns", ERROR, "text"),
    "a page that is said to have only nulls": (
        column_index("id", of_page(NULL_PAGES, 2, True)),
        "page-index-counts",
        ERROR,
        "id",
    ),
    "a page of nulls that isn't said to be one": (
        column_index("gap", of_page(NULL_PAGES, 0, False)),
        "page-index-counts",
        ERROR,
        "gap",
    ),
    "a page's nulls": (column_index("text", of_page(NULL_COUNTS, 1, 0)), "page-index-counts", ERROR, "text"),
    "a page's NaNs": (
        column_index("real", added(NAN_COUNTS, thrift.I64, [0] * 5)),
        "page-index-counts",
        ERROR,
        "real",
    ),
    "a column index of fewer pages": (
        column_index("id", without_last(NULL_PAGES, MINS, MAXS, NULL_COUNTS)),
        "page-index-counts",
        ERROR,
        "id",
    ),
    "lists of different lengths": (column_index("id", without_last(MAXS)), "page-index-counts", ERROR, "id"),
    "a page's minimum": (column_index("id", of_page(MINS, 1, int64(90))), "page-index-bounds", ERROR, "id"),
    "a page's maximum": (column_index("id", of_page(MAXS, 1, int64(-90))), "page-index-bounds", ERROR, "id"),
    "a page's maximum that is cut": (column_index("text", of_page(MAXS, 1, CUT)), "page-index-bounds", ERROR, "text"),
    "a page's bound without bytes": (column_index("id", of_page(MAXS, 1, b"")), "page-index-bounds", ERROR, "id"),
    "a page's maximum of booleans": (
        column_index("flag", of_page(MAXS, 1, b"\0")),
        "page-index-bounds",
        ERROR,
        "flag",
    ),
    "a page's minimum of dictionary entries": (
        column_index("word", of_page(MINS, 1, b"word 7")),
        "page-index-bounds",
        ERROR,
        "word",
    ),
    "a page's minimum of decimals": (
        column_index("money", of_page(MINS, 1, (1).to_bytes(9, "big"))),
        "page-index-bounds",
        ERROR,
        "money",
    ),
    "a page's minimum of half floats": (
        column_index("half", of_page(MINS, 1, struct.pack("<e", 99))),
        "page-index-bounds",
        ERROR,
        "half",
    ),
    "a page's maximum in total order": (
        in_turn(order("real", 2), column_index("real", of_page(MAXS, 1, double(-99)))),
        "page-index-bounds",
        ERROR,
        "real",
    ),
    "a page's maximum of list elements": (
        column_index("list", of_page(MAXS, 1, int64(-1))),
        "page-index-bounds",
        ERROR,
        "list.list.element",
    ),
    "an ascending order of bounds": (
        column_index("id", exchanged(ORDER, thrift.I32, 1)),
        "page-index-bounds",
        ERROR,
        "id",
    ),
    "a descending order of bounds": (
        column_index("up", exchanged(ORDER, thrift.I32, 2)),
        "page-index-bounds",
        ERROR,
        "up",
    ),
    "a column index that can't be read": (
        column_index("id", added(NULL_PAGES, thrift.I64, [0] * 5)),
        "page-index-bounds",
        ERROR,
        "id",
    ),
    "a page's offset": (offset_index("id", in_location(2, 1, 1)), "page-index-locations", ERROR, "id"),
    "a page's size": (offset_index("id", in_location(4, 2, -20)), "page-index-locations", ERROR, "id"),
    "a page's first row": (offset_index("id", in_location(2, 3, 1)), "page-index-locations", ERROR, "id"),
    "an offset index of fewer pages": (
        offset_index("id", without_last(LOCATIONS)),
        "page-index-locations",
        ERROR,
        "id",
    ),
    "an offset index that can't be read": (
        offset_index("id", added(LOCATIONS, thrift.I64, [0] * 5)),
        "page-index-locations",
        ERROR,
        "id",
    ),
    "unencoded bytes": (meta("text", sizes(1, (thrift.I64, 7))), "size-statistics", NOTE, "text"),
    "a histogram of definition levels": (meta("text", sizes(3, levels(50, 50))), "size-statistics", NOTE, "text"),
    "a histogram of repetition levels": (
        meta("list", sizes(2, levels(1, 1))),
        "size-statistics",
        NOTE,
        "list.list.element",
    ),
    "unencoded bytes of pages": (
        offset_index("text", added(UNENCODED, thrift.I64, [1] * 5)),
        "size-statistics",
        NOTE,
        "text",
    ),
    "histograms of pages' repetition levels": (
        column_index("list", added(REPETITION, thrift.I64, [1] * 10)),
        "size-statistics",
        NOTE,
        "list.list.element",
    ),
    "histograms of pages": (
        column_index("text", added(DEFINITION, thrift.I64, [10] * 10)),
        "size-statistics",
        NOTE,
        "text",
    ),
}
"""By what is wrong: the edit, the rule, its severity, and the column."""


def test_a_sound_file_has_no_finding(tmp_path: Path) -> None:
    for deep in (False, True):
        assert found(sound(), tmp_path / "f.parquet", deep=deep) == []


@pytest.mark.parametrize("what", CASES)
def test_a_wrong_structure_is_found_and_nothing_else(what: str, tmp_path: Path) -> None:
    edit, rule, severity, column = CASES[what]
    assert found(edit(sound()), tmp_path / "f.parquet") == [(rule, severity, column)]


def test_a_page_counts_once_however_much_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    nulls = [
        column_index("id", of_page(field, 2, value)) for field, value in ((NULL_PAGES, True), (NULL_COUNTS, PAGE))
    ]
    path.write_bytes(in_turn(*nulls)(sound()))
    (one,) = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert one.message == "page 2 is said to have only nulls, and has 20 values"
    path.write_bytes(in_turn(*nulls, column_index("id", of_page(NULL_COUNTS, 3, PAGE)))(sound()))
    (one,) = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert one.message == "page 2 is said to have only nulls, and has 20 values (2 of 5 pages are wrong)"
    exchanged_bounds = [column_index("id", of_page(field, 1, int64(n))) for field, n in ((MINS, 99), (MAXS, -99))]
    path.write_bytes(in_turn(*exchanged_bounds)(sound()))
    (one,) = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert one.message.startswith("page 1's minimum is 99, and a value is ")
    assert "pages are wrong" not in one.message


def test_a_number_of_values_that_is_too_high_is_found_though_the_pages_after_it_are_others(tmp_path: Path) -> None:
    for writer in (sound(), (ROOT / "fixtures/parquet/spark_pages.parquet").read_bytes()):
        wrong = meta("id", num_values(PAGE))(writer)
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
    edit = stats("text", MIN=b"z", MAX=CUT, MIN_VALUE=None, MAX_VALUE=None)
    assert found(edit(sound()), tmp_path / "f.parquet") == []


def test_bounds_that_are_too_wide_are_no_faults(tmp_path: Path) -> None:
    inexact = {"MAX_EXACT": False, "MIN_EXACT": False}
    edit = in_turn(
        stats("id", MAX_VALUE=int64(1000), MIN_VALUE=int64(-1000), MAX=None, MIN=None, **inexact),
        stats("text", MAX_VALUE=b"u", MIN_VALUE=b"t", **inexact),
        stats("real", MAX_VALUE=double(math.inf), MIN_VALUE=double(-math.inf), MAX=None, MIN=None, **inexact),
        column_index("text", of_page(MAXS, 1, b"texu")),
        column_index("text", of_page(MINS, 2, b"")),
        stats("list", NULLS=0),
    )
    assert found(edit(sound()), tmp_path / "f.parquet") == []


def test_a_bound_that_is_nan_makes_no_claim(tmp_path: Path) -> None:
    edit = stats("real", MAX_VALUE=double(NAN), MIN_VALUE=double(NAN), MAX=None, MIN=None)
    assert found(edit(sound()), tmp_path / "f.parquet") == []


def test_a_zero_of_either_sign_is_one_value_in_type_order_and_two_in_total_order(tmp_path: Path) -> None:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [-0.0, 1.0]}), out, store_schema=False, use_dictionary=False)
    for number, faults in ((1, 0), (2, 1)):

        def edit(metadata: Fields, number: int = number) -> None:
            metadata[COLUMN_ORDERS][1].values[0] = {number: (thrift.STRUCT, {})}
            statistics = footers.meta(metadata, 0, 0)[footers.STATISTICS][1]
            for field in (MIN, MIN_VALUE):
                if field in statistics:
                    statistics[field] = (thrift.BINARY, double(0.0))

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
            metadata[COLUMN_ORDERS][1].values[0] = {number: (thrift.STRUCT, {})}
            there = footers.meta(metadata, 0, 0)
            bound = struct.pack("<qi", 3, 2440588)  # after -5 ns, and before 2023
            statistics = {NULLS: (thrift.I64, 0)}
            statistics |= {MAX_VALUE: (thrift.BINARY, bound), MIN_VALUE: (thrift.BINARY, bound)}
            there[footers.STATISTICS] = (thrift.STRUCT, statistics)
            ordered = dict(sorted(there.items()))
            there.clear()
            there.update(ordered)

        found_in = found(footers.edited(out.getvalue().to_pybytes(), edit), tmp_path / "f.parquet")
        assert found_in == [("statistics-bounds", ERROR, "at")] * faults


def test_only_columns_with_filters_are_proven_unless_others_are_named(tmp_path: Path) -> None:
    data, path = stats("id", MAX_VALUE=int64(GREATEST - 1))(sound()), tmp_path / "f.parquet"
    assert found(data, path, columns=()) == []
    assert found(data, path, columns=("text",)) == []
    assert found(data, path, columns=("i*",)) == [("statistics-bounds", ERROR, "id")]
    report = bloomcli.validate(path, deep=True, exclude=["text"])
    assert (report.findings, report.values_checked) == ((), 0)
    bloomcli.add(path, ["id"], in_place=True)
    assert {f.id for f in bloomcli.validate(path, deep=True).findings} == {"statistics-bounds"}


def test_row_groups_that_are_not_read_keep_what_their_metadata_show(tmp_path: Path) -> None:
    edit = in_turn(
        stats("id", MAX_VALUE=int64(-100), MIN_VALUE=int64(50)),
        column_index("up", of_page(NULL_PAGES, 2, True)),
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


def writers() -> dict[str, Callable[[Path], object]]:
    """The same numbers and texts by several engines."""
    import duckdb
    import polars as pl
    from datafusion import SessionContext

    rows = table().select(["id", "text"])

    def by_datafusion(path: Path) -> None:
        context = SessionContext()
        context.from_arrow(rows, name="t").write_parquet(str(path))

    def by_duckdb(path: Path) -> None:
        duckdb.from_arrow(rows).write_parquet(str(path))

    return {
        "pyarrow": lambda path: pq.write_table(rows, path, write_page_index=True),
        "Polars": lambda path: pl.DataFrame(rows).write_parquet(path, statistics="full"),
        "DuckDB": by_duckdb,
        "DataFusion": by_datafusion,
        "Spark": lambda path: path.write_bytes((ROOT / "fixtures/parquet/orders.parquet").read_bytes()),
    }


@pytest.mark.parametrize("writer", ["pyarrow", "Polars", "DuckDB", "DataFusion", "Spark"])
def test_bounds_and_counts_of_every_writer_are_proven(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "sound.parquet"
    writers()[writer](path)
    (path,) = [path] if path.is_file() else path.iterdir()  # DataFusion writes a folder
    data = path.read_bytes()
    assert found(data, tmp_path / "again.parquet") == []

    def told(field: int, kind: int, value: Any) -> bytes:
        return footers.edited(
            data, lambda tree: footers.meta(tree, 0, 0)[footers.STATISTICS][1].update({field: (kind, value)})
        )

    for field, bound in ((MAX_VALUE, -(1 << 40)), (MIN_VALUE, 1 << 40)):
        wrong = told(field, thrift.BINARY, int64(bound))
        assert {rule for rule, _, _ in found(wrong, tmp_path / "wrong.parquet")} >= {"statistics-bounds"}
    wrong = told(NULLS, thrift.I64, 5)
    assert {rule for rule, _, _ in found(wrong, tmp_path / "wrong.parquet")} >= {"statistics-counts"}


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
FIXTURES: Final = sorted((ROOT / "fixtures").rglob("*.parquet"))


@pytest.mark.parametrize("path", FIXTURES, ids=[str(p.relative_to(ROOT / "fixtures")) for p in FIXTURES])
def test_the_fixtures_have_the_faults_that_are_known_and_no_others(path: Path) -> None:
    try:
        report = bloomcli.validate(path, deep=True, columns=["*"])
    except BloomError as error:
        pytest.skip(f"can't be read: {error.reason}")
    rules = {f.id for f in report.findings if f.id.startswith(PROVEN)} - {"statistics-not-checked"}
    of_rule = path.parent.name if path.stem == "broken" and path.parent.name.startswith(PROVEN) else None
    assert rules == (KNOWN.get(path.name, set()) if of_rule is None else {of_rule} - {"statistics-not-checked"})


def test_measured_pages_are_those_that_arrow_wrote(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(sound())
    arrow = pq.read_metadata(path)
    with open_source(path) as source:
        file: Any = open_file(source, None)
        for key in file.footer.chunk_keys():
            chunk = measured(file.filters, file.footer.chunk(key), measure_of(file.footer, file.footer.chunk(key)))
            statistics = arrow.row_group(key.row_group).column(key.column).statistics
            column = file.footer.columns[key.column]
            assert (chunk.rows, len(chunk.pages)) == (GROUP, 5), column.path
            assert [page.first_row for page in chunk.pages] == [0, 20, 40, 60, 80]
            assert (chunk.nulls, chunk.values) == (
                statistics.null_count,
                arrow.row_group(key.row_group).column(key.column).num_values,
            )
            if column.path == "word":
                assert chunk.distinct is None  # counted only where it is claimed
            if column.path == "up":
                assert struct.unpack("<i", chunk.low or b"")[0] == key.row_group * GROUP


@pytest.mark.parametrize("what", CASES)
def test_repair_mends_what_is_found_and_leaves_the_other_chunks_alone(what: str, tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "mended.parquet"
    edit, rule, _, column = CASES[what]
    wrong = edit(sound())
    assert rule in {one[0] for one in found(wrong, path)}
    report = bloomcli.repair(path, output=out)
    assert found(out.read_bytes(), out) == []
    assert {change.column for change in report.structures} <= {column, "list.list.element"}
    assert repr(pq.read_table(out).to_pylist()) == repr(table().to_pylist())
    before, after = footers.tree(wrong), footers.tree(out.read_bytes())
    changed = {(one.row_group, one.column) for one in report.structures}
    names = [chunk.column for chunk in bloomcli.inspect(out).by_column]
    for group, number in footers.places(wrong):
        if (group, names[number]) not in changed:
            assert footers.meta(after, group, number) == footers.meta(before, group, number)


NUMBERS: Final[dict[str, Edit]] = {
    "values of a page less": meta("id", num_values(-PAGE)),
    "values of a page more": meta("id", num_values(PAGE)),
    "values of pages of other columns": meta("text", num_values(7 * PAGE)),
    "elements more than a list column has": meta("list", num_values(7)),
    "elements fewer than a list column has": meta("list", num_values(-7)),
    "rows of a row group more": in_turn(rows(GROUP + 1), rows(2 * GROUP + 1, whole_file=True)),
    "rows of a row group fewer": rows(GROUP - PAGE),
    "rows of the file": rows(7, whole_file=True),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_of_rows_and_values_are_set_right_where_the_pages_prove_them(what: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(NUMBERS[what](sound()))
    report = bloomcli.repair(path, in_place=True)
    assert footers.tree(path.read_bytes()) == footers.tree(sound())
    assert {(one.structure, one.action) for one in report.structures} >= {("num_rows", "replace")}


def test_a_number_of_rows_is_set_right_where_an_order_of_the_same_row_group_is_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(in_turn(rows(GROUP - 1), sorted_by("id"))(sound()))
    report = bloomcli.repair(path, in_place=True)
    changes = {(one.structure, one.action) for one in report.structures}
    assert changes == {("num_rows", "replace"), ("sorting_columns", "remove")}
    assert found(path.read_bytes(), path) == []


def test_a_number_of_rows_that_an_encrypted_column_may_have_stays(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(footers.with_encrypted(rows(GROUP + 1)(sound()), (1, 0)))
    before = path.read_bytes()
    report = bloomcli.repair(path, in_place=True, keys=footers.SIGNED_BY)
    assert path.read_bytes() == before
    kept = {(one.structure, one.action, one.row_group) for one in report.structures if one.structure == "num_rows"}
    assert kept == {("num_rows", "keep", 1), ("num_rows", "keep", None)}
    assert any("the pages don't prove the right number" in (one.reason or "") for one in report.structures)
