"""A sound column gets no filter if another column's metadata are damaged, or claim the filter's place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from support import blooms, footers, thrift
from support.tables import packed, write
from support.thrift import I32, I64, STRUCT, Fields

import bloomcli
from bloomcli.errors import CorruptFile, UnsupportedError

TABLE = pa.table({"id": pa.array(range(100), pa.int64()), "n": pa.array(range(100), pa.int64())})
BAD = (1, 1)
"""Row group and column of the damaged chunk: `n`, which never gets filters."""
CHUNK = "row_groups[1].columns[1]"
TYPE, CODEC, UNCOMPRESSED, COMPRESSED = 1, 4, 6, 7
FILTER = blooms.header(64) + blooms.build(map(packed("<q"), range(50, 100)), 64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 100 rows in 2 row groups, with page indexes and without filters."""
    return write(tmp_path / "f.parquet", TABLE, rows=50, store_schema=False, write_page_index=True)


def meta(change: Callable[[Fields], object]) -> Callable[[Fields], None]:
    """An edit of the damaged chunk's ColumnMetaData."""
    return lambda tree: void(change(footers.meta(tree, *BAD)))


def chunk(change: Callable[[Fields], object]) -> Callable[[Fields], None]:
    """An edit of the damaged chunk."""
    return lambda tree: void(change(footers.chunk(tree, *BAD)))


def void(_: object) -> None:
    """Discard the result of an edit."""


def set_to(number: int, kind: int, value: int) -> Callable[[Fields], object]:
    return lambda fields: fields.update({number: (kind, value)})


def without(number: int) -> Callable[[Fields], object]:
    return lambda fields: fields.pop(number)


def edit(path: Path, *changes: Callable[[Fields], None]) -> None:
    for change in changes:
        footers.edit_file(path, path, change)


def end_of_data(path: Path) -> int:
    return len(footers.split(path.read_bytes())[0])


def repeat_a_field(path: Path, row_group: int, column: int, below: int | None = None) -> None:
    """num_values, or the first of the statistics, occurs twice."""
    body, footer = footers.split(path.read_bytes())
    fields = footers.meta(footers.tree(path.read_bytes()), row_group, column)
    if below is not None:
        fields = fields[below][1]
    number = footers.NUM_VALUES if below is None else next(iter(fields))
    kind, value = fields[number]
    old = thrift.encode(fields)
    again = bytes([kind, number << 1]) + thrift.encode({number: (kind, value)})[1:-1]
    assert footer.count(old) >= 1
    at = footer.rindex(old)  # the last row group's last column
    path.write_bytes(footers.join(body, footer[:at] + old[:-1] + again + b"\0" + footer[at + len(old) :]))


def refused(
    path: Path, message: str, field: str, kind: type[CorruptFile | UnsupportedError] = CorruptFile
) -> CorruptFile | UnsupportedError:
    """Check that `add` for the sound column reports the fault of the other one before it writes anything."""
    before = path.read_bytes()
    for options in ({"output": path.with_name("out")}, {"in_place": True}, {"dry_run": True}):
        with pytest.raises(kind, match=message) as caught:
            bloomcli.add(path, ["id"], **options)  # type: ignore[call-overload]
        assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
    error = caught.value
    assert (error.path, error.field) == (str(path), field)
    assert error.offset is not None
    assert 0 < error.offset < len(before)
    assert error.hint
    return error


@pytest.mark.parametrize(
    ("change", "message", "field"),
    [
        (
            meta(without(COMPRESSED)),
            "ColumnMetaData has no total_compressed_size",
            ".meta_data.total_compressed_size",
        ),
        (meta(set_to(COMPRESSED, I64, -5)), "total_compressed_size is -5", ".meta_data.total_compressed_size"),
        (meta(set_to(COMPRESSED, I32, 5)), "has no total_compressed_size", ".meta_data.total_compressed_size"),
        (meta(without(footers.DATA_PAGE_OFFSET)), "no data_page_offset", ".meta_data.data_page_offset"),
        (chunk(without(footers.META_DATA)), "the column chunk has no metadata", ".meta_data"),
        (chunk(set_to(footers.META_DATA, I32, 1)), "the column chunk has no metadata", ".meta_data"),
        (chunk(set_to(footers.COLUMN_INDEX_OFFSET, I64, 1 << 40)), "outside the file's data", ".column_index_offset"),
        (chunk(set_to(5, I32, 1 << 30)), "outside the file's data", ".offset_index_offset"),
    ],
)
def test_metadata_of_another_column_that_cannot_be_read_are_reported(
    path: Path, change: Callable[[Fields], None], message: str, field: str
) -> None:
    edit(path, change)
    refused(path, message, CHUNK + field)


