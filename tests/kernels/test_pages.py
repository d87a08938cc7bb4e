"""The walks over value sections of data pages: those of pyarrow, hand-made encodings, and wrong bytes."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from support import thrift
from support.reference import unpacked

from bloomcli import kernels
from bloomcli.kernels import DeltaByteArrayHasher, Deltas, PageError

HUGE = (1 << 63) - 1
INTEGERS = [
    pytest.param([7], id="one"),
    pytest.param(list(range(128)), id="ascending"),
    pytest.param([5] * 300, id="constant"),
    pytest.param([random.Random(at).getrandbits(64) - (1 << 63) for at in range(300)], id="wide"),
    pytest.param([-(1 << 63), HUGE, 0, -1, -(1 << 63)], id="extreme"),
    pytest.param([at * at - 3000 for at in range(129)], id="squares"),
]
TEXTS = [
    pytest.param(["", "", "a", ""], id="empty"),
    pytest.param([f"customer-{at:05}" for at in range(150)], id="shared prefixes"),
    pytest.param([f"{random.Random(at).random()}" * (at % 5) for at in range(120)], id="mixed"),
]


def values_section(path: Path, values: list[Any], kind: pa.DataType, encoding: str) -> bytes:
    """The value section of the only data page that pyarrow writes for these values, required and uncompressed."""
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
    """Any truncation is a PageError or (Thrift integers) a CompactError, never a wrong read."""
    for end in range(len(data)):
        with pytest.raises((PageError, kernels.CompactError)):
            call(bytes(data[:end]))


def distinct(values: Iterable[Any]) -> list[Any]:
    """Values without equal neighbours."""
    return [value for value, _ in groupby(values)]


def fed(data: bytes, pos: int = 0) -> Deltas:
    """`Deltas` with all bytes."""
    deltas = Deltas()
    deltas.feed(data, pos, True)
    return deltas


def every_delta(deltas: Deltas, most: int = 7) -> list[int]:
    """The values, `most` at a time."""
    found: list[int] = []
    status = kernels.SLICE_DONE
    while status != kernels.ALL_DONE:
        out = bytearray(8 * most)
        count, status = deltas.read(out, most)
        assert status in (kernels.SLICE_DONE, kernels.ALL_DONE)
        found += struct.unpack(f"<{count}q", out[: count * 8])
    return found


def end_of(data: bytes, pos: int = 0) -> int:
    """The end of the deltas."""
    deltas = fed(data, pos)
    assert deltas.skip() == kernels.ALL_DONE
    return deltas.position


@pytest.mark.parametrize("values", INTEGERS)
def test_delta_packed_integers_are_those_that_pyarrow_wrote(tmp_path: Path, values: list[int]) -> None:
    """Also in windows that end anywhere; a section that is cut off is refused."""
    data = values_section(tmp_path / "f", values, pa.int64(), "DELTA_BINARY_PACKED")
    deltas = fed(b"head" + data, 4)
    assert distinct(every_delta(deltas)) == distinct(values)
    assert (deltas.count, deltas.position) == (len(values), 4 + len(data))
    assert end_of(b"head" + data, 4) == 4 + len(data)
    every_cut(data, lambda cut: every_delta(fed(cut), 50))
    every_cut(data, end_of)
    for step, skipped in itertools.product((1, 2, 3, 64), (False, True)):
        deltas, found, start, end = Deltas(), list[int](), 0, 0
        status = kernels.MORE_BYTES
        while status != kernels.ALL_DONE:
            if status == kernels.MORE_BYTES:
                start, end = start + deltas.position, min(end + step, len(data))
                deltas.feed(data[start:end], 0, end == len(data))
            if skipped:
                status = deltas.skip()
                continue
            out = bytearray(8 * 5)
            count, status = deltas.read(out, 5)
            found += struct.unpack(f"<{count}q", out[: count * 8])
        assert start + deltas.position == len(data)
        assert skipped or distinct(found) == distinct(values)


def test_a_delta_section_of_no_values_ends_behind_its_header() -> None:
    data = b"".join(thrift.varint(figure) for figure in (128, 4, 0, 0)) + b"next"
    deltas = fed(data)
    assert every_delta(deltas) == []
    assert (deltas.count, deltas.position, end_of(data)) == (0, len(data) - 4, len(data) - 4)


def test_a_run_of_equal_values_is_one_value_however_long_it_is() -> None:
    blocks = 30_000
    head = b"".join(thrift.varint(figure) for figure in (8192, 1, 1 + 8192 * blocks)) + thrift.zigzag(-5)
    assert every_delta(fed(head + b"\0\0" * blocks)) == [-5]
    steps = head + b"\0\0" + thrift.zigzag(3) + b"\0" + b"\0\0" * (blocks - 2)
    assert every_delta(fed(steps), 100) == [-5, *(-5 + 3 * (i + 1) for i in range(8192))]


@pytest.mark.parametrize(
    ("block", "minis", "total"),
    [(0, 4, 1), (128, 0, 1), (128, 3, 1), (128, 32, 1), (16384, 4, 1), (128, 4, 1 << 40), (128, 4, (1 << 64) - 1)],
)
def test_a_delta_header_that_cannot_be_is_refused(block: int, minis: int, total: int) -> None:
    data = b"".join(thrift.varint(figure) for figure in (block, minis, total, 0)) + bytes(40)
    with pytest.raises(PageError, match="delta header"):
        fed(data).skip()
    with pytest.raises(PageError, match="delta header"):
        fed(data).read(bytearray(8 * 64), 64)


def test_a_delta_width_above_64_bits_is_refused() -> None:
    head = b"".join(thrift.varint(figure) for figure in (128, 4, 100, 0)) + thrift.zigzag(0)
    with pytest.raises(PageError, match="past the page's end"):
        every_delta(fed(head + b"\x41\0\0\0" + bytes(1000)))
    with pytest.raises(PageError, match="past the page's end"):
        end_of(head + b"\x41\0\0\0" + bytes(1000))


def plain(data: bytes, pos: int, count: int, out: bytearray, *, every: bool = False) -> int:
    """Hash `count` complete values; return the number of hashes."""
    taken, hashed, _ = kernels.hash_plain_binary(data, pos, True, out, len(out) // 8, count, every)
    assert taken == count
    return hashed


def test_plain_strings_are_hashed_without_their_lengths() -> None:
    values = [b"", b"a", b"parquet" * 30, b"\0\xff"]
    data = b"??" + b"".join(struct.pack("<I", len(value)) + value for value in values)
    out = bytearray(8 * len(values))
    plain(data, 2, len(values), out)
    assert unpacked(out, len(values)) == hashed(values)
    every_cut(data[2:], lambda cut: plain(cut, 0, len(values), out))
    with pytest.raises(PageError):
        plain(b"\xff\xff\xff\xff" + bytes(100), 0, 1, out)


def test_plain_strings_that_a_window_cuts_are_left_for_the_next() -> None:
    values = [b"", b"a", b"parquet" * 30, b"\0\xff"]
    parts = [struct.pack("<I", len(value)) + value for value in values]
    data = b"".join(parts)
    out = bytearray(8 * len(values))
    for end in range(len(data)):
        whole = next(n for n in range(len(parts), -1, -1) if len(b"".join(parts[:n])) <= end)
        found = kernels.hash_plain_binary(data[:end], 0, False, out, len(values), len(values), False)
        assert found == (whole, whole, len(b"".join(parts[:whole])))
        assert unpacked(out, whole) == hashed(values[:whole])


def test_equal_neighbours_are_hashed_once_unless_every_entry_counts() -> None:
    values = [b"", b"", b"a", b"a", b"b", b"a", b"long" * 9, b"long" * 9, b"long" * 8 + b"lonG", b"", b""]
    data = b"".join(struct.pack("<I", len(value)) + value for value in values)
    out = bytearray(8 * len(values))
    assert plain(data, 0, len(values), out) == len(distinct(values))
    assert unpacked(out, len(distinct(values))) == hashed(distinct(values))
    assert plain(data, 0, len(values), out, every=True) == len(values)
    assert unpacked(out, len(values)) == hashed(values)
    for width in (1, 2, 4, 8, 12, 16):
        numbers = [(n // 3 % 5).to_bytes(width, "big") for n in range(40)]
        out = bytearray(8 * len(numbers))
        found = kernels.hash_plain_fixed(b"".join(numbers), width, len(numbers), out, every=False)
        assert unpacked(out, found) == hashed(distinct(numbers))
    with pytest.raises(PageError, match="don't fit"):
        kernels.hash_plain_fixed(bytes(15), 8, 2, bytearray(16), every=False)


def delta_lengths(
    data: bytes, count: int, start: int | None = None, numbers: bytes | None = None, most: int = 5
) -> bytearray:
    """The hashes of complete DELTA_LENGTH_BYTE_ARRAY values, `most` at a time."""
    lengths = fed(data if numbers is None else numbers)
    at, found, status = end_of(data) if start is None else start, bytearray(), kernels.SLICE_DONE
    while status != kernels.ALL_DONE:
        out, sizes = bytearray(8 * most), bytearray(8 * most)
        n, at, status = kernels.hash_lengths(lengths, data, at, True, out, sizes, most)
        found += out[: n * 8]
    assert lengths.count == count
    return found


@pytest.mark.parametrize("texts", TEXTS)
def test_delta_length_strings_are_those_that_pyarrow_wrote(tmp_path: Path, texts: list[str]) -> None:
    values = [text.encode() for text in texts]
    data = values_section(tmp_path / "f", texts, pa.string(), "DELTA_LENGTH_BYTE_ARRAY")
    found = delta_lengths(data, len(values))
    assert set(unpacked(found, len(found) // 8)) == set(hashed(values))
    if any(values):
        every_cut(data, lambda cut: delta_lengths(cut, len(values), most=40))


def delta_strings(data: bytes, count: int, longest: int = 1 << 20, width: int = -1, most: int = 5) -> bytearray:
    """The hashes of complete DELTA_BYTE_ARRAY values, `most` at a time."""
    middle = end_of(data)
    prefixes, suffixes, at = fed(data), fed(data, middle), end_of(data, middle)
    values, found, status = DeltaByteArrayHasher(longest, width), bytearray(), kernels.SLICE_DONE
    while status != kernels.ALL_DONE:
        out, shapes = bytearray(8 * most), bytearray(16 * most)
        n, at, status = values.hash(prefixes, suffixes, data, at, True, out, shapes, most)
        found += out[: n * 8]
        if status == kernels.TOO_LONG:
            raise PageError("too long")
    assert (prefixes.count, suffixes.count) == (count, count)
    return found


@pytest.mark.parametrize("texts", TEXTS)
def test_delta_strings_are_those_that_pyarrow_wrote(tmp_path: Path, texts: list[str]) -> None:
    values = [text.encode() for text in texts]
    data = values_section(tmp_path / "f", texts, pa.string(), "DELTA_BYTE_ARRAY")
    found = delta_strings(data, len(values))
    assert unpacked(found, len(found) // 8) == hashed(distinct(values))
    if any(values):
        every_cut(data, lambda cut: delta_strings(cut, len(values), most=40))
    longest = max((len(value) for value in values), default=0)
    delta_strings(data, len(values), longest)
    if longest:
        with pytest.raises(PageError, match="too long"):
            delta_strings(data, len(values), longest - 1)


def packed_longs(values: list[int]) -> bytes:
    """DELTA_BINARY_PACKED int64s, one miniblock of 64 bits a block."""
    data = b"".join(thrift.varint(figure) for figure in (8, 1, len(values))) + thrift.zigzag(values[0])
    for start in range(1, len(values), 8):
        deltas = [b - a for a, b in zip(values[start - 1 :], values[start : start + 8], strict=False)]
        bits = b"".join((delta % (1 << 64)).to_bytes(8, "little") for delta in deltas)
        data += thrift.zigzag(0) + b"\x40" + bits.ljust(64, b"\0")
    return data


@pytest.mark.parametrize("lengths", [[-1], [6], [5, 1], [HUGE], [5, HUGE], [-(1 << 63)]])
def test_lengths_with_wrong_claims_are_refused(lengths: list[int]) -> None:
    with pytest.raises(PageError):
        delta_lengths(b"12345", len(lengths), 0, packed_longs(lengths))
    zeros = [0] * len(lengths)
    with pytest.raises(PageError):
        delta_strings(packed_longs(zeros) + packed_longs(lengths) + b"12345", len(lengths))


@pytest.mark.parametrize("prefixes", [[1, 0], [0, 3], [0, -1], [0, HUGE]])
def test_a_prefix_longer_than_the_value_before_is_refused(prefixes: list[int]) -> None:
    with pytest.raises(PageError):
        delta_strings(packed_longs(prefixes) + packed_longs([2, 2]) + b"1234", 2)


def test_fixed_length_values_of_another_length_are_refused() -> None:
    data = packed_longs([0, 1, 2]) + packed_longs([2, 1, 0]) + b"abc"
    assert unpacked(delta_strings(data, 3, width=2), 2) == hashed([b"ab", b"ac"])
    with pytest.raises(PageError, match="a value of 3 bytes in a column of 2"):
        delta_strings(packed_longs([0, 1]) + packed_longs([2, 2]) + b"abcd", 2, width=2)


@pytest.mark.parametrize("step", [1, 7, 31, 32, 33, 100])
def test_a_value_that_comes_in_parts_has_the_hash_of_the_whole(step: int) -> None:
    for size in (*range(70), 1000):
        value = random.Random(size).randbytes(size)
        hasher = kernels.Hasher()
        for at in range(0, size, step):
            hasher.update(value[at : at + step])
        assert hasher.digest() == kernels.xxh64(value)


@pytest.mark.parametrize("count", [-1, 2, 1 << 61, HUGE])
def test_outputs_too_small_for_the_values_are_refused(count: int) -> None:
    data, out, room = bytes(64), bytearray(15), bytearray(64)
    calls: list[Callable[[], object]] = [
        lambda: kernels.hash_plain_binary(data, 0, True, out, count, 1, False),
        lambda: kernels.hash_plain_fixed(data, 8, count, out, every=False),
        lambda: kernels.hash_lengths(fed(data), data, 0, True, out, room, count),
        lambda: kernels.hash_lengths(fed(data), data, 0, True, room, out, count),
        lambda: DeltaByteArrayHasher(9, -1).hash(fed(data), fed(data), data, 0, True, out, room, count),
        lambda: DeltaByteArrayHasher(9, -1).hash(fed(data), fed(data), data, 0, True, room, out, count),
        lambda: fed(data).read(out, count),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"room|past the page's end|don't fit"):
            call()
    assert not any(out)


def test_a_dictionary_is_hashed_at_once_and_other_values_in_slices() -> None:
    size = 40 << 20
    data = (size.to_bytes(4, "little") + bytes(size)) * 3
    for dictionary, taken in ((True, 3), (False, 2)):
        assert kernels.hash_plain_binary(data, 0, True, bytearray(24), 3, 3, dictionary)[0] == taken


@pytest.mark.parametrize("start", [-1, 6, HUGE])
def test_positions_outside_the_page_are_refused(start: int) -> None:
    data, out = b"12345", bytearray(64)
    calls: list[Callable[[], object]] = [
        lambda: kernels.hash_plain_binary(data, start, True, out, 0, 0, False),
        lambda: kernels.hash_lengths(fed(data), data, start, True, out, out, 0),
        lambda: DeltaByteArrayHasher(9, -1).hash(fed(data), fed(data), data, start, True, out, out, 0),
        lambda: fed(data, start),
        lambda: kernels.Levels(1, 1).feed(data, start, 5, True),
        lambda: kernels.Indices(1, bytearray(1), 1).feed(data, start, True),
    ]
    for call in calls:
        with pytest.raises((PageError, kernels.CompactError)):
            call()
