"""Makes the bits of a column in windows of blocks: copies old bits, clears free slots, sets new units."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli import kernels
from bloomcli.index.layout import BLOCK_ROWS, Layout
from bloomcli.index.puffin import damaged
from bloomcli.index.spool import Spool
from bloomcli.storage.base import Source

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

    def read(self, first: int, count: int) -> bytes:
        """Read whole blocks, and check them. Raises CorruptFile."""
        return read_rows(
            self.source, self.offset, self.layout.stride, first * BLOCK_ROWS, count * BLOCK_ROWS, self.columns
        )


def read_rows(source: Source, offset: int, stride: int, first: int, count: int, columns: Sequence[str]) -> bytes:
    """Read rows of a column's bits, and check their checksums. Raises CorruptFile."""
    rows = source.read_at(offset + first * stride, count * stride)
    checksums = np.frombuffer(kernels.index_checksums(rows, stride, first), np.uint64)
    wrong = np.flatnonzero(words_of(rows, stride)[:, -1] != checksums)
    if len(wrong):
        bad_row = first + int(wrong[0])
        raise damaged(
            source.path,
            f"row {bad_row} of the bits doesn't match its checksum",
            offset=offset + bad_row * stride,
            columns=columns,
        )
    return rows


def words_of(rows: bytes | bytearray, stride: int) -> NDArray[np.uint64]:
    """Rows as words of 64 bits, the last of which is the row's checksum."""
    return np.frombuffer(rows, np.uint64).reshape(-1, stride // 8)


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
    old_rows = words_of(old.read(sources[0], sources[-1] - sources[0] + 1), old.layout.stride)
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
