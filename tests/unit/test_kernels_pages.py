"""The walks over value sections of data pages: what pyarrow wrote, hand-made encodings, and bytes that lie."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from support import thrift
from support.reference import unpacked

from bloomcli import kernels
from bloomcli.kernels import PageError

HUGE = (1 << 63) - 1
INTEGERS = [
    pytest.param([7], id="one"),
    pytest.param(list(range(128)), id="ascending"),
    pytest.param([5] * 300, id="constant"),
    pytest.param([random.Random(at).getrandbits(64) - (1 << 63) for at in range(1000)], id="wide"),
    pytest.param([-(1 << 63), HUGE, 0, -1, -(1 << 63)], id="extreme"),
    pytest.param([at * at - 3000 for at in range(129)], id="squares"),
]
TEXTS = [
    pytest.param(["", "", "a", ""], id="empty"),
    pytest.param([f"customer-{at:05}" for at in range(400)], id="shared prefixes"),
    pytest.param([f"{random.Random(at).random()}" * (at % 5) for at in range(300)], id="mixed"),
]


def values_section(path: Path, values: list[Any], kind: pa.DataType, encoding: str) -> bytes:
    """The values of the one data page that pyarrow writes for these, which are required and uncompressed."""
    schema = pa.schema([pa.field("c", kind, nullable=False)])
    pq.write_table(
        pa.table({"c": pa.array(values, kind)}, schema=schema),
        path,
        use_dictionary=False,
        column_encoding=encoding,
        compression="NONE",
        data_page_version="2.0",
        store_schema=False,
    )
    with pq.ParquetFile(path) as file:
        start = file.metadata.row_group(0).column(0).data_page_offset
    data = path.read_bytes()
    header, body = thrift.parse(data, start)
    assert header[8][1][1] == (thrift.I32, len(values))
    return data[body : body + header[3][1]]


def hashed(values: list[bytes]) -> list[int]:
    """Each value's hash."""
    return [xxhash.xxh64_intdigest(value) for value in values]


def longs(values: list[int]) -> bytes:
    """Int64s as the kernels exchange them."""
    return struct.pack(f"<{len(values)}q", *values)


def every_cut(data: bytes, call: Callable[[bytes], object]) -> None:
    """Whatever is cut off the end, it is a PageError or (Thrift integers) a CompactError, never a wrong read."""
    for end in range(len(data)):
        with pytest.raises((PageError, kernels.CompactError)):
            call(bytes(data[:end]))


@pytest.mark.parametrize("values", INTEGERS)
def test_delta_packed_integers_are_those_that_pyarrow_wrote(tmp_path: Path, values: list[int]) -> None:
    data = b"head" + values_section(tmp_path / "f", values, pa.int64(), "DELTA_BINARY_PACKED")
    out = bytearray(8 * len(values))
    assert kernels.delta_count(data, 4) == len(values)
    assert kernels.delta_binary_packed(data, 4, len(values), out) == (len(values), len(data))
    assert list(struct.unpack(f"<{len(values)}q", out)) == values


def test_delta_packed_int32_wraps_and_is_narrowed(tmp_path: Path) -> None:
    values = [-(1 << 31), (1 << 31) - 1, 0, -1, 1 << 30] * 30
    data = values_section(tmp_path / "f", values, pa.int32(), "DELTA_BINARY_PACKED")
    wide, narrow = bytearray(8 * len(values)), bytearray(4 * len(values))
    kernels.delta_binary_packed(data, 0, len(values), wide)
    kernels.narrow_int32(wide, len(values), narrow)
    assert list(struct.unpack(f"<{len(values)}i", narrow)) == values


@pytest.mark.parametrize("values", INTEGERS)
def test_a_delta_section_cut_anywhere_is_refused(tmp_path: Path, values: list[int]) -> None:
    data = values_section(tmp_path / "f", values, pa.int64(), "DELTA_BINARY_PACKED")
    out = bytearray(8 * len(values))
    every_cut(data, lambda cut: kernels.delta_binary_packed(cut, 0, len(values), out))


