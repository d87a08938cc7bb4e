"""Makes the bits of a column in windows of blocks: copies old bits, clears free slots, sets new units."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

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
    bad_row = kernels.index_check(rows, stride, first)
    if bad_row >= 0:
        raise damaged(
            source.path,
            f"row {first + bad_row} of the bits doesn't match its checksum",
            offset=offset + (first + bad_row) * stride,
            columns=columns,
        )
    return rows


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
    keep_mask = _bitmap(layout, dropped, inverted=True) if dropped else None
    always_mask = _bitmap(layout, always) if always else None
    count = min(max(window_bytes // layout.slab_bytes, 1), layout.blocks)
    batches = list(_batches(bitsets))
    for first in range(0, layout.blocks, count):
        blocks = min(count, layout.blocks - first)
        window = bytearray(blocks * layout.slab_bytes)
        if old is not None:
            old_blocks = old.layout.blocks
            first_old = first * old_blocks // layout.blocks
            end_old = (first + blocks - 1) * old_blocks // layout.blocks + 1
            old_bits = old.read(first_old, end_old - first_old)
            kernels.index_copy(
                old_bits,
                old.layout.stride,
                first_old,
                old_blocks,
                window,
                layout.stride,
                first,
                blocks,
                layout.blocks,
            )
            del old_bits
        if keep_mask is not None or always_mask is not None:
            kernels.index_mask(window, layout.stride, blocks, keep_mask, always_mask)
        for batch in batches:
            gathered = spool.read(batch.numbers, layout.blocks, first, blocks)
            kernels.index_set(window, layout.stride, blocks, batch.words, batch.lanes, gathered)
        kernels.index_seal(window, layout.stride, first * BLOCK_ROWS)
        yield window


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


def _bitmap(layout: Layout, slots: Sequence[int], *, inverted: bool = False) -> bytearray:
    bits = bytearray(b"\xff" * layout.width if inverted else layout.width)
    for slot in slots:
        if slot < layout.width * 8:
            bits[slot >> 3] ^= 1 << (slot & 7)
    return bits
