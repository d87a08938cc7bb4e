"""The transposed bits of a column: reads them, looks hashes up in them, and makes them for a new index.

A hash selects a block, and a row in each of the block's 8 words. The AND of the 8 rows has the units that may have
the hash. Rows that are near each other are read together: of many hashes, nearly all rows.

New bits are made in windows of blocks: old bits are copied, free slots cleared, and new units set.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli import kernels
from bloomcli.filters.split_block import SALT
from bloomcli.index.layout import BLOCK_ROWS, Layout
from bloomcli.index.puffin import damaged
from bloomcli.storage.base import Source

if TYPE_CHECKING:
    from bloomcli.index.filters import Spool

_GAP_BYTES: Final = 2 << 10
"""Bytes between two rows that are read with them: on a local disk, this takes as long as another read."""
_WINDOW_BYTES: Final = 8 << 20
"""Most bytes of rows that are read and ANDed together, unless one block's hashes need more."""
_WORD_BITS: Final = 64
_WORDS_AT_ONCE: Final = 8
"""Words of a row that are set together: a cache line of the processor."""


class ColumnBits(NamedTuple):
    """The bits of a column in an open index."""

    source: Source
    offset: int
    layout: Layout
    columns: Sequence[str]
    """The index's columns, for errors."""

    def read(self, first: int, count: int) -> NDArray[np.uint64]:
        """Read rows, and check their checksums. Raises CorruptFile."""
        stride = self.layout.stride
        raw = self.source.read_at(self.offset + first * stride, count * stride)
        rows, checksums = words_of(raw, stride), np.frombuffer(kernels.index_checksums(raw, stride, first), np.uint64)
        wrong = np.flatnonzero(rows[:, -1] != checksums)
        if len(wrong):
            bad_row = first + int(wrong[0])
            raise damaged(
                self.source.path,
                f"row {bad_row} of the bits doesn't match its checksum",
                offset=self.offset + bad_row * stride,
                columns=self.columns,
            )
        return rows


