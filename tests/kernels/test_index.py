"""The kernels of an index: filters of other sizes, transposed rows, their checksums, lookups in them."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pytest
import xxhash

from bloomcli import kernels
from bloomcli.errors import CorruptFile
from bloomcli.index import bits as transposed
from bloomcli.index.bits import ColumnBits, units_with, windows, words_of
from bloomcli.index.filters import Spool
from bloomcli.index.layout import Layout
from bloomcli.storage.base import Source


def filled(blocks: int, values: int, rng: random.Random) -> bytearray:
    """The bits of a filter with random values."""
    bits = bytearray(blocks * 32)
    kernels.sbbf_insert(bits, rng.randbytes(8 * values), values)
    return bits


def bit_of(bits: bytes | bytearray, number: int) -> int:
    """A bit of a bitmap, the lowest of a byte first."""
    return bits[number >> 3] >> (number & 7) & 1


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
    checksums = array("Q", bytes(kernels.index_checksums(window, stride, 10)))
    for row in range(blocks * 256):
        bits = window[row * stride : (row + 1) * stride]
        assert xxhash.xxh64_intdigest(bytes(bits[:-8]), seed=row + 10) == checksums[row]
        expected = sum(bit_of(bitset, row) << slot for slot, bitset in zip(slots, bitsets, strict=True))
        assert int.from_bytes(bits[:-8], "little") == expected


class Held(NamedTuple):
    """Bytes in memory, as a source."""

    data: bytes | bytearray
    path: str = "held.puffin"

    def read_at(self, offset: int, length: int) -> bytes:
        return bytes(self.data[offset : offset + length])

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        assert all(offset + length <= len(self.data) for offset, length in ranges)


def bits_in(data: bytes | bytearray, layout: Layout) -> ColumnBits:
    """A column's bits behind another byte."""
    return ColumnBits(cast("Source", Held(b"-" + data)), 1, layout, ["id"])


@pytest.mark.parametrize("gap_bytes", [0, 500, 1 << 20])
@pytest.mark.parametrize("units", [1, 64, 130, 600])
def test_lookups_in_rows_give_what_the_filters_give(
    units: int, gap_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By single rows, by some together, and by whole blocks."""
    monkeypatch.setattr(transposed, "_GAP_BYTES", gap_bytes)
    monkeypatch.setattr(transposed, "_WINDOW_BYTES", 3 * 256 * 88)
    rng, blocks, count = random.Random(units), 8, 500
    layout = Layout(blocks, units)
    bitsets = [filled(blocks, 150, rng) for _ in range(units)]
    spool = Spool()
    numbers = [(at, spool.add(bits)) for at, bits in enumerate(bitsets)]
    spool.finish()
    bits = bits_in(b"".join(windows(layout, None, [], [], numbers, spool, 3 * layout.slab_bytes)), layout)
    hashes = rng.randbytes(8 * count)
    for some in (0, 1, 3, count):
        expected, out = set(), bytearray(some)
        for unit, bitset in enumerate(bitsets):
            expected |= {unit} if kernels.sbbf_check(bitset, hashes, some, out) < some else set()
        found = units_with(bits, hashes[: 8 * some])
        assert set(np.flatnonzero(found)) == expected
    spool.close()


def test_rows_of_an_old_index_are_copied_cleared_and_set(tmp_path: Path) -> None:
    rng = random.Random(1)
    old, new = Layout(2, 100), Layout(4, 150)
    rows = words_of(bytearray(rng.randbytes(2 * 256 * old.stride)), old.stride)
    rows[:, -1] = np.frombuffer(kernels.index_checksums(rows.tobytes(), old.stride, 0), np.uint64)
    dropped, always = rng.sample(range(150), 40), rng.sample(range(100, 150), 20)
    for window_blocks in (1, 3, 4):
        made = b"".join(
            windows(new, bits_in(rows.tobytes(), old), dropped, always, [], Spool(), window_blocks * new.slab_bytes)
        )
        assert len(made) == new.nbytes
        for block, source in enumerate([0, 0, 1, 1]):
            for row in range(256):
                before = rows[source * 256 + row, :-1].tobytes()
                bits = made[(block * 256 + row) * new.stride :][: new.width]
                expected = {at for at in range(128) if bit_of(before, at)} - set(dropped) | set(always)
                assert {at for at in range(new.width * 8) if bit_of(bits, at)} == expected
    damaged = bytearray(rows.tobytes())
    damaged[rng.randrange(len(damaged))] ^= 1
    with pytest.raises(CorruptFile, match="doesn't match its checksum"):
        list(windows(new, bits_in(damaged, old), [], [], [], Spool(), new.nbytes))


def test_blocks_of_filters_in_a_file_are_those_of_the_filters() -> None:
    rng, spool = random.Random(2), Spool()
    filters = [filled(blocks, 30, rng) for blocks in (1, 2, 16, 64, 37, 7, 100)]
    numbers = list(map(spool.add, filters))
    spool.finish()
    for first, count in [(0, 16), (3, 5), (15, 1)]:
        found = spool.read(numbers, 16, first, count)
        assert len(found) == len(filters) * count * 32
        for at, bits in enumerate(filters):
            whole = kernels.sbbf_resized(bits, 16)
            assert found[at * count * 32 :][: count * 32] == whole[first * 32 : (first + count) * 32]
    spool.close()
    for wrong in [(1, 1, 0, 2), (0, 1, 0, 1), (1, 1, 1, 1), (1, 0, 0, 1), (1, 1, -1, 1), (1, 1, 0, 0)]:
        with pytest.raises(ValueError):
            kernels.sbbf_resized_part(bytes(32), *wrong)
    with pytest.raises(ValueError):
        kernels.sbbf_resized_part(bytes(32), 64, 16, 0, 1)


def test_a_filter_of_any_other_size_has_each_of_its_values_and_only_blocks_that_share_hashes() -> None:
    rng = random.Random(10)
    for _ in range(300):
        have, want = rng.randint(1, 90), rng.randint(1, 90)
        values = rng.randbytes(8 * 50)
        bits, found = bytearray(32 * have), bytearray(50)
        kernels.sbbf_insert(bits, values, 50)
        out = kernels.sbbf_resized(bits, want)
        assert kernels.sbbf_check(out, values, 50, found) == 0
        for target in range(want):
            low, high = (-(-(edge << 32) // want) for edge in (target, target + 1))
            sources = range(low * have >> 32, ((high - 1) * have >> 32) + 1)
            either = 0
            for source in sources:
                either |= int.from_bytes(bits[source * 32 : source * 32 + 32], "little")
            assert out[target * 32 : target * 32 + 32] == either.to_bytes(32, "little")


def test_kernels_refuse_what_does_not_fit() -> None:
    calls = [
        lambda: kernels.sbbf_resized(bytes(32), 0),
        lambda: kernels.sbbf_resized(bytes(32), (1 << 30) + 1),
        lambda: kernels.index_set(bytearray(4096), 16, 2, array("q"), array("i"), b""),
        lambda: kernels.index_set(bytearray(4096), 16, 1, array("q", [1]), array("i", [-1] * 64), b""),
        lambda: kernels.index_set(bytearray(4096), 16, 1, array("q", [0]), array("i", [0] * 64), b""),
        lambda: kernels.index_checksums(bytearray(16), 8, 0),
        lambda: kernels.index_checksums(bytes(16), 15, 0),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(ValueError):
            call()
            pytest.fail(f"call {number}")
