"""Temporary files for bitsets, until the common size of a column's filters is known, and for ends of files."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from typing import IO, Final

from bloomcli import kernels
from bloomcli.errors import WriteError
from bloomcli.filters.sizing import BLOCK_BYTES
from bloomcli.storage.os_errors import error_of

_BUFFER_BYTES: Final = 1 << 20


class Spool:
    """Byte strings in a temporary file, by their numbers. Without any, there is no file."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._offsets = array("q")
        self._size = 0
        self.sizes = array("i")
        """Bytes of each string."""

    def add(self, data: bytes | bytearray) -> int:
        """Add a string, which may be empty; returns its number. Raises WriteError."""
        try:
            if data and self._file is None:
                import tempfile

                self._file = tempfile.TemporaryFile(buffering=_BUFFER_BYTES)  # noqa: SIM115
            if data and self._file is not None:
                self._file.write(data)
        except OSError as error:
            raise self._failed(error) from None
        self._offsets.append(self._size)
        self.sizes.append(len(data))
        self._size += len(data)
        return len(self.sizes) - 1

    def finish(self) -> None:
        """Flush the file. Nothing can be added afterwards. Raises WriteError."""
        try:
            if self._file is not None:
                self._file.flush()
        except OSError as error:
            raise self._failed(error) from None

    def pieces(self) -> Iterator[bytes]:
        """Yield the strings joined, in pieces of up to 1 MiB. Raises WriteError."""
        if self._file is None:
            return
        try:
            self._file.seek(0)
            while piece := self._file.read(_BUFFER_BYTES):
                yield piece
        except OSError as error:
            raise self._failed(error) from None

    def read(self, numbers: Iterable[int], blocks: int, first: int, count: int) -> bytearray:
        """Read `count` blocks from `first` on of each of these bitsets, folded or replicated to `blocks` blocks.

        Raises WriteError if the temporary file can't be read any more.
        """
        if self._file is None:
            raise ValueError("it has no temporary file")
        chosen = array("i", numbers)
        offsets = array("q", [self._offsets[number] for number in chosen])
        sizes = array("i", [self.sizes[number] // BLOCK_BYTES for number in chosen])
        out = bytearray(len(chosen) * count * BLOCK_BYTES)
        failed = kernels.sbbf_gather(self._file.fileno(), offsets, sizes, blocks, first, count, out)
        if failed >= 0:
            try:
                os.pread(self._file.fileno(), sizes[failed] * BLOCK_BYTES, offsets[failed])
            except OSError as error:
                raise self._failed(error) from None
            raise WriteError("the temporary file of the filters has become shorter", hint="build the index again")
        return out

    def close(self) -> None:
        """Remove the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _failed(self, error: OSError) -> WriteError:
        import tempfile

        where = tempfile.gettempdir()
        system_error = error_of(error, where)
        return WriteError(
            f"the filters can't be written to a temporary file: {system_error.reason}",
            path=where,
            hint=system_error.hint or "TMPDIR names another directory",
        )