def words_of(rows: bytes | bytearray, stride: int) -> NDArray[np.uint64]:
    """Rows as words of 64 bits, the last of which is the row's checksum."""
    return np.frombuffer(rows, np.uint64).reshape(-1, stride // 8)


def units_with(bits: ColumnBits, hashes: bytes) -> NDArray[np.uint8]:
    """For each slot, 1 if its unit may have one of the hashes, uint64s in native order, else 0."""
    layout, values = bits.layout, np.frombuffer(hashes, np.uint64)
    blocks = ((values >> 32) * np.uint64(layout.blocks) >> 32).astype(np.int64)
    order = np.argsort(blocks, kind="stable")
    blocks = blocks[order]
    word_bits = (values[order, None].astype(np.uint32) * np.array(SALT, np.uint32) >> 27).astype(np.int64)
    rows = blocks[:, None] * BLOCK_ROWS + np.arange(0, BLOCK_ROWS, 32) + word_bits  # the 8 rows of each hash
    at_once = max(_WINDOW_BYTES // (len(SALT) * (layout.stride + _GAP_BYTES)), 1)
    reads: list[tuple[NDArray[np.int64], list[tuple[int, int]]]] = []
    start = 0
    while start < len(rows):  # the hashes of a block stay together, so that no row is read twice
        end = int(np.searchsorted(blocks, blocks[min(start + at_once, len(rows)) - 1], side="right"))
        reads.append((rows[start:end], _ranges(rows[start:end], _GAP_BYTES // layout.stride)))
        start = end
    bits.source.will_read(
        (bits.offset + first * layout.stride, count * layout.stride) for _, ranges in reads for first, count in ranges
    )
    out = np.zeros(layout.width // 8, np.uint64)
    for looked_up, ranges in reads:
        held = np.concatenate([bits.read(*some) for some in ranges])
        numbers = np.concatenate([np.arange(first, first + count) for first, count in ranges])
        chosen = np.searchsorted(numbers, looked_up)
        for at in range(0, len(chosen), at_once):
            each = np.bitwise_and.reduce(held[chosen[at : at + at_once], :-1], axis=1)
            out |= np.bitwise_or.reduce(each, axis=0)
    return np.unpackbits(out.view(np.uint8), count=layout.slots, bitorder="little")


def _ranges(rows: NDArray[np.int64], gap: int) -> list[tuple[int, int]]:
    """The first row and the number of rows of ranges that have these rows, with at most `gap` others between two."""
    wanted = np.unique(rows)
    firsts = [0, *(np.flatnonzero(np.diff(wanted) > gap + 1) + 1).tolist(), len(wanted)]
    return [(int(wanted[at]), int(wanted[end - 1] - wanted[at]) + 1) for at, end in pairwise(firsts)]


def windows(
    layout: Layout,
    old: ColumnBits | None,
    dropped: Sequence[int],
    always: Sequence[int],
    bitsets: Sequence[tuple[int, int]],
    spool: Spool,
    window_bytes: int,
) -> Iterator[bytearray]:
    """Yield the bits of a column, with their checksums, in windows of whole blocks.

    Args:
        layout: the shape of the bits.
        old: the bits of an old index.
        dropped: slots of the old bits to clear.
        always: slots of new units that may have every value.
        bitsets: new units with a filter: their slots, in order, and the numbers of the bitsets in the spool.
        spool: the bitsets.
        window_bytes: bytes of a window, which has at least one block.
    """
    kept, always_set = ~_bitmap(layout, dropped), _bitmap(layout, always)
    count = min(max(window_bytes // layout.slab_bytes, 1), layout.blocks)
    batches = list(_batches(bitsets))
    for first in range(0, layout.blocks, count):
        blocks = min(count, layout.blocks - first)
        window = bytearray(blocks * layout.slab_bytes)
        rows = words_of(window, layout.stride)
        if old is not None:
            _copy(old, rows, first, layout)
            rows[:, :-1] &= kept
        rows[:, :-1] |= always_set
        for batch in batches:
            gathered = spool.read(batch.numbers, layout.blocks, first, blocks)
            kernels.index_set(window, layout.stride, blocks, batch.words, batch.lanes, gathered)
        rows[:, -1] = np.frombuffer(kernels.index_checksums(window, layout.stride, first * BLOCK_ROWS), np.uint64)
        yield window


def _copy(old: ColumnBits, rows: NDArray[np.uint64], first: int, layout: Layout) -> None:
    """Copy the bits of an old index to blocks of a new one, from `first` on: block b of n gets those of block
    b * m / n of m."""
    sources = [at * old.layout.blocks // layout.blocks for at in range(first, first + len(rows) // BLOCK_ROWS)]
    words = min(layout.stride, old.layout.stride) // 8 - 1
    old_rows = old.read(sources[0] * BLOCK_ROWS, (sources[-1] - sources[0] + 1) * BLOCK_ROWS)
    old_blocks = old_rows.reshape(-1, BLOCK_ROWS, old.layout.stride // 8)
    for block, source in zip(rows.reshape(-1, BLOCK_ROWS, layout.stride // 8), sources, strict=True):
        block[:, :words] = old_blocks[source - sources[0], :, :words]


class _Batch(NamedTuple):
    """Units whose bits are set together: the units of a few words of the rows."""

    words: array[int]
    lanes: array[int]
    """For each bit of the words, the position of its unit; -1 for no unit."""
    numbers: Sequence[int]
    """Numbers of the units' bitsets."""


def _batches(bitsets: Sequence[tuple[int, int]]) -> Iterator[_Batch]:
    words, lanes, numbers = array("q"), array("i"), array("i")
    for slot, number in bitsets:
        word, bit = divmod(slot, _WORD_BITS)
        if not words or word != words[-1]:
            if len(words) == _WORDS_AT_ONCE:
                yield _Batch(words, lanes, numbers)
                words, lanes, numbers = array("q"), array("i"), array("i")
            words.append(word)
            lanes.extend([-1] * _WORD_BITS)
        lanes[(len(words) - 1) * _WORD_BITS + bit] = len(numbers)
        numbers.append(number)
    if words:
        yield _Batch(words, lanes, numbers)


def _bitmap(layout: Layout, slots: Sequence[int]) -> NDArray[np.uint64]:
    """A row's bits, of which those of the slots are set. An old index has slots beyond a shorter row."""
    flags = np.zeros(layout.width * 8, np.uint8)
    flags[[slot for slot in slots if slot < len(flags)]] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)
