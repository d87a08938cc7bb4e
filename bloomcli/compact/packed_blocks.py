"""Packs objects into blocks of bytes, and stores the blocks. Only code for very many files imports this module."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
import zlib
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_MEMORY_BYTES: Final = 16 << 20
"""Packed blocks of one sequence that stay in memory; later ones go to a temporary file."""
_LEVEL: Final = 1
"""zlib's fastest level. Neighbouring paths and rows are so similar that higher levels save little."""


class PackedBlocks(Generic[T]):
    """Blocks of items of one type. A block stores columns, because the values of a field resemble each other.

    Args:
        kind: a named tuple, or a dataclass with slots.
        shared: names of fields that contain few distinct objects, which aren't packed.
    """

    def __init__(self, kind: type[T], shared: Collection[str]) -> None:
        self._kind = kind
        names = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else kind._fields  # type: ignore[attr-defined]
        one = attrgetter(names[0])
        self._values = attrgetter(*names) if len(names) > 1 else lambda item: (one(item),)
        self._shared = [(names.index(name), list[Any](), dict[int, int]()) for name in shared]
        """For each shared field: its position, its values, and their numbers by object identity."""
        self._setters = [getattr(kind, name).__set__ for name in names] if is_dataclass(kind) else []
        self._blocks = _BlockStore()

    def __len__(self) -> int:
        return len(self._blocks)

    def append(self, items: Iterable[T]) -> None:
        """Add a block."""
        columns: list[Sequence[Any]] = list(zip(*map(self._values, items), strict=True))
        for place, values, numbers in self._shared:
            for value in columns[place]:
                if id(value) not in numbers:
                    numbers[id(value)] = len(values)
                    values.append(value)
            columns[place] = [numbers[id(value)] for value in columns[place]]
        self._blocks.append(zlib.compress(pickle.dumps(columns, pickle.HIGHEST_PROTOCOL), _LEVEL))

    def __getitem__(self, number: int) -> list[T]:
        columns = pickle.loads(zlib.decompress(self._blocks[number]))  # noqa: S301  this process has packed it
        for place, values, _ in self._shared:
            columns[place] = [values[number] for number in columns[place]]
        rows = zip(*columns, strict=True)
        if not self._setters:
            return list(map(self._kind._make, rows))  # type: ignore[attr-defined]
        return [self._made(row) for row in rows]

    def _made(self, row: Iterable[Any]) -> T:
        """Restore a dataclass, without running `__post_init__`, which is for new values."""
        item = object.__new__(self._kind)
        for setter, value in zip(self._setters, row, strict=True):
            setter(item, value)
        return item


class _BlockStore:
    """Blocks of bytes: the first in memory, later ones in a temporary file, or in memory if the file can't be
    written."""

    def __init__(self) -> None:
        self._offsets = array("q")
        """Offsets in the file; -1 for a block in memory."""
        self._lengths = array("q")
        self._memory: dict[int, bytes] = {}
        self._room = _MEMORY_BYTES
        self._file: Any = None
        """An unnamed file, so that nothing remains of it however the process ends."""
        self._end = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, data: bytes) -> None:
        self._room -= len(data)
        written = self._room < 0 and self._written(data)
        if not written:
            self._memory[len(self)] = data
        self._offsets.append(self._end if written else -1)
        self._lengths.append(len(data))
        self._end += len(data) if written else 0

    def _written(self, data: bytes) -> bool:
        """Append a block to the file. Returns False if that failed."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="bloom-")  # noqa: SIM115  open as long as the blocks exist
                weakref.finalize(self, self._file.close)
            return os.pwrite(self._file.fileno(), data, self._end) == len(data)
        except OSError:  # the disk is full
            return False

    def __getitem__(self, number: int) -> bytes:
        if number in self._memory:
            return self._memory[number]
        data = os.pread(self._file.fileno(), self._lengths[number], self._offsets[number])
        if len(data) != self._lengths[number]:
            raise OSError(f"a temporary file in {tempfile.gettempdir()} became shorter")
        return data
