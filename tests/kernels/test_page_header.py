"""Compiled code decodes page headers like thriftpy2, and refuses the same bytes as the walk."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import thrift
from support.examples import examples
from support.thrift import BINARY, BYTE, FALSE, I32, I64, LIST, STRUCT, TRUE, Fields, Items
from thriftpy2.parser.parser import parse_fp
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import pages, spec
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.kernels import CompactError, PageHeader, compact_struct

DEPTH: Final = parquet_limits.THRIFT_MAX_DEPTH
LOCATION: Final = Location("file", 1000, "row_groups[0].columns[0]")
THOROUGH: Final = settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
PAGE_FIELDS: Final = ("type", "uncompressed_page_size", "compressed_page_size")
HEADS: Final = {
    0: ("data_page_header", "DataPageHeader", 5),
    2: ("dictionary_page_header", "DictionaryPageHeader", 7),
    3: ("data_page_header_v2", "DataPageHeaderV2", 8),
}
HEAD_FIELDS: Final = {
    0: ("num_values", "encoding", "definition_level_encoding", "repetition_level_encoding"),
    2: ("num_values", "encoding"),
    3: ("num_values", "encoding", "definition_levels_byte_length", "repetition_levels_byte_length"),
}
# fields that no IDL has yet, of every type; ids between and after the known ones, and above 63
NEWER: Final = """
struct Unknown { 1: i64 a; 2: list<i32> b; 3: map<string, bool> c; 4: optional Unknown d; 5: double e; 6: bool f; }
struct DataPageHeader { 1: i32 num_values; 2: i32 encoding; 3: i32 definition_level_encoding
  4: i32 repetition_level_encoding; 5: Unknown u5; 40: binary u40; 2000: bool u2000 }
struct DictionaryPageHeader { 1: i32 num_values; 2: i32 encoding; 3: bool is_sorted; 70: list<Unknown> u70 }
struct DataPageHeaderV2 { 1: i32 num_values; 2: i32 num_nulls; 3: i32 num_rows; 4: i32 encoding
  5: i32 definition_levels_byte_length; 6: i32 repetition_levels_byte_length; 7: bool is_compressed
  8: Unknown u8; 63: byte u63; 64: i16 u64 }
struct PageHeader { 1: i32 type; 2: i32 uncompressed_page_size; 3: i32 compressed_page_size; 4: i32 crc
  5: DataPageHeader data_page_header; 6: Unknown u6; 7: DictionaryPageHeader dictionary_page_header
  8: DataPageHeaderV2 data_page_header_v2; 10: double u10; 30: set<string> u30; 64: bool u64; 3000: Unknown u3000 }
"""


@cache
def newer() -> Any:
    """The classes of `NEWER`."""
    return parse_fp(io.StringIO(NEWER), "newer_thrift")


def i32(low: int = -(1 << 31)) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(low, (1 << 31) - 1)


def built(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(getattr(newer(), name), **fields)


def unknown() -> st.SearchStrategy[Any]:
    below: st.SearchStrategy[Any] = st.none()
    for _ in range(3):
        below = st.none() | built(
            "Unknown",
            a=st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
            b=st.none() | st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=20),
            c=st.none() | st.dictionaries(st.text(max_size=4), st.booleans(), max_size=3),
            d=below,
            e=st.none() | st.floats(),
            f=st.none() | st.booleans(),
        )
    return below


def headers() -> st.SearchStrategy[Any]:
    some = st.none() | st.booleans()
    head = {"num_values": i32(), "encoding": i32()}
    levels = {"definition_level_encoding": i32(), "repetition_level_encoding": i32()}
    lengths = {"definition_levels_byte_length": i32(), "repetition_levels_byte_length": i32()}
    few = st.binary(max_size=30)
    v1 = built("DataPageHeader", **head, **levels, u5=unknown(), u40=st.none() | few, u2000=some)
    dictionary = built(
        "DictionaryPageHeader", **head, is_sorted=some, u70=st.lists(unknown().filter(bool), max_size=2)
    )
    v2 = built(
        "DataPageHeaderV2",
        **head,
        **lengths,
        num_nulls=i32(),
        num_rows=i32(),
        is_compressed=some,
        u8=unknown(),
        u63=st.none() | st.integers(-128, 127),
        u64=st.none() | st.integers(-(1 << 15), (1 << 15) - 1),
    )
    return built(
        "PageHeader",
        type=st.sampled_from([0, 1, 2, 3, 4, 99, -1, None]),
        uncompressed_page_size=i32(),
        compressed_page_size=i32(),
        crc=i32(),
        data_page_header=st.none() | v1,
        u6=unknown(),
        dictionary_page_header=st.none() | dictionary,
        data_page_header_v2=st.none() | v2,
        u10=st.none() | st.floats(),
        u30=st.none() | st.sets(st.text(max_size=3), max_size=3),
        u64=some,
        u3000=unknown(),
    )


def encoded(header: Any) -> bytes:
    out = TMemoryBuffer()
    header.write(TCompactProtocol(out))
    return bytes(out.getvalue())


def decoded(data: bytes) -> Any:
    """thriftpy2's result with the shipped IDL."""
    header = spec.structures().PageHeader()
    header.read(TCompactProtocol(TMemoryBuffer(data), decode_response=False))
    return header


