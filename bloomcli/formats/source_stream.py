"""A Python file object for an open file of any store, for libraries that read such objects."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bloomcli.storage.base import Source


class SourceStream(io.RawIOBase):
    """A source as a Python file object."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        left = max(self._source.size - self._at, 0)
        data = self._source.read_at(self._at, left if size < 0 else min(size, left)) if left else b""
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to an offset, which is returned."""
        self._at = offset + (0, self._at, self._source.size)[whence]
        return self._at
