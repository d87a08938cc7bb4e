"""A queue of rows, in memory up to 8 MiB, and beyond that in a temporary file without a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final

import pyarrow as pa

from bloomcli.errors import WriteError
from bloomcli.storage.os_errors import convert_temporary_file_errors

_MEMORY_BYTES: Final = 8 << 20


class Spool:
    """Batches of one schema, which can be read once."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch. Raises WriteError if the temporary directory is full."""
        with self._written():
            self._add(batch)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Close the file if the block fails. Raises WriteError."""
        try:
            with convert_temporary_file_errors("rows"):
                yield
        except WriteError:
            if self._file is not None:
                with suppress(OSError):  # closing writes the buffer
                    self._file.close()
            raise

    def _add(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._batches.append(batch)
            self._bytes += batch.nbytes
            if self._bytes > _MEMORY_BYTES:
                import tempfile

                self._file = tempfile.TemporaryFile()  # noqa: SIM115  read and closed by `batches`
                self._writer = pa.ipc.new_stream(self._file, batch.schema)
                for waiting in self._batches:
                    self._writer.write_batch(waiting)
                self._batches.clear()
        else:
            self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, in order. Raises WriteError as `add`."""
        if self._writer is None or self._file is None:
            yield from self._batches
            return
        with self._written():
            self._writer.close()
            self._file.seek(0)  # writes the buffer
        with self._file, pa.ipc.open_stream(self._file) as reader:
            yield from reader
