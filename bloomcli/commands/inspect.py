"""inspect: describes the columns of a file and every filter, with measured rates.

The summary of a column joins the format's facts about it with the facts about its filters.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from bloomcli.commands.columns import indexes
from bloomcli.commands.options import InspectOptions
from bloomcli.engine_filters.registry import filters_of
from bloomcli.errors import UsageError
from bloomcli.formats.answer import NOT_ONLY_NULLS, WRONG
from bloomcli.formats.base import FilterFile
from bloomcli.formats.column_facts import Bounds, ColumnFacts
from bloomcli.formats.registry import open_file
from bloomcli.hints import NAME, Command, Hint, listed
from bloomcli.model.file import UNVERIFIED, Column, ColumnSummary, FilterFacts
from bloomcli.model.inspect import InspectReport
from bloomcli.policy.globs import matches
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.storage.traffic import counted
from bloomcli.values.literals import render


@convert_os_errors_of_file
@counted
def run(path: str | os.PathLike[str], options: InspectOptions) -> InspectReport:
    """Describe one file. Raises: as `inspect`."""
    options = options.checked()
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        chosen = indexes(file, options.columns, exclude=options.exclude)
        indexed = tuple(file.indexed_facts(chosen))
        facts = tuple(filter_facts for _, filter_facts in indexed)
        column = _one_column(file, chosen, options) if options.pages or options.indexes else None
        filtered = set() if chosen is None else file.filtered_columns()
        engines = filters_of(file, chosen)
        return InspectReport(
            path=source.path,
            format=file.format,
            file_bytes=source.size,
            rows=file.rows,
            row_groups=file.row_group_count,
            columns=file.column_count,
            created_by=file.created_by,
            filters=facts,
            summary=file.summary(facts),
            stripes=file.stripes,
            engine_filters=tuple(filter_.facts for filter_ in engines.filters),
            details=(*file.details, *engines.remarks, *_lacking(file, options)),
            by_column=summaries(file, chosen, indexed),
            pages=tuple(file.pages(column)) if column is not None and options.pages else (),
            index=tuple(file.index(column)) if column is not None and options.indexes else (),
            merged_filters=tuple(file.merged_filters(column)) if column is not None and options.indexes else (),
            schema_tree=tuple(file.schema_tree()) if options.schema else (),
            footer=file.footer_tree() if options.footer else None,
            unverified=UNVERIFIED if file.unverified else None,
            columns_without_filters=_paths(file, set() if chosen is None else chosen - filtered),
            other_columns_with_filters=_paths(file, set() if chosen is None else filtered - chosen),
        )


def _lacking(file: FilterFile, options: InspectOptions) -> tuple[tuple[str, str], ...]:
    """The selected columns of the table that the file doesn't have, as a detail of the file."""
    paths = [
        path
        for path in file.missing_columns
        if (not options.columns or matches(options.columns, path)) and not matches(options.exclude, path)
    ]
    return (("not in the file", ", ".join(map(listed, paths))),) if paths else ()


def _one_column(file: FilterFile, chosen: set[int] | None, options: InspectOptions) -> Column:
    """The column whose pages or index entries are listed. Raises UsageError unless the options choose exactly one."""
    flag = "--pages" if options.pages else "--indexes"
    if chosen is None or len(chosen) != 1:
        number = "none" if chosen is None else str(len(chosen))
        first = next((c.path for c in file.columns if chosen is None or c.index in chosen), NAME)
        raise UsageError(
            f"{flag} is for one column, and {number} {'is' if chosen is None else 'are'} chosen",
            path=file.source.path,
            hint=Hint(
                Command("inspect", (flag, "--column", listed(first))),
                f"; without {flag} all columns are listed",
                "such as ",
            ),
        )
    (index,) = chosen
    return next(column for column in file.columns if column.index == index)


def _paths(file: FilterFile, columns: set[int]) -> tuple[str, ...]:
    """Paths in schema order, each once."""
    return tuple(dict.fromkeys(c.path for c in file.columns if c.index in columns)) if columns else ()


