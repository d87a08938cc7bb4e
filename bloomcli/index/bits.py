"""The transposed bits of a column: reads them, looks hashes up in them, and makes them for a new index.

A hash selects a block, and a row in each of the block's 8 words. The AND of the 8 rows has the units that may have
the hash. For a few hashes in a block, their rows are read; for many, the whole block, together with its neighbours.

New bits are made in windows of blocks: old bits are copied, free slots cleared, and new units set.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
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

_HASH_BYTES: Final = 16 << 10
"""A block with at most this number of bytes for each of its hashes is read whole: on a local disk, this takes as long
as 8 single rows."""
_WINDOW_BYTES: Final = 8 << 20
"""Most bytes of blocks that are read together, and of rows that are ANDed together."""
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


class _ReadRange(NamedTuple):
    """Blocks or rows to read, and the hashes to look up in them."""

    first: int
    """The first block."""
    blocks: int
    """Number of whole blocks; 0 if only rows of the block are read."""
    start: int
    end: int
    """`start` and `end`: the range of the hashes, in their order."""


def units_with(bits: ColumnBits, hashes: bytes) -> NDArray[np.uint8]:
    """For each slot, 1 if its unit may have one of the hashes, uint64s in native order, else 0."""
    layout, values = bits.layout, np.frombuffer(hashes, np.uint64)
    blocks = ((values >> 32) * np.uint64(layout.blocks) >> 32).astype(np.int64)
    order = np.argsort(blocks, kind="stable")
    blocks = blocks[order]
    word_bits = (values[order, None].astype(np.uint32) * np.array(SALT, np.uint32) >> 27).astype(np.int64)
    rows = blocks[:, None] * BLOCK_ROWS + np.arange(0, BLOCK_ROWS, 32) + word_bits  # the 8 rows of each hash
    reads = list(_merged(blocks, layout.slab_bytes))
    bits.source.will_read(
        (bits.offset + first * layout.stride, count * layout.stride)
        for read in reads
        for first, count in _parts(read, rows)
    )
    out = np.zeros(layout.width // 8, np.uint64)
    at_once = max(_WINDOW_BYTES // (len(SALT) * layout.stride), 1)
    for read in reads:
        held = np.concatenate([bits.read(*part) for part in _parts(read, rows)])
        chosen = rows[read.start : read.end]
        chosen = chosen - read.first * BLOCK_ROWS if read.blocks else np.arange(chosen.size).reshape(chosen.shape)
        for at in range(0, len(chosen), at_once):
            each = np.bitwise_and.reduce(held[chosen[at : at + at_once], :-1], axis=1)
            out |= np.bitwise_or.reduce(each, axis=0)
    return np.unpackbits(out.view(np.uint8), count=layout.slots, bitorder="little")


def _parts(read: _ReadRange, rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The first row and the number of rows of each part of the bits that is read at once."""
    if read.blocks:
        yield read.first * BLOCK_ROWS, read.blocks * BLOCK_ROWS
    else:
        yield from ((row, 1) for row in rows[read.start : read.end].ravel().tolist())


def _merged(block_of: NDArray[np.int64], slab_bytes: int) -> Iterator[_ReadRange]:
    """Decide which of the hashes' blocks to read whole, joined with their neighbours, and of which only rows."""
    blocks, starts = np.unique(block_of, return_index=True)
    ends = [*starts.tolist(), len(block_of)][1:]
    pending: _ReadRange | None = None
    for block, start, end in zip(blocks.tolist(), starts.tolist(), ends, strict=True):
        if slab_bytes > (end - start) * _HASH_BYTES:
            read = _ReadRange(block, 0, start, end)
        elif (
            pending is not None
            and pending.blocks
            and pending.first + pending.blocks == block
            and (pending.blocks + 1) * slab_bytes <= _WINDOW_BYTES
        ):
            pending = _ReadRange(pending.first, pending.blocks + 1, pending.start, end)
            continue
        else:
            read = _ReadRange(block, 1, start, end)
        if pending is not None:
            yield pending
        pending = read
    if pending is not None:
        yield pending


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
