"""What `advise` learns of the row groups of a column: their metadata, and the values of a few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter, size_for
from bloomcli.filters.sizing import upper_bound_bytes
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bloomcli.formats.answer import UnitFacts


class Extent(NamedTuple):
    """What the metadata say of a column in one row group. Bytes are compressed bytes."""

    rows: int
    row_group_bytes: int
    chunk_bytes: int
    values: int
    """Values that aren't null; all values if the nulls aren't counted."""
    nulls: int | None
    low: bytes | None = None
    """Lower bound, PLAIN bytes of `literal_column`; None where it isn't known."""
    high: bytes | None = None
    empty: bool = False
    """The metadata say that there is no value but nulls: readers skip the row group."""
    only_dictionary: bool = False
    """Every data page is dictionary-encoded, and readers can tell."""
    doubtful: bool = False
    """The values can't be read, or may not be: `FilterFile.why_unreadable` finds out."""
    filter_bytes: int | None = None
    """Bytes of the filter that readers use, as far as the metadata tell; None where there is none."""


class CheckedBits(Protocol):
    """A filter of any kind."""

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray) -> int:
        """Look hashes up; out[i] becomes 1 for "maybe", 0 for "absent"."""


class BuiltFilter(NamedTuple):
    """A new filter of a row group."""

    bits: CheckedBits | None
    """None for one that isn't built: of values that it doesn't have, it keeps as many as its rate says."""
    nbytes: int
    fpp: float
    """Its measured false-positive rate; the expected one of a filter that isn't built."""


class FilterBuilder(Protocol):
    """Filters of the same values for several rates."""

    fixed: bool
    """The size of a filter doesn't depend on its values."""

    def insert(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert hashes."""

    def finished(self) -> list[BuiltFilter]:
        """A filter for each rate, as `bloom add` makes it."""


class SampleBatch(NamedTuple):
    """Some values of a row group that aren't null. Equal values may be one."""

    hashes: bytes | bytearray | memoryview
    hashed: int
    """How many."""
    key: Callable[[int], object]
    """Identifies the value with the hash of this number, for `UnitValues.plain`."""
    more: bytes | bytearray | memoryview = b""
    """Further hashes that go into the filter: the other zero, other readings of a timestamp."""


class RowGroupValues(NamedTuple):
    """The values of one row group, to be taken before the next row group's."""

    filters: FilterBuilder
    batches: Iterator[SampleBatch]


class UnitValues(NamedTuple):
    """The values of one column in one unit, which is a row group, or in ORC a stripe."""

    column: Column
    row_groups: Iterator[RowGroupValues]
    plain: Callable[[Sequence[object]], Sequence[bytes | None]]
    """The PLAIN bytes, of `literal_column`, of values by their keys; None for one that was too long to keep."""


class SplitBlockBuilder:
    """Split-block filters for several rates: built once, and folded.

    Args:
        values: the most distinct values that may come.
        rates: false-positive rates.
        least: bytes of the smallest filter.
    """

    fixed = False

    def __init__(self, values: int, rates: Sequence[float], least: int) -> None:
        self._rates, self._least = rates, least
        self._bits = SplitBlockFilter.empty(max(upper_bound_bytes(values, min(rates)), least))

    def insert(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert hashes."""
        self._bits.insert_hashes(hashes, count)

    def finished(self) -> list[BuiltFilter]:
        """A filter for each rate."""
        found = [self._bits.folded_to(rate, least=self._least) for rate in self._rates]
        return [BuiltFilter(bits, bits.nbytes, bits.fpp) for bits in found]


class KirschMitzenmacherBuilder:
    """ORC's filters for several rates, each of the size that the row index stride and the rate result in."""

    fixed = True

    def __init__(self, stride: int, rates: Sequence[float]) -> None:
        self._filters = [KirschMitzenmacherFilter.empty(*size_for(stride, rate)) for rate in rates]

    def insert(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert hashes."""
        for bits in self._filters:
            bits.insert_hashes(hashes, count)

    def finished(self) -> list[BuiltFilter]:
        """A filter for each rate."""
        return [BuiltFilter(bits, bits.bits // 8, bits.fpp) for bits in self._filters]


def extents(units: Iterable[UnitFacts]) -> Iterator[Extent]:
    """What any format tells of a column's row groups: no bounds, and filters only if they can be read."""
    from bloomcli.formats.answer import Contents

    for facts in units:
        empty = facts.contents is not Contents.VALUES
        yield Extent(
            rows=facts.rows,
            row_group_bytes=facts.row_group_bytes,
            chunk_bytes=facts.chunk_bytes,
            values=0 if empty else facts.rows,
            nulls=None,
            empty=empty,
            doubtful=True,
            filter_bytes=0 if facts.has_filter else None,
        )