def read(data: bytes, lead: bytes = b"", behind: bytes = b"") -> PageHeader:
    return PageHeader(lead + data + behind, len(lead), len(lead) + len(data), DEPTH)


def same(value: int, other: int | None) -> bool:
    return value == (-1 if other is None else other)


@given(headers(), st.binary(max_size=5), st.binary(max_size=5))
@settings(THOROUGH, max_examples=examples(100))
def test_thriftpy2_decodes_the_same(header: Any, lead: bytes, behind: bytes) -> None:
    data = encoded(header)
    found, other = read(data, lead, behind), decoded(data)
    assert found.size == len(data)
    assert all(same(getattr(found, field), getattr(other, field)) for field in PAGE_FIELDS)
    assert found.crc == other.crc
    head = getattr(other, HEADS[other.type][0]) if other.type in HEADS else None
    assert found.has_head == (head is not None)
    fields = HEAD_FIELDS[other.type] if head is not None else ()
    assert all(same(getattr(found, field), getattr(head, field)) for field in fields)
    assert all(getattr(found, f) == -1 for all_of in HEAD_FIELDS.values() for f in all_of if f not in fields)
    if head is not None and other.type == 3:
        assert found.is_compressed == (head.is_compressed is not False)
    else:
        assert found.is_compressed


@given(headers())
@settings(THOROUGH, max_examples=examples(60))
def test_a_header_cut_anywhere_is_refused_as_the_walk_refuses_it(header: Any) -> None:
    data = encoded(header)
    for end in range(len(data)):
        with pytest.raises(CompactError) as walked:
            compact_struct(data[:end], 0, DEPTH)
        for lead in (b"", b"\x15\x00"):
            # the bytes behind the end are there, and aren't looked at
            with pytest.raises(CompactError) as found:
                PageHeader(lead + data, len(lead), len(lead) + end, DEPTH)
            assert (found.value.reason, found.value.offset - len(lead)) == (walked.value.reason, walked.value.offset)
        with pytest.raises(CompactError):  # no byte is there
            PageHeader(data[:end], 0, len(data), DEPTH)


def fields_by_walk(data: bytes) -> list[object]:
    """All fields, or the error, of the walk over all fields."""
    try:
        walked = Struct("PageHeader", data, 0, LOCATION)
        numbers: list[object] = [walked.required_int(field) for field in PAGE_FIELDS]
        kind = numbers[0]
        numbers += [walked.end, walked.integer("crc")]
        if kind in HEADS:
            name, struct, _ = HEADS[kind]
            head = walked.struct(name, struct)
            numbers.append(head is not None)
            if head is not None:
                numbers += [head.required_int(field) for field in HEAD_FIELDS[kind]]
                numbers.append(kind != 3 or head.truth("is_compressed") is not False)
    except CorruptFile as error:
        return [error.reason, error.path, error.offset, error.field, error.hint]
    return numbers


def fields_by_header(data: bytes) -> list[object]:
    try:
        try:
            header = pages.parse(data, 0, len(data))
        except CompactError as error:
            raise LOCATION.fault(error.reason, error.offset) from None
        header.location = LOCATION
        numbers: list[object] = [header.required(field) for field in PAGE_FIELDS]
        numbers += [header.size, header.crc]
        if header.type in HEADS:
            assert header.head_field == HEADS[header.type][0]
            numbers.append(header.has_head)
            if header.has_head:
                numbers += [header.required_of_head(field) for field in HEAD_FIELDS[header.type]]
                numbers.append(header.is_compressed)
        else:
            assert header.head_field is None
    except CorruptFile as error:
        return [error.reason, error.path, error.offset, error.field, error.hint]
    return numbers


