"""Compiled code decodes a column chunk's metadata like thriftpy2, and refuses the same bytes as the walk."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import golden, thrift
from support.thrift import BINARY, BYTE, I32, I64, LIST, STRUCT, TRUE, Items
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from bloomcli.errors import BloomError, CorruptFile
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import Footer, read_footer
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.kernels import ChunkMetadata, CompactError
from bloomcli.storage.registry import open_source

DEPTH: Final = parquet_limits.THRIFT_MAX_DEPTH
MOST: Final = parquet_limits.LIST_MAX
FILES: Final = sorted(golden.FIXTURES.rglob("*.parquet"))
OF_CHUNK: Final = ("offset_index_offset", "offset_index_length", "column_index_offset", "column_index_length")
OF_METADATA: Final = (
    "type",
    "codec",
    "num_values",
    "total_uncompressed_size",
    "total_compressed_size",
    "data_page_offset",
    "dictionary_page_offset",
    "bloom_filter_offset",
    "bloom_filter_length",
)
OF_STATISTICS: Final = ("null_count", "distinct_count", "is_max_value_exact", "is_min_value_exact")
DICTIONARIES: Final = {2, 8}
DATA_PAGES: Final = {0, 3}


def footer_of(path: Path) -> Footer | None:
    """The footer of a file; None if it can't be read."""
    try:
        with open_source(path) as source:
            return read_footer(source)
    except BloomError:
        return None


def decoded(data: bytes) -> Any:
    """thriftpy2's ColumnChunk."""
    chunk = spec.structures().ColumnChunk()
    chunk.read(TCompactProtocol(TMemoryBuffer(data), decode_response=False))
    return chunk


def bits(numbers: list[int] | None) -> int:
    """A bit for each encoding."""
    return sum({1 << (number if 0 <= number < 63 else 63) for number in numbers or ()})


def read(data: bytes, start: int = 0) -> ChunkMetadata:
    return ChunkMetadata(data, start, DEPTH)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(golden.FIXTURES)))
def test_every_fixture_s_chunks_are_decoded_as_by_thriftpy2(path: Path) -> None:
    footer = footer_of(path)
    if footer is None:
        return
    for group in range(footer.row_group_count):
        for start in footer.row_group(group).chunks:
            found, wanted = read(footer.raw, start), decoded(footer.raw[start:])
            meta = wanted.meta_data
            assert (found.has_metadata, found.encrypted) == (meta is not None, wanted.crypto_metadata is not None)
            assert {name: getattr(found, name) for name in OF_CHUNK} == {n: getattr(wanted, n) for n in OF_CHUNK}
            path_bytes = wanted.file_path.encode() if isinstance(wanted.file_path, str) else wanted.file_path
            assert found.file_path == path_bytes
            if meta is None:
                continue
            assert {name: getattr(found, name) for name in OF_METADATA} == {n: getattr(meta, n) for n in OF_METADATA}
            assert found.encodings == bits(meta.encodings)
            pages = [s for s in meta.encoding_stats or () if s.page_type in DATA_PAGES and s.count > 0]
            assert found.only_dictionary_encoded(MOST) == (
                bool(pages) and {s.encoding for s in pages} <= DICTIONARIES
            )
            assert found.has_encoding_stats == (meta.encoding_stats is not None)
            stats = meta.statistics or spec.structures().Statistics()
            assert found.statistics_fault is None
            assert {n: getattr(found, n) for n in OF_STATISTICS} == {n: getattr(stats, n) for n in OF_STATISTICS}
            newer, older = (stats.min_value, stats.max_value), (stats.min, stats.max)
            assert found.bounds(True, False) == newer
            assert found.bounds(False, True) == older
            assert found.bounds(True, True) == (older if newer == (None, None) else newer)
            assert found.bounds(False, False) == (None, None)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_bytes_are_refused_like_the_walk_refuses_them(seed: int) -> None:
    random = Random(seed)
    footer = footer_of(golden.FIXTURES / "duckdb_types.parquet") or footer_of(FILES[seed])
    assert footer is not None
    location = Location("f", 0, "chunk")
    refused = 0
    for start in footer.row_group(0).chunks:
        end = Struct("ColumnChunk", footer.raw, start, location).end
        for _ in range(200):
            data = bytearray(footer.raw[start:end])
            for _ in range(random.randint(1, 3)):
                data[random.randrange(len(data))] = random.choice([0, 0x15, 0x16, 0x1C, 0x2C, 0x19, 0xFF, 0x0C])
            wanted = walked(bytes(data), location)
            try:
                found = read(bytes(data))
            except CompactError as error:
                assert wanted == (error.reason, error.offset, error.field), data.hex()
                refused += 1
                continue
            fault = found.statistics_fault
            assert wanted == (None if fault is None else (fault.reason, fault.offset, "statistics")), data.hex()
            refused += fault is not None
    assert refused > 20


