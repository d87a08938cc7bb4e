"""Rows of several files that wait until they are brought into the shape of a frame, all at once.

That takes as long for few rows as for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from bloomcli.model.find import FileFound

ROWS_MOST: Final = 10_000
BYTES_MOST: Final = 4 << 20
"""Of rows that wait together, at most, but for those of one file or of files that were searched together."""


class RowBuffer:
    """Rows as they were found, while they are few.

    Attributes:
        rows: how many.
        bytes: of their batches.
    """

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = self.bytes = 0

    @classmethod
    def of(cls, batch: pa.RecordBatch | None) -> RowBuffer:
        """These rows, however many they are."""
        found = cls()
        if batch is not None:
            found.batches, found.rows, found.bytes = [batch], batch.num_rows, batch.nbytes
        return found

    def add(self, batch: pa.RecordBatch) -> bool:
        """Add rows; False if they would be too many."""
        size = batch.nbytes
        if not self._has_room(batch.num_rows, size):
            return False
        self.batches.append(batch)
        self.rows, self.bytes = self.rows + batch.num_rows, self.bytes + size
        return True

    def fits(self, other: RowBuffer) -> bool:
        """Whether others are few together with these, and have the same columns."""
        schemas = [batch.schema for batch in (*self.batches[:1], *other.batches)]
        alike = all(schema.equals(schemas[0], check_metadata=True) for schema in schemas[1:])
        return alike and self._has_room(other.rows, other.bytes)

    def extend(self, other: RowBuffer) -> None:
        """Add others, which `takes` is true of."""
        self.batches += other.batches
        self.rows, self.bytes = self.rows + other.rows, self.bytes + other.bytes

    def _has_room(self, rows: int, size: int) -> bool:
        return self.rows + rows <= ROWS_MOST and self.bytes + size <= BYTES_MOST

    def take_all(self) -> list[pa.RecordBatch]:
        """All rows. None are left."""
        batches, self.batches, self.rows, self.bytes = self.batches, [], 0, 0
        return batches


class FileQueue:
    """Rows of several files as they were found, and what was done with the files.

    Args:
        kept: brings rows into the shape of all records; may raise any error.
        searched: searches a file by its number, and yields its rows in this shape, and what was done with it.
    """

    def __init__(
        self,
        kept: Callable[[pa.RecordBatch], pa.RecordBatch],
        searched: Callable[[int], Iterator[pa.RecordBatch | FileFound]],
    ) -> None:
        self._kept, self._searched = kept, searched
        self._files: list[tuple[int, FileFound]] = []
        self._rows = RowBuffer()

    def add(self, file: int, rows: RowBuffer, *found: FileFound) -> Iterator[pa.RecordBatch | FileFound]:
        """Let files wait, with their rows; `file` is the number of the first. Yield what can't wait with them any
        longer."""
        if not self._rows.fits(rows):
            yield from self.flush()
        self._files += enumerate(found, file)
        self._rows.extend(rows)
        if any(one.error is not None for one in found):
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch | FileFound]:
        """Yield all rows, and behind them what was done with their files. None waits then."""
        files, batches, self._files = self._files, self._rows.take_all(), []
        made: list[pa.RecordBatch] = []
        try:
            if batches:
                made.append(self._kept(pa.concat_batches(batches)))
        except Exception:  # noqa: BLE001  rows of one of the files have no such shape: it is to be named
            for file, _ in files:
                yield from self._searched(file)
            return
        yield from made
        for _, found in files:
            yield found
