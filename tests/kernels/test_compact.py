"""The walk over Thrift compact structures locates the fields, and refuses all invalid bytes."""

from __future__ import annotations

import struct
import tracemalloc
from itertools import pairwise

import pytest
from support import thrift
from support.thrift import BINARY, BYTE, DOUBLE, FALSE, I16, I32, I64, LIST, MAP, SET, STRUCT, TRUE, Items, Pairs

from bloomcli.kernels import (
    CompactError,
    CompactLimit,
    compact_bytes,
    compact_int,
    compact_list,
    compact_struct,
    encoded_varint,
    varint,
)

UUID = 13
TREE: thrift.Fields = {
    1: (I32, -5),
    2: (BINARY, b"parquet"),
    3: (TRUE, True),
    4: (FALSE, False),
    5: (LIST, Items(I64, [1, -1, 1 << 62])),
    6: (STRUCT, {1: (I16, 300), 40: (DOUBLE, struct.pack("<d", 1.5))}),
    7: (MAP, Pairs(BINARY, I32, [(b"a", 1), (b"b", -1)])),
    8: (SET, Items(TRUE, [True, False])),
    9: (LIST, Items(STRUCT, [{1: (BYTE, 7)}, {}, {2: (LIST, Items(BINARY, [b"x"] * 20))}])),
    10: (MAP, Pairs(0, 0, [])),
    30: (I64, -(1 << 63)),
    2000: (BYTE, 1),
}
BYTES = thrift.encode(TREE)
DEPTH = 8
MOST = 100


def refusal(data: bytes, depth: int = DEPTH, start: int = 0) -> CompactError:
    """The error with which the walk refuses a struct."""
    with pytest.raises(CompactError) as caught:
        compact_struct(data, start, depth)
    return caught.value


def nested(levels: int) -> bytes:
    """Structs within structs, the outermost included in the count."""
    return b"\x1c" * (levels - 1) + b"\0" * levels


@pytest.mark.parametrize("lead", [0, 3])
def test_every_field_is_found_where_it_lies(lead: int) -> None:
    data = b"\xff" * lead + BYTES + b"behind"
    fields, end = compact_struct(data, lead, DEPTH)
    assert end == lead + len(BYTES)
    assert {number: kind for number, (kind, *_) in fields.items()} == {n: kind for n, (kind, _) in TREE.items()}
    places = list(fields.values())
    assert places[0][1] == lead
    for (_, _, _, before), (_, header, value, after) in pairwise(places):
        assert before == header < value <= after
    assert places[-1][3] == end - 1
    assert compact_int(data, fields[1][2]) == -5
    assert compact_bytes(data, fields[2][2]) == b"parquet"
    assert fields[3][2] == fields[3][3]
    assert compact_int(data, fields[30][2]) == -(1 << 63)


def test_a_struct_in_a_struct_is_walked_from_its_place() -> None:
    fields, _ = compact_struct(BYTES, 0, DEPTH)
    inner, end = compact_struct(BYTES, fields[6][2], DEPTH)
    assert end == fields[6][3]
    assert compact_int(BYTES, inner[1][2]) == 300
    assert BYTES[inner[40][2] : inner[40][3]] == struct.pack("<d", 1.5)


def test_the_elements_of_a_list_are_found() -> None:
    fields, _ = compact_struct(BYTES, 0, DEPTH)
    kind, starts = compact_list(BYTES, fields[5][2], DEPTH, MOST)
    assert kind == I64
    assert [compact_int(BYTES, at) for at in starts[:-1]] == [1, -1, 1 << 62]
    assert starts[-1] == fields[5][3]
    kind, starts = compact_list(BYTES, fields[9][2], DEPTH, MOST)
    assert (kind, len(starts), starts[-1]) == (STRUCT, 4, fields[9][3])


@pytest.mark.parametrize("data", [b"\x00", b"\x0c", b"\xf0\x00"])
def test_an_empty_list_may_leave_its_type_out(data: bytes) -> None:
    assert compact_list(data, 0, DEPTH, MOST)[1] == [len(data)]


def test_a_uuid_takes_sixteen_bytes() -> None:
    data = bytes([1 << 4 | UUID]) + bytes(16) + b"\0"
    assert compact_struct(data, 0, DEPTH) == ({1: (UUID, 0, 1, 17)}, 18)
    assert refusal(data[:10]).offset == 1


def test_a_structure_cut_anywhere_is_refused() -> None:
    for end in range(len(BYTES)):
        error = refusal(BYTES[:end])
        assert 0 <= error.offset <= end
        assert str(error) == error.reason


def test_a_list_cut_anywhere_is_refused() -> None:
    data = thrift.encode({1: (LIST, Items(BINARY, [b"abc"] * 20))})[1:-1]
    assert len(compact_list(data, 0, DEPTH, MOST)[1]) == 21
    for end in range(len(data)):
        with pytest.raises(CompactError):
            compact_list(data[:end], 0, DEPTH, MOST)


@pytest.mark.parametrize("start", [-1, 4, 1 << 62])
def test_a_start_outside_the_bytes_is_refused(start: int) -> None:
    for walk in (
        lambda: compact_struct(b"\0\0\0", start, DEPTH),
        lambda: compact_list(b"\0\0\0", start, DEPTH, MOST),
        lambda: compact_int(b"\0\0\0", start),
        lambda: compact_bytes(b"\0\0\0", start),
    ):
        with pytest.raises(CompactError):
            walk()


