"""The filters of a Mosaic file: which columns can have them, where they are, and how one is read: its header, and the
bitset after it.

    u8 version 1 | u8 algorithm 1 | u8 hash 1 | u8 compression 0 | varint bytes | bitset

The algorithm is Parquet's split-block filter, the hash XXH64. The number of blocks is a power of two, at most
2^24. Only this module decides whether a filter can be used.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Final

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile
from bloomcli.filters.split_block import SplitBlockFilter, UnreadFilter, block_ranges, is_sparse
from bloomcli.formats.answer import Bits
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.mosaic.footer import FilterLocation, Footer, RowGroup
from bloomcli.formats.mosaic.limits import FILTER_MAX_BYTES
from bloomcli.formats.mosaic.schema import WIDTHS, MosaicColumn
from bloomcli.formats.mosaic.spec import Cursor
from bloomcli.formats.mosaic.statistics import bound_hashes
from bloomcli.hints import replacing
from bloomcli.words import counted

HINT_REPLACE: Final = replacing("--mosaic-draft")

_HEAD: Final = bytes((1, 1, 1, 0))
_HEADER_MIN: Final = 5
HEADER_BOUND: Final = 9
"""The maximum size of a filter's header."""

HASHED: Final = frozenset((*WIDTHS, "STRING"))
"""Families of types that the draft has filters for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFilter:
    """A filter in memory: its index entry, its header's bytes, its bits."""

    location: FilterLocation
    header_raw: bytes
    bits: SplitBlockFilter

    @property
    def trailing(self) -> int:
        """Bytes that the index counts as the filter's but that aren't part of it."""
        return self.location.length - len(self.header_raw) - self.bits.nbytes


def problem(footer: Footer, location: FilterLocation, reason: str, id: str, at: int | None = None) -> FilterProblem:  # noqa: A002
    """The error about a filter."""
    offset = location.offset if at is None else at
    return FilterProblem(reason, path=footer.path, offset=offset, field=location.field, hint=HINT_REPLACE, id=id)


def in_data(footer: Footer, location: FilterLocation) -> bool:
    """Whether the filter's range lies in the data."""
    return location.end <= footer.schema_at


def column_of(footer: Footer, location: FilterLocation) -> MosaicColumn | None:
    """The column of a filter; None if the file has no such column."""
    return footer.columns[location.column] if location.column < len(footer.columns) else None


