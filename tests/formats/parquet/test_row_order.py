"""`validate --deep` compares rows by all sorting columns of a row group, and `repair` keeps those that are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.patches import COLUMN_ORDERS, SORTING
from support.sources import CountingSource
from support.thrift import Fields, Items

import bloomcli
from bloomcli.formats.parquet import limits
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding

By = tuple[str, bool, bool]
"""A sorting column: its name, whether it falls, whether nulls are first."""
UP: Final = (False, False)
PAGE: Final = 7


def write(
    path: Path,
    table: pa.Table,
    *by: By,
    group: int | None = None,
    dictionary: bool = True,
    columns: int | None = None,
) -> Path:
    """A file that is said to be sorted, in pages of seven rows: Arrow doesn't look at the rows."""
    order = [pq.SortingColumn(table.column_names.index(name), falling, first) for name, falling, first in by]
    pq.write_table(
        table,
        path,
        row_group_size=group,
        use_dictionary=dictionary,
        sorting_columns=order,
        store_schema=False,
        write_batch_size=1,
        max_rows_per_page=PAGE,
    )
    return path


def findings(path: Path, columns: Sequence[str] = ("*",)) -> list[Finding]:
    return list(bloomcli.validate(path, deep=True, columns=columns).findings)


def rules(path: Path, columns: Sequence[str] = ("*",)) -> list[tuple[str, Severity, int | None, str | None]]:
    return [(f.id, f.severity, f.row_group, f.column) for f in findings(path, columns)]


def stated(path: Path, group: int = 0) -> list[tuple[int, bool, bool]]:
    """A row group's sorting columns as Arrow reads them."""
    found = pq.read_metadata(path).row_group(group).sorting_columns
    return [(one.column_index, one.descending, one.nulls_first) for one in found]


def wrong(column: str, group: int = 0) -> tuple[str, Severity, int, str]:
    return "sorting-columns", Severity.ERROR, group, column


TWO: Final = [(a, b) for a in (1, 2, 3) for b in range(10)]
"""Ten rows of each of three values, in pages of seven rows: equal values go on in the next page."""


def two(rows: Sequence[tuple[Any, Any]]) -> pa.Table:
    return pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})


@pytest.mark.parametrize("dictionary", [False, True])
def test_the_second_column_counts_between_rows_that_are_equal_in_the_first(tmp_path: Path, dictionary: bool) -> None:
    by = ("a", *UP), ("b", *UP)
    path = write(tmp_path / "sound.parquet", two(TWO), *by, dictionary=dictionary)
    assert rules(path) == []
    for at in (0, 4, 6, 13, 25):  # within a page, and from one page to the next
        rows = [*TWO[:at], TWO[at + 1], TWO[at], *TWO[at + 2 :]]
        path = write(tmp_path / f"{at}.parquet", two(rows), *by, dictionary=dictionary)
        (found,) = findings(path)
        assert (found.id, found.severity, found.column) == ("sorting-columns", Severity.ERROR, "a")
        assert found.message == "the rows with equal values in a aren't in the ascending order of b"
        assert rules(path, ["a"]) == [wrong("a")]  # b is decoded though it isn't chosen
        assert rules(path, ["b"]) == []


DELTAS: Final = {
    "DELTA_BINARY_PACKED": pa.array([-3, 5, 2**40]),
    "DELTA_LENGTH_BYTE_ARRAY": pa.array(["", "", "b"]),
    "DELTA_BYTE_ARRAY": pa.array(["a", "ab", "b"]),
    "BYTE_STREAM_SPLIT": pa.array([-1.5, 0.0, 2.5]),
    "RLE": pa.array([False, False, True]),
}


