"""The kernels of an index: filters of other sizes, transposed rows, their checksums, lookups in them."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pytest
import xxhash

from bloomcli import kernels


def filled(blocks: int, values: int, rng: random.Random) -> bytearray:
    """The bits of a filter with random values."""
    bits = bytearray(blocks * 32)
    kernels.sbbf_insert(bits, rng.randbytes(8 * values), values)
    return bits


def bit_of(bits: bytes | bytearray, number: int) -> int:
    """A bit of a bitmap, the lowest of a byte first."""
    return bits[number >> 3] >> (number & 7) & 1


def slots_of(bitmap: bytes | bytearray) -> set[int]:
    """The numbers of the bits that are set."""
    return {number for number in range(8 * len(bitmap)) if bit_of(bitmap, number)}


@pytest.mark.parametrize("units", [1, 63, 64, 65, 600])
def test_rows_have_the_bits_of_the_units_and_their_checksums(units: int) -> None:
    rng, blocks = random.Random(units), 2
    words = -(-units // 64)
    stride, slots = words * 8 + 8, sorted(rng.sample(range(words * 64), units))
    bitsets = [rng.randbytes(blocks * 32) for _ in range(units)]
    lanes = array("i", [-1]) * (words * 64)
    for number, slot in enumerate(slots):
        lanes[slot] = number
    window = bytearray(blocks * 256 * stride)
    kernels.index_set(window, stride, blocks, array("q", range(words)), lanes, b"".join(bitsets))
    kernels.index_seal(window, stride, 10)
    assert kernels.index_check(window, stride, 10) == -1
    assert kernels.index_check(window, stride, 11) == 0
    for row in range(blocks * 256):
        bits = window[row * stride : (row + 1) * stride]
        assert xxhash.xxh64_intdigest(bytes(bits[:-8]), seed=row + 10) == int.from_bytes(bits[-8:], "little")
        expected = sum(bit_of(bitset, row) << slot for slot, bitset in zip(slots, bitsets, strict=True))
        assert int.from_bytes(bits[:-8], "little") == expected
    window[rng.randrange(len(window))] ^= 1
    assert kernels.index_check(window, stride, 10) >= 0


@pytest.mark.parametrize("units", [1, 64, 130, 600])
def test_lookups_in_rows_give_what_the_filters_give(units: int) -> None:
    rng, blocks, count = random.Random(units), 8, 500
    words = -(-units // 64)
    stride = words * 8 + 8
    bitsets = [filled(blocks, 150, rng) for _ in range(units)]
    window = bytearray(blocks * 256 * stride)
    lanes = array("i", [at if at < units else -1 for at in range(words * 64)])
    kernels.index_set(window, stride, blocks, array("q", range(words)), lanes, b"".join(bitsets))
    hashes, expected = rng.randbytes(8 * count), set()
    for unit, bits in enumerate(bitsets):
        out = bytearray(count)
        kernels.sbbf_check(bits, hashes, count, out)
        expected |= {(at, unit) for at in range(count) if out[at]}
    order = memoryview(kernels.index_order(hashes, blocks)).cast("q")
    assert sorted(order) == list(range(count))
    groups = memoryview(kernels.index_groups(hashes, order, blocks)).cast("q").tolist()
    starts = dict(zip(groups[::2], groups[1::2], strict=True))
    tops = [int.from_bytes(hashes[at * 8 : at * 8 + 8], "little") >> 61 for at in order]
    assert starts == {block: tops.index(block) for block in range(blocks)}
    pairs = set()
    for at in range(count):
        one = bytearray(words * 8)
        kernels.index_any(window, stride, 0, blocks, hashes, order, at, at + 1, one)
        pairs |= {(order[at], slot) for slot in slots_of(one)}
    assert pairs == expected
    either = bytearray(words * 8)
    half = order[starts[4] :]
    part = memoryview(window)[4 * 256 * stride :]
    kernels.index_any(part, stride, 4, blocks, hashes, half, 0, len(half), either)
    later = {unit for position, unit in expected if position in set(half)}
    assert slots_of(either) == later


def test_blocks_of_filters_in_a_file_are_those_of_the_filters(tmp_path: Path) -> None:
    rng, path = random.Random(2), tmp_path / "filters"
    filters = [filled(blocks, 30, rng) for blocks in (1, 2, 16, 64, 37, 7, 100)]
    offsets, sizes, data = array("q"), array("i"), b"before"
    for bits in filters:
        offsets.append(len(data))
        sizes.append(len(bits) // 32)
        data += bits
    path.write_bytes(data)
    with path.open("rb") as file:
        for first, count in [(0, 16), (3, 5), (15, 1)]:
            found = bytearray(len(filters) * count * 32)
            assert kernels.sbbf_gather(file.fileno(), offsets, sizes, 16, first, count, found) == -1
            for at, bits in enumerate(filters):
                whole = bytearray(16 * 32)
                kernels.sbbf_spread(bits, 0, len(bits) // 32, 16, 0, 16, whole, 0)
                assert found[at * count * 32 :][: count * 32] == whole[first * 32 : (first + count) * 32]
        found, beyond = bytearray(2 * 32), array("q", [6, len(data) - 31])
        assert kernels.sbbf_gather(file.fileno(), beyond, sizes[:2], 1, 0, 1, found) == 1
        assert kernels.sbbf_gather(file.fileno(), array("q"), array("i"), 1, 0, 1, found) == -1
        assert kernels.sbbf_gather(-1, beyond, sizes[:2], 1, 0, 1, found) == 0
        for wrong in [
            (beyond, sizes[:1], 1, 0, 1),
            (beyond, sizes[:2], 1, 0, 2),
            (beyond, array("i", [1, 0]), 1, 0, 1),
        ]:
            with pytest.raises(ValueError):
                kernels.sbbf_gather(file.fileno(), *wrong, found)


def test_rows_of_an_old_index_are_copied_cleared_and_set() -> None:
    rng = random.Random(1)
    old = bytearray(rng.randbytes(2 * 256 * 24))
    window = bytearray(3 * 256 * 32)
    kernels.index_copy(old, 24, 0, 2, window, 32, 1, 3, 4)  # blocks 1, 2 and 3 of 4 have those of 0, 1 and 1 of 2
    for at, source in enumerate([0, 1, 1]):
        for row in range(256):
            start = (at * 256 + row) * 32
            assert window[start : start + 16] == old[(source * 256 + row) * 24 :][:16]
            assert window[start + 16 : start + 32] == bytes(16)
    keep, ones = rng.randbytes(24), rng.randbytes(24)
    before = bytes(window)
    kernels.index_mask(window, 32, 3, keep, ones)
    masks = int.from_bytes(keep, "little"), int.from_bytes(ones, "little")
    for start in range(0, len(window), 32):
        bits = int.from_bytes(before[start : start + 24], "little") & masks[0] | masks[1]
        assert window[start : start + 24] == bits.to_bytes(24, "little")


def test_the_cover_of_any_filter_has_each_of_its_values_and_only_blocks_that_share_hashes() -> None:
    rng = random.Random(10)
    for _ in range(300):
        have, want = rng.randint(1, 90), rng.randint(1, 90)
        values = rng.randbytes(8 * 50)
        bits, out, found = bytearray(32 * have), bytearray(32 * want), bytearray(50)
        kernels.sbbf_insert(bits, values, 50)
        kernels.sbbf_spread(bits, 0, have, want, 0, want, out, 0)
        assert kernels.sbbf_check(out, values, 50, found) == 0
        for target in range(want):
            low, high = (-(-(edge << 32) // want) for edge in (target, target + 1))
            sources = range(low * have >> 32, ((high - 1) * have >> 32) + 1)
            assert (sources.start, sources.stop) == kernels.sbbf_source(want, have, target, 1)
            either = 0
            for source in sources:
                either |= int.from_bytes(bits[source * 32 : source * 32 + 32], "little")
            assert out[target * 32 : target * 32 + 32] == either.to_bytes(32, "little")


def test_the_cover_of_a_smaller_size_is_that_of_the_planning_kernels() -> None:
    rng = random.Random(11)
    for have, want in [(64, 8), (37, 32), (100, 64), (7, 1)]:
        bits, out = filled(have, 200, rng), bytearray(32 * want)
        kernels.sbbf_spread(bits, 0, have, want, 0, want, out, 0)
        assert out == kernels.sbbf_cover(bits, want)


def test_kernels_refuse_what_does_not_fit() -> None:
    order = array("q", [0])
    calls = [
        lambda: kernels.sbbf_source(4, 4, 3, 2),
        lambda: kernels.sbbf_source(0, 4, 0, 1),
        lambda: kernels.sbbf_spread(bytes(32), 1, 4, 4, 0, 1, bytearray(32), 0),
        lambda: kernels.sbbf_spread(bytes(32), 0, 1, 4, 0, 2, bytearray(32), 0),
        lambda: kernels.index_set(bytearray(4096), 16, 2, array("q"), array("i"), b""),
        lambda: kernels.index_set(bytearray(4096), 16, 1, array("q", [1]), array("i", [-1] * 64), b""),
        lambda: kernels.index_set(bytearray(4096), 16, 1, array("q", [0]), array("i", [0] * 64), b""),
        lambda: kernels.index_mask(bytearray(4096), 16, 1, b"", None),
        lambda: kernels.index_copy(bytes(4096), 16, 0, 4, bytearray(4096 * 4), 16, 0, 4, 4),
        lambda: kernels.index_copy(bytes(4096), 16, 1, 4, bytearray(4096), 16, 0, 1, 4),
        lambda: kernels.index_seal(bytearray(16), 8, 0),
        lambda: kernels.index_check(bytes(16), 15, 0),
        lambda: kernels.index_groups(bytes(16), array("q", [2]), 4),
        lambda: kernels.index_groups(b"\xff" * 8 + bytes(8), array("q", [0, 1]), 4),
        lambda: kernels.index_any(bytes(4096), 16, 0, 1, bytes(8), order, 0, 1, bytearray(7)),
        lambda: kernels.index_any(bytes(4096), 16, 0, 1, bytes(8), array("q", [1]), 0, 1, bytearray(8)),
        lambda: kernels.index_any(bytes(4096), 16, 0, 1, bytes(8), order, 0, 2, bytearray(8)),
        lambda: kernels.index_any(bytes(4096), 16, 1, 4, b"\xff" * 8, order, 0, 1, bytearray(8)),
        lambda: kernels.index_order(bytes(8), 0),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(ValueError):
            call()
            pytest.fail(f"call {number}")
