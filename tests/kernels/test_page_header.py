"""Compiled code decodes page headers as they were written, and refuses the same bytes as the walk."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernels.test_walks import scalars, structures
from support import thrift
from support.examples import examples
from support.thrift import BINARY, BYTE, FALSE, I32, I64, LIST, STRUCT, TRUE, Fields, Items

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import pages
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
NUMBERS: Final = {0: (1, 2, 3, 4), 2: (1, 2), 3: (1, 4, 5, 6)}
"""The numbers of those fields in their structure."""
I32S: Final = st.integers(-(1 << 31), (1 << 31) - 1).map(lambda value: (I32, value))
BOOLEANS: Final = st.booleans().map(lambda flag: (TRUE if flag else FALSE, flag))
UNKNOWN: Final = st.recursive(scalars, structures, max_leaves=6)
"""Fields that no IDL has yet, of any type."""


def some(known: dict[int, st.SearchStrategy[Any]], *unknown: int) -> st.SearchStrategy[Fields]:
    """A structure with some of these fields, and unknown ones."""
    return st.fixed_dictionaries({}, optional={**known, **dict.fromkeys(unknown, UNKNOWN)})


HEADS_OF: Final = {
    5: some(dict.fromkeys(range(1, 5), I32S), 5, 40, 2000),
    7: some({1: I32S, 2: I32S, 3: BOOLEANS}, 70),
    8: some({**dict.fromkeys(range(1, 7), I32S), 7: BOOLEANS}, 8, 63, 64),
}
HEADERS: Final = some(
    {
        1: st.sampled_from([0, 1, 2, 3, 4, 99, -1]).map(lambda kind: (I32, kind)),
        **dict.fromkeys((2, 3, 4), I32S),
        **{number: head.map(lambda fields: (STRUCT, fields)) for number, head in HEADS_OF.items()},
        64: BOOLEANS,
    },
    *(6, 10, 30, 3000),
)


def read(data: bytes, lead: bytes = b"", behind: bytes = b"") -> PageHeader:
    return PageHeader(lead + data + behind, len(lead), len(lead) + len(data), DEPTH)


@given(HEADERS, st.binary(max_size=5), st.binary(max_size=5))
@settings(THOROUGH, max_examples=examples(100))
def test_the_fields_of_a_header_are_those_that_were_written(header: Fields, lead: bytes, behind: bytes) -> None:
    def value(fields: Fields, number: int) -> Any:
        return fields[number][1] if number in fields else -1

    data = thrift.encode(header)
    found = read(data, lead, behind)
    assert found.size == len(data)
    assert [getattr(found, field) for field in PAGE_FIELDS] == [value(header, number) for number in (1, 2, 3)]
    assert found.crc == (header[4][1] if 4 in header else None)
    kind = value(header, 1)
    head: Fields | None = header[HEADS[kind][2]][1] if kind in HEADS and HEADS[kind][2] in header else None
    assert found.has_head == (head is not None)
    known = dict(zip(HEAD_FIELDS[kind], NUMBERS[kind], strict=True)) if head is not None else {}
    for field in {field for fields in HEAD_FIELDS.values() for field in fields}:
        assert getattr(found, field) == (value(head or {}, known[field]) if field in known else -1)
    assert found.is_compressed == (head is None or kind != 3 or value(head, 7) is not False)


@given(HEADERS)
@settings(THOROUGH, max_examples=examples(60))
def test_a_header_cut_anywhere_is_refused_as_the_walk_refuses_it(header: Fields) -> None:
    data = thrift.encode(header)
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


@given(HEADERS, st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3))
@THOROUGH
def test_a_changed_header_is_taken_and_refused_as_by_the_walk(header: Fields, changes: list[tuple[int, int]]) -> None:
    data = bytearray(thrift.encode(header))
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
