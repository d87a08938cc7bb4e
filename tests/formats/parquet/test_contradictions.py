"""Statistics and column indexes that contradict each other, or that a writer gets wrong, hide no row."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.golden import WRITERS
from support.thrift import BINARY, I32, I64, LIST, STRUCT, Fields, Items

import bloomcli
from bloomcli.model.file import Presence

ROWS: Final = 400
COLUMN_ORDERS: Final = 7
CREATED_BY: Final = 6
INDEX_OFFSET, INDEX_LENGTH = 6, 7
NULL_PAGES, MINIMA, MAXIMA, ORDER, NULL_COUNTS = 1, 2, 3, 4, 5
# Statistics
NULL_COUNT, MAX_VALUE, MIN_VALUE, MAX_EXACT = 3, 5, 6, 7


def rows_with(path: Path, column: str, text: str) -> int:
    """The rows that `find` returns; no file may fail."""
    found = bloomcli.find(path, [text], column=column)
    rows = sum(batch.num_rows for batch in found)
    assert not found.report.failed
    return rows


def spelled(value: Any) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(WRITERS.iterdir()), ids=lambda path: path.stem)
def test_every_value_of_a_file_with_wrong_metadata_is_found(path: Path) -> None:
    table = pq.read_table(path)
    looked_up = 0
    for name in table.column_names:
        values = [
            v for v in table[name].to_pylist() if v is not None and not (isinstance(v, float) and math.isnan(v))
        ]
        for value, rows in Counter(values).items():
            assert rows_with(path, name, spelled(value)) == rows, (name, value)
            (total,) = bloomcli.probe(path, [spelled(value)], column=name).totals
            assert total.presence is not Presence.ABSENT, (name, value)
            assert total.stats_skipped_row_groups == 0, (name, value)
            looked_up += 1
    assert looked_up


def paged(path: Path, **options: Any) -> Path:
    """A file of one row group: pages of 100 rows, with ascending numbers and texts, every tenth a null."""
    table = pa.table(
        {
            "id": pa.array(range(ROWS)),
            "number": pa.array([None if i % 10 == 0 else i for i in range(ROWS)]),
            "text": pa.array([f"a text of more than sixteen bytes {i:04}" for i in range(ROWS)]),
        }
    )
    pq.write_table(
        table, path, use_dictionary=False, write_page_index=True, data_page_size=1, write_batch_size=100, **options
    )
    return path


def with_index(path: Path, column: int, edit: Callable[[Fields], object]) -> Path:
    """The file with an edited column index, which is written again at the end of its data."""
    body, footer = footers.split(path.read_bytes())
    metadata, _ = thrift.parse(footer)
    chunk = footers.chunk(metadata, 0, column)
    start = chunk[INDEX_OFFSET][1]
    index, _ = thrift.parse(body[start : start + chunk[INDEX_LENGTH][1]])
    edit(index)
    encoded = thrift.encode(index)
    chunk[INDEX_OFFSET], chunk[INDEX_LENGTH] = (I64, len(body)), (I32, len(encoded))
    path.write_bytes(footers.join(body + encoded, thrift.encode(metadata)))
    return path


def put(field: int, page: int, value: object) -> Callable[[Fields], None]:
    """An edit of a page's entry in one of the index's lists."""

    def edit(index: Fields) -> None:
        index[field][1].values[page] = value

    return edit


def descending(index: Fields) -> None:
    """Pages that ascend, said to descend; the last page's bounds are those of the first."""
    index[ORDER] = (I32, 2)


def beyond(index: Fields) -> None:
    """The maxima of the last page, and so of all pages, are too low."""
    put(MAXIMA, 3, b"a text of more t")(index)


def without_bounds(index: Fields) -> None:
    """No page has bounds, and one that has values has only nulls."""
    del index[NULL_COUNTS]
    for page in range(4):
        put(MINIMA, page, b"")(index)
        put(MAXIMA, page, b"")(index)
    put(NULL_PAGES, 2, True)(index)


def of_number(value: int) -> bytes:
    return struct.pack("<q", value)