@given(headers(), st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3))
@THOROUGH
def test_a_changed_header_is_taken_and_refused_as_by_the_walk(header: Any, changes: list[tuple[int, int]]) -> None:
    data = bytearray(encoded(header))
    for at, byte in changes:
        data[at % len(data)] = byte
    assert fields_by_header(bytes(data)) == fields_by_walk(bytes(data))


@given(st.binary(max_size=60))
@THOROUGH
def test_any_bytes_are_taken_and_refused_as_by_the_walk(data: bytes) -> None:
    assert fields_by_header(data) == fields_by_walk(data)


V1: Final[Fields] = {1: (I32, 10), 2: (I32, 0), 3: (I32, 3), 4: (I32, 3)}
V2: Final[Fields] = {**V1, 4: (I32, 0), 5: (I32, 2), 6: (I32, 0), 7: (FALSE, False)}
PAGE: Final[Fields] = {1: (I32, 0), 2: (I32, 80), 3: (I32, 70), 4: (I32, -5), 5: (STRUCT, V1)}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_field_of_another_type_counts_as_not_there(number: int) -> None:
    for value in ((I64, 7), (BYTE, 7), (TRUE, True), (BINARY, b"7"), (LIST, Items(I32, [7])), None):
        changed = {**PAGE, number: value} if value else {n: field for n, field in PAGE.items() if n != number}
        data = thrift.encode(changed)
        header = read(data)
        if number < 4:
            assert getattr(header, PAGE_FIELDS[number - 1]) == -1
        assert header.crc == (None if number == 4 else -5)
        assert header.has_head == (number not in (1, 5))
        assert fields_by_header(data) == fields_by_walk(data)


@pytest.mark.parametrize("number", sorted(V2))
def test_the_same_goes_for_the_fields_of_a_page_s_kind(number: int) -> None:
    for value in ((I64, 7), (TRUE, True), (FALSE, False), (BINARY, b"7"), (I32, -1), (I32, -(1 << 31))):
        data = thrift.encode({1: (I32, 3), 2: (I32, 80), 3: (I32, 70), 8: (STRUCT, {**V2, number: value})})
        assert fields_by_header(data) == fields_by_walk(data)
        assert read(data).is_compressed == (number == 7 and value[0] != FALSE)


@pytest.mark.parametrize("number", [1, 5, 9, 63, 64, 2000, 32767, -3])
@pytest.mark.parametrize("within", [False, True])
def test_a_field_that_occurs_twice_is_refused(number: int, within: bool) -> None:
    again = b"\x05" + thrift.zigzag(number) + b"\x02"  # a field header with its id in full
    if within:
        head = thrift.encode(V1)[:-1] + again + (b"" if number in V1 else again) + b"\0"
        data = thrift.encode({k: v for k, v in PAGE.items() if k != 5})[:-1] + b"\x1c" + head + b"\0"
        assert read(data).has_head
    else:
        data = thrift.encode(PAGE)[:-1] + again + (b"" if number in PAGE else again) + b"\0"
        with pytest.raises(CompactError, match="repeated"):
            read(data)
    found = fields_by_header(data)
    assert found[0] == "a field id is repeated or out of range"
    assert found == fields_by_walk(data)


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 4), (4, 3), (2, 1), (1 << 62, 1 << 62), (0, -1)])
def test_a_start_outside_the_bytes_is_refused(start: int, end: int) -> None:
    with pytest.raises(CompactError, match="past its end"):
        PageHeader(b"\0\0\0", start, end, DEPTH)


@pytest.mark.parametrize("data", [None, bytearray(b"\0"), memoryview(b"\0"), "\0"])
def test_other_than_bytes_is_refused(data: Any) -> None:
    with pytest.raises(TypeError):
        PageHeader(data, 0, 1, DEPTH)


def test_integers_wider_than_their_type_are_given_in_full() -> None:
    header = read(thrift.encode({**PAGE, 2: (I32, (1 << 63) - 1), 3: (I32, -(1 << 63))}))
    assert (header.uncompressed_page_size, header.compressed_page_size) == ((1 << 63) - 1, -(1 << 63))
