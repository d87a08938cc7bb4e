"""Keeps Arrow batches in an unnamed temporary file. Only code for very many values imports this module."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from contextlib import suppress
from threading import Lock
from typing import IO, Final

import pyarrow as pa

_ALIGNED: Final = 64
"""Batches begin at multiples of this number of bytes, the alignment of Arrow's buffers."""


def _close(file: IO[bytes]) -> None:
    """Close a temporary file. Errors are ignored: `add` has already raised those of a full disk."""
    with suppress(OSError):
        file.close()


class StoredBatches:
    """Record batches of any schemas, in the order in which they were added. Thread-safe.

    The file is in TMPDIR, and is removed with the object.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the object
        weakref.finalize(self, _close, self._file)
        self._lock = Lock()
        self._extents: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._extents)

    def add(self, batch: pa.RecordBatch) -> int:
        """Write a batch and return its position. Raises OSError if the temporary directory is full."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        with self._lock:
            end = self._file.seek(0, 2)
            offset = end + -end % _ALIGNED
            self._file.write(bytes(offset - end))
            self._file.write(data)
            self._file.flush()  # otherwise, buffered data could fail when a batch is read
            self._extents.append((offset, data.size))
            return len(self._extents) - 1

    def __getitem__(self, position: int) -> pa.RecordBatch:
        """Read a batch. Raises OSError."""
        offset, size = self._extents[position]
        with self._lock:
            self._file.seek(offset)
            data = self._file.read(size)
        with pa.ipc.open_stream(data) as reader:
            return reader.read_next_batch()

    def mapped(self, position: int) -> pa.RecordBatch:
        """Return a batch as a memory map of the file: only the columns that are used are read, and the system can
        evict them. Raises OSError."""
        offset, size = self._extents[position]
        before = offset % mmap.ALLOCATIONGRANULARITY
        mapping = mmap.mmap(self._file.fileno(), before + size, access=mmap.ACCESS_READ, offset=offset - before)
        with pa.ipc.open_stream(pa.py_buffer(mapping).slice(before, size)) as reader:
            return reader.read_next_batch()