def test_a_repeated_field_of_another_column_is_reported(path: Path) -> None:
    repeat_a_field(path, *BAD)
    refused(path, "a field id is repeated", f"{CHUNK}.meta_data")


def test_another_column_in_another_file_is_reported(path: Path) -> None:
    edit(path, chunk(lambda fields: fields.update({1: (thrift.BINARY, b"elsewhere.parquet")})))
    refused(path, "the data lies in another file", f"{CHUNK}.file_path", UnsupportedError)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (COMPRESSED, 1 << 20),
        (COMPRESSED, (1 << 63) - 1),
        (footers.DATA_PAGE_OFFSET, 1 << 40),
        (footers.DATA_PAGE_OFFSET, (1 << 63) - 1),
    ],
)
def test_pages_of_another_column_where_the_filters_go_are_reported(path: Path, number: int, value: int) -> None:
    edit(path, meta(without(11)), meta(set_to(number, I64, value)))  # 11: no dictionary page
    error = refused(path, "the pages of column n in row group 1", f"{CHUNK}.meta_data.total_compressed_size")
    assert f"outside the file's data, which end at {end_of_data(path)}, where new filters go" in error.reason


def test_pages_that_end_one_byte_behind_the_data_are_reported(path: Path) -> None:
    end = end_of_data(path)
    fields = footers.meta(footers.tree(path.read_bytes()), *BAD)
    start = min(fields[n][1] for n in (footers.DATA_PAGE_OFFSET, 11) if n in fields)
    edit(path, meta(set_to(COMPRESSED, I64, end - start + 1)))
    refused(path, "the pages of column n", f"{CHUNK}.meta_data.total_compressed_size")
    edit(path, meta(set_to(COMPRESSED, I64, end - start)))
    bloomcli.add(path, ["id"], output=path.with_name("out"))
    assert bloomcli.validate(path.with_name("out"), deep=True).ok


def filter_of_n(path: Path, offset: int, length: int | None) -> None:
    edit(path, footers.set_filter(*BAD, offset, length))


@pytest.mark.parametrize(
    ("ahead", "length"),
    [(0, 79), (0, None), (40, 79), (-10, 79), (-10, 1 << 30), (-10, None), (1 << 40, None)],
)
def test_another_columns_filter_where_the_new_ones_go_is_reported(path: Path, ahead: int, length: int | None) -> None:
    """Otherwise readers would use bits of the new filters, and lose rows that they don't lose now."""
    filter_of_n(path, end_of_data(path) + ahead, length)
    before = path.read_bytes()
    with pytest.raises(CorruptFile, match="a filter of column n in row group 1") as caught:
        bloomcli.add(path, ["id"], in_place=True)
    assert path.read_bytes() == before
    assert caught.value.field == f"{CHUNK}.meta_data.bloom_filter_offset"
    assert caught.value.hint == f"`bloom remove {path} --columns n --in-place` takes it out"
    bloomcli.remove(path, columns=["n"], in_place=True)
    bloomcli.add(path, ["id"], in_place=True)
    assert bloomcli.validate(path, deep=True, require=["id"]).ok


def test_a_filter_whose_header_claims_the_new_ones_bytes_is_reported(path: Path) -> None:
    blob = blooms.header(1 << 20) + bytes(64)
    path.write_bytes(blooms.planted(path.read_bytes(), *BAD, blob, None))
    error = refused(path, "a filter of column n", f"{CHUNK}.meta_data.bloom_filter_offset")
    assert error.hint == f"`bloom remove {path} --columns n --in-place` takes it out"


def test_another_columns_filter_where_the_new_ones_go_may_be_replaced_with_them(path: Path) -> None:
    filter_of_n(path, end_of_data(path), 79)
    bloomcli.add(path, ["*"], in_place=True, replace=True)
    assert bloomcli.validate(path, deep=True, require=["*"]).ok


