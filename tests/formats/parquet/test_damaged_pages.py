"""Wrong or damaged pages: add and validate --deep report the location, allocate nothing, and leave no files."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import blooms, footers, thrift
from support.tables import COMPRESSIONS, ENCODINGS, write
from support.thrift import Fields

import bloomcli
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.formats.parquet.splice import apply_edits, set_fields
from bloomcli.storage.registry import open_source

pytestmark = pytest.mark.slow

TYPE, UNCOMPRESSED, COMPRESSED, DATA, DICTIONARY, DATA_V2 = 1, 2, 3, 5, 7, 8
HUGE = 2**31 - 1
TABLE = pa.table({"c": pa.array([None if i % 3 == 0 else f"value {i % 40}" for i in range(400)])})


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Neither Python nor Arrow may allocate memory according to a number in a page."""
    arrow = pa.default_memory_pool().max_memory()
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
    assert pa.default_memory_pool().max_memory() - arrow < 32 << 20


def first_page(data: bytes, row_group: int = 0) -> tuple[int, Fields, int]:
    """(offset, header, end of the header) of a chunk's first page."""
    meta = footers.meta(footers.tree(data), row_group, 0)
    at = meta[11][1] if 11 in meta else meta[9][1]
    return at, *thrift.parse(data, at)


def with_header(path: Path, change: Callable[[Fields], Any]) -> int:
    """Change the first page's header, and move the bytes after it. Returns its offset."""
    data = path.read_bytes()
    at, header, end = first_page(data)
    change(header)
    body, footer = footers.split(data)
    path.write_bytes(footers.join(body[:at] + thrift.encode(header) + body[end:] + bytes(64), footer))
    return at


def refused(path: Path, kind: type[BloomError], message: str) -> BloomError:
    """Check that add, in two ways of writing, and validate --deep refuse the file and leave no files."""
    before = path.read_bytes()
    for options in (
        {"output": path.with_name("out")},
        {"in_place": True},
        {"output": path.with_name("out"), "threads": 1},
    ):
        with pytest.raises(kind, match=message) as caught:
            bloomcli.add(path, ["c"], **options)  # type: ignore[arg-type]
        assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
    error = caught.value
    assert error.path == str(path)
    assert (error.field or "").startswith("row_groups[0].columns[0]")
    path.write_bytes(blooms.planted(before, 0, 0, blooms.header(32) + b"\xff" * 32))
    try:
        findings = bloomcli.validate(path, deep=True).findings
    except kind as looked:
        assert re.search(message, str(looked))
    else:
        (finding,) = (f for f in findings if f.id == "page-header")
        assert re.search(message, finding.message)
        assert (finding.row_group, finding.column, finding.offset) == (0, "c", error.offset)
    return error


def put(number: int, value: int) -> Callable[[Fields], None]:
    return lambda h: h.update({number: (thrift.I32, value)})


def inner(kind: int, number: int, value: int) -> Callable[[Fields], None]:
    return lambda h: h[kind][1].update({number: (thrift.I32, value)})


V1, V2, DICT = {"dictionary": False}, {"dictionary": False, "page_version": 2}, {}
LIES: dict[str, tuple[dict[str, Any], Callable[[Fields], Any], str]] = {
    "v1_many_values": (V1, inner(DATA, 1, HUGE), "a page of 2147483647 values, and the column chunk has 400"),
    "v1_negative_values": (V1, inner(DATA, 1, -1), "num_values is -1"),
    "v1_few_values": (V1, inner(DATA, 1, 3), ""),
    "v1_other_levels": (V1, inner(DATA, 3, 4), ""),
    "v1_no_header": (V1, lambda h: h.pop(DATA), "the page header has no data_page_header"),
    "v2_many_values": (V2, inner(DATA_V2, 1, HUGE), "a page of 2147483647 values, and the column chunk has 400"),
    "v2_long_levels": (V2, inner(DATA_V2, 5, HUGE), "levels of 2147483647 bytes in a page of"),
    "v2_negative_levels": (V2, inner(DATA_V2, 5, -1), "definition_levels_byte_length is -1"),
    "v2_no_levels": (V2, inner(DATA_V2, 5, 0), ""),
    "dictionary_many_values": (DICT, inner(DICTIONARY, 1, HUGE), "its header says 2147483647, its bytes can hold"),
    "dictionary_negative": (DICT, inner(DICTIONARY, 1, -2), "num_values is -2"),
    "dictionary_no_header": (DICT, lambda h: h.pop(DICTIONARY), "has no dictionary_page_header"),
    "long": (V1, put(COMPRESSED, HUGE), "a page of 2147483647 bytes runs past the file's data"),
    "negative": (V1, put(COMPRESSED, -1), "compressed_page_size is -1"),
    "negative_uncompressed": (V1, put(UNCOMPRESSED, -1), "uncompressed_page_size is -1"),
    "no_size": (V1, lambda h: h.pop(COMPRESSED), "has no compressed_page_size"),
    "no_type": (V1, lambda h: h.pop(TYPE), "has no type"),
    "type_is_text": (V1, lambda h: h.update({TYPE: (thrift.BINARY, b"x")}), "has no type"),
    "other_type": (V1, put(TYPE, 2), "has no dictionary_page_header"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_page_header_with_wrong_claims_is_refused(tmp_path: Path, name: str) -> None:
    options, change, message = LIES[name]
    path = write(tmp_path / "f", TABLE, **options)
    offset = with_header(path, change)
    kind = CorruptFile if name != "v1_other_levels" else UnsupportedError
    error = refused(path, kind, message or "levels|values|page|encod|type code|structure")
    assert error.offset is not None
    assert offset <= error.offset < path.stat().st_size


@pytest.mark.parametrize("encoding", [99, 4])
def test_an_encoding_of_the_future_is_named(tmp_path: Path, encoding: int) -> None:
    path = write(tmp_path / "f", TABLE, dictionary=False)
    with_header(path, inner(DATA, 2, encoding))
    error = refused(
        path, UnsupportedError, f"values in the encoding ({'CODE 99' if encoding == 99 else 'BIT_PACKED'})"
    )
    assert "another encoding" in (error.hint or "")


def test_dictionary_indices_without_a_dictionary_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f", TABLE, dictionary=False)
    with_header(path, inner(DATA, 2, 8))
    refused(path, CorruptFile, "a dictionary-encoded page without a dictionary")


@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c != "none"])
@pytest.mark.parametrize(
    ("size", "dictionary", "page_version"),
    [(HUGE, True, 1), (1 << 30, False, 1), ((1 << 30) - 1, False, 2), (1 << 28, True, 2)],
)
def test_an_uncompressed_size_that_is_far_too_large_is_not_allocated(
    tmp_path: Path, size: int, compression: str, dictionary: bool, page_version: int
) -> None:
    path = write(tmp_path / "f", TABLE, compression=compression, dictionary=dictionary, page_version=page_version)
    with_header(path, put(UNCOMPRESSED, size))
    refused(path, CorruptFile, r"page of \d+ bytes")