class _Filters:
    """Running totals of the filters of one column."""

    __slots__ = ("bytes", "max_fpp", "ndv", "only_nulls", "readable", "units", "unreadable", "untrusted")

    def __init__(self) -> None:
        self.units: set[tuple[int | None, int]] = set()
        self.readable = self.unreadable = self.bytes = 0
        self.max_fpp: float | None = None
        self.ndv: float | None = None
        self.untrusted: str | None = None
        self.only_nulls = False

    def add(self, facts: FilterFacts, units: Sequence[int]) -> None:
        """Count one filter. `units` is the number of row groups of each stripe."""
        self.bytes += facts.bitset_bytes or 0
        stripe = facts.stripe
        if facts.problem is not None:
            self.unreadable += 1
            whole = range(units[stripe]) if stripe is not None and stripe < len(units) else (facts.row_group,)
            self.units.update((stripe, group) for group in whole)
            return
        self.readable += 1
        self.units.add((stripe, facts.row_group))
        if facts.fpp is not None and (self.max_fpp is None or facts.fpp > self.max_fpp):
            self.max_fpp = facts.fpp
        ndv = facts.ndv_estimate
        if ndv is not None and (self.ndv is None or ndv > self.ndv):
            self.ndv = ndv
        if facts.untrusted is not None and self.untrusted is None:
            self.untrusted = facts.untrusted
        if facts.values == 0 and ndv and facts.untrusted is None:
            self.only_nulls = True


def summaries(
    file: FilterFile, columns: set[int] | None, filters: Iterable[tuple[int, FilterFacts]]
) -> tuple[ColumnSummary, ...]:
    """Summarize the columns (all if None). `filters` are pairs of a column's ordinal and a filter's facts."""
    by_column: dict[int, _Filters] = {}
    units = file.units() if file.stripes is not None else ()
    for index, facts in filters:
        column_filters = by_column.get(index)
        if column_filters is None:
            column_filters = by_column[index] = _Filters()
        column_filters.add(facts, units)
    nothing = _Filters()
    return tuple(
        _summary(facts, by_column.get(facts.column.index, nothing), file.row_group_count)
        for facts in file.column_facts(columns)
    )


def _summary(facts: ColumnFacts, filters: _Filters, row_groups: int) -> ColumnSummary:
    bounds, nulls = facts.bounds, facts.nulls
    if filters.untrusted == WRONG and (bounds.low is not None or bounds.high is not None):
        bounds = Bounds(problem=WRONG)
    elif filters.only_nulls:
        bounds, nulls = Bounds(problem=NOT_ONLY_NULLS + ", and a filter holds values"), None
    distinct: float | None = facts.distinct
    source = facts.distinct_from
    if distinct is None and filters.ndv and filters.untrusted is None:
        distinct, source = filters.ndv, "filter"
    return ColumnSummary(
        column=facts.column.path,
        physical=facts.column.physical,
        logical=facts.column.logical,
        encodings=facts.encodings,
        compression=facts.compression,
        values=facts.values,
        nulls=nulls,
        compressed_bytes=facts.compressed_bytes,
        uncompressed_bytes=facts.uncompressed_bytes,
        dictionary_bytes=facts.dictionary_bytes,
        distinct=distinct,
        distinct_from=source,
        min=_text(bounds.low, facts.typed),
        max=_text(bounds.high, facts.typed),
        min_exact=bounds.low_exact,
        max_exact=bounds.high_exact,
        no_bounds=bounds.problem,
        bucket=facts.bucket,
        row_groups_with_filter=len(filters.units),
        row_groups_without_filter=max(row_groups - len(filters.units), 0),
        filters=filters.readable,
        unreadable=filters.unreadable,
        bitset_bytes=filters.bytes,
        max_fpp=filters.max_fpp,
        untrusted=filters.untrusted,
        variant_path=facts.column.variant_path,
    )


def _text(bound: bytes | None, typed: Column) -> str | None:
    if bound is None:
        return None

    return render(bound, typed)