def test_a_delta_section_of_no_values_ends_behind_its_header() -> None:
    data = b"".join(thrift.varint(figure) for figure in (128, 4, 0, 0)) + b"next"
    assert kernels.delta_count(data, 0) == 0
    assert kernels.delta_binary_packed(data, 0, 0, bytearray()) == (0, len(data) - 4)


@pytest.mark.parametrize(
    ("block", "minis", "total"),
    [(0, 4, 1), (128, 0, 1), (128, 3, 1), (128, 32, 1), (16384, 4, 1), (128, 4, 1 << 40), (128, 4, (1 << 64) - 1)],
)
def test_a_delta_header_that_cannot_be_is_refused(block: int, minis: int, total: int) -> None:
    data = b"".join(thrift.varint(figure) for figure in (block, minis, total, 0)) + bytes(40)
    with pytest.raises(PageError, match="delta header"):
        kernels.delta_count(data, 0)
    with pytest.raises(PageError, match="delta header"):
        kernels.delta_binary_packed(data, 0, 64, bytearray(8 * 64))


def test_a_delta_count_beyond_the_pages_is_refused_and_writes_nothing() -> None:
    data = b"".join(thrift.varint(figure) for figure in (128, 4, 100, 0)) + bytes(5)
    out = bytearray(8 * 99)
    with pytest.raises(PageError, match="larger than the page's"):
        kernels.delta_binary_packed(data, 0, 99, out)
    assert not any(out)


def test_a_delta_width_above_64_bits_is_refused() -> None:
    head = b"".join(thrift.varint(figure) for figure in (128, 4, 100, 0)) + thrift.zigzag(0)
    with pytest.raises(PageError, match="past the page's end"):
        kernels.delta_binary_packed(head + b"\x41\0\0\0" + bytes(1000), 0, 100, bytearray(800))


def test_plain_strings_are_hashed_without_their_lengths() -> None:
    values = [b"", b"a", b"parquet" * 30, b"\0\xff"]
    data = b"??" + b"".join(struct.pack("<I", len(value)) + value for value in values)
    out = bytearray(8 * len(values))
    kernels.hash_plain_binary(data, 2, len(values), out)
    assert unpacked(out, len(values)) == hashed(values)
    every_cut(data[2:], lambda cut: kernels.hash_plain_binary(cut, 0, len(values), out))
    with pytest.raises(PageError):
        kernels.hash_plain_binary(b"\xff\xff\xff\xff" + bytes(100), 0, 1, out)


@pytest.mark.parametrize("texts", TEXTS)
def test_delta_length_strings_are_those_that_pyarrow_wrote(tmp_path: Path, texts: list[str]) -> None:
    values = [text.encode() for text in texts]
    data = values_section(tmp_path / "f", texts, pa.string(), "DELTA_LENGTH_BYTE_ARRAY")
    lengths, out = bytearray(8 * len(values)), bytearray(8 * len(values))
    _, start = kernels.delta_binary_packed(data, 0, len(values), lengths)
    assert lengths == longs([len(value) for value in values])
    kernels.hash_lengths(data, start, lengths, len(values), out)
    assert unpacked(out, len(values)) == hashed(values)
    every_cut(data[start:], lambda cut: kernels.hash_lengths(cut, 0, lengths, len(values), out))


@pytest.mark.parametrize("texts", TEXTS)
def test_delta_strings_are_those_that_pyarrow_wrote(tmp_path: Path, texts: list[str]) -> None:
    values = [text.encode() for text in texts]
    count = len(values)
    data = values_section(tmp_path / "f", texts, pa.string(), "DELTA_BYTE_ARRAY")
    prefixes, suffixes, out = bytearray(8 * count), bytearray(8 * count), bytearray(8 * count)
    _, start = kernels.delta_binary_packed(data, 0, count, prefixes)
    _, start = kernels.delta_binary_packed(data, start, count, suffixes)
    scratch = bytearray(max((len(value) for value in values), default=0))
    kernels.hash_delta_byte_array(data, start, prefixes, suffixes, count, scratch, out)
    assert unpacked(out, count) == hashed(values)
    every_cut(
        data[start:],
        lambda cut: kernels.hash_delta_byte_array(cut, 0, prefixes, suffixes, count, scratch, out),
    )
    if scratch:
        with pytest.raises(PageError):
            kernels.hash_delta_byte_array(data, start, prefixes, suffixes, count, scratch[:-1], out)