@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c != "none"])
@pytest.mark.parametrize("damage", ["zeros", "ones", "cut"])
def test_a_compressed_page_that_is_damaged_is_refused(tmp_path: Path, compression: str, damage: str) -> None:
    path = write(tmp_path / "f", TABLE, compression=compression, dictionary=False)
    data = path.read_bytes()
    at, header, end = first_page(data)
    size = header[COMPRESSED][1]
    wrong = {
        "zeros": bytes(size),
        "ones": b"\xff" * size,
        "cut": data[end : end + size // 2] + bytes(size - size // 2),
    }
    path.write_bytes(data[:end] + wrong[damage] + data[end + size :])
    error = refused(
        path, CorruptFile, "can't be decompressed|decompresses to|can't be read|levels|SNAPPY says|aren't [GSZ]"
    )
    assert error.offset == at


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (footers.NUM_VALUES, 401, "|"),
        (footers.NUM_VALUES, 10**6, "|"),
        (footers.NUM_VALUES, 399, "a page of 400 values, and the column chunk has 399"),
        (footers.DATA_PAGE_OFFSET, 0, "outside the file's data"),
        (footers.DATA_PAGE_OFFSET, -1, "outside the file's data|data_page_offset"),
        (footers.DATA_PAGE_OFFSET, 1 << 40, "outside the file's data"),
        (7, 1 << 40, "outside the file's data"),
        (4, 3, "the codec LZO"),
        (4, 77, "the codec CODE 77"),
        (4, 1, "SNAPPY says"),
    ],
)
def test_chunk_metadata_with_wrong_claims_about_its_pages_is_refused(
    tmp_path: Path, field: int, value: int, message: str
) -> None:
    def change(metadata: Fields) -> None:
        found = footers.meta(metadata, 0, 0)
        found[field] = (found[field][0], value)

    path = write(tmp_path / "f", TABLE, dictionary=False)
    path.write_bytes(footers.edited(path.read_bytes(), change))
    before = path.read_bytes()
    kind = UnsupportedError if "codec" in message else CorruptFile
    with pytest.raises(kind, match=message) as caught:
        bloomcli.add(path, ["c"], in_place=True)
    assert (caught.value.path, path.read_bytes(), list(tmp_path.iterdir())) == (str(path), before, [path])
    assert (caught.value.field or "").startswith("row_groups[0].columns[0]")


