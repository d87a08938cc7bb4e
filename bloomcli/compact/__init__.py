"""Sequences of millions of small objects in little memory.

    items -> blocks: columns of fields, pickled and compressed -> memory, then a temporary file

A list of ten million names, tasks or rows takes 8 to 10 GB as Python objects. Packed, each item takes some 20 bytes,
and a few bytes of memory after its block is in the file. Up to `PLAIN_MOST` items aren't packed, so short lists cost
nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

if TYPE_CHECKING:
    from bloomcli.compact.packed_blocks import PackedBlocks


T = TypeVar("T")
S = TypeVar("S")

PLAIN_MOST: Final = 1 << 15
"""The maximum number of items that are kept as objects. If there are more, all are packed."""
_BLOCK: Final = 512
"""Items per block."""
_OPEN_BLOCKS: Final = 32
"""Unpacked blocks that are cached for further reads."""


class _Items(Sequence[T]):
    """A sequence whose slices are tuples."""

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return an item, or a tuple of the items of a slice."""
        if isinstance(index, slice):
            return tuple(self._item(i) for i in range(*index.indices(len(self))))
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        return self._item(at)

    def _item(self, at: int) -> T:
        """The item at a valid position."""
        raise NotImplementedError


class CompactSequence(_Items[T]):
    """Items of one type, packed if there are many: named tuples, or dataclasses with slots.

    Args:
        items: the first items.
        shared: names of fields that contain few distinct objects. Items that are read back contain the same objects.
    """

    def __init__(self, items: Iterable[T] = (), *, shared: Collection[str] = ()) -> None:
        self._plain: list[T] = []
        self._limit = PLAIN_MOST
        self._shared = shared
        self._packed: PackedBlocks[T] | None = None
        self._end = 0
        """Number of packed items; the items after them are plain."""
        self._open: dict[int, list[T]] = {}
        for item in items:
            self.append(item)

    def append(self, item: T) -> None:
        """Add an item."""
        self._plain.append(item)
        if len(self._plain) > self._limit:
            self._pack()

    def _pack(self) -> None:
        if self._packed is None:
            from bloomcli.compact.packed_blocks import PackedBlocks

            self._packed = PackedBlocks(type(self._plain[0]), self._shared)
            self._limit = _BLOCK
        count = len(self._plain) - len(self._plain) % _BLOCK
        for start in range(0, count, _BLOCK):
            self._packed.append(self._plain[start : start + _BLOCK])
        del self._plain[:count]
        self._end += count

    def __len__(self) -> int:
        return self._end + len(self._plain)

    def _item(self, at: int) -> T:
        if self._packed is None or at >= self._end:
            return self._plain[at - self._end]
        number, place = divmod(at, _BLOCK)
        block = self._open.pop(number, None) or self._packed[number]
        self._open[number] = block  # moved to the end: the first one is the least recently used
        if len(self._open) > _OPEN_BLOCKS:
            del self._open[next(iter(self._open))]
        return block[place]

    def __iter__(self) -> Iterator[T]:
        if self._packed is not None:
            for number in range(len(self._packed)):
                yield from self._packed[number]
        yield from self._plain

    @property
    def packed(self) -> bool:
        """Whether the items are packed."""
        return self._packed is not None

    @property
    def plain(self) -> list[T]:
        """The items that aren't packed."""
        return self._plain


def compacted(items: Iterable[T], *, shared: Collection[str] = ()) -> Sequence[T]:
    """The items as a list if they are few, and packed if they are many. Arguments: as for `CompactSequence`."""
    found = CompactSequence(items, shared=shared)
    return found if found.packed else found.plain


class PositionedItems(_Items[T]):
    """Items that arrive in any order, each with its position. As a sequence, they are in the order of their
    positions."""

    def __init__(self, positions: int, *, shared: Collection[str] = ()) -> None:
        self._items = CompactSequence[T](shared=shared)
        self._at = array("q", [-1]) * positions
        """For each position, the number of its item; -1 if it has none."""

    def put(self, position: int, item: T) -> None:
        """Add the item of a position that has no item yet."""
        self._at[position] = len(self._items)
        self._items.append(item)

    def at(self, position: int) -> T:
        """The item at a position that has one."""
        return self._item(position)

    def sequence(self) -> Sequence[T]:
        """The items in order, without empty positions; a tuple if they are few."""
        if len(self) < len(self._at):
            self._at = array("q", (number for number in self._at if number >= 0))
        return self if self._items.packed else tuple(self)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return map(self._items._item, self._at)

    def _item(self, at: int) -> T:
        return self._items._item(self._at[at])


class LazySequence(_Items[T]):
    """The results of a function for the items of a sequence, each computed when it is read."""

    def __init__(self, function: Callable[[S], T], items: Sequence[S]) -> None:
        self._function: Callable[[Any], T] = function
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return map(self._function, self._items)

    def _item(self, at: int) -> T:
        return self._function(self._items[at])


_HASH_BYTES: Final = 16
_FIRST_SLOTS: Final = 1 << 10
_EMPTY: Final = bytes(_HASH_BYTES)


class TextSet:
    """A set of millions of texts that takes 24 to 48 bytes for each, and supports only additions and membership.

    It is an open-addressing table, with linear probing, of 16 bytes of each text's BLAKE2b hash. The probability that
    two of ten million texts have the same hash is about 10^-25.
    """

    def __init__(self) -> None:
        from hashlib import blake2b  # imported here, because most commands need no set

        self._hash = blake2b
        self._slots = bytearray(_FIRST_SLOTS * _HASH_BYTES)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text. Returns whether it was new."""
        digest = self._hash(text.encode(errors="surrogatepass"), digest_size=_HASH_BYTES).digest()
        if not self._put(digest):
            return False
        self._count += 1
        if self._count * _HASH_BYTES * 3 > len(self._slots) * 2:
            self._grow()
        return True

    def _put(self, digest: bytes) -> bool:
        slots = self._slots
        at = int.from_bytes(digest[:8], "little") * _HASH_BYTES % len(slots)
        while (found := slots[at : at + _HASH_BYTES]) != _EMPTY:
            if found == digest:
                return False
            at = (at + _HASH_BYTES) % len(slots)
        slots[at : at + _HASH_BYTES] = digest
        return True

    def _grow(self) -> None:
        old, self._slots = memoryview(self._slots), bytearray(2 * len(self._slots))
        for at in range(0, len(old), _HASH_BYTES):
            digest = bytes(old[at : at + _HASH_BYTES])
            if digest != _EMPTY:
                self._put(digest)