@pytest.mark.parametrize("encoding", DELTAS)
def test_runs_of_equal_values_count_row_by_row_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.parquet"
    for changed in (None, 100, 299):
        rows = [at // 300 for at in range(900)]
        if changed is not None:  # within a run, and at its end
            rows[changed], rows[changed + 1] = 2, 0
        table = pa.table({"a": [1] * 900, "b": DELTAS[encoding].take(pa.array(rows))})
        order = [pq.SortingColumn(0), pq.SortingColumn(1)]
        pq.write_table(
            table,
            path,
            use_dictionary=False,
            column_encoding={"b": encoding},
            sorting_columns=order,
            data_page_version="2.0",
            write_batch_size=64,
            data_page_size=256,
        )
        assert encoding in pq.read_metadata(path).row_group(0).column(1).encodings
        assert rules(path, ["a"]) == [wrong("a")] * (changed is not None)


def test_sorting_columns_are_decoded_once(tmp_path: Path) -> None:
    rows = sorted((at // 500, (at * 7919) % 20_011) for at in range(20_000))
    path = tmp_path / "a.parquet"
    pq.write_table(two(rows), path, sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(1)], use_dictionary=False)
    with CountingSource(path) as source:
        assert not any(one.proof for one in open_file(source).deep({0, 1}, lambda _: None, None, 1))
        assert source.bytes_read < 1.2 * source.size


def test_each_row_group_is_compared_by_itself(tmp_path: Path) -> None:
    rows = [*TWO[:10], *TWO[:10], *TWO[5:9], *TWO[:6]]
    path = write(tmp_path / "a.parquet", two(rows), ("a", *UP), ("b", *UP), group=10)
    assert rules(path) == [wrong("a", 2)]
    report = bloomcli.repair(path, in_place=True)
    assert [(one.row_group, one.structure, one.action) for one in report.structures] == [
        (2, "sorting_columns", "replace")
    ]
    assert [len(stated(path, group)) for group in range(3)] == [2, 2, 1]
    assert rules(path) == []
    assert pq.read_table(path).to_pylist() == two(rows).to_pylist()


def key(value: Any, falling: bool, first: bool) -> tuple[bool, Any]:
    """A key by which Python sorts values as the format says."""
    if value is None:
        return not first, ()
    return first, [-part for part in value] if falling else value


COLUMNS: Final[dict[str, pa.Array]] = {
    "texts": pa.array(["b", "a", "", "é", "Z", None]),
    "numbers": pa.array([3, -1, 0, 2**40, -(2**40), None]),
    "unsigned": pa.array([2**31, 1, 2**32 - 1, 0, 7, None], pa.uint32()),
    "unsigned64": pa.array([2**63, 1, 2**64 - 1, 0, 7, None], pa.uint64()),
    "reals": pa.array([0.5, -2.0, math.inf, -math.inf, 1.0, None]),
    "halves": pa.array([0.5, -2.0, 3.0, -0.25, 1.0, None], pa.float32()).cast(pa.float16()),
    "flags": pa.array([True, False, None]),
    "bytes": pa.array([b"\xff\0", b"\x7f\1", b"\0\0", None], pa.binary(2)),
    "decimals": pa.array(
        [Decimal(text) for text in ("-1.5", "2.25", "0.00", "-9.00", "100.00")], pa.decimal128(20, 2)
    ),
    "small decimals": pa.array([Decimal("-1.5"), Decimal("2.25"), None], pa.decimal128(5, 2)),
    "dates": pa.array([1, -1, 20_000, None], pa.date32()),
    "times": pa.array([datetime(2020, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), None], pa.timestamp("us")),
}
CODES: Final = {  # numbers in the order of each column's values, nulls left out
    "texts": [3, 2, 0, 4, 1],
    "bytes": [2, 1, 0],
}


def codes(name: str) -> list[int | None]:
    """For each value of a column its place in the column's order, which Arrow or the table above knows."""
    values = COLUMNS[name].to_pylist()
    known = CODES.get(name) or [
        sorted({one for one in values if one is not None}).index(v) for v in values if v is not None
    ]
    places = iter(known)
    return [None if value is None else next(places) for value in values]


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_each_type_and_nulls_are_compared_in_the_stated_order(
    tmp_path: Path, name: str, first: bool, falling: bool
) -> None:
    found = codes(name)
    order = sorted(range(len(found)), key=lambda at: key(None if found[at] is None else [found[at]], falling, first))
    rows = [at for at in order for _ in range(PAGE - 2)]
    others = {
        f"{at}": [*rows[: at * 5 - 1], rows[at * 5], rows[at * 5 - 1], *rows[at * 5 + 1 :]]
        for at in range(1, len(order))
    }
    by = ("a", False, False), ("b", falling, first)
    for number, (what, taken) in enumerate({"sound": rows, **others}.items()):
        table = pa.table({"a": [1] * len(taken), "b": COLUMNS[name].take(pa.array(taken))})
        path = write(tmp_path / f"{what}.parquet", table, *by, dictionary=number % 2 == 0)
        assert rules(path, ["a"]) == [wrong("a")] * (what != "sound"), what


def test_nulls_of_the_first_column_are_found_on_the_wrong_side_within_a_page(tmp_path: Path) -> None:
    for values, first in product(([None, 1, 2], [1, 2, None], [1, None, 2]), (False, True)):
        path = write(tmp_path / "a.parquet", pa.table({"a": values}), ("a", False, first))
        right = values == ([None, 1, 2] if first else [1, 2, None])
        assert rules(path) == [] if right else [wrong("a")], (values, first)
        if not right:
            where = "first" if first else "last"
            assert findings(path)[0].message == f"the rows with nulls in a aren't {where}"


def three(rows: Sequence[tuple[int, int | None, str]]) -> pa.Table:
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate("abc")})


