"""Keeps Arrow batches in a temporary file without a name. Only what works on very many values imports this."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from contextlib import suppress
from threading import Lock
from typing import IO, Final

import pyarrow as pa

_ALIGNED: Final = 64
"""Batches begin at multiples of so many bytes, as Arrow wants its buffers."""


def _close(file: IO[bytes]) -> None:
    """Close a temporary file. What a full disk refused to take was told of by `add`."""
    with suppress(OSError):
        file.close()


class StoredBatches:
    """Batches of any schemas, by the order in which they were added. Threads may add and read at once.

    The file is in TMPDIR. It is removed when the object is.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the object
        weakref.finalize(self, _close, self._file)
        self._lock = Lock()
        self._extents: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._extents)

    def add(self, batch: pa.RecordBatch) -> int:
        """Write a batch; gives its position. Raises OSError where there is no room in the temporary directory."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        with self._lock:
            end = self._file.seek(0, 2)
            offset = end + -end % _ALIGNED
            self._file.write(bytes(offset - end))
            self._file.write(data)
            self._file.flush()  # what is buffered would fail when a batch is read
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
        """A batch whose columns lie in the file: of those that aren't looked at nothing is read, and what was read
        takes no memory that the system can't use otherwise. Raises OSError."""
        offset, size = self._extents[position]
        before = offset % mmap.ALLOCATIONGRANULARITY
        mapping = mmap.mmap(self._file.fileno(), before + size, access=mmap.ACCESS_READ, offset=offset - before)
        with pa.ipc.open_stream(pa.py_buffer(mapping).slice(before, size)) as reader:
            return reader.read_next_batch()
