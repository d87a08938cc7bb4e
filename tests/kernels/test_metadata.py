"""Compiled code decodes chunks and page indexes as thriftpy2 does, and refuses what the walk refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import golden, thrift
from support.thrift import BINARY, BYTE, DOUBLE, FALSE, I32, I64, LIST, STRUCT, TRUE, Items
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from bloomcli.errors import BloomError, CorruptFile
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import Footer, read_footer
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.kernels import ChunkMetadata, ColumnIndex, CompactError, CompactLimit, OffsetIndex
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


def decoded(name: str, data: bytes) -> Any:
    """thriftpy2's structure."""
    found = getattr(spec.structures(), name)()
    found.read(TCompactProtocol(TMemoryBuffer(data), decode_response=False))
    return found


def bits(numbers: list[int] | None) -> int:
    """A bit for each encoding."""
    return sum({1 << (number if 0 <= number < 63 else 63) for number in numbers or ()})


def damaged(sound: bytes, random: Random) -> bytes:
    """The bytes with up to three others."""
    data = bytearray(sound)
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data))] = random.choice([0, 0x15, 0x16, 0x1C, 0x2C, 0x19, 0xFF, 0x0C])
    return bytes(data)


def read(data: bytes, start: int = 0) -> ChunkMetadata:
    return ChunkMetadata(data, start, DEPTH)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(golden.FIXTURES)))
def test_every_fixture_s_chunks_are_decoded_as_by_thriftpy2(path: Path) -> None:
    footer = footer_of(path)
    if footer is None:
        return
    for group in range(footer.row_group_count):
        for start in footer.row_group(group).chunks:
            found, wanted = read(footer.raw, start), decoded("ColumnChunk", footer.raw[start:])
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
            data = damaged(footer.raw[start:end], random)
            wanted = walked(data, location)
            try:
                found = read(data)
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


# --- page indexes


MOST_OF_PAGES: Final = 1000
OF_COLUMN: Final = (
    "null_pages",
    "min_values",
    "max_values",
    "boundary_order",
    "null_counts",
    "repetition_level_histograms",
    "definition_level_histograms",
    "nan_counts",
)
COLUMN: Final[thrift.Fields] = {
    1: (LIST, Items(TRUE, [False, True])),
    2: (LIST, Items(BINARY, [b"a", b""])),
    3: (LIST, Items(BINARY, [b"z" * 200, b""])),
    4: (I32, 1),
    5: (LIST, Items(I64, [3, -(1 << 63)])),
    6: (LIST, Items(I64, [(1 << 63) - 1])),
    7: (LIST, Items(I64, [0, 1, 2, 3])),
    8: (LIST, Items(I64, [5, 6])),
}
ONE_PAGE: Final[thrift.Fields] = {1: (I64, 4), 2: (I32, 100), 3: (I64, 0)}
OFFSETS: Final[thrift.Fields] = {
    1: (LIST, Items(STRUCT, [ONE_PAGE, {1: (I64, 104), 2: (I32, 7), 3: (I64, 10)}])),
    2: (LIST, Items(I64, [1, 2])),
}
PAGES: Final = [(4, 100, 0), (104, 7, 10)]
Index = ColumnIndex | OffsetIndex


def stored(path: Path) -> Iterator[tuple[type[Index], bytes]]:
    """The page indexes of a file as they are stored."""
    footer = footer_of(path)
    if footer is None:
        return
    with open_source(path) as source:
        for key in footer.chunk_keys():
            try:
                extents = footer.index_extents(key, footer.metadata(key))
            except CorruptFile:
                continue
            for field, offset, length in extents:
                kind = ColumnIndex if field.startswith("column") else OffsetIndex
                yield kind, source.read_at(offset, length)


def fields_of(found: Index) -> dict[str, Any]:
    """The fields of an index under the names of parquet.thrift."""
    names = OF_COLUMN if isinstance(found, ColumnIndex) else ("page_locations", "unencoded_byte_array_data_bytes")
    return {name: getattr(found, name) for name in names}


def wanted(kind: type[Index], data: bytes) -> dict[str, Any]:
    """What thriftpy2 decodes."""
    found = decoded(kind.__name__, data)
    if kind is ColumnIndex:
        return {name: getattr(found, name) for name in OF_COLUMN}
    pages = [(page.offset, page.compressed_page_size, page.first_row_index) for page in found.page_locations]
    return {"page_locations": pages, "unencoded_byte_array_data_bytes": found.unencoded_byte_array_data_bytes}