def test_three_columns_are_compared_and_the_longest_right_beginning_is_kept(tmp_path: Path) -> None:
    by = ("a", False, False), ("b", True, True), ("c", False, False)
    rows = [(a, b, c) for a in (1, 2) for b in (None, 9, 4) for c in ("x", "y", "z")]
    assert rules(write(tmp_path / "sound.parquet", three(rows), *by)) == []
    cases = {
        "c": ([*rows[:3], rows[4], rows[3], *rows[5:]], 2),
        "b": ([*rows[3:6], *rows[:3], *rows[6:]], 1),
        "c, and b later": ([rows[1], rows[0], *rows[2:12], *rows[15:], *rows[12:15]], 1),
        "a": ([*rows[9:], *rows[:9]], 0),
    }
    for what, (table, kept) in cases.items():
        path = write(tmp_path / "wrong.parquet", three(table), *by)
        before = pq.read_table(path)
        assert rules(path) == [wrong("a")], what
        report = bloomcli.repair(path, in_place=True)
        assert [one.action for one in report.structures] == ["replace" if kept else "remove"], what
        assert stated(path) == [(0, False, False), (1, True, True)][:kept], what
        assert rules(path) == [], what
        assert pq.read_table(path).equals(before)


def test_zeros_of_both_signs_are_equal_and_nan_has_no_place_in_the_order(tmp_path: Path) -> None:
    zeros, nan = [-0.0, 0.0, -0.0, 0.0], math.nan
    cases: dict[str, tuple[list[float], list[float], int]] = {
        "zeros mixed": (zeros, [1, 2, 3, 4], 0),
        "a later column between zeros": (zeros, [1, 2, 4, 3], 1),
        "NaN in the later column": ([1.0] * 4, [1, nan, 2, nan], 0),
        "NaN in the first column": ([1.0, nan, nan, 2.0], [4, 3, 2, 1], 0),
        "zeros in the later column": ([1.0] * 4, zeros, 0),
        "wrong next to NaN": ([1.0] * 4, [nan, 2, 1, nan], 1),
    }
    for kind, (what, (a, b, faults)) in product((pa.float64(), pa.float16()), cases.items()):
        table = pa.table({"a": pa.array(a, pa.float32()).cast(kind), "b": pa.array(b, pa.float32()).cast(kind)})
        path = write(tmp_path / "a.parquet", table, ("a", *UP), ("b", *UP))
        assert rules(path) == [wrong("a")] * faults, (what, kind)