@pytest.mark.parametrize(
    "lead",
    [
        pytest.param(b"\x18", id="binary"),
        pytest.param(b"\x19\xf3", id="list of bytes"),
        pytest.param(b"\x19\xfc", id="list of structs"),
        pytest.param(b"\x1a\xf1", id="set of booleans"),
        pytest.param(b"\x1b", id="map"),
    ],
)
def test_a_size_larger_than_what_is_left_is_refused_at_once(lead: bytes) -> None:
    for size in (8, 127, 1 << 20, (1 << 31) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        error = refusal(lead + thrift.varint(size) + bytes(6))
        assert error.reason == "a length or count is larger than the bytes that are left"


def test_a_binary_larger_than_what_is_left_is_refused() -> None:
    assert compact_bytes(b"\x03abc", 0) == b"abc"
    with pytest.raises(CompactError, match="larger than"):
        compact_bytes(b"\x04abc", 0)
    with pytest.raises(CompactError, match="larger than"):
        compact_bytes(thrift.varint((1 << 64) - 1) + b"abc", 0)


@pytest.mark.parametrize("kind", [14, 15])
def test_a_type_that_does_not_exist_is_refused(kind: int) -> None:
    reason = "a type code does not exist in the compact protocol"
    assert refusal(bytes([1 << 4 | kind, 0])).reason == reason
    assert refusal(bytes([0x19, 1 << 4 | kind, 0, 0])).reason == reason
    assert refusal(bytes([0x1B, 1, kind << 4 | 3, 0, 0, 0])).reason == reason
    assert refusal(bytes([0x1B, 1, 3 << 4 | kind, 0, 0, 0])).reason == reason


def test_elements_must_have_a_type() -> None:
    assert "type code" in refusal(b"\x19\x10\x00\x00").reason
    assert "type code" in refusal(b"\x1b\x01\x03\x00\x00\x00").reason


@pytest.mark.parametrize("depth", [1, 2, 5, 32])
def test_nesting_is_bounded(depth: int) -> None:
    assert compact_struct(nested(depth), 0, depth)[1] == 2 * depth - 1
    assert refusal(nested(depth + 1), depth).reason == "structures are nested too deep"
    assert refusal(nested(200_000), depth).reason == "structures are nested too deep"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x19" + b"\x19" * 100_000 + b"\x03\0", id="lists in lists"),
        pytest.param(b"\x1a" + b"\x1a" * 100_000 + b"\x03\0", id="sets in sets"),
        pytest.param(b"\x1b" + b"\x01\xbb" * 100_000 + b"\0\0", id="maps in maps"),
    ],
)
def test_containers_count_as_nesting(data: bytes) -> None:
    assert refusal(data, 32).reason == "structures are nested too deep"


def test_a_list_at_the_top_counts_as_nesting_too() -> None:
    with pytest.raises(CompactError, match="too deep"):
        compact_list(b"\x1c\x1c\0\0", 0, 2, MOST)
    assert compact_list(b"\x1c\x1c\0\0", 0, 3, MOST) == (STRUCT, [1, 4])


def test_an_integer_that_does_not_end_is_refused() -> None:
    for data in (b"\x15" + b"\x80" * 20 + b"\0\0", b"\x15" + b"\xff" * 10 + b"\0"):
        assert refusal(data).reason == "a variable-length integer does not end"
    with pytest.raises(CompactError, match="does not end"):
        compact_int(b"\xff" * 11, 0)
    with pytest.raises(CompactError, match="past its end"):
        compact_int(b"\xff" * 9, 0)


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 64, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63)])
def test_integers_are_zigzag(value: int) -> None:
    assert compact_int(b"?" + thrift.zigzag(value), 1) == value


def test_a_field_id_is_unique_and_16_bits_wide() -> None:
    reason = "a field id is repeated or out of range"
    assert refusal(b"\x13\x01" + b"\x03\x02\x02" + b"\0").reason == reason
    assert refusal(b"\x03" + thrift.zigzag(1 << 16) + b"\x01\0").reason == reason
    assert refusal(b"\x03" + thrift.zigzag(32767) + b"\x01" + b"\x13\x01\0").reason == reason
    assert list(compact_struct(b"\x03" + thrift.zigzag(-3) + b"\x01\0", 0, DEPTH)[0]) == [-3]


def test_a_list_of_more_elements_than_are_wanted_takes_no_memory() -> None:
    data = b"\xfc" + thrift.varint(1 << 20) + b"\0" * (1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(CompactLimit):
            compact_list(data, 0, DEPTH, (1 << 20) - 1)
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
    assert len(compact_list(data, 0, DEPTH, 1 << 20)[1]) == (1 << 20) + 1


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, (1 << 32) - 1, 1 << 63, (1 << 64) - 1])
def test_an_unsigned_integer_is_read_as_it_was_written(value: int) -> None:
    data = encoded_varint(value)
    assert data == thrift.varint(value)
    assert varint(b"x" + data + b"y", 1) == (value, 1 + len(data))
    for cut in range(len(data)):
        with pytest.raises(CompactError):
            varint(data[:cut], 0)
    with pytest.raises(CompactError):
        varint(b"\x80" * 11, 0)
