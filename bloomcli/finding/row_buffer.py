"""Buffers rows of several files, and converts them to a frame's types together.

A conversion of a few rows takes as long as one of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from bloomcli.model.find import FileFound

ROWS_MOST: Final = 10_000
BYTES_MOST: Final = 4 << 20
"""Limits of a buffer. The rows of one file, or of files that were searched in one call, may exceed them."""


class RowBuffer:
    """A buffer of a few rows before their conversion.

    Attributes:
        rows: number of rows.
        bytes: bytes of their batches.
    """

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = self.bytes = 0

    @classmethod
    def of(cls, batch: pa.RecordBatch | None) -> RowBuffer:
        """A buffer with these rows, which may exceed the limits."""
        buffer = cls()
        if batch is not None:
            buffer.batches, buffer.rows, buffer.bytes = [batch], batch.num_rows, batch.nbytes
        return buffer

    def add(self, batch: pa.RecordBatch) -> bool:
        """Add rows. Returns False, and adds nothing, if they would exceed the limits."""
        size = batch.nbytes
        if not self._has_room(batch.num_rows, size):
            return False
        self.batches.append(batch)
        self.rows, self.bytes = self.rows + batch.num_rows, self.bytes + size
        return True

    def fits(self, other: RowBuffer) -> bool:
        """Whether another buffer's rows have the same columns, and can be added within the limits."""
        schemas = [batch.schema for batch in (*self.batches[:1], *other.batches)]
        same_schema = all(schema.equals(schemas[0], check_metadata=True) for schema in schemas[1:])
        return same_schema and self._has_room(other.rows, other.bytes)

    def extend(self, other: RowBuffer) -> None:
        """Add another buffer's rows, for which `fits` is true."""
        self.batches += other.batches
        self.rows, self.bytes = self.rows + other.rows, self.bytes + other.bytes

    def _has_room(self, rows: int, size: int) -> bool:
        return self.rows + rows <= ROWS_MOST and self.bytes + size <= BYTES_MOST

    def take_all(self) -> list[pa.RecordBatch]:
        """Empty the buffer; returns its rows."""
        batches, self.batches, self.rows, self.bytes = self.batches, [], 0, 0
        return batches


class FileQueue:
    """Files whose rows wait for their conversion to the frame's types.

    Args:
        convert: converts rows to the frame's types; may raise any error.
        search: searches a file by its number, and yields its converted rows and then its result.
    """

    def __init__(
        self,
        convert: Callable[[pa.RecordBatch], pa.RecordBatch],
        search: Callable[[int], Iterator[pa.RecordBatch | FileFound]],
    ) -> None:
        self._convert, self._search = convert, search
        self._files: list[tuple[int, FileFound]] = []
        self._rows = RowBuffer()

    def add(self, file: int, rows: RowBuffer, *results: FileFound) -> Iterator[pa.RecordBatch | FileFound]:
        """Add files and their rows; `file` is the number of the first one. Yields earlier files if the buffer is
        full."""
        if not self._rows.fits(rows):
            yield from self.flush()
        self._files += enumerate(results, file)
        self._rows.extend(rows)
        if any(result.error is not None for result in results):
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch | FileFound]:
        """Empty the queue: yield all rows, and then the results of their files."""
        files, batches, self._files = self._files, self._rows.take_all(), []
        converted: list[pa.RecordBatch] = []
        try:
            if batches:
                converted.append(self._convert(pa.concat_batches(batches)))
        except Exception:  # noqa: BLE001  rows of one file can't be converted: find out which
            for file, _ in files:
                yield from self._search(file)
            return
        yield from converted
        for _, result in files:
            yield result