@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if e != "PLAIN"])
def test_value_sections_cut_anywhere_are_refused(tmp_path: Path, encoding: str, page_version: int) -> None:
    """A page whose bytes end early, with a header that fits them."""
    array = {
        "DELTA_BINARY_PACKED": pa.array([i * i % 9973 for i in range(300)], pa.int64()),
        "BYTE_STREAM_SPLIT": pa.array([i / 3 for i in range(200)]),
    }.get(encoding, pa.array([f"shared {'prefix' * (i % 9)} {i}" for i in range(200)]))
    path = write(tmp_path / "f", {"c": array}, encoding=encoding, page_version=page_version)
    whole = path.read_bytes()
    at, header, end = first_page(whole)
    size = header[COMPRESSED][1]
    for left in range(0, size, size // 30):
        cut = {**header, UNCOMPRESSED: (thrift.I32, left), COMPRESSED: (thrift.I32, left)}
        body, footer = footers.split(whole)
        path.write_bytes(footers.join(body[:at] + thrift.encode(cut) + body[end : end + left] + bytes(size), footer))
        with pytest.raises(CorruptFile) as caught:
            bloomcli.add(path, ["c"], output=tmp_path / "out")
        assert caught.value.path == str(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"\x06\x02\x3f", "a dictionary index of 63, but the dictionary has 40 values"),
        (b"\x06\x02\x05", "the dictionary indices end before the page's last value"),
        (b"\x21", "dictionary indices 33 bits wide"),
    ],
)
def test_dictionary_indices_that_are_damaged_are_refused_with_their_page(
    tmp_path: Path, damage: bytes, message: str, page_version: int
) -> None:
    schema = pa.schema([pa.field("c", pa.string(), nullable=False)])  # so that the page starts with the indices
    table = pa.table({"c": [f"value {i % 40}" for i in range(400)]}, schema=schema)
    path = write(tmp_path / "f", table, page_version=page_version)
    data = bytearray(path.read_bytes())
    _, header, end = first_page(data)
    page = end + header[COMPRESSED][1]
    header, start = thrift.parse(bytes(data), page)
    end = start + header[COMPRESSED][1]
    assert data[start] == 6
    data[start:end] = damage.ljust(end - start, b"\0")
    path.write_bytes(data)
    before = path.read_bytes()
    with pytest.raises(CorruptFile, match=message) as added:
        bloomcli.add(path, ["c"], in_place=True)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (before, [path])
    # the indices matter to a deep look where the filter doesn't hold the whole dictionary
    path.write_bytes(blooms.planted(before, 0, 0, blooms.header(32) + bytes(32)))
    with pytest.raises(CorruptFile, match=message) as looked:
        bloomcli.validate(path, deep=True)
    for caught in (added, looked):
        assert (caught.value.offset, caught.value.field) == (page, "row_groups[0].columns[0]")


def test_a_second_dictionary_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f", {"c": [f"value {i % 40}" for i in range(400)]})
    data = path.read_bytes()
    at, header, end = first_page(data)
    body, footer = footers.split(data)
    again = end + header[COMPRESSED][1]

    def forget(metadata: Fields) -> None:
        del footers.meta(metadata, 0, 0)[13]

    path.write_bytes(footers.edited(footers.join(body[:again] + body[at:] + bytes(64), footer), forget))
    refused(path, CorruptFile, "a second dictionary page")


def test_pages_without_a_value_where_the_statistics_count_some_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f", pa.table({"c": pa.nulls(40, pa.int64())}))

    def no_nulls(metadata: Fields) -> None:
        footers.meta(metadata, 0, 0)[12][1][3] = (thrift.I64, 0)

    footers.edit_file(path, path, no_nulls)
    with pytest.raises(CorruptFile, match="the pages hold no value of c, and the statistics count 40") as caught:
        bloomcli.add(path, ["c"], output=tmp_path / "out")
    assert caught.value.field == "row_groups[0].columns[0]"
    assert caught.value.offset is not None
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("created_by", ["parquet-cpp-arrow version 4.0.1", "parquet-rs version 4.0.0"])
def test_a_null_count_of_0_is_not_believed_of_writers_that_count_no_null(tmp_path: Path, created_by: str) -> None:
    path = write(tmp_path / "f", pa.table({"c": pa.nulls(40, pa.string()), "d": range(40)}))

    def no_nulls(metadata: Fields) -> None:
        footers.meta(metadata, 0, 0)[12][1][3] = (thrift.I64, 0)
        metadata[6] = (thrift.BINARY, created_by.encode())

    footers.edit_file(path, path, no_nulls)
    report = bloomcli.add(path, ["c", "d"], output=tmp_path / "out")
    assert [change.column for change in report.changes if change.action == "add"] == ["c", "d"]
    assert bloomcli.validate(tmp_path / "out").ok


@pytest.mark.parametrize("rest", ["no header", "a page that can't be decompressed"])
def test_bytes_of_a_chunk_after_its_last_value_needn_t_be_a_page(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": [f"text {n}" for n in range(1000)]}), path, use_dictionary=False)
    with open_source(path) as source:
        footer = read_footer(source)
        (chunk,) = map(footer.chunk, footer.chunk_keys())
        page = source.read_at(chunk.data_offset, chunk.compressed_bytes)
    more = bytes(64) if rest == "no header" else page[:-200] + bytes(200)
    sizes = {"total_compressed_size": len(page) + len(more)}
    changed = apply_edits(footer.raw, set_fields(footer.meta_struct(chunk.key), sizes))
    assert chunk.data_offset + len(page) == footer.start
    tail = changed + len(changed).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(path.read_bytes()[: footer.start] + more + tail)
    assert bloomcli.validate(path, deep=True, columns=["c"]).findings == ()