@pytest.mark.parametrize("planted", [True, False], ids=["with a filter", "without one"])
@pytest.mark.parametrize(
    ("change", "message", "field"),
    [
        (meta(without(TYPE)), "no type", ".meta_data.type"),
        (meta(without(2)), "no encodings", ".meta_data.encodings"),
        (meta(without(3)), "no path_in_schema", ".meta_data.path_in_schema"),
        (meta(without(CODEC)), "no codec", ".meta_data.codec"),
        (meta(without(footers.NUM_VALUES)), "no num_values", ".meta_data.num_values"),
        (meta(without(UNCOMPRESSED)), "no total_uncompressed_size", ".meta_data.total_uncompressed_size"),
        (meta(set_to(TYPE, I32, 1)), "the chunk is INT32, the schema says INT64", ".meta_data.type"),
        (meta(set_to(footers.NUM_VALUES, I64, -1)), "num_values is -1", ".meta_data.num_values"),
        (
            meta(lambda fields: fields.update({13: (thrift.LIST, thrift.Items(STRUCT, [{1: (I32, 0)}]))})),
            "PageEncodingStats has no encoding",
            ".meta_data.encoding_stats.encoding",
        ),
        (
            meta(lambda fields: fields[13][1].values[0].pop(3)),
            "PageEncodingStats has no count",
            ".meta_data.encoding_stats.count",
        ),
    ],
)
def test_metadata_of_another_column_that_readers_refuse_are_reported_by_add_and_by_validate(
    path: Path, change: Callable[[Fields], None], message: str, field: str, planted: bool
) -> None:
    """Readers of the whole file fail on them."""
    if planted:
        path.write_bytes(blooms.planted(path.read_bytes(), *BAD, FILTER))
    edit(path, change)
    with pytest.raises(CorruptFile, match=message):
        bloomcli.validate(path)
    refused(path, message, CHUNK + field)


def test_repeated_statistics_of_another_column_with_a_filter_are_reported(path: Path) -> None:
    path.write_bytes(blooms.planted(path.read_bytes(), *BAD, FILTER))
    repeat_a_field(path, *BAD, below=footers.STATISTICS)
    refused(path, "a field id is repeated", f"{CHUNK}.meta_data.statistics")


def test_no_folded_filter_is_put_where_pages_of_another_column_are(path: Path) -> None:
    bloomcli.add(path, ["id"], in_place=True, ndv=10_000)
    edit(path, meta(set_to(COMPRESSED, I64, 1 << 20)))
    before = path.read_bytes()
    with pytest.raises(CorruptFile, match="the pages of column n"):
        bloomcli.fold(path, in_place=True)
    assert path.read_bytes() == before


def test_filters_of_columns_that_the_schema_does_not_have_are_reported(path: Path) -> None:
    bloomcli.add(path, ["n"], in_place=True)

    def change(tree: Fields) -> None:
        elements = tree[2][1].values
        elements.pop()
        elements[0][5] = (I32, 1)  # the root's num_children

    edit(path, change)
    before = path.read_bytes()
    for command in (bloomcli.remove, bloomcli.fold):
        with pytest.raises(CorruptFile, match="row group 0 has 2 column chunks, the schema has 1 leaf column"):
            command(path, in_place=True)
    assert path.read_bytes() == before


# --- valid files, and faults that existed before and stay


def nothing(tree: Fields) -> None:
    """No values and no bytes: their offset isn't checked."""
    fields = footers.meta(tree, *BAD)
    fields.update(dict.fromkeys((footers.NUM_VALUES, UNCOMPRESSED, COMPRESSED), (I64, 0)))
    fields[footers.DATA_PAGE_OFFSET] = (I64, 1 << 40)


@pytest.mark.parametrize(
    "change",
    [
        nothing,
        meta(lambda fields: fields.update({footers.BLOOM_FILTER_OFFSET: (I64, 0)})),
        meta(lambda fields: fields.update({footers.BLOOM_FILTER_OFFSET: (I64, -1)})),
        meta(lambda fields: fields.update({32767: (thrift.BINARY, b"of the writer's own")})),
        chunk(lambda fields: fields.update({2000: (thrift.BINARY, b"of the writer's own")})),
        chunk(set_to(footers.COLUMN_INDEX_OFFSET, I64, 0)),
        chunk(set_to(footers.COLUMN_INDEX_OFFSET, I32, 1 << 30)),  # not the field that it is called after
    ],
)
def test_other_columns_as_writers_leave_them_are_no_reason(path: Path, change: Callable[[Fields], None]) -> None:
    edit(path, change)
    bloomcli.add(path, ["id"], in_place=True)
    assert bloomcli.validate(path, deep=True, require=["id"]).ok


@pytest.mark.parametrize("length", [-1, None])
def test_another_columns_wrong_filter_is_no_reason(path: Path, length: int | None) -> None:
    blob = blooms.header(64) + bytes(64)
    path.write_bytes(blooms.planted(path.read_bytes(), *BAD, blob, length))
    before = {f.id for f in bloomcli.validate(path, deep=True).findings}
    assert "filter-all-zero" in before
    bloomcli.add(path, ["id"], in_place=True)
    findings = bloomcli.validate(path, deep=True, require=["id"]).findings
    assert ({f.id for f in findings}, {f.column for f in findings}) == (before, {"n"})