@pytest.mark.parametrize("lengths", [[-1], [6], [5, 1], [HUGE], [5, HUGE], [-(1 << 63)]])
def test_lengths_that_lie_are_refused(lengths: list[int]) -> None:
    out = bytearray(16)
    with pytest.raises(PageError):
        kernels.hash_lengths(b"12345", 0, longs(lengths), len(lengths), out)
    zeros = longs([0] * len(lengths))
    with pytest.raises(PageError):
        kernels.hash_delta_byte_array(b"12345", 0, zeros, longs(lengths), len(lengths), bytearray(32), out)


@pytest.mark.parametrize("prefixes", [[1, 0], [0, 3], [0, -1], [0, HUGE]])
def test_a_prefix_longer_than_the_value_before_is_refused(prefixes: list[int]) -> None:
    with pytest.raises(PageError):
        kernels.hash_delta_byte_array(b"1234", 0, longs(prefixes), longs([2, 2]), 2, bytearray(8), bytearray(16))


@pytest.mark.parametrize(("width", "kind"), [(4, pa.float32()), (8, pa.float64()), (4, pa.int32()), (8, pa.int64())])
def test_split_byte_streams_come_back_as_plain_values(tmp_path: Path, width: int, kind: pa.DataType) -> None:
    values = list(range(-20, 57))
    data = values_section(tmp_path / "f", values, kind, "BYTE_STREAM_SPLIT")
    out = bytearray(width * len(values))
    kernels.byte_stream_split(b"?" + data, 1, len(values), width, out)
    assert pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(out)]).to_pylist() == values
    every_cut(data, lambda cut: kernels.byte_stream_split(cut, 0, len(values), width, out))


def levels(path: Path, values: list[object]) -> tuple[bytes, int]:
    """The definition levels of a flat nullable column's one page."""
    pq.write_table(pa.table({"c": pa.array(values, pa.int32())}), path, data_page_version="2.0", compression="NONE")
    with pq.ParquetFile(path) as file:
        start = file.metadata.row_group(0).column(0).data_page_offset
    data = path.read_bytes()
    header, body = thrift.parse(data, start)
    return data[body : body + header[8][1][5][1]], header[8][1][2][1]


@pytest.mark.parametrize("period", [1, 2, 3, 20, 1000])
def test_levels_that_pyarrow_wrote_are_counted(tmp_path: Path, period: int) -> None:
    values = [None if at // period % 2 else at for at in range(500)]
    data, nulls = levels(tmp_path / "f", values)
    assert nulls == values.count(None)
    assert kernels.count_levels(data, 0, len(data), 1, 500, 0) == nulls
    assert kernels.count_levels(b"#" + data, 1, 1 + len(data), 1, 500, 1) == 500 - nulls
    if period > 1:
        every_cut(data, lambda cut: kernels.count_levels(cut, 0, len(cut), 1, 500, 1))


@pytest.mark.parametrize("width", range(1, 17))
def test_levels_of_every_width_are_counted(width: int) -> None:
    top = (1 << width) - 1
    packed = [random.Random(at).randint(0, top) for at in range(38)] + [top, 0]  # five groups of eight
    bits = sum(level << at * width for at, level in enumerate(packed))
    size = (width + 7) // 8
    data = thrift.varint(5 << 1 | 1) + bits.to_bytes(5 * width, "little")
    data += thrift.varint(300 << 1) + top.to_bytes(size, "little") + thrift.varint(9 << 1) + bytes(size)
    for target in (0, top, packed[0]):
        expected = (packed + [top] * 300 + [0] * 9).count(target)
        assert kernels.count_levels(data, 0, len(data), width, 349, target) == expected
        assert kernels.count_levels(data, 0, len(data), width, 17, target) == packed[:17].count(target)
    every_cut(data, lambda cut: kernels.count_levels(cut, 0, len(cut), width, 349, 0))


def test_a_last_run_may_be_cut_where_no_levels_are() -> None:
    assert kernels.count_levels(b"\x05\xff", 0, 2, 1, 8, 1) == 8  # says two groups, holds one, needs one


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00\x01", id="a run of none"),
        pytest.param(b"\x01", id="no groups"),
        pytest.param(b"\x10", id="a run without its level"),
        pytest.param(b"\xff" * 12, id="a length that doesn't end"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xff", id="the longest packed run"),
    ],
)
def test_levels_that_do_not_add_up_are_refused(data: bytes) -> None:
    with pytest.raises(PageError, match="levels end"):
        kernels.count_levels(data, 0, len(data), 1, 100, 1)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (3, 2), (4, 3)])
