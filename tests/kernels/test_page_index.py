"""Compiled code decodes page indexes like thriftpy2, and refuses what isn't one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.test_column_chunk import DEPTH, FILES, footer_of
from support import golden, thrift
from support.thrift import BINARY, BYTE, DOUBLE, FALSE, I32, I64, LIST, STRUCT, TRUE, Items
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.kernels import ColumnIndex, CompactError, CompactLimit, OffsetIndex
from bloomcli.storage.registry import open_source

MOST: Final = 1000
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
PAGE: Final[thrift.Fields] = {1: (I64, 4), 2: (I32, 100), 3: (I64, 0)}
OFFSETS: Final[thrift.Fields] = {
    1: (LIST, Items(STRUCT, [PAGE, {1: (I64, 104), 2: (I32, 7), 3: (I64, 10)}])),
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


def decoded(name: str, data: bytes) -> Any:
    """thriftpy2's structure."""
    found = getattr(spec.structures(), name)()
    found.read(TCompactProtocol(TMemoryBuffer(data), decode_response=False))
    return found


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
    found = fields_of(kind(data, DEPTH, MOST))
    assert found == wanted(kind, data)
    assert None not in found.values()
    assert found == fields_of(kind(data + b"more", DEPTH, MOST))


@pytest.mark.parametrize("code", [TRUE, FALSE])
def test_either_code_of_a_boolean_is_an_element_type(code: int) -> None:
    assert ColumnIndex(thrift.encode({1: (LIST, Items(code, [True, False]))}), DEPTH, MOST).null_pages == [
        True,
        False,
    ]


@pytest.mark.parametrize("kind", [ColumnIndex, OffsetIndex])
@pytest.mark.parametrize("other", [(I32, 7), (BINARY, b"x"), (STRUCT, {}), (TRUE, True), (DOUBLE, b"8" * 8)])
def test_fields_that_are_no_lists_are_missing(kind: type[Index], other: tuple[int, Any]) -> None:
    numbers = dict.fromkeys((1, 2, 3, 5, 6, 7, 8) if kind is ColumnIndex else (1, 2), other)
    assert set(fields_of(kind(thrift.encode(numbers), DEPTH, MOST)).values()) == {None}


def test_empty_lists_of_any_type_have_no_elements() -> None:
    data = b"".join(bytes([0x19, head]) for head in (0x00, 0x05, 0x08)) + b"\x29\x06\x00"
    found = ColumnIndex(data, DEPTH, MOST)
    assert (found.null_pages, found.min_values, found.max_values, found.null_counts) == ([], [], [], [])
    assert OffsetIndex(b"\x19\x0c\x00", DEPTH, MOST).page_locations == []


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
        kind(data, DEPTH, MOST)
    start, _ = Struct(kind.__name__, data, 0, Location("f", 0, "")).spans[number][2:]
    assert (fault.value.offset, fault.value.field) == (start, name)


@pytest.mark.parametrize("lacks", [1, 2, 3])
@pytest.mark.parametrize("other", [None, (BINARY, b"x"), (I32, 1), (I64, 1)])
def test_a_page_without_its_place_is_a_fault(lacks: int, other: tuple[int, Any] | None) -> None:
    page = dict(PAGE)
    page.pop(lacks)
    if other is not None and other[0] != PAGE[lacks][0]:
        page[lacks] = other
    data = thrift.encode({1: (LIST, Items(STRUCT, [PAGE, dict(sorted(page.items()))]))})
    name = ("offset", "compressed_page_size", "first_row_index")[lacks - 1]
    with pytest.raises(CompactError, match=f"a page has no {name}") as fault:
        OffsetIndex(data, DEPTH, MOST)
    assert (fault.value.offset, fault.value.field) == (2 + len(thrift.encode(PAGE)), "page_locations[1]")


def test_a_page_with_a_field_twice_is_a_fault() -> None:
    page = b"\x16\x08\x15\x0a\x16\x00\x06\x02\x02\x00"  # field 1 once more
    with pytest.raises(CompactError, match="a field id is repeated") as fault:
        OffsetIndex(b"\x19\x1c" + page + b"\x00", DEPTH, MOST)
    assert fault.value.field == "page_locations[0]"


@pytest.mark.parametrize(("kind", "tree"), [(ColumnIndex, COLUMN), (OffsetIndex, OFFSETS)])
def test_a_cut_off_index_is_a_fault(kind: type[Index], tree: thrift.Fields) -> None:
    data = thrift.encode(tree)
    for end in range(len(data)):
        with pytest.raises(CompactError):
            kind(data[:end], DEPTH, MOST)


@pytest.mark.parametrize("kind", [ColumnIndex, OffsetIndex])
@pytest.mark.parametrize("element", [TRUE, I64, BINARY, STRUCT])
def test_a_list_of_more_elements_than_bytes_is_a_fault(kind: type[Index], element: int) -> None:
    for number in range(1, 9):
        for count in (1 << 20, (1 << 31) - 1, (1 << 64) - 1):
            data = bytes([number << 4 | LIST, 0xF0 | element]) + thrift.varint(count) + b"\1\1\1\0\0\0"
            with pytest.raises(CompactError, match="larger than the bytes that are left"):
                kind(data, DEPTH, MOST)


def test_more_elements_in_all_lists_than_may_be_decoded_are_a_limit() -> None:
    elements = sum(len(value.values) for _, value in COLUMN.values() if isinstance(value, Items))
    data = thrift.encode(COLUMN)
    ColumnIndex(data, DEPTH, elements)
    with pytest.raises(CompactLimit):
        ColumnIndex(data, DEPTH, elements - 1)
    with pytest.raises(CompactLimit):
        OffsetIndex(thrift.encode(OFFSETS), DEPTH, 3)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_bytes_are_refused_like_the_walk_refuses_them(seed: int) -> None:
    random = Random(seed)
    refused = 0
    for _, kind, sound in random.sample(of_fixtures(), 40):
        for _ in range(30):
            data = bytearray(sound)
            for _ in range(random.randint(1, 3)):
                data[random.randrange(len(data))] = random.choice([0, 0x15, 0x16, 0x1C, 0x2C, 0x19, 0xFF, 0x0C])
            try:
                Struct(kind.__name__, bytes(data), 0, Location("f", 0, ""))
            except CorruptFile as error:
                with pytest.raises(CompactError) as fault:
                    kind(bytes(data), DEPTH, MOST)
                assert (fault.value.reason, fault.value.offset, fault.value.field) == (
                    error.reason,
                    error.offset,
                    None,
                )
                refused += 1
    assert refused > 100


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    for kind in (ColumnIndex, OffsetIndex):
        try:
            found = kind(data, DEPTH, MOST)
        except CompactError as error:
            assert error.reason
            assert 0 <= error.offset <= len(data)
            continue
        for values in fields_of(found).values():
            assert values is None or isinstance(values, int) or len(values) <= len(data)
