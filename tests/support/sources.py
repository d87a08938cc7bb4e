"""Sources that record the ranges that were read."""

from __future__ import annotations

from pathlib import Path

from bloomcli.storage.local.source import LocalSource


class CountingSource(LocalSource):
    """A local file that remembers every range that was read."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(str(path), Path(path))
        self.reads: list[tuple[int, int]] = []

    def _read(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return super()._read(offset, length)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read; bytes read twice count twice."""
        return sum(length for _, length in self.reads)
