"""Compiled code picks values out of pages by position, and finds values in pages."""

from __future__ import annotations

import random
import time
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli import kernels


def picked_indices(data: bytes, positions: list[int], limit: int = 1 << 32) -> list[int]:
    at = array("q", positions)
    kernels.pick_indices(data, 0, limit, at)
    return at.tolist()


@pytest.mark.parametrize("width", [0, 1, 3, 8, 11, 20, 32])
def test_dictionary_indices_are_picked_out_of_runs(width: int) -> None:
    most = (1 << width) - 1
    packed = [k * 7919 & most for k in range(24)]
    bits = sum(value << (at * width) for at, value in enumerate(packed))
    repeated = 5 & most
    runs = bytes([3 << 1 | 1]) + bits.to_bytes(3 * width, "little")
    runs += b"\xd8\x04" + repeated.to_bytes((width + 7) // 8, "little")  # 300 times
    data = bytes([width]) + runs
    every = packed + [repeated] * 300
    for positions in ([0], [7, 8, 23], [24, 323], list(range(324))):
        assert picked_indices(data, positions) == [every[at] for at in positions]
        numbers = array("q", [-1]) * (most + 1 if width < 20 else 0)
        for at in positions if numbers else ():
            numbers[every[at]] = at
        if numbers:
            there, found = (
                memoryview(part).cast("q").tolist() for part in kernels.match_indices(data, 0, 324, numbers)
            )
            assert there == [at for at in range(324) if numbers[every[at]] >= 0]
            assert found == [numbers[every[at]] for at in there]
    assert picked_indices(data, [-1, 3, -1, 30, -1]) == [-1, every[3], -1, every[30], -1]
    bad: list[tuple[bytes, list[int], int]] = [(b"", [0], 9), (b"\x21", [0], 9), (b"\x08" + b"\xff" * 11, [0], 9)]
    bad += [(b"\x08\x00\x07" * 3, [0], 9), (b"\x08\x02\x07", [0], 7), (b"\x08\x03" + bytes(6) + b"\x09", [7], 9)]
    if width:
        bad += [(data, [324], 1 << 32), (data[: width + 1], [23], 1 << 32), (data, [3, 3], 1 << 32)]
    for broken, positions, limit in bad:
        with pytest.raises(kernels.PageError):
            picked_indices(broken, positions, limit)


def test_values_are_not_picked_from_behind_a_page() -> None:
    page = b"".join(len(word).to_bytes(4, "little") + word for word in (b"a", b"", b"ccc"))
    starts = array("q", [-1, 0, 2])
    kernels.binary_starts(page, 0, starts)
    sizes = array("q", [0, 0, 0])
    assert kernels.pick_binary(page, starts, 9, sizes) == b"accc"
    assert sizes.tolist() == [0, 1, 3]
    assert kernels.pick_binary(page, starts, 3, sizes) is None
    assert memoryview(kernels.binary_places(page, 0, 3)).cast("q").tolist() == [0, 5, 9]
    for broken, positions in ((page, [3]), (page[:-1], [2]), (page, [1, 0]), (page[:3], [0])):
        with pytest.raises(kernels.PageError):
            kernels.binary_starts(broken, 0, array("q", positions))
    for start in (10, len(page), len(page) - 3, 1 << 40):
        with pytest.raises(kernels.PageError):
            kernels.pick_binary(page, array("q", [start]), 9, sizes)
    for broken, count in ((page, 4), (page[:-1], 3), (page, -1)):
        with pytest.raises(kernels.PageError):
            kernels.binary_places(broken, 0, count)
    assert kernels.pick_fixed(bytes(range(12)), 2, 3, array("q", [0, -1, 2])) == bytes([2, 3, 4, 0, 0, 0, 8, 9, 10])
    assert kernels.pick_bits(b"\x00\x82", 1, array("q", [1, 2, -1, 7])) == bytes([1, 0, 0, 1])
    for position in (3, 1 << 60):
        with pytest.raises(kernels.PageError):
            kernels.pick_fixed(bytes(range(12)), 2, 3, array("q", [position]))
    with pytest.raises(kernels.PageError):
        kernels.pick_bits(b"\x00\x82", 1, array("q", [8]))
    for width, made in ((1, b"\xff"), (2, b"\x80\x01"), (16, bytes(range(16)))):
        for order in ("big", "little"):
            found = kernels.decimals_of(made, width, order == "big")
            assert int.from_bytes(found, "little", signed=True) == int.from_bytes(made, order, signed=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="16 bytes"):
        kernels.decimals_of(bytes(17), 17, True)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=8), st.data())