def ranges_for(location: FilterLocation, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of what `load_for` reads."""
    # a header has 5 to 9 bytes and a bitset a multiple of 32, so the length of both determines each
    size = (location.length - _HEADER_MIN) // limits.FILTER_MIN_BYTES * limits.FILTER_MIN_BYTES
    if not is_sparse(len(hashes), location.length) or size > FILTER_MAX_BYTES:
        yield location.offset, min(location.length, FILTER_MAX_BYTES)
        return
    yield location.offset, HEADER_BOUND
    yield from block_ranges(SplitBlockFilter, size, hashes, location.end - size)


def _start(footer: Footer, location: FilterLocation, *, bits: bool) -> tuple[bytes, int, int]:
    """(header, with the bitset if `bits` is set; start of the bitset; its length)."""
    wrong = partial(problem, footer, location)
    column, length = column_of(footer, location), counted(location.length, "byte")
    if column is None:
        columns = len(footer.columns)
        raise wrong(f"the filter is of column {location.column}, the file has {columns}", "filter-column")
    if not in_data(footer, location):
        where = f"the filter at {location.offset}, {length}"
        raise wrong(f"{where}, runs past the data's end at {footer.schema_at}", "filter-offset")
    if column.family not in HASHED:
        of = column.type_name
        raise wrong(f"a filter on a column of the type {of}, whose values the draft doesn't hash", "filter-type")
    if location.length > FILTER_MAX_BYTES + HEADER_BOUND:
        raise wrong(f"the filter has {length}, more than a filter may ({FILTER_MAX_BYTES})", "filter-too-large")
    data = footer.source.read_at(location.offset, location.length if bits else min(location.length, HEADER_BOUND))
    size, start = _parse_header(data, footer, location)
    if size > location.length - start:
        total = counted(start + size, "byte")
        raise wrong(f"header and bitset take {total}, the index says {location.length}", "filter-length")
    return data, start, size


def _parse_header(data: bytes, footer: Footer, location: FilterLocation) -> tuple[int, int]:
    """(bytes of the bitset, its start)."""
    wrong = partial(problem, footer, location)
    cursor = Cursor(data[:HEADER_BOUND], base=location.offset, path=footer.path, field=location.field)
    try:
        head = cursor.take(len(_HEAD), "a filter's header")
        size = cursor.varint("the bitset's bytes")
    except CorruptFile as error:
        reason = f"no filter header at the filter's offset: {error.reason}"
        raise wrong(reason, "filter-header", error.offset) from None
    names = (
        ("header version", "filter-header"),
        ("algorithm", "filter-algorithm"),
        ("hash", "filter-hash"),
        ("compression", "filter-compression"),
    )
    for at, ((name, id_), code, expected) in enumerate(zip(names, head, _HEAD, strict=True)):
        if code != expected:
            raise wrong(f"the filter's {name} is {code}; only {expected} is known", id_, location.offset + at)
    blocks, rest = divmod(size, limits.FILTER_MIN_BYTES)
    if rest or not blocks or blocks & (blocks - 1):
        raise wrong(f"a bitset of {counted(size, 'byte')}; it has to be 32 times a power of two", "filter-num-bytes")
    if size > FILTER_MAX_BYTES:
        reason = f"the bitset's {counted(size, 'byte')} are more than {FILTER_MAX_BYTES}"
        raise wrong(reason, "filter-too-large")
    return size, cursor.pos


def write_header(num_bytes: int) -> bytes:
    """The header of a bitset of `num_bytes`, 5 to 9 bytes."""
    return _HEAD + kernels.encoded_varint(num_bytes)


def unfilterable(column: MosaicColumn) -> str | None:
    """Why a column can't have a filter, as a noun phrase; None if it can."""
    return None if column.family in HASHED else f"{column.type_name}: the draft has no filters for such values"


class Filters:
    """The filters that the row-group index lists. Each is read on demand.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, footer: Footer) -> None:
        self.source = footer.source
        self.footer = footer

    def locations(self, columns: set[int] | None) -> Iterator[FilterLocation]:
        """The filters of these columns, by row group and column; all if None, even those of unknown columns."""
        for group in self.footer.row_groups:
            chosen = (p for p in group.filters if columns is None or p.column in columns)
            yield from sorted(chosen, key=lambda p: (p.column, p.position))

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the filters of these columns (all if None)."""
        return ((p.offset, p.length) for p in self.locations(columns) if p.length <= FILTER_MAX_BYTES + HEADER_BOUND)

    def value_ranges(self, group: RowGroup, columns: set[int]) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of a row group's buckets that hold any of these columns."""
        wanted = {self.footer.columns[c].bucket for c in columns}
        return ((b.offset, b.size) for b in group.buckets if b.id in wanted)

    def preferred(self, group: RowGroup, column: int) -> FilterLocation | None:
        """The filter of a column that readers use, which is the first; None where it has none."""
        return next((p for p in group.filters if p.column == column), None)

    def location(self, column: int, row_group: int, stripe: int) -> FilterLocation | None:
        """The filter of a column in a row group that readers use; None where it has none."""
        del stripe
        return self.preferred(self.footer.row_groups[row_group], column)

    def load(self, location: FilterLocation) -> LoadedFilter:
        """Read a filter in one read. Raises FilterProblem."""
        data, start, size = _start(self.footer, location, bits=True)
        bits = SplitBlockFilter(data[start : start + size])
        return LoadedFilter(location=location, header_raw=data[:start], bits=bits)

    def load_for(self, location: FilterLocation, hashes: int) -> Bits:
        """The bits of a filter for looking up `hashes` hashes. Blocks are read one by one if these are fewer bytes.

        Checks all that `load` checks: the header has it. Raises FilterProblem.
        """
        if not is_sparse(hashes, location.length):
            return self.load(location).bits
        _, start, size = _start(self.footer, location, bits=False)
        at = location.offset + start
        return UnreadFilter(SplitBlockFilter, size, lambda offset, length: self.source.read_at(at + offset, length))

    def ranges_to_look_up(
        self, column: int, hashes: Sequence[int], groups: Sequence[RowGroup]
    ) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of what `load_for` reads of a column's filters in these row groups, for these
        hashes and those of the row groups' own bounds."""
        for group in groups:
            location = self.preferred(group, column)
            if location is not None:
                yield from ranges_for(location, [*hashes, *bound_hashes(group, self.footer.columns[column])])

    @cached_property
    def _first(self) -> set[FilterLocation]:
        """The filters that readers use: the first of each column and row group."""
        return {next(same) for _, same in groupby(self.locations(None), key=lambda p: (p.row_group, p.column))}

    def is_duplicate(self, location: FilterLocation) -> bool:
        """Whether a filter isn't the first of its column and row group."""
        return location not in self._first

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {location.column for location in self.footer.filters if location.column < len(self.footer.columns)}

    def bitset_bytes(self, location: FilterLocation) -> int | None:
        """Bytes of a filter's bitset, by its header; None if the header can't be read."""
        try:
            return _start(self.footer, location, bits=False)[2]
        except FilterProblem:
            return None

    def bytes_of(self, group: RowGroup, columns: set[int]) -> int:
        """Compressed bytes of a row group's buckets that hold any of these columns."""
        return sum(size for _, size in self.value_ranges(group, columns))

    def proven(self, columns: set[int] | None) -> set[int]:
        """Ordinals of the columns whose statistics are checked: these ones, or those with filters if it is None."""
        return self.columns() if columns is None else columns

    def read_in(self, group: RowGroup, columns: set[int] | None) -> set[int]:
        """Ordinals of the columns of a row group whose values are compared with filters or statistics."""
        filtered = {p.column for p in group.filters if p.column < len(self.footer.columns)}
        filtered = filtered if columns is None else filtered & columns
        return filtered | (self.proven(columns) & group.statistics.keys())

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the buckets with values that are compared with filters or statistics of these columns
        (all if None), in the row groups `units`."""
        groups = (g for g in self.footer.row_groups if units is None or g.ordinal in units)
        return sum(self.bytes_of(group, self.read_in(group, columns)) for group in groups)
