"""Checks a Mosaic file's filters: structure by the metadata, and bits by the values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from bloomcli.formats.base import DeepCheck, FilterProblem, Tick
from bloomcli.formats.deep_check import FilterCheck, filter_finding
from bloomcli.formats.mosaic import proof, splice, values
from bloomcli.formats.mosaic.bloom_filter import HINT_REPLACE, Filters, LoadedFilter
from bloomcli.formats.mosaic.describe import column_name
from bloomcli.formats.mosaic.footer import FilterLocation, RowGroup
from bloomcli.model.file import FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.words import are, counted


def _about(filters: Filters, location: FilterLocation) -> Callable[..., Finding]:
    """What makes findings about a filter."""
    column = column_name(filters.footer, location)
    return partial(
        filter_finding, row_group=location.row_group, column=column, offset=location.offset, hint=HINT_REPLACE
    )


def unusable(filters: Filters, location: FilterLocation, problem: FilterProblem) -> Iterator[Finding]:
    """Yield the faults of an unusable filter."""
    yield from _duplicate(filters, location)
    finding = partial(_about(filters, location), severity=Severity.ERROR)
    yield finding(problem.id, problem.reason, offset=location.offset if problem.offset is None else problem.offset)


def sound(
    filters: Filters, location: FilterLocation, loaded: LoadedFilter, facts: Sequence[FilterFacts]
) -> Iterator[Finding]:
    """Yield the faults of a readable filter: its length in the index, its bits, a second filter of its column."""
    del facts
    yield from _duplicate(filters, location)
    if loaded.trailing:
        more = counted(loaded.trailing, "byte")
        message = f"the index counts {more} to the filter that {are(loaded.trailing)} not part of it"
        yield _about(filters, location)("filter-trailing-bytes", message)
    group = filters.footer.row_groups[location.row_group]
    count = group.non_null(location.column)
    if loaded.bits.set_bits == 0 and count > 0 and location.column in group.statistics:
        message = f"no bit is set, though the row group has {counted(count, 'value')}: a reader loses all of them"
        yield _about(filters, location)("filter-all-zero", message)


def _duplicate(filters: Filters, location: FilterLocation) -> Iterator[Finding]:
    """The finding about a filter that isn't the first of its column and row group."""
    if filters.is_duplicate(location):
        message = "a second filter of the same column and row group: readers use the first"
        yield _about(filters, location)("filter-duplicate", message)


def overlaps(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Findings about filters of these columns (all if None) that share bytes with something else."""
    for first, second in splice.overlaps(filters.footer):
        owner = second.filter or first.filter
        assert owner is not None  # noqa: S101  one of them is a filter
        if columns is None or owner.column in columns:
            message = f"{second.what} at {second.start} overlaps {first.what} at {first.start} to {first.end}"
            yield _about(filters, owner)("filter-overlap", message)


def contradictions(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Faults of the statistics of these columns (of those with filters if None) that show without values."""
    proven = filters.proven(columns)
    readable = (loaded for group in filters.footer.row_groups for loaded in _readable(filters, group, proven))
    filled = {(f.location.row_group, f.location.column) for f in readable if f.bits.set_bits}
    yield from proof.by_metadata(filters.footer, proven, filled)


def deep(
    filters: Filters, columns: set[int] | None, tick: Tick, units: Container[int] | None, threads: int
) -> Iterator[DeepCheck]:
    """Look every value of every column up in its readable filters, and compare it with the statistics, in one
    thread."""
    del threads
    footer = filters.footer
    filters.source.will_read(_ranges(filters, columns, units))
    for chosen, work in groupby(_work(filters, columns, units), key=lambda work: work.columns):
        with values.ColumnReader(footer, [footer.columns[c] for c in chosen]) as reader:
            for group, _, loaded_filters, proven in work:
                batch = reader.decoded(group)
                yield from _deep_group(filters, batch, loaded_filters)
                for column in (footer.columns[c] for c in sorted(proven)):
                    for finding in proof.by_values(footer, group, column, batch.column(column.name)):
                        yield DeepCheck(finding=finding)
                tick(filters.bytes_of(group, set(chosen)))


class _Work(NamedTuple):
    """What `deep` does in a row group."""

    group: RowGroup
    columns: list[int]
    """Ordinals of the columns that are decoded, in order: usually those of all row groups."""
    filters: list[LoadedFilter]
    proven: set[int]
    """The columns whose statistics are compared."""


def _work(filters: Filters, columns: set[int] | None, units: Container[int] | None) -> Iterator[_Work]:
    """Yield the row groups with something to compare, in these units (all if None)."""
    for group in filters.footer.row_groups:
        if units is None or group.ordinal in units:
            loaded_filters = _readable(filters, group, columns)
            proven = filters.read_in(group, columns) & group.statistics.keys()
            chosen = sorted({*(f.location.column for f in loaded_filters), *proven})
            if chosen:
                yield _Work(group, chosen, loaded_filters, proven)


def _ranges(filters: Filters, columns: set[int] | None, units: Container[int] | None) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of the filters and of the buckets to compare with."""
    yield from filters.ranges(columns)
    for group in filters.footer.row_groups:
        if units is None or group.ordinal in units:
            yield from filters.value_ranges(group, filters.read_in(group, columns))


def _readable(filters: Filters, group: RowGroup, columns: set[int] | None) -> list[LoadedFilter]:
    loaded_filters: list[LoadedFilter] = []
    for location in group.filters:
        if columns is None or location.column in columns:
            try:
                loaded_filters.append(filters.load(location))
            except FilterProblem:
                continue  # structure reports it
    return loaded_filters


def _deep_group(filters: Filters, batch: Any, loaded_filters: list[LoadedFilter]) -> Iterator[DeepCheck]:
    """Compare filters of a row group with its values, an Arrow record batch."""
    for loaded in loaded_filters:
        column = filters.footer.columns[loaded.location.column]
        hashed = values.hash_column(batch.column(column.name), column)
        check = FilterCheck(loaded.bits, values.zero_hashes(column))
        check.take(hashed.hashes, hashed.count, partial(partial, hashed.value), has_zero=hashed.has_zero)
        yield check.result(_about(filters, loaded.location))