def test_levels_outside_the_page_are_refused(start: int, end: int) -> None:
    with pytest.raises(PageError, match="past the page's end"):
        kernels.count_levels(b"\x10\x01\x01", start, end, 1, 8, 1)


@pytest.mark.parametrize("width", [-1, 0, 17, 32])
def test_levels_have_1_to_16_bits(width: int) -> None:
    with pytest.raises(ValueError, match="1 to 16"):
        kernels.count_levels(b"\x10\x01", 0, 2, width, 8, 1)


@pytest.mark.parametrize("count", [-1, 2, 1 << 61, HUGE])
def test_outputs_too_small_for_the_values_are_refused(count: int) -> None:
    data, out = bytes(64), bytearray(15)
    calls: list[Callable[[], object]] = [
        lambda: kernels.hash_plain_binary(data, 0, count, out),
        lambda: kernels.hash_lengths(data, 0, bytes(64), count, out),
        lambda: kernels.hash_delta_byte_array(data, 0, bytes(64), bytes(64), count, bytearray(8), out),
        lambda: kernels.delta_binary_packed(data, 0, count, out),
        lambda: kernels.byte_stream_split(data, 0, count, 8, out),
        lambda: kernels.narrow_int32(data, count, bytearray(7)),
        lambda: kernels.narrow_int32(bytes(15), count, bytearray(64)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"room|past the page's end"):
            call()
    assert not any(out)


def test_fewer_lengths_than_values_are_refused() -> None:
    out = bytearray(64)
    with pytest.raises(ValueError, match="fewer lengths"):
        kernels.hash_lengths(bytes(64), 0, bytes(15), 2, out)
    for prefixes, suffixes in ((15, 16), (16, 15)):
        with pytest.raises(ValueError, match="fewer lengths"):
            kernels.hash_delta_byte_array(bytes(64), 0, bytes(prefixes), bytes(suffixes), 2, bytearray(8), out)


@pytest.mark.parametrize("start", [-1, 6, HUGE])
def test_positions_outside_the_page_are_refused(start: int) -> None:
    data, out = b"12345", bytearray(64)
    calls: list[Callable[[], object]] = [
        lambda: kernels.hash_plain_binary(data, start, 0, out),
        lambda: kernels.hash_lengths(data, start, b"", 0, out),
        lambda: kernels.hash_delta_byte_array(data, start, b"", b"", 0, bytearray(), out),
        lambda: kernels.byte_stream_split(data, start, 0, 4, out),
        lambda: kernels.delta_count(data, start),
        lambda: kernels.delta_binary_packed(data, start, 1, out),
        lambda: kernels.count_levels(data, start, 5, 1, 1, 1),
    ]
    for call in calls:
        with pytest.raises((PageError, kernels.CompactError)):
            call()


@pytest.mark.parametrize("width", [0, -4])
def test_byte_streams_have_a_width(width: int) -> None:
    with pytest.raises(PageError):
        kernels.byte_stream_split(bytes(8), 0, 1, width, bytearray(8))


def runs(indices: list[int], width: int, packed: bool) -> bytes:
    """Indices with their bit width in front, as one bit-packed run or as RLE runs of one value each."""
    if packed:
        padded = indices + [0] * (-len(indices) % 8)
        bits = sum(index << at * width for at, index in enumerate(padded))
        body = thrift.varint(len(padded) // 8 << 1 | 1) + bits.to_bytes(len(padded) * width // 8, "little")
    else:
        body = b"".join(thrift.varint(1 << 1) + index.to_bytes((width + 7) // 8, "little") for index in indices)
    return bytes([width]) + body


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "rle"])
@pytest.mark.parametrize("width", range(1, 33))
def test_indices_of_every_width_are_marked(width: int, packed: bool) -> None:
    size = min(1 << width, 300)
    chosen = random.Random(width)
    indices = [chosen.randrange(size) for _ in range(37)] + [0, size - 1]
    data = b"?" + runs(indices, width, packed)
    seen = bytearray(size)
    unseen = kernels.mark_indices(data, 1, len(indices), seen, size)
    assert {at for at, one in enumerate(seen) if one} == set(indices)
    assert (set(seen) <= {0, 1}, unseen) == (True, seen.count(0))
    fewer = bytearray(size)
    kernels.mark_indices(data, 1, 17, fewer, size)
    assert {at for at, one in enumerate(fewer) if one} == set(indices[:17])
    fresh = bytearray(1 << 9)
    needed = 1 + (39 * width + 7) // 8 + 1 if packed else len(data) - 1  # the groups' padding may be cut off
    every_cut(data[1 : 1 + needed], lambda cut: kernels.mark_indices(cut, 0, len(indices), bytearray(fresh), 1 << 9))
    assert kernels.mark_indices(data[: 1 + needed], 1, len(indices), fresh, 1 << 9) == (1 << 9) - len(set(indices))


def test_runs_of_both_kinds_follow_each_other() -> None:
    data = b"\x04" + thrift.varint(1 << 1 | 1) + bytes([0x21, 0x13, 0, 0]) + thrift.varint(500 << 1) + b"\x07"
    seen = bytearray(9)
    assert kernels.mark_indices(data, 0, 508, seen, 9) == 4
    assert seen == bytes([1, 1, 1, 1, 0, 0, 0, 1, 0])


def test_indices_without_bits_are_all_0() -> None:
    seen = bytearray(3)
    assert kernels.mark_indices(b"\0", 0, 1000, seen, 3) == 2
    assert seen == b"\1\0\0"


def test_nothing_is_looked_at_where_no_entry_is_left_and_marks_are_kept() -> None:
    seen = bytearray(b"\1\1")
    assert kernels.mark_indices(b"", 0, 100, seen, 0) == 0
    seen = bytearray(b"\1\0\1")
    data = runs([0, 1], 2, packed=False) + b"\xff" * 9
    assert kernels.mark_indices(data, 0, 100, seen, 1) == 0  # the damage lies behind the last entry to be seen
    assert kernels.mark_indices(b"", 0, 0, bytearray(2), 2) == 2  # only nulls: not even a bit width


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "rle"])
@pytest.mark.parametrize("index", [3, 4, 255, (1 << 32) - 1])
def test_an_index_beyond_the_dictionary_is_refused(index: int, packed: bool) -> None:
    for before in ([], [0, 2]):
        data = runs([*before, index, 1], 32, packed)
        with pytest.raises(PageError, match=f"a dictionary index of {index}, and the dictionary has 3 values"):
            kernels.mark_indices(data, 0, len(before) + 1, bytearray(3), 3)
    with pytest.raises(PageError, match="the dictionary has 0 values"):
        kernels.mark_indices(b"\0", 0, 1, bytearray(), 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no bit width"),
        (b"\x21\x02" + bytes(9), "33 bits wide"),
        (b"\xff", "255 bits wide"),
        (b"\x08", "end before"),
        (b"\x08\x00\x00", "end before"),
        (b"\x08\x01\x00", "end before"),
        (b"\x08" + b"\xff" * 12, "end before"),
        (b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0", "end before"),
        (b"\x08\x02\x00", "end before"),
    ],
)
def test_indices_that_do_not_add_up_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(PageError, match=message):
        kernels.mark_indices(data, 0, 100, bytearray(4), 4)
    with pytest.raises(PageError, match="run past its end"):
        kernels.mark_indices(data, len(data) + 1, 100, bytearray(4), 4)
