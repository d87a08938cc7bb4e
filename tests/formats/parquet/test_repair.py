"""`repair` writes right statistics and page indexes, and changes nothing else."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, pagefiles, patches, thrift
from support.golden import FIXTURES, WRITERS
from support.thrift import BINARY, I32, I64, STRUCT, Fields

import bloomcli
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.formats.parquet import footer
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.formats.parquet.measured import measured
from bloomcli.formats.parquet.page_index import column_index, offset_index
from bloomcli.formats.parquet.proof import measure_of
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.change import ChangeReport, StructureChange
from bloomcli.storage.registry import open_source

ROWS: Final = 3_000
BOTH: Final = ("page-index", "statistics")
PLACES: Final = (4, 5, 6, 7)
"""ColumnChunk: the fields of both page indexes."""
COLUMN_ORDERS: Final = 7
NULL_COUNT, MAX_VALUE, MIN_VALUE, MAX_EXACT, MIN_EXACT = 3, 5, 6, 7, 8
PROVEN: Final = ("statistics", "page-index", "sorting", "size-statistics")


def table(rows: int = ROWS) -> pa.Table:
    """Columns of many types: unsigned, with NaN, FLOAT16, nested, with nulls, with long values."""
    at = range(rows)
    return pa.table(
        {
            "id": pa.array(at, pa.int64()),
            "u64": pa.array([2**63 - 3000 + i for i in at], pa.uint64()),
            "s": [f"n{i:07}" if i % 7 else None for i in at],
            "d": pa.array([Decimal(i - 3000) for i in at], pa.decimal128(20, 0)),
            "f": pa.array([math.nan if i % 100 == 0 else i / 4 - 700 for i in at]),
            "h": pa.array((np.arange(rows) // 8 - 300).astype(np.float16)),
            "flag": pa.array([i > 3000 for i in at]),
            "null": pa.array([None if i < 2500 else i for i in at], pa.int32()),
            "list": pa.array([[i, None] if i % 3 else ([] if i % 2 else None) for i in at], pa.list_(pa.int32())),
            "pair": pa.array(
                [{"x": i if i % 5 else None} if i % 11 else None for i in at], pa.struct({"x": pa.int64()})
            ),
            "ts": pa.array([dt.datetime(1969, 12, 31) + dt.timedelta(minutes=i) for i in at], pa.timestamp("us")),
        }
    )


def write(path: Path, data: pa.Table, **options: Any) -> Path:
    """A file with several pages in each chunk, and no page index."""
    layout = {"row_group_size": 2500, "data_page_size": 2048, "write_batch_size": 100, "max_rows_per_page": 300}
    pq.write_table(data, path, **{**layout, **options})
    return path


LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "version 1": {"compression": "snappy"},
    "version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "without statistics": {"write_statistics": False},
    "plain": {"use_dictionary": False, "compression": "none"},
    "deltas": {
        "use_dictionary": False,
        "column_encoding": {"id": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT"},
    },
}


def findings(path: Path) -> list[str]:
    """The findings about what readers skip by."""
    report = bloomcli.validate(path, deep=True, columns=["*"])
    return [f"{f.id} {f.column}: {f.message}" for f in report.findings if f.id.startswith(PROVEN)]


def rows(path: Path) -> str:
    """The rows that pyarrow reads, as text: NaN isn't equal to itself."""
    return repr(pq.read_table(path).to_pylist())


def actions(report: ChangeReport, structure: str) -> set[tuple[str, str]]:
    """(column, action) of the changes of one structure."""
    return {(one.column, one.action) for one in report.structures if one.structure == structure}


def without_structures(data: bytes) -> Fields:
    """The footer without statistics, column orders and the places of page indexes."""
    metadata = footers.tree(data)
    metadata.pop(COLUMN_ORDERS, None)
    for group, column in footers.places(data):
        footers.meta(metadata, group, column).pop(footers.STATISTICS, None)
        for field in PLACES:
            footers.chunk(metadata, group, column).pop(field, None)
    return metadata


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_added_structures_are_proven_and_all_other_bytes_stay(tmp_path: Path, layout: str) -> None:
    path = write(tmp_path / "in", table(), **LAYOUTS[layout])
    report = bloomcli.repair(path, add=BOTH, output=tmp_path / "out")
    before, after = path.read_bytes(), (tmp_path / "out").read_bytes()
    assert after.startswith(footers.split(before)[0])
    assert without_structures(after) == without_structures(before)
    assert findings(tmp_path / "out") == []
    leaves = {column.column for column in bloomcli.inspect(path).by_column}
    for structure in ("column_index", "offset_index"):
        assert actions(report, structure) == {(leaf, "add") for leaf in leaves}
    assert rows(tmp_path / "out") == rows(path)