def test_positions_with_and_without_nulls_are_each_others(runs: list[tuple[bool, int]], data: st.DataObject) -> None:
    """Runs of equal levels, and bit-packed ones in between."""
    levels: list[bool] = []
    coded = b""
    for number, (level, times) in enumerate(runs):
        if number % 2:
            bits = data.draw(st.lists(st.booleans(), min_size=8, max_size=24).filter(lambda bits: len(bits) % 8 == 0))
            levels += bits
            coded += bytes([len(bits) // 8 << 1 | 1])
            coded += sum(bit << at for at, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little")
        else:
            levels += [level] * times
            coded += bytes([times << 1, level])
    ranks = [sum(levels[:at]) if level else -1 for at, level in enumerate(levels)]
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(levels))))))
    at = array("q", chosen)
    kernels.pick_levels(coded, 0, len(coded), at)
    assert at.tolist() == [ranks[position] for position in chosen]
    kept = array("q", [rank for rank in at if rank >= 0])
    kernels.place_values(coded, 0, len(coded), kept)
    assert kept.tolist() == [position for position in chosen if levels[position]]
    bitmap, nulls = kernels.validity_of(at)
    assert nulls == at.tolist().count(-1)
    assert [bool(bitmap[n >> 3] >> (n & 7) & 1) for n in range(len(at))] == [rank >= 0 for rank in at]
    for beyond, function in ((len(levels), kernels.pick_levels), (sum(levels), kernels.place_values)):
        with pytest.raises(kernels.PageError):
            function(coded, 0, len(coded), array("q", [beyond]))


def int64s(found: tuple[bytes, bytes]) -> list[list[int]]:
    return [memoryview(part).cast("q").tolist() for part in found]


@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 12, 40])
def test_a_table_finds_values_of_a_width(width: int) -> None:
    made = random.Random(width)
    values = [made.randrange(256**width).to_bytes(width, "little") for _ in range(500)]
    sought = [*values[:40], *values[:3], bytes(width), b"\xff" * width]
    hashes = b"".join(kernels.xxh64(value).to_bytes(8, "little") for value in sought)
    table = kernels.ValueTable(hashes, b"".join(sought), None, width)
    page = b"ab" + b"".join(values)
    expected = [(at, sought.index(value)) for at, value in enumerate(values) if value in sought]
    assert int64s(table.fixed(page, 2, width, 500)) == [list(part) for part in zip(*expected, strict=True)]
    for count in (501, -1):
        with pytest.raises(kernels.PageError):
            table.fixed(page, 2, width, count)
    none = kernels.ValueTable(b"", b"", None, width)
    assert int64s(none.fixed(page, 2, width, 500)) == [[], []]
    with pytest.raises(ValueError, match="fewer values"):
        kernels.ValueTable(hashes, b"".join(sought)[:-1], None, width)


@given(st.lists(st.binary(max_size=20), max_size=60), st.lists(st.binary(max_size=20), max_size=30), st.data())
def test_a_table_finds_byte_arrays(values: list[bytes], others: list[bytes], data: st.DataObject) -> None:
    sought = [*data.draw(st.lists(st.sampled_from(values), max_size=9) if values else st.just([])), *others]
    hashes = b"".join(kernels.xxh64(value).to_bytes(8, "little") for value in sought)
    offsets = array("q", [sum(map(len, sought[:at])) for at in range(len(sought) + 1)])
    table = kernels.ValueTable(hashes, b"".join(sought), offsets, 0)
    page = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    expected = [(at, sought.index(value)) for at, value in enumerate(values) if value in sought]
    assert int64s(table.binary(page, 0, len(values))) == [[at for at, _ in expected], [n for _, n in expected]]
    with pytest.raises(kernels.PageError):
        table.binary(page, 0, len(values) + 1)
    if sought:
        with pytest.raises(ValueError, match="outside"):
            kernels.ValueTable(hashes, b"".join(sought), array("q", [-1, *offsets[1:]]), 0)


def test_a_value_that_is_given_very_often_takes_no_more_time_than_others() -> None:
    count = 100_000
    once, often = (array("q", numbers).tobytes() for numbers in (range(count), [7] * count))
    seconds = []
    for values in (once, often):
        hashes = bytearray(8 * count)
        kernels.hash_fixed(values, 8, 0, count, None, hashes)
        start = time.process_time()
        table = kernels.ValueTable(bytes(hashes), values, None, 8)
        seconds.append(time.process_time() - start)
    assert table.fixed(array("q", [6, 7]).tobytes(), 0, 8, 2) == (
        array("q", [1]).tobytes(),
        array("q", [0]).tobytes(),
    )
    assert seconds[1] < 20 * seconds[0]