def sorted_by(*columns: int) -> Any:
    """All row groups are said to be sorted by these leaf columns."""

    def edit(metadata: Fields) -> None:
        by = [{1: (thrift.I32, one), 2: (thrift.FALSE, False), 3: (thrift.FALSE, False)} for one in columns]
        for group in metadata[footers.ROW_GROUPS][1].values:
            group[SORTING] = (thrift.LIST, Items(thrift.STRUCT, by))

    return edit


def with_all_kinds() -> bytes:
    """Columns: one value, a list, a timestamp in INT96, a struct's field that falls."""
    out = pa.BufferOutputStream()
    table = pa.table(
        {
            "a": [1] * 20,
            "list": [[i, 20 - i] for i in range(20)],
            "at": pa.array(range(20), pa.timestamp("ns")),
            "in": [None if i % 5 == 4 else {"b": -(i // 5)} for i in range(20)],
        }
    )
    pq.write_table(table, out, use_deprecated_int96_timestamps=True, store_schema=False)
    return bytes(out.getvalue())


def test_lists_and_types_without_an_order_end_the_comparison_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    note = ("statistics-not-checked", Severity.NOTE, 0)
    for columns, named, why in (
        ((0, 1, 3), "a", "list.list.element on: the format defines no order of lists"),
        ((1,), "list.list.element", "list.list.element on: the format defines no order of lists"),
        ((0, 2), "a", "at on: its type has no defined order"),
        ((2,), "at", "at on: its type has no defined order"),
    ):
        path.write_bytes(footers.edited(with_all_kinds(), sorted_by(*columns)))
        before = path.read_bytes()
        assert rules(path) == [(*note, named)], columns
        assert findings(path)[0].message == f"the order of the rows isn't compared from the sorting column {why}"
        assert not any(one.structure == "sorting_columns" for one in bloomcli.repair(path, in_place=True).structures)
        assert path.read_bytes() == before


def test_a_field_of_a_struct_and_timestamps_that_have_an_order_are_compared(tmp_path: Path) -> None:
    def ordered(metadata: Fields) -> None:
        metadata[COLUMN_ORDERS][1].values[2] = {3: (thrift.STRUCT, {})}

    path = tmp_path / "a.parquet"
    for columns, faults in (((0, 2), 0), ((0, 3), 1), ((0, 2, 3), 0)):
        path.write_bytes(footers.edited(footers.edited(with_all_kinds(), ordered), sorted_by(*columns)))
        assert rules(path) == [wrong("a")] * faults, columns


def test_a_column_that_does_not_exist_is_wrong_and_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for column in (4, -1, 2**31 - 1):
        path.write_bytes(footers.edited(with_all_kinds(), sorted_by(0, column)))
        assert findings(path)[0].message == f"the rows can't be sorted by column {column}: the file has 4 columns"
        bloomcli.repair(path, in_place=True)
        assert stated(path) == [(0, False, False)]
        assert rules(path) == []


def test_rows_are_compared_by_a_limited_number_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for more in (0, 1, 1000):
        path.write_bytes(footers.edited(with_all_kinds(), sorted_by(*[0] * (limits.SORTED_BY_MOST + more))))
        found = findings(path)
        assert [one.id for one in found] == ["statistics-not-checked"] * (more > 0)
        assert not more or found[0].message.endswith(f"rows are compared by at most {limits.SORTED_BY_MOST} columns")


def test_damaged_or_encrypted_pages_of_a_later_column_end_the_comparison_with_a_note(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", two(TWO), ("a", *UP), ("b", *UP), dictionary=False)
    sound = path.read_bytes()

    at = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    for data in (footers.with_encrypted(sound, (0, 1)), sound[:at] + b"\xff" * 40 + sound[at + 40 :]):
        path.write_bytes(data)
        (found,) = (f for f in findings(path, ["a"]) if f.id != "footer-unverified")
        assert (found.id, found.severity, found.column, found.hint) == (
            "statistics-not-checked",
            Severity.NOTE,
            "a",
            None,
        )
        assert not bloomcli.repair(path, in_place=True, columns=["a"], keys=footers.SIGNED_BY).structures
        assert path.read_bytes() == data