def walked(data: bytes, location: Location) -> tuple[str, int, str | None] | None:
    """The first fault that walks of the chunk, its metadata and its statistics meet: its reason, offset and field."""
    field: str | None = None
    try:
        chunk = Struct("ColumnChunk", data, 0, location)
        field = "meta_data"
        meta = chunk.struct("meta_data", "ColumnMetaData")
        field = "statistics"
        if meta is not None:
            meta.struct("statistics", "Statistics")
    except CorruptFile as error:
        assert error.offset is not None
        return error.reason, error.offset, field
    return None


def test_fields_of_other_types_are_missing() -> None:
    data = thrift.encode(
        {
            1: (I32, 5),
            3: (
                STRUCT,
                {
                    1: (I64, 2),
                    2: (LIST, Items(I64, [1])),
                    4: (BINARY, b"x"),
                    5: (I32, 7),
                    12: (STRUCT, {3: (I32, 1), 5: (I64, 1), 6: (BINARY, b"low"), 7: (BYTE, 1), 8: (TRUE, True)}),
                    13: (I32, 1),
                    14: (I32, 4),
                    15: (I64, 4),
                },
            ),
        }
    )
    found = read(data)
    assert {getattr(found, name) for name in OF_METADATA} == {None}
    assert (found.file_path, found.encodings, found.null_count, found.is_max_value_exact) == (None, 0, None, None)
    assert (found.bounds(True, True), found.is_min_value_exact) == ((b"low", None), True)
    assert (found.has_encoding_stats, found.only_dictionary_encoded(MOST)) == (True, False)


@pytest.mark.parametrize(
    "stats",
    [
        Items(I32, [1]),
        Items(STRUCT, [{1: (I32, 0), 2: (I32, 8)}]),
        Items(STRUCT, [{1: (I32, 0), 2: (I64, 8), 3: (I32, 1)}]),
        Items(STRUCT, [{1: (I32, -1), 2: (I32, 8), 3: (I32, 1)}]),
        Items(STRUCT, [{1: (I32, 0), 2: (I32, -8), 3: (I32, 1)}]),
    ],
)
def test_damaged_encoding_statistics_are_neither_yes_nor_no(stats: Items) -> None:
    assert read(thrift.encode({3: (STRUCT, {13: (LIST, stats)})})).only_dictionary_encoded(MOST) is None


def test_more_encoding_statistics_than_are_read_are_neither_yes_nor_no() -> None:
    stats = Items(STRUCT, [{1: (I32, 0), 2: (I32, 8), 3: (I32, 1)}] * 3)
    found = read(thrift.encode({3: (STRUCT, {13: (LIST, stats)})}))
    assert (found.only_dictionary_encoded(3), found.only_dictionary_encoded(2)) == (True, None)


@given(st.binary(max_size=200), st.integers(-5, 250))
def test_any_bytes_are_decoded_or_refused(data: bytes, start: int) -> None:
    try:
        found = read(data, start)
    except CompactError as error:
        assert error.reason
        return
    low, high = found.bounds(True, True)
    assert all(bound is None or bound in data for bound in (low, high, found.file_path))
    assert found.only_dictionary_encoded(MOST) in {True, False, None}
    assert 0 <= found.encodings < 1 << 64
