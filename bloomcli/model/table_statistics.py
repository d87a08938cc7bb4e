"""What a table's metadata say about a data file: the statistics by which engines skip the file, or parts of it.

Iceberg's manifests and Delta's log have them in different forms; here, the values of both are numbers and bytes that
compare as the values do (`Key`). The driver collects them, and sends them with the file's task.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

Key = int | float | Decimal | bytes
"""A value that compares in its column's order: a number, nanoseconds since 1970 or midnight, or bytes."""


class Kind(StrEnum):
    """What a `Key` stands for."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    """Nanoseconds since 1970-01-01, so that it compares with timestamps."""
    TIME = "time"
    TIMESTAMP = "timestamp"
    """Wall-clock time."""
    INSTANT = "instant"
    """A timestamp in UTC."""
    TEXT = "text"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """The table's statistics of a leaf column in a file. What is None isn't known."""

    path: str
    """The table's path of the column."""
    kind: Kind
    values: int | None = None
    """Values, nulls included."""
    nulls: int | None = None
    nans: int | None = None
    low: Key | None = None
    """A value that no value of the column is below. NaN isn't below or above any."""
    high: Key | None = None
    tight: bool = True
    """False: of `nulls`, only 0 (none is null) and the number of rows (all are) mean anything."""
    nan_is_greatest: bool = False
    """Readers order NaN above all other values, so that `high` must not be below one."""
    problem: str | None = None
    """Why a bound isn't a value of the column's type; `low` or `high` is then unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionValue:
    """A value that the table's metadata give to all rows of a file: of a column, or of a transform of its values."""

    path: str
    """The table's path of the column."""
    kind: Kind
    """The kind of `value`."""
    value: Key | None
    """None for null."""
    text: str
    """The value as the metadata have it."""
    transform: str = "identity"
    """As Iceberg names it: ``bucket``, ``truncate``, ``year``, ``month``, ``day`` or ``hour``."""
    width: int = 0
    """The number of buckets, or the width that values are truncated to."""
    problem: str | None = None
    """Why the value isn't one of the column's type; the other facts then mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """The table's statistics of a data file."""

    source: str
    """Where they are: ``manifest`` or ``log``."""
    rewriting: str = ""
    """The statement in SQL by which the table's engine writes files, and their statistics, again."""
    rows: int | None = None
    """Rows, deleted ones included."""
    rows_may_grow: bool = True
    """A commit that replaces the file may raise `rows`."""
    columns: tuple[ColumnStatistics, ...] = ()
    partition: tuple[PartitionValue, ...] = ()
    split_offsets: tuple[int, ...] = ()
    """Where tasks may start to read the file: the first bytes of row groups or stripes."""

    def packed(self) -> bytes:
        """The statistics in few bytes: a table may have a hundred columns and ten thousand files."""
        import pickle
        import zlib

        return zlib.compress(pickle.dumps(self), 1)

    @staticmethod
    def unpacked(data: bytes) -> FileStatistics:
        """The statistics of `packed`, which the driver of the same run has called."""
        import pickle
        import zlib

        statistics: FileStatistics = pickle.loads(zlib.decompress(data))  # noqa: S301  it comes with the task
        return statistics