CONTRADICTIONS: Final[dict[str, tuple[str, int, str, Callable[[Fields], None], str]]] = {
    # column, its ordinal, a value that the edited index excludes, the edit, what `inspect` says
    "only nulls, and no null": ("id", 0, "250", put(NULL_PAGES, 2, True), "only nulls"),
    "only nulls, and fewer nulls than rows": ("number", 1, "255", put(NULL_PAGES, 2, True), "only nulls"),
    "other nulls than the row group": ("number", 1, "255", put(NULL_COUNTS, 2, 11), "nulls than the row group"),
    "more nulls than rows": ("number", 1, "255", put(NULL_COUNTS, 2, 101), "more nulls than rows"),
    "a minimum above the maximum": ("id", 0, "250", put(MINIMA, 2, of_number(300)), "minimum is above"),
    "minima above the row group's": ("id", 0, "0", put(MINIMA, 0, of_number(1)), "minima don't reach"),
    "maxima below the row group's": ("id", 0, "399", put(MAXIMA, 3, of_number(398)), "maxima don't reach"),
    "neither bounds nor only nulls": ("number", 1, "255", without_bounds, "neither bounds nor only nulls"),
    "a cut maximum": ("text", 2, "a text of more than sixteen bytes 0399", beyond, "maximum"),
    "another order": ("id", 0, "250", descending, "order"),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_contradicting_column_index_is_not_used(tmp_path: Path, what: str) -> None:
    column, ordinal, value, edit, said = CONTRADICTIONS[what]
    path = paged(tmp_path / "f")
    left_out = bloomcli.find(path, [value], column=column)
    assert sum(batch.num_rows for batch in left_out) == 1
    assert left_out.report.pages_left_out == 3
    sound = bloomcli.inspect(path, columns=[column], indexes=True)
    assert [entry.problem for entry in sound.index] == [None] * 4
    with_index(path, ordinal, edit)
    found = bloomcli.find(path, [value], column=column)
    assert sum(batch.num_rows for batch in found) == 1
    assert found.report.pages_left_out == 0
    report = bloomcli.inspect(path, columns=[column], indexes=True)
    (problem,) = [entry.problem for entry in report.index if entry.problem is not None]
    assert problem.startswith("the column index isn't used: ")
    assert said in problem


@pytest.mark.parametrize("maximum", [b"", b"\xff" * 16])
def test_a_page_whose_maximum_can_not_be_one_is_read(tmp_path: Path, maximum: bytes) -> None:
    """ClickHouse writes the empty text for a long maximum; 0xFF can't be incremented where it is cut."""
    values = [b"a", b"\xff" * 16 + b"\1", b"\xff" * 16 + b"\2"]
    table = pa.table({"c": pa.array(values, pa.binary())})
    pq.write_table(table, tmp_path / "f", use_dictionary=False, write_page_index=True, write_statistics=True)

    def edit(index: Fields) -> None:
        put(MAXIMA, 0, maximum)(index)
        put(MINIMA, 0, b"")(index)

    with_index(tmp_path / "f", 0, edit)
    footers.edit_file(tmp_path / "f", tmp_path / "g", lambda tree: footers.meta(tree, 0, 0).pop(footers.STATISTICS))
    for value in values:
        assert rows_with(tmp_path / "g", "c", spelled(value)) == 1


def with_statistics(path: Path, edit: Callable[[Fields], object], created_by: bytes | None = None) -> Path:
    """The file with edited statistics of the first chunk."""

    def change(tree: Fields) -> None:
        statistics = footers.meta(tree, 0, 0)[footers.STATISTICS][1]
        edit(statistics)
        ordered = dict(sorted(statistics.items()))
        statistics.clear()
        statistics.update(ordered)
        if created_by is not None:
            tree[CREATED_BY] = (BINARY, created_by)

    return footers.edit_file(path, path, change)


@pytest.mark.parametrize("nulls", [3, 4_293_972_296, -1])
def test_a_null_count_that_bounds_or_values_contradict_hides_no_value(tmp_path: Path, nulls: int) -> None:
    """cuDF has written counts beyond the number of values (cudf#9221), Polars counts that equal it (polars#29321)."""
    pq.write_table(pa.table({"c": [1, 2, None]}), tmp_path / "f")
    with_statistics(tmp_path / "f", lambda s: s.update({NULL_COUNT: (I64, nulls)}))
    assert rows_with(tmp_path / "f", "c", "2") == 1
    (total,) = bloomcli.probe(tmp_path / "f", ["2"], column="c").totals
    assert total.presence is Presence.NO_FILTER
    (column,) = bloomcli.inspect(tmp_path / "f", every=True).by_column
    assert (column.nulls, column.min, column.max) == (None, "1", "2")


@pytest.mark.parametrize("which", [MIN_VALUE, MAX_VALUE])
def test_a_bound_beside_nan_excludes_nothing(tmp_path: Path, which: int) -> None:
    """PARQUET-1246: with NaN as one bound, old writers' other bound may leave values out."""
    pq.write_table(pa.table({"c": [1.0, 2.0, 3.0]}), tmp_path / "f")
    bounds = {MIN_VALUE: (BINARY, struct.pack("<d", 2)), MAX_VALUE: (BINARY, struct.pack("<d", 2))}
    bounds[which] = (BINARY, struct.pack("<d", math.nan))
    with_statistics(tmp_path / "f", lambda s: s.update(bounds))
    assert [rows_with(tmp_path / "f", "c", text) for text in ("1", "2", "3")] == [1, 1, 1]


DECIMALS: Final = [Decimal(1), Decimal(255), Decimal(300), Decimal(384)]


@pytest.mark.parametrize(
    ("created_by", "found"),
    [
        (b"parquet-cpp version 1.5.1-SNAPSHOT", 1),
        (b"parquet-cpp-arrow version 3.0.0", 1),
        (b"parquet-cpp-arrow version 4.0.0", 0),
        (b"parquet-cpp-arrow version 26.0.1", 0),
        (b"Polars", 1),
        (b"Polars (python) version 2.1.0 (build 1)", 0),
    ],
)
def test_bounds_of_decimals_are_believed_by_the_writers_version(
    tmp_path: Path, created_by: bytes, found: int
) -> None:
    """Arrow C++ before 4.0 compared each byte as a signed number (PARQUET-1655): 255 to 300 for these values."""
    pq.write_table(pa.table({"c": pa.array(DECIMALS, pa.decimal128(20, 0))}), tmp_path / "f", use_dictionary=False)
    bounds = {MIN_VALUE: 255, MAX_VALUE: 300}
    narrow = {field: (BINARY, value.to_bytes(9, "big")) for field, value in bounds.items()}
    with_statistics(tmp_path / "f", lambda s: s.update(narrow), created_by)
    assert rows_with(tmp_path / "f", "c", "384") == found
    assert rows_with(tmp_path / "f", "c", "300") == 1


def test_bounds_in_an_unknown_order_exclude_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": ["a", "b", "c"]}), tmp_path / "f")
    with_statistics(tmp_path / "f", lambda s: s.update({MAX_VALUE: (BINARY, b"b")}))
    assert rows_with(tmp_path / "f", "c", "c") == 0  # by the known order, the maximum excludes it
    orders = (LIST, Items(STRUCT, [{9: (STRUCT, {})}]))
    footers.edit_file(tmp_path / "f", tmp_path / "f", lambda tree: tree.update({COLUMN_ORDERS: orders}))
    assert rows_with(tmp_path / "f", "c", "c") == 1


def test_bounds_that_duckdb_1_took_from_the_type_prove_no_filter_wrong(tmp_path: Path) -> None:
    """Its maximum of infinities is the largest finite number, its bounds of an ENUM are the type's; both "exact"."""
    table = pa.table({"c": [1.0, math.inf]})
    pq.write_table(table, tmp_path / "f", use_dictionary=False)
    bloomcli.add(tmp_path / "f", ["c"], in_place=True)
    lowest = {MIN_VALUE: (BINARY, struct.pack("<d", -1.7976931348623157e308))}
    for created_by, findings in ((b"DuckDB version v1.4.2 (build 1)", 0), (b"DuckDB version v2.0.1 (build 1)", 1)):
        with_statistics(tmp_path / "f", lambda s: s.update(lowest), created_by)
        assert len(bloomcli.validate(tmp_path / "f").findings) == findings
        (fact,) = bloomcli.inspect(tmp_path / "f").filters
        assert (fact.untrusted is not None) == bool(findings)
