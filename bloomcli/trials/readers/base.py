"""The interface of a reader, and how the rows that it returns are compared."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.named_tuple import NamedTuple

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The rows of a file in which a column equals a value."""

    path: str
    """A local file, whose name and folder have no meaning to any reader."""
    format: str
    names: tuple[str, ...]
    """The column: its name and, in structs, those of the fields below it."""
    value: pa.Scalar
    """Of the type that Arrow reads the column as."""
    filters: bool
    """Whether the reader may use filters; it is False only for readers and formats that have such an option."""
    whole: bool
    """Whether all columns are read. Otherwise the rows are only counted."""


class ReadMetrics(NamedTuple):
    """What a reader read for a lookup, by its own metrics; None for what it doesn't count."""

    row_groups: int | None = None
    rows: int | None = None
    bytes: int | None = None


class LookupResult(NamedTuple):
    """The rows that a reader found."""

    rows: int
    digest: bytes | None
    """Of all rows with all their columns, in any order; None if they were only counted."""
    metrics: ReadMetrics


Rows = int | Iterable[Any]
"""The number of rows, or each row as an object with a `repr` of all that it contains."""


class Query(NamedTuple):
    """A lookup in a reader's own form."""

    run: Callable[[], Rows]
    """Returns when all rows are there. Only this is timed."""
    metrics: Callable[[], ReadMetrics]
    """What the run before read."""


class Reader(ABC):
    """A reader that runs in this process."""

    @abstractmethod
    def query(self, lookup: Lookup) -> Query:
        """Prepare a lookup. Raises whatever the reader raises."""

    def look_up(self, lookup: Lookup) -> LookupResult:
        """Run a lookup. Raises whatever the reader raises."""
        query = self.query(lookup)
        rows, digest = digest_of(query.run())
        return LookupResult(rows, digest, query.metrics())

    def seconds(self, lookup: Lookup) -> float:
        """Run a lookup that has run before, and return the time until its rows are there. Raises as `look_up`."""
        query = self.query(lookup)
        started = time.perf_counter()
        query.run()
        return time.perf_counter() - started

    def close(self) -> None:  # noqa: B027  most readers have nothing to end
        """End the reader."""


def digest_of(rows: Rows) -> tuple[int, bytes | None]:
    """The number of rows, and a digest of them that doesn't depend on their order: the sum of the rows' hashes."""
    if isinstance(rows, int):
        return rows, None
    count = total = 0
    for row in rows:
        text = repr(row).encode("utf-8", "surrogatepass")
        total += int.from_bytes(blake2b(text, digest_size=_DIGEST_BYTES).digest(), "little")
        count += 1
    return count, (total % (1 << 8 * _DIGEST_BYTES)).to_bytes(_DIGEST_BYTES, "little")


def rows_of(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    """The rows of a table as Python's values."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        column = pc.cast(column, pa.int64())  # Python's own times have no nanoseconds
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, ArithmeticError):  # such values below a list or a struct; times out of range
        return [column.slice(at, 1).to_string() for at in range(len(column))]
