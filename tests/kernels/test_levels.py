"""Levels and dictionary indices of data pages, which are runs: those of pyarrow, hand-made and wrong ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import thrift

from bloomcli import kernels
from bloomcli.kernels import PageError


def every_cut(data: bytes, call: Callable[[bytes], object]) -> None:
    """Any truncation is a PageError, never a wrong read."""
    for end in range(len(data)):
        with pytest.raises(PageError):
            call(bytes(data[:end]))


def levels(path: Path, values: list[object]) -> tuple[bytes, int]:
    """The definition levels of the only page of a flat nullable column."""
    pq.write_table(pa.table({"c": pa.array(values, pa.int32())}), path, data_page_version="2.0", compression="NONE")
    with pq.ParquetFile(path) as file:
        start = file.metadata.row_group(0).column(0).data_page_offset
    data = path.read_bytes()
    header, body = thrift.parse(data, start)
    return data[body : body + header[8][1][5][1]], header[8][1][2][1]


def counted(data: bytes, start: int, end: int, count: int, highest: int) -> int:
    """Count the highest levels in one call."""
    found = kernels.Levels(count, highest)
    found.feed(data, start, end, True)
    assert found.left == 0
    return found.hits


@pytest.mark.parametrize("period", [1, 2, 3, 20, 1000])
def test_levels_that_pyarrow_wrote_are_counted(tmp_path: Path, period: int) -> None:
    values = [None if at // period % 2 else at for at in range(500)]
    data, nulls = levels(tmp_path / "f", values)
    assert nulls == values.count(None)
    assert counted(b"#" + data, 1, 1 + len(data), 500, 1) == 500 - nulls
    if period > 1:
        every_cut(data, lambda cut: counted(cut, 0, len(cut), 500, 1))


@pytest.mark.parametrize("width", range(1, 17))
def test_levels_of_every_width_are_counted(width: int) -> None:
    top = (1 << width) - 1
    packed = [random.Random(at).randint(0, top) for at in range(38)] + [top, 0]  # five groups of eight
    bits = sum(level << at * width for at, level in enumerate(packed))
    size = (width + 7) // 8
    data = thrift.varint(5 << 1 | 1) + bits.to_bytes(5 * width, "little")
    data += thrift.varint(300 << 1) + top.to_bytes(size, "little") + thrift.varint(9 << 1) + bytes(size)
    expected = (packed + [top] * 300 + [0] * 9).count(top)
    assert counted(data, 0, len(data), 349, top) == expected
    assert counted(data, 0, len(data), 17, top) == packed[:17].count(top)
    every_cut(data, lambda cut: counted(cut, 0, len(cut), 349, top))
    for step in (1, 2, 3, 50):
        found, start, end = kernels.Levels(349, top), 0, 0
        while found.left:
            end = min(end + step, len(data))
            start = found.feed(data, start, end, end == len(data))
        assert (found.hits, start) == (expected, len(data))


@pytest.mark.parametrize("highest", [1, 2, 3, 5, 6, 254, 255, 256, 1000])
def test_a_level_above_the_highest_is_refused(highest: int) -> None:
    width = highest.bit_length()
    for level in {highest + 1, (1 << width) - 1, (1 << (width + 7) // 8 * 8) - 1} - {highest}:
        size = (level.bit_length() + 7) // 8
        if size > (width + 7) // 8:
            continue
        run = thrift.varint(8 << 1) + level.to_bytes((width + 7) // 8, "little")
        with pytest.raises(PageError, match=f"a level of {level}, but the highest is {highest}"):
            counted(run, 0, len(run), 8, highest)
        if level < 1 << width:
            bits = sum(level << at * width for at in range(8)).to_bytes(width, "little")
            with pytest.raises(PageError, match=f"a level of {level}, but the highest is {highest}"):
                counted(b"\x03" + bits, 0, 1 + width, 8, highest)


def test_a_last_run_may_be_cut_where_no_levels_are() -> None:
    assert counted(b"\x05\xff", 0, 2, 8, 1) == 8  # says two groups, holds one, needs one


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
        counted(data, 0, len(data), 100, 1)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (3, 2), (4, 3)])
def test_levels_outside_the_page_are_refused(start: int, end: int) -> None:
    with pytest.raises(PageError, match="past the page's end"):
        counted(b"\x10\x01\x01", start, end, 8, 1)


@pytest.mark.parametrize("highest", [-1, 0, 1 << 16, (1 << 31) - 1])
def test_levels_have_1_to_16_bits(highest: int) -> None:
    with pytest.raises(ValueError, match="1 to 16"):
        kernels.Levels(8, highest)


def runs(indices: list[int], width: int, packed: bool) -> bytes:
    """Indices after their bit width, as one bit-packed run or as RLE runs of one value each."""
    if packed:
        padded = indices + [0] * (-len(indices) % 8)
        bits = sum(index << at * width for at, index in enumerate(padded))
        body = thrift.varint(len(padded) // 8 << 1 | 1) + bits.to_bytes(len(padded) * width // 8, "little")
    else:
        body = b"".join(thrift.varint(1 << 1) + index.to_bytes((width + 7) // 8, "little") for index in indices)
    return bytes([width]) + body


def marked(data: bytes, pos: int, count: int, seen: bytearray, unseen: int) -> int:
    """Mark the indices of all bytes; return the number of entries that stay unseen."""
    indices = kernels.Indices(count, seen, unseen)
    if not indices.done or pos > len(data):
        indices.feed(data, pos, True)
    assert indices.done
    return indices.unseen


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "rle"])
@pytest.mark.parametrize("width", range(1, 33))
def test_indices_of_every_width_are_marked(width: int, packed: bool) -> None:
    size = min(1 << width, 300)
    chosen = random.Random(width)
    indices = [chosen.randrange(size) for _ in range(37)] + [0, size - 1]
    data = b"?" + runs(indices, width, packed)
    seen = bytearray(size)
    unseen = marked(data, 1, len(indices), seen, size)
    assert {at for at, one in enumerate(seen) if one} == set(indices)
    assert (set(seen) <= {0, 1}, unseen) == (True, seen.count(0))
    for step in (1, 2, 5, 64):  # windows that end anywhere
        found, start, end = bytearray(size), 1, 1
        windows = kernels.Indices(len(indices), found, size)
        while not windows.done:
            end = min(end + step, len(data))
            start = windows.feed(data[:end], start, end == len(data))
        assert found == seen
    fewer = bytearray(size)
    marked(data, 1, 17, fewer, size)
    assert {at for at, one in enumerate(fewer) if one} == set(indices[:17])
    fresh = bytearray(1 << 9)
    needed = 1 + (39 * width + 7) // 8 + 1 if packed else len(data) - 1  # the groups' padding may be cut off
    every_cut(data[1 : 1 + needed], lambda cut: marked(cut, 0, len(indices), bytearray(fresh), 1 << 9))
    assert marked(data[: 1 + needed], 1, len(indices), fresh, 1 << 9) == (1 << 9) - len(set(indices))


def test_runs_of_both_kinds_follow_each_other() -> None:
    data = b"\x04" + thrift.varint(1 << 1 | 1) + bytes([0x21, 0x13, 0, 0]) + thrift.varint(500 << 1) + b"\x07"
    seen = bytearray(9)
    assert marked(data, 0, 508, seen, 9) == 4
    assert seen == bytes([1, 1, 1, 1, 0, 0, 0, 1, 0])


def test_indices_without_bits_are_all_0() -> None:
    seen = bytearray(3)
    assert marked(b"\0", 0, 1000, seen, 3) == 2
    assert seen == b"\1\0\0"


def test_nothing_is_checked_where_no_entry_is_left_and_marks_are_kept() -> None:
    seen = bytearray(b"\1\1")
    assert marked(b"", 0, 100, seen, 0) == 0
    seen = bytearray(b"\1\0\1")
    data = runs([0, 1], 2, packed=False) + b"\xff" * 9
    assert marked(data, 0, 100, seen, 1) == 0  # the damage follows the last unseen entry
    assert marked(b"", 0, 0, bytearray(2), 2) == 2  # only nulls: not even a bit width


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "rle"])
@pytest.mark.parametrize("index", [3, 4, 255, (1 << 32) - 1])
def test_an_index_beyond_the_dictionary_is_refused(index: int, packed: bool) -> None:
    for before in ([], [0, 2]):
        data = runs([*before, index, 1], 32, packed)
        with pytest.raises(PageError, match=f"a dictionary index of {index}, but the dictionary has 3 values"):
            marked(data, 0, len(before) + 1, bytearray(3), 3)
    with pytest.raises(PageError, match="the dictionary has 0 values"):
        marked(b"\0", 0, 1, bytearray(), 0)


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
        marked(data, 0, 100, bytearray(4), 4)
    with pytest.raises(PageError, match="run past its end"):
        marked(data, len(data) + 1, 100, bytearray(4), 4)