def of_fixtures() -> list[tuple[Path, type[Index], bytes]]:
    return [(path, kind, data) for path in FILES for kind, data in stored(path) if is_index(kind, data)]


def is_index(kind: type[Index], data: bytes) -> bool:
    """Whether the walk accepts the bytes: some fixtures are damaged or encrypted."""
    try:
        Struct(kind.__name__, data, 0, Location("f", 0, ""))
    except CorruptFile:
        return False
    return True


def test_every_fixture_s_page_indexes_are_decoded_as_by_thriftpy2() -> None:
    compared = {ColumnIndex: 0, OffsetIndex: 0}
    for path, kind, data in of_fixtures():
        found = fields_of(kind(data, DEPTH, 1 << 20))
        assert found == wanted(kind, data), path.relative_to(golden.FIXTURES)
        compared[kind] += 1
    assert min(compared.values()) > 100


@pytest.mark.parametrize(("kind", "tree"), [(ColumnIndex, COLUMN), (OffsetIndex, OFFSETS)])
def test_all_fields_are_decoded_as_by_thriftpy2(kind: type[Index], tree: thrift.Fields) -> None:
    data = thrift.encode(tree)
    found = fields_of(kind(data, DEPTH, MOST_OF_PAGES))
    assert found == wanted(kind, data)
    assert None not in found.values()
    assert found == fields_of(kind(data + b"more", DEPTH, MOST_OF_PAGES))


@pytest.mark.parametrize("code", [TRUE, FALSE])
def test_either_code_of_a_boolean_is_an_element_type(code: int) -> None:
    assert ColumnIndex(thrift.encode({1: (LIST, Items(code, [True, False]))}), DEPTH, MOST_OF_PAGES).null_pages == [
        True,
        False,
    ]


@pytest.mark.parametrize("kind", [ColumnIndex, OffsetIndex])
@pytest.mark.parametrize("other", [(I32, 7), (BINARY, b"x"), (STRUCT, {}), (TRUE, True), (DOUBLE, b"8" * 8)])
def test_fields_that_are_no_lists_are_missing(kind: type[Index], other: tuple[int, Any]) -> None:
    numbers = dict.fromkeys((1, 2, 3, 5, 6, 7, 8) if kind is ColumnIndex else (1, 2), other)
    assert set(fields_of(kind(thrift.encode(numbers), DEPTH, MOST_OF_PAGES)).values()) == {None}


def test_empty_lists_of_any_type_have_no_elements() -> None:
    data = b"".join(bytes([0x19, head]) for head in (0x00, 0x05, 0x08)) + b"\x29\x06\x00"
    found = ColumnIndex(data, DEPTH, MOST_OF_PAGES)
    assert (found.null_pages, found.min_values, found.max_values, found.null_counts) == ([], [], [], [])
    assert OffsetIndex(b"\x19\x0c\x00", DEPTH, MOST_OF_PAGES).page_locations == []


WRONG: Final = [
    *((ColumnIndex, number, name, Items(I32, [1])) for number, name in ((1, "null_pages"), (2, "min_values"))),
    *((ColumnIndex, number, name, Items(I32, [1])) for number, name in ((5, "null_counts"), (8, "nan_counts"))),
    (ColumnIndex, 3, "max_values", Items(STRUCT, [{}])),
    (ColumnIndex, 5, "null_counts", Items(BINARY, [b"x"])),
    (ColumnIndex, 6, "repetition_level_histograms", Items(BYTE, [1])),
    (ColumnIndex, 7, "definition_level_histograms", Items(TRUE, [True])),
    (OffsetIndex, 1, "page_locations", Items(I64, [1])),
    (OffsetIndex, 2, "unencoded_byte_array_data_bytes", Items(STRUCT, [{}])),
]


@pytest.mark.parametrize(("kind", "number", "name", "items"), WRONG)
def test_elements_of_another_type_are_a_fault(kind: type[Index], number: int, name: str, items: Items) -> None:
    tree = dict(COLUMN if kind is ColumnIndex else OFFSETS)
    tree[number] = (LIST, items)
    data = thrift.encode(tree)
    with pytest.raises(CompactError, match=f"{name} has elements of another type") as fault:
        kind(data, DEPTH, MOST_OF_PAGES)
    start, _ = Struct(kind.__name__, data, 0, Location("f", 0, "")).spans[number][2:]
    assert (fault.value.offset, fault.value.field) == (start, name)


