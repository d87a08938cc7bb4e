"""Looks hashes up in the transposed bits of a column.

A hash selects a block, and a row in each of the block's 8 words. The AND of the 8 rows has the units that may have
the hash. For a few hashes in a block, their rows are read; for many, the whole block, together with its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli.filters.split_block import SALT
from bloomcli.index.bit_windows import ColumnBits, read_rows, words_of
from bloomcli.index.layout import BLOCK_ROWS

_HASH_BYTES: Final = 16 << 10
"""A block with at most this number of bytes for each of its hashes is read whole: on a local disk, this takes as long
as 8 single rows."""
_WINDOW_BYTES: Final = 8 << 20
"""Most bytes of blocks that are read together, and of rows that are ANDed together."""


class _ReadRange(NamedTuple):
    """Blocks or rows to read, and the hashes to look up in them."""

    first: int
    """The first block."""
    blocks: int
    """Number of whole blocks; 0 if only rows of the block are read."""
    start: int
    end: int
    """`start` and `end`: the range of the hashes, in their order."""


class Lookups:
    """Hashes that are looked up in a column.

    Args:
        bits: the bits of the column.
        hashes: uint64s in native order.
    """

    def __init__(self, bits: ColumnBits, hashes: bytes) -> None:
        self._bits = bits
        values = np.frombuffer(hashes, np.uint64)
        blocks = ((values >> 32) * np.uint64(bits.layout.blocks) >> 32).astype(np.int64)
        order = np.argsort(blocks, kind="stable")
        self._blocks = blocks[order]
        """The block of each hash, ascending."""
        word_bits = (values[order, None].astype(np.uint32) * np.array(SALT, np.uint32) >> 27).astype(np.int64)
        self._rows = self._blocks[:, None] * BLOCK_ROWS + np.arange(0, BLOCK_ROWS, 32) + word_bits
        """The 8 rows of each hash."""

    def any(self) -> NDArray[np.uint8]:
        """For each slot, 1 if its unit may have one of the hashes, else 0."""
        bits, layout = self._bits, self._bits.layout
        out = np.zeros(layout.width // 8, np.uint64)
        for read in self._announced():
            chosen = self._rows[read.start : read.end]
            if read.blocks:
                held = words_of(bits.read(read.first, read.blocks), layout.stride)
                chosen = chosen - read.first * BLOCK_ROWS
            else:
                rows = chosen.ravel().tolist()
                read_one = (read_rows(bits.source, bits.offset, layout.stride, row, 1, bits.columns) for row in rows)
                held = words_of(b"".join(read_one), layout.stride)
                chosen = np.arange(len(rows)).reshape(-1, len(SALT))
            some = max(_WINDOW_BYTES // (len(SALT) * layout.stride), 1)
            for at in range(0, len(chosen), some):
                each = np.bitwise_and.reduce(held[chosen[at : at + some], :-1], axis=1)
                out |= np.bitwise_or.reduce(each, axis=0)
        return np.unpackbits(out.view(np.uint8), count=layout.slots, bitorder="little")

    def _announced(self) -> list[_ReadRange]:
        """The ranges to read, in the order of the bits. Announces them to the source."""
        blocks, starts = np.unique(self._blocks, return_index=True)
        ends = [*starts.tolist(), len(self._blocks)][1:]
        groups = zip(blocks.tolist(), starts.tolist(), ends, strict=True)
        reads = list(_merged(groups, self._bits.layout.slab_bytes))
        self._bits.source.will_read(self._ranges(reads))
        return reads

    def _ranges(self, reads: list[_ReadRange]) -> Iterator[tuple[int, int]]:
        bits, layout = self._bits, self._bits.layout
        for read in reads:
            if read.blocks:
                yield bits.offset + read.first * layout.slab_bytes, read.blocks * layout.slab_bytes
            else:
                for row in self._rows[read.start : read.end].ravel().tolist():
                    yield bits.offset + row * layout.stride, layout.stride


def _merged(blocks: Iterator[tuple[int, int, int]], slab_bytes: int) -> Iterator[_ReadRange]:
    """Decide which blocks to read whole, joined with their neighbours, and of which to read only rows."""
    pending: _ReadRange | None = None
    for block, start, end in blocks:
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
