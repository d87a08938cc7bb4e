"""A queue of rows, in memory up to 8 MiB, and beyond that in a temporary file without a name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, Final

import pyarrow as pa

from bloomcli.storage.os_errors import convert_temporary_file_errors

_MEMORY_BYTES: Final = 8 << 20


class Spool:
    """Batches of one schema, which can be read once."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch. Raises WriteError if the temporary directory is full."""
        with convert_temporary_file_errors("rows"):
            if self._file is None:
                self._file = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115  `batches` closes it
                self._writer = pa.ipc.new_stream(self._file, batch.schema)
            self._writer.write_batch(batch)

    def __del__(self) -> None:
        if self._file is not None:  # rows of a file that failed later aren't read
            with suppress(OSError):  # closing writes the buffer
                self._file.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, in order. Raises WriteError as `add`."""
        if self._file is None:
            return
        with convert_temporary_file_errors("rows"):
            self._writer.close()
            self._file.seek(0)  # writes the buffer
        with self._file, pa.ipc.open_stream(self._file) as reader:
            yield from reader
