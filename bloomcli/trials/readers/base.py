"""The interface of a reader, and how the rows that it returns are compared."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_DIGEST_BYTES = 16


class InVariant(NamedTuple):
    """The place of a column in a shredded VARIANT, for readers that read it as one value."""

    names: tuple[str, ...]
    """The names of the VARIANT's own column, as `Lookup.names`."""
    fields: tuple[str, ...]
    path: str
    """The fields as Spark's `variant_get` spells them: ``$.user.id``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """A request for the rows of a file in which a column equals a value."""

    path: str
    """A local file. No reader derives anything from its name or folder."""
    format: str
    names: tuple[str, ...]
    """The column's name; in structs, then the names of the nested fields."""
    in_variant: InVariant | None
    value: pa.Scalar
    """The value in the column's Arrow type."""
    filters: bool
    """Whether the reader may use filters. False only for readers and formats with an option to switch them off."""
    whole: bool
    """True to return whole rows, False to count the rows only."""


class ReadMetrics(NamedTuple):
    """The amounts that a reader read for a lookup, by its own metrics; None for those that it doesn't count."""

    row_groups: int | None = None
    rows: int | None = None
    bytes: int | None = None


class LookupResult(NamedTuple):
    """The number and digest of the rows that a reader returned, and its metrics."""

    rows: int
    digest: bytes | None
    """A digest of all rows with all their columns, in any order; None if the rows were only counted."""
    metrics: ReadMetrics


Rows = int | Iterable[Any]
"""The number of rows, or each row as an object whose `repr` shows all its values."""


class Query(NamedTuple):
    """A prepared lookup of one reader."""

    run: Callable[[], Rows]
    """Runs the lookup and returns all rows. Only this call is timed."""
    metrics: Callable[[], ReadMetrics]
    """Returns the metrics of the previous run."""


class Reader(ABC):
    """A reader that runs in this process."""

    @abstractmethod
    def query(self, lookup: Lookup) -> Query:
        """Prepare a lookup. Raises any exception of the reader."""

    def look_up(self, lookup: Lookup) -> LookupResult:
        """Run a lookup. Raises any exception of the reader."""
        query = self.query(lookup)
        rows, digest = digest_of(query.run())
        return LookupResult(rows, digest, query.metrics())

    def seconds(self, lookup: Lookup) -> float:
        """Run a lookup that has run before, and return its seconds, up to the last row. Raises: as `look_up`."""
        query = self.query(lookup)
        started = time.perf_counter()
        query.run()
        return time.perf_counter() - started

    def close(self) -> None:  # noqa: B027  most readers have nothing to close
        """Stop the reader."""


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
    """The rows of a table as tuples of Python values."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        column = pc.cast(column, pa.int64())  # Python's datetime types have no nanoseconds
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, ArithmeticError):  # such values in a list or a struct; times out of range
        return [column.slice(at, 1).to_string() for at in range(len(column))]