@pytest.mark.parametrize("layout", LAYOUTS.keys() - {"without statistics"})  # pyarrow then writes no column index
def test_added_page_indexes_say_what_pyarrow_s_say(tmp_path: Path, layout: str) -> None:
    path = write(tmp_path / "in", table(), **LAYOUTS[layout])
    reference = write(tmp_path / "reference", table(), **LAYOUTS[layout], write_page_index=True)
    bloomcli.repair(path, add=["page-index"], in_place=True)

    def entries(file: Path, column: str) -> list[tuple[Any, ...]]:
        found = bloomcli.inspect(file, columns=[column], indexes=True).index
        assert not any(one.problem for one in found)
        return [
            (one.row_group, one.page, one.first_row, one.nulls, one.only_nulls, one.min, one.max) for one in found
        ]

    for column in bloomcli.inspect(path).by_column:
        there = entries(path, column.column)
        assert len(there) > 10
        assert there == entries(reference, column.column), column.column


def test_only_chosen_columns_are_decoded_and_every_column_gets_an_offset_index(tmp_path: Path) -> None:
    path = write(tmp_path / "in", table())
    report = bloomcli.repair(path, columns=["id", "s"], add=["page-index"], output=tmp_path / "out")
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in (0, 2)]
    assert report.bytes_decoded == sum(chunk.total_compressed_size for chunk in chunks)
    assert actions(report, "column_index") == {("id", "add"), ("s", "add")}
    assert len(actions(report, "offset_index")) == metadata.num_columns
    assert findings(tmp_path / "out") == []
    first, *_ = [one for one in report.structures if one.structure == "column_index"]
    assert (first.pages, first.lookup_bytes) == (9, first.page_bytes // 9)  # each value lies in one page


def test_the_metadata_of_a_row_group_are_walked_once_and_not_for_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each walk passes all columns, so that a walk for each one takes the square of their number."""
    walked: list[str] = []

    class Counted(Struct):
        """A structure whose walks are counted."""

        def __init__(self, name: str, *rest: Any) -> None:
            walked.append(name)
            super().__init__(name, *rest)

    path = tmp_path / "in"
    pq.write_table(pa.table({f"c{n}": [1, 2] for n in range(50)}), path, row_group_size=1)
    monkeypatch.setattr(footer, "Struct", Counted)
    bloomcli.repair(path, add=BOTH, output=tmp_path / "out", threads=1)
    assert "RowGroup" in walked
    assert walked.count("RowGroup") < 20
    walked.clear()
    bloomcli.validate(path, deep=True, columns=["*"], threads=1)
    assert walked.count("RowGroup") < 20


@pytest.mark.parametrize("path", sorted(WRITERS.glob("*.parquet")), ids=lambda path: path.stem)
def test_what_writers_get_wrong_is_mended_and_the_rest_stays(tmp_path: Path, path: Path) -> None:
    wrong = findings(path)
    report = bloomcli.repair(path, output=tmp_path / "out")
    assert wrong
    assert findings(tmp_path / "out") == []
    before, after = path.read_bytes(), (tmp_path / "out").read_bytes()
    assert without_structures(after) == without_structures(before)
    assert rows(tmp_path / "out") == rows(path)
    changed = {(one.row_group, one.column) for one in report.structures if one.action != "keep"}
    names = [column.column for column in bloomcli.inspect(path).by_column]
    old, new = footers.tree(before), footers.tree(after)
    for group, column in footers.places(before):
        if (group, names[column]) not in changed:
            assert footers.meta(new, group, column) == footers.meta(old, group, column)
    assert all(one.problems for one in report.structures)
    again = bloomcli.repair(tmp_path / "out", in_place=True)
    assert again.output is None
    assert "there is nothing to mend" in again.remarks


def edited(path: Path, group: int, column: int, fields: Fields) -> Path:
    """The file with other fields in a chunk's statistics."""

    def edit(metadata: Fields) -> None:
        found = footers.meta(metadata, group, column).setdefault(footers.STATISTICS, (STRUCT, {}))[1]
        found.update(fields)
        ordered = dict(sorted(found.items()))
        found.clear()
        found.update(ordered)

    return footers.edit_file(path, path, edit)


UNKNOWN: Final = 900
"""The number of a field that no IDL has."""


def test_a_field_that_nobody_knows_survives_in_mended_statistics(tmp_path: Path) -> None:
    path = write(tmp_path / "in", table())
    sound = footers.meta(footers.tree(path.read_bytes()), 1, 0)[footers.STATISTICS][1]
    edited(path, 1, 0, {MIN_VALUE: (BINARY, struct.pack("<q", 3000)), UNKNOWN: (I64, 7)})
    (change,) = bloomcli.repair(path, in_place=True).structures
    assert (change.row_group, change.column, change.structure, change.action) == (1, "id", "statistics", "replace")
    assert change.problems == ("min_value is 3000, and a value is 2500",)
    there = footers.meta(footers.tree(path.read_bytes()), 1, 0)[footers.STATISTICS][1]
    assert there[UNKNOWN] == (I64, 7)
    assert (there[MIN_VALUE], there[MAX_VALUE]) == (sound[MIN_VALUE], sound[MAX_VALUE])
    assert findings(path) == []


@pytest.mark.parametrize(
    "edit", [patches.plain_dictionary, patches.dictionary_pages], ids=["encodings", "statistics"]
)
def test_encodings_of_booleans_in_rle_no_longer_say_that_pages_use_a_dictionary(
    tmp_path: Path, edit: Callable[[Fields], None]
) -> None:
    path = write(
        tmp_path / "in",
        table().select(["flag"]),
        data_page_version="2.0",
        column_encoding={"flag": "RLE"},
        use_dictionary=False,
    )
    path.write_bytes(
        patches.meta("flag", patches.exchanged(patches.ENCODINGS, thrift.LIST, thrift.Items(I32, [2, 3])))(
            path.read_bytes()
        )
    )
    path.write_bytes(patches.meta("flag", edit)(path.read_bytes()))
    (change,) = bloomcli.repair(path, in_place=True).structures
    assert (change.structure, change.action) == ("encoding_stats", "replace")
    assert findings(path) == []
    metadata = footers.meta(footers.tree(path.read_bytes()), 1, 0)
    assert metadata[patches.ENCODINGS][1].values == [3]


def test_filters_and_other_indexes_stay_where_a_replaced_index_is_cut_out(tmp_path: Path) -> None:
    path = write(tmp_path / "in", table(), write_page_index=True)
    bloomcli.add(path, ["id", "s"], in_place=True)
    size = path.stat().st_size
    with open_source(path) as source:
        found = read_footer(source).metadata(next(read_footer(source).chunk_keys({0})))
    data = bytearray(path.read_bytes())
    at = found.column_index_offset
    low = data.index(struct.pack("<q", 0), at, at + found.column_index_length)
    data[low : low + 8] = struct.pack("<q", 5)
    path.write_bytes(data)
    assert any(text.startswith("page-index-bounds id") for text in findings(path))
    report = bloomcli.repair(path, columns=["id"], in_place=True)
    assert [(one.structure, one.action) for one in report.structures] == [("column_index", "replace")]
    assert report.bytes_unreclaimed == 0
    assert path.stat().st_size < size  # the new index has no histograms
    checked = bloomcli.validate(path, deep=True, columns=["*"])
    assert checked.findings == ()
    assert checked.filters_checked == 4


def test_a_second_run_adds_nothing_where_the_first_found_no_right_value(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in", pa.table({"id": range(900), "f": [math.nan] * 600 + [1.5] * 300, "g": [math.nan] * 900})
    )
    first = bloomcli.repair(path, add=BOTH, in_place=True)
    assert actions(first, "statistics") == {("g", "keep")}  # the null count is there, and NaN has no bounds
    assert {("f", "keep"), ("g", "keep")} < actions(first, "column_index")
    before = path.read_bytes()
    for add in (BOTH, ["page-index"], ["statistics"]):
        again = bloomcli.repair(path, add=add, in_place=True)
        assert {one.action for one in again.structures} == {"keep"}
        assert "there is nothing to add" in again.remarks
        assert again.output is None
    assert path.read_bytes() == before


def test_a_dry_run_says_where_a_structure_is_not_added_which_only_the_values_show(tmp_path: Path) -> None:
    lists = [[1.5], [math.nan]] * 50
    path = write(tmp_path / "in", pa.table({"id": range(100), "f": [math.nan] * 100, "n": lists}))
    planned = bloomcli.repair(path, add=BOTH, dry_run=True)
    only_nan, within = "not where a page has no value but NaN", "not where a page begins within a row"
    assert {(one.column, one.structure): one.reason for one in planned.structures if one.reason} == {
        ("f", "statistics"): "not where all values are NaN",  # the null count is there
        ("f", "column_index"): only_nan,
        ("n.list.element", "column_index"): within,
        ("n.list.element", "offset_index"): within,
    }
    done = {(one.column, one.structure): one for one in bloomcli.repair(path, add=BOTH, in_place=True).structures}
    assert {done["f", name].action for name in ("column_index", "statistics")} == {"keep"}


def decimals(path: Path, values: list[bytes], low: bytes | None = None) -> Path:
    """A file with a decimal of the type BYTE_ARRAY, without statistics or with a minimum."""
    write(path, pa.table({"d": pa.array(values, pa.binary())}), use_dictionary=False, compression="none")

    def edit(metadata: Fields) -> None:
        metadata[2][1].values[1][6] = (I32, 5)
        metadata[2][1].values[1] |= {7: (I32, 2), 8: (I32, 9)}
        meta = footers.meta(metadata, 0, 0)
        meta.pop(12, None)
        if low is not None:
            meta[12] = (STRUCT, {MAX_VALUE: (BINARY, max(values)), MIN_VALUE: (BINARY, low)})

    return footers.edit_file(path, path, edit)


@pytest.mark.parametrize("values", [[b""], [b"", b"\x07"], [b"\xf0", b""]])
def test_a_decimal_without_bytes_is_no_bound(tmp_path: Path, values: list[bytes]) -> None:
    path = decimals(tmp_path / "in", values * 300)
    report = bloomcli.repair(path, add=BOTH, in_place=True)
    assert actions(report, "statistics") == {("d", "add")}  # the null count
    assert actions(report, "column_index") == {("d", "keep")}
    assert actions(report, "offset_index") == {("d", "add")}
    reasons = {one.structure: one.reason for one in report.structures}
    assert reasons["statistics"] == f"no bounds: {reasons['column_index']}"
    assert "a decimal without bytes" in (reasons["column_index"] or "")
    meta = footers.meta(footers.tree(path.read_bytes()), 0, 0)
    assert {MAX_VALUE, MIN_VALUE}.isdisjoint(meta[12][1])
    assert findings(path) == []
    assert "there is nothing to add" in bloomcli.repair(path, add=BOTH, in_place=True).remarks


def test_a_decimal_without_bytes_is_compared_with_bounds_as_0(tmp_path: Path) -> None:
    assert findings(decimals(tmp_path / "sound", [b"", b"\x07"], low=b"\0")) == []
    (found,) = findings(decimals(tmp_path / "wrong", [b"", b"\x07"], low=b"\x02"))
    assert found.startswith("statistics-bounds d: min_value is 0.02, and a value is")


@pytest.mark.parametrize(
    ("values", "compared"), [([b"", b"\x07"], False), ([b"\x01", b"", b"\x07"], False), ([b"\x01"], True)]
)
def test_a_table_s_bounds_are_not_proven_by_decimals_without_bytes(
    tmp_path: Path, values: list[bytes], compared: bool
) -> None:
    path = decimals(tmp_path / "in", values * 300)
    with open_source(path) as source:
        filters = ParquetFile(source).filters
        (key,) = filters.footer.chunk_keys()
        chunk = filters.footer.chunk(key)
        found = measured(filters, chunk, measure_of(filters.footer, chunk))
    assert found.of_column().compared == compared


def indexes(path: Path, column: int) -> tuple[Any, Any]:
    """The decoded indexes of the first chunk of a column."""
    with open_source(path) as source:
        footer = read_footer(source)
        key = next(footer.chunk_keys({column}))
        return column_index(source, footer, key), offset_index(source, footer, key)


def test_pages_that_begin_within_a_row_have_no_offset_index(tmp_path: Path) -> None:
    def page(repetition: int) -> bytes:
        """Three values, with these bits as repetition levels."""
        levels = [bytes([3, repetition]), b"\x06\x01"]
        body = b"".join(len(one).to_bytes(4, "little") + one for one in levels)
        return pagefiles.data_page(body + struct.pack("<3i", 1, 2, 3), 3)

    def repeated(metadata: Fields) -> None:
        metadata[2][1].values[2][3] = (I32, 2)
        footers.meta(metadata, 0, 1)[footers.NUM_VALUES] = (I64, 6)

    columns = {
        "id": ("INT32", [pagefiles.data_page(struct.pack("<2i", 1, 2), 2)]),
        "c": ("INT32", [page(0b110), page(0b011)]),
    }
    path = pagefiles.of_pages(tmp_path / "in", columns, rows=2)
    footers.edit_file(path, path, repeated)
    why = "a page begins within a row, and the format has no offset index for such pages"
    for chosen, reasons in (("c", {"offset_index": why, "column_index": why}), ("id", {"offset_index": why})):
        report = bloomcli.repair(path, add=["page-index"], columns=[chosen], output=tmp_path / chosen)
        assert {one.structure: one.reason for one in report.structures if one.column == "c"} == reasons
        assert ("id", "add") in actions(report, "offset_index")


def test_column_orders_are_added_only_where_no_bounds_depend_on_them(tmp_path: Path) -> None:
    def without_orders(metadata: Fields) -> None:
        del metadata[COLUMN_ORDERS]

    bare = write(tmp_path / "bare", table(), write_statistics=False)
    full = write(tmp_path / "full", table())
    for path in (bare, full):
        footers.edit_file(path, path, without_orders)
        bloomcli.repair(path, add=BOTH, in_place=True)
        assert findings(path) == []
    assert len(footers.tree(bare.read_bytes())[COLUMN_ORDERS][1].values) == 11
    assert COLUMN_ORDERS not in footers.tree(full.read_bytes())


@pytest.mark.parametrize(("add", "page"), [((), 1000), (BOTH, 1000), (BOTH, 3)], ids=["mend", "add", "small pages"])
def test_a_dry_run_writes_nothing_and_announces_at_least_the_bytes(
    tmp_path: Path, add: tuple[str, ...], page: int
) -> None:
    path = write(tmp_path / "in", table(), max_rows_per_page=page, data_page_size=1 << 20)
    if not add:
        edited(path, 0, 0, {MIN_VALUE: (BINARY, struct.pack("<q", 3000))})
    before = path.read_bytes()
    planned = bloomcli.repair(path, add=add, dry_run=True)
    assert path.read_bytes() == before
    done = bloomcli.repair(path, add=add, output=tmp_path / "out")

    def what(one: StructureChange) -> tuple[Any, ...]:
        return one.row_group, one.column, one.structure, one.action, one.problems

    assert sorted(map(what, planned.structures)) == sorted(map(what, done.structures))
    assert planned.bytes_after >= done.bytes_after
    assert done.bytes_after == (tmp_path / "out").stat().st_size


def test_encrypted_columns_are_left_out_and_refused_by_name(tmp_path: Path) -> None:
    path, keys = write(tmp_path / "in", table()), footers.SIGNED_BY
    path.write_bytes(footers.with_encrypted(path.read_bytes(), (0, 0), (1, 0)))
    report = bloomcli.repair(path, add=["page-index"], output=tmp_path / "out", keys=keys)
    left = {one.column for one in report.structures if (one.reason or "").startswith("encrypted: give its key")}
    assert left == {"id"}
    with pytest.raises(UnsupportedError, match="column id is encrypted in row group 0"):
        bloomcli.repair(path, columns=["id"], add=["page-index"], output=tmp_path / "named", keys=keys)
    with pytest.raises(UnsupportedError, match="the footer is signed"):
        bloomcli.repair(FIXTURES / "pyarrow_encrypted_columns.parquet", output=tmp_path / "signed")


def test_an_unknown_addition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes page-index and statistics, not 'bounds'"):
        bloomcli.repair(tmp_path / "in", add=["bounds"])
