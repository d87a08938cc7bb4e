"""Looks hashes up in the transposed bits of a column.

A hash selects a block, and a row in each of the block's 8 words. The AND of the 8 rows has the units that may have
the hash. For a few hashes in a block, their rows are read; for many, the whole block, together with its neighbours.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from bloomcli import kernels
from bloomcli.filters.split_block import SALT, SplitBlockFilter
from bloomcli.index.bit_windows import ColumnBits, read_rows
from bloomcli.index.layout import BLOCK_ROWS

_FEW: Final = 4096
"""Up to this number, hashes are sorted without an array of all blocks."""
_HASH_BYTES: Final = 16 << 10
"""A block with at most this number of bytes for each of its hashes is read whole: on a local disk, this takes as long
as 8 single rows."""
_WINDOW_BYTES: Final = 8 << 20
"""Most bytes of blocks that are read together."""


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
        self._hashes = hashes
        self._values = memoryview(hashes).cast("B").cast("Q")
        blocks = bits.layout.blocks
        if len(self._values) <= _FEW:
            values = self._values
            order = sorted(range(len(values)), key=lambda at: SplitBlockFilter.block_of(values[at], blocks))
            self._order = memoryview(array("q", order))
        else:
            self._order = memoryview(kernels.index_order(hashes, blocks)).cast("q")

    def any(self) -> int:
        """A bitmap of the slots of units that may have one of the hashes."""
        layout = self._bits.layout
        out, matches = bytearray(layout.width), 0
        for read in self._announced():
            if read.blocks:
                window = self._bits.read(read.first, read.blocks)
                kernels.index_any(
                    window,
                    layout.stride,
                    read.first,
                    layout.blocks,
                    self._hashes,
                    self._order,
                    read.start,
                    read.end,
                    out,
                )
            else:
                for position in self._order[read.start : read.end]:
                    matches |= self._match(position)
        return matches | int.from_bytes(out, "little")

    def _match(self, position: int) -> int:
        """A bitmap of the units that may have a hash, by its 8 rows."""
        bits, layout, found = self._bits, self._bits.layout, -1
        for number in self._rows(position):
            row = read_rows(bits.source, bits.offset, layout.stride, number, 1, bits.columns)
            found &= int.from_bytes(row[: layout.width], "little")
        return found

    def _rows(self, position: int) -> Iterator[int]:
        value = self._values[position]
        first = SplitBlockFilter.block_of(value, self._bits.layout.blocks) * BLOCK_ROWS
        for word, salt in enumerate(SALT):
            yield first + word * 32 + ((value * salt & 0xFFFFFFFF) >> 27)

    def _announced(self) -> list[_ReadRange]:
        """The ranges to read, in the order of the bits. Announces them to the source."""
        reads = list(_merged(self._blocks(), self._bits.layout.slab_bytes))
        self._bits.source.will_read(self._ranges(reads))
        return reads

    def _ranges(self, reads: list[_ReadRange]) -> Iterator[tuple[int, int]]:
        bits, layout = self._bits, self._bits.layout
        for read in reads:
            if read.blocks:
                yield bits.offset + read.first * layout.slab_bytes, read.blocks * layout.slab_bytes
            else:
                for position in self._order[read.start : read.end]:
                    for row in self._rows(position):
                        yield bits.offset + row * layout.stride, layout.stride

    def _blocks(self) -> Iterator[tuple[int, int, int]]:
        """The blocks that hashes select, each with the range of its hashes in their order."""
        order = self._order
        groups = memoryview(kernels.index_groups(self._hashes, order, self._bits.layout.blocks)).cast("q")
        starts = groups[1::2].tolist()
        yield from zip(groups[::2].tolist(), starts, [*starts, len(order)][1:], strict=True)


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