@pytest.mark.parametrize("lacks", [1, 2, 3])
@pytest.mark.parametrize("other", [None, (BINARY, b"x"), (I32, 1), (I64, 1)])
def test_a_page_without_its_place_is_a_fault(lacks: int, other: tuple[int, Any] | None) -> None:
    page = dict(ONE_PAGE)
    page.pop(lacks)
    if other is not None and other[0] != ONE_PAGE[lacks][0]:
        page[lacks] = other
    data = thrift.encode({1: (LIST, Items(STRUCT, [ONE_PAGE, dict(sorted(page.items()))]))})
    name = ("offset", "compressed_page_size", "first_row_index")[lacks - 1]
    with pytest.raises(CompactError, match=f"a page has no {name}") as fault:
        OffsetIndex(data, DEPTH, MOST_OF_PAGES)
    assert (fault.value.offset, fault.value.field) == (2 + len(thrift.encode(ONE_PAGE)), "page_locations[1]")


def test_a_page_with_a_field_twice_is_a_fault() -> None:
    page = b"\x16\x08\x15\x0a\x16\x00\x06\x02\x02\x00"  # field 1 once more
    with pytest.raises(CompactError, match="a field id is repeated") as fault:
        OffsetIndex(b"\x19\x1c" + page + b"\x00", DEPTH, MOST_OF_PAGES)
    assert fault.value.field == "page_locations[0]"


@pytest.mark.parametrize(("kind", "tree"), [(ColumnIndex, COLUMN), (OffsetIndex, OFFSETS)])
def test_a_cut_off_index_is_a_fault(kind: type[Index], tree: thrift.Fields) -> None:
    data = thrift.encode(tree)
    for end in range(len(data)):
        with pytest.raises(CompactError):
            kind(data[:end], DEPTH, MOST_OF_PAGES)


@pytest.mark.parametrize("kind", [ColumnIndex, OffsetIndex])
@pytest.mark.parametrize("element", [TRUE, I64, BINARY, STRUCT])
def test_a_list_of_more_elements_than_bytes_is_a_fault(kind: type[Index], element: int) -> None:
    for number in range(1, 9):
        for count in (1 << 20, (1 << 31) - 1, (1 << 64) - 1):
            data = bytes([number << 4 | LIST, 0xF0 | element]) + thrift.varint(count) + b"\1\1\1\0\0\0"
            with pytest.raises(CompactError, match="larger than the bytes that are left"):
                kind(data, DEPTH, MOST_OF_PAGES)


def test_more_elements_in_all_lists_than_may_be_decoded_are_a_limit() -> None:
    elements = sum(len(value.values) for _, value in COLUMN.values() if isinstance(value, Items))
    data = thrift.encode(COLUMN)
    ColumnIndex(data, DEPTH, elements)
    with pytest.raises(CompactLimit):
        ColumnIndex(data, DEPTH, elements - 1)
    with pytest.raises(CompactLimit):
        OffsetIndex(thrift.encode(OFFSETS), DEPTH, 3)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_indexes_are_refused_like_the_walk_refuses_them(seed: int) -> None:
    random = Random(seed)
    refused = 0
    for _, kind, sound in random.sample(of_fixtures(), 40):
        for _ in range(30):
            data = damaged(sound, random)
            try:
                Struct(kind.__name__, data, 0, Location("f", 0, ""))
            except CorruptFile as error:
                with pytest.raises(CompactError) as fault:
                    kind(data, DEPTH, MOST_OF_PAGES)
                assert (fault.value.reason, fault.value.offset, fault.value.field) == (
                    error.reason,
                    error.offset,
                    None,
                )
                refused += 1
    assert refused > 100


@given(st.binary(max_size=200))
def test_any_bytes_are_an_index_or_refused(data: bytes) -> None:
    for kind in (ColumnIndex, OffsetIndex):
        try:
            found = kind(data, DEPTH, MOST_OF_PAGES)
        except CompactError as error:
            assert error.reason
            assert 0 <= error.offset <= len(data)
            continue
        for values in fields_of(found).values():
            assert values is None or isinstance(values, int) or len(values) <= len(data)
