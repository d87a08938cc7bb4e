"""The metadata of a column's row groups and the values of a few of them, for `advise`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter, size_for
from bloomcli.filters.sizing import upper_bound_bytes
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.model.file import Column


class Extent(NamedTuple):
    """The metadata's facts about a column in one row group. Bytes are compressed bytes."""

    rows: int
    row_group_bytes: int
    chunk_bytes: int
    values: int
    """Non-null values; all values if the metadata don't count nulls."""
    nulls: int | None
    low: bytes | None = None
    """Lower bound, PLAIN bytes of `literal_column`; None if unknown."""
    high: bytes | None = None
    empty: bool = False
    """The metadata say that all values are null: readers skip the row group."""
    only_dictionary: bool = False
    """Every data page is dictionary-encoded, and the metadata say so."""
    doubtful: bool = False
    """The values may be unreadable: `FilterFile.why_unfilterable` and `why_unreadable` find out."""
    filter_bytes: int | None = None
    """Bytes of the filter that readers use, by the metadata; None without a filter."""


class BuiltFilter(NamedTuple):
    """A new filter of a row group."""

    bits: SplitBlockFilter | KirschMitzenmacherFilter | None
    """None for a filter that isn't built: it counts as passing the share `fpp` of absent values."""
    nbytes: int
    fpp: float
    """Its measured false-positive rate; for a filter that isn't built, the expected rate."""


class SampleBatch(NamedTuple):
    """Some non-null values of a row group. Equal values may be given once."""

    hashes: bytes | bytearray | memoryview
    hashed: int
    """The number of hashes."""
    key: Callable[[int], object]
    """Returns what `UnitValues.plain` takes for the value whose hash has this number: usually its PLAIN bytes."""
    more: bytes | bytearray | memoryview = b""
    """Further hashes that go into the filter: the other zero, other readings of a timestamp."""


class RowGroupValues(NamedTuple):
    """The values of one row group. Consume them before the next row group's."""

    filters: SplitBlockBuilder | KirschMitzenmacherBuilder
    batches: Iterator[SampleBatch]


def as_given(keys: Sequence[object]) -> Sequence[bytes | None]:
    """The values whose keys are their PLAIN bytes."""
    return [key if isinstance(key, bytes) else None for key in keys]


class UnitValues(NamedTuple):
    """The values of one column in one unit, which is a row group, or in ORC a stripe."""

    column: Column
    row_groups: Iterator[RowGroupValues]
    plain: Callable[[Sequence[object]], Sequence[bytes | None]] = as_given
    """Returns the PLAIN bytes of `literal_column` for values by their keys; None for one that is too long to keep."""


class SplitBlockBuilder:
    """Builds one split-block filter, and folds it for several rates.

    Args:
        values: the maximum number of distinct values.
        rates: false-positive rates.
        least: bytes of the smallest filter.
    """

    def __init__(self, values: int, rates: Sequence[float], least: int) -> None:
        self._rates, self._least = rates, least
        self._bits = SplitBlockFilter.empty(max(upper_bound_bytes(values, min(rates)), least))

    def insert(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert hashes."""
        self._bits.insert_hashes(hashes, count)

    def finished(self) -> list[BuiltFilter]:
        """A filter for each rate."""
        filters = [self._bits.folded_to(rate, least=self._least) for rate in self._rates]
        return [BuiltFilter(bits, bits.nbytes, bits.fpp) for bits in filters]


class KirschMitzenmacherBuilder:
    """Builds ORC's filters for several rates, each sized by the row index stride and the rate."""

    def __init__(self, stride: int, rates: Sequence[float]) -> None:
        self._filters = [KirschMitzenmacherFilter.empty(*size_for(stride, rate)) for rate in rates]

    def insert(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert hashes."""
        for bits in self._filters:
            bits.insert_hashes(hashes, count)

    def finished(self) -> list[BuiltFilter]:
        """A filter for each rate."""
        return [BuiltFilter(bits, bits.bits // 8, bits.fpp) for bits in self._filters]
