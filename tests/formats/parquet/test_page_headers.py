"""Page headers are read in few reads, and completely if they are longer than a window."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support import footers, thrift
from support.sources import CountingSource
from support.tables import write
from support.thrift import BINARY, I32, STRUCT

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.pages import HEADER_WINDOW, first_headers, parse, read_pages
from bloomcli.model.file import ColumnChunk

ROWS = 40


def chunk_of(source: CountingSource) -> tuple[ColumnChunk, int]:
    """The first chunk, and the end of the file's data."""
    footer = ParquetFile(source).footer
    chunk = footer.chunk(next(footer.chunk_keys(None)))
    source.reads.clear()
    return chunk, footer.start


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_the_headers_of_a_small_chunk_take_one_read(tmp_path: Path, *, dictionary: bool, compression: str) -> None:
    """Any bytes after the chunk."""
    behind = [f"{i * 7919 % 9973:020}" for i in range(ROWS)]
    table = pa.table({"c": pa.array(range(ROWS), pa.int32()), "behind": behind})
    path = write(tmp_path / "f", table, dictionary=["c"] if dictionary else False, compression=compression)
    with CountingSource(path) as source:
        chunk, _ = chunk_of(source)
        assert chunk.compressed_bytes < HEADER_WINDOW
        assert first_headers(source, chunk) is None
        assert len(source.reads) == 1


def with_statistics(path: Path, size: int) -> int:
    """Write a file whose first page header has a bound of `size` bytes. Returns the header's length."""
    write(path, pa.table({"c": pa.array(range(ROWS), pa.int32())}), dictionary=False, compression="none")
    data = path.read_bytes()
    tree = footers.tree(data)
    meta = footers.meta(tree, 0, 0)
    body, _ = footers.split(data)
    header, end = thrift.parse(body, 4)
    header[5][1][5] = (STRUCT, {1: (BINARY, bytes(size))})
    raw = thrift.encode(header)
    meta[7] = (meta[7][0], meta[7][1] + len(raw) - (end - 4))
    path.write_bytes(footers.join(body[:4] + raw + body[end:], thrift.encode(tree)))
    return len(raw)


@pytest.mark.parametrize("size", [0, 440, *range(470, 500), HEADER_WINDOW * 15, HEADER_WINDOW * 17, 1 << 20])
def test_a_header_of_any_length_is_read_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "f"
    length = with_statistics(path, size)
    with CountingSource(path) as source:
        chunk, end = chunk_of(source)
        for window in (HEADER_WINDOW, 1 << 20):
            (page,) = read_pages(source, chunk, window=window)
            assert (page.num_values, page.end) == (ROWS, end)
            assert page.location.base == 4
        assert first_headers(source, chunk) is None
        assert length > size


def test_a_second_header_that_the_first_window_cuts_is_read_again(tmp_path: Path) -> None:
    """The window ends before, within or after the header of the page that follows the dictionary."""
    for entries in range(100, 130):
        table = pa.table({"c": pa.array(range(entries), pa.int32())})
        path = write(tmp_path / f"f{entries}", table, dictionary=True, compression="none")
        with CountingSource(path) as source:
            chunk, end = chunk_of(source)
            assert first_headers(source, chunk) is None
            assert [page.dictionary for page in read_pages(source, chunk)] == [True, False]
            assert all(offset + length <= end for offset, length in source.reads)


def test_a_header_that_ends_with_the_data_is_reported_where_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with_statistics(path, 0)
    data = path.read_bytes()
    tree = footers.tree(data)
    broken = data[:4] + thrift.encode({1: (I32, 0), 2: (I32, 160), 3: (I32, 160)})[:-1]  # no end of the structure
    meta = footers.meta(tree, 0, 0)
    meta[7] = (meta[7][0], len(broken) - 4)
    path.write_bytes(footers.join(broken, thrift.encode(tree)))
    with CountingSource(path) as source:
        chunk, end = chunk_of(source)
        with pytest.raises(CorruptFile, match="the structure runs past its end") as caught:
            list(read_pages(source, chunk))
        assert (caught.value.offset, caught.value.field) == (end, "row_groups[0].columns[0]")


@pytest.mark.parametrize("crc", [None, -5, 1 << 30])
@pytest.mark.parametrize("order", [(1, 2, 3, 4, 99), (4, 99, 3, 2, 1)])
def test_a_header_says_another_size_and_checksum(order: tuple[int, ...], crc: int | None) -> None:
    """Fields may be in any order, and those that nobody knows stay."""
    fields = {"type": 0, "uncompressed_page_size": 4000, "compressed_page_size": 1 << 20, "crc": 7}
    stored = {
        spec.field_ids("PageHeader")[name]: spec.field("PageHeader", name, value) for name, value in fields.items()
    }
    stored[99] = spec.field("KeyValue", "value", b"unknown")
    out = b""
    for number in order:
        if number == 4 and crc is None:
            continue
        out += bytes([stored[number][0]]) + spec.zigzag(number) + stored[number][1]
    header = parse(b"before" + out + b"\0after", 6, 6 + len(out) + 6)
    again = parse(header.repacked(300, crc), 0, 1 << 10)
    assert (again.type, again.uncompressed_page_size, again.compressed_page_size, again.crc) == (0, 4000, 300, crc)
    assert header.repacked(1 << 20, None if crc is None else 7) == out + b"\0"
