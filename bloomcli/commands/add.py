"""add: filters for chosen columns, without re-encoding the data.

Existing filters that meet a request are kept, so that a run can be repeated. An existing filter that doesn't meet it
is always an error.

A filter meets a request when it can be read, readers may use it, it is of the requested kind and variant, and it is
no larger than the cap. Its measured rate has to meet the requested one, unless the filter is as large as the largest
filter that the request allows for that column, so that no better one can be made. A default rate that the caller
didn't request doesn't apply to filters of other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from bloomcli.checks.additions import Readers, tight
from bloomcli.commands.change import ChangeRequest
from bloomcli.commands.columns import required_columns, select
from bloomcli.commands.options import AddOptions, WriteOptions, policy_of
from bloomcli.engine_filters.base import Rewrite
from bloomcli.engine_filters.registry import rewrite_of
from bloomcli.errors import FilterExists, NothingToFilter, NoValues, UsageError
from bloomcli.formats.add_options import for_old_readers, recorded_choices, refuse_foreign
from bloomcli.formats.base import ColumnSelection, FilterFile, Plan
from bloomcli.formats.size_rule import SizeRule, no_limit
from bloomcli.formats.table_names import why_missing
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.policy.policy import FilePolicy
from bloomcli.words import counted, plural


class Request(ChangeRequest):
    """Adds filters. The policy names the readers: columns in which a reader would lose rows get no filter."""

    options: AddOptions

    def __init__(
        self, options: WriteOptions, *, where_missing: bool = False, empty: Mapping[str, str] | None = None
    ) -> None:
        """Make the request for any file. Raises UsageError.

        Args:
            options: the options.
            where_missing: only chunks without a filter get one, as if the policy chooses the columns.
            empty: columns whose pages turned out to hold no value although their statistics count some, each with the
                reason why a glob leaves it out.
        """
        super().__init__(options)
        self.only_where_needed = not self.options.columns
        self._rule = self.options.size_rule()
        self._policy = policy_of(self.options)
        self._where_missing = where_missing or not self.options.columns
        self._empty = empty or {}

    def plan(self, file: FilterFile) -> Plan:
        """The change of one file. Raises UsageError."""
        chosen = self._chosen(file)
        _refuse(file, chosen, self._readers(file))
        replace = self.options.replace
        missing = self._where_missing and not replace
        refuse_foreign(self._rule.options, file.format, file.source.path)
        plan = file.plan_add(chosen, self._size_rule(file), replace=replace, missing=missing)
        return plan.with_left_out(chosen.left_out)

    def why_unchanged(self, file: FilterFile) -> str | None:
        """The reason why the file needs no change; None if it needs one. Raises FilterExists if a filter doesn't meet
        the options."""
        if has_no_rows(file):
            return "there are no rows to filter"
        try:
            chosen = self._chosen(file)
        except NothingToFilter as error:
            if not self.options.columns:
                return error.reason + (f" ({error.hint})" if error.hint else "")
            return error.reason if error.hint is None else f"no column can have a filter ({error.hint})"
        if self.options.replace:
            return None
        existing = existing_filters(file, chosen)
        limits = self._limits(file)
        rules = self._policy.for_file(file.source.path)
        rated = {
            c.index
            for c in chosen
            if limits(c.path) is not None and rules.counts("filter-fpp", Severity.ERROR, c.path)
        }
        sized = self.options.sized
        short = shortfall(
            file, chosen, self._size_rule(file), existing, has_to_meet_size=lambda key: sized or key[0] in rated
        )
        if short is not None:
            raise short
        return None if incomplete(file, chosen, existing) else "the columns have filters already"

    def is_result(self, file: FilterFile, output: FilterFile) -> bool:
        """Whether `output` is the file that these options make from `file`."""
        try:
            options, chosen = self.options, self._chosen(file)
        except NothingToFilter:
            return file.differs_only_in_filters(output, set())
        if not file.differs_only_in_filters(output, {c.index for c in chosen}):
            return False
        existing = existing_filters(output, chosen)
        if incomplete(output, chosen, existing):
            return False
        before = existing_filters(file, chosen) if options.replace or not options.sized else {}
        if options.replace and any(_bits(kinds) == _bits(existing.get(key)) for key, kinds in before.items()):
            return False  # may be the filter that had to be replaced

        def has_to_meet_size(key: ChunkKey) -> bool:
            return (
                options.sized or options.replace or key not in before
            )  # other writers may have made the source's filters

        return shortfall(output, chosen, self._size_rule(file), existing, has_to_meet_size) is None

    def without(self, error: NoValues) -> Request | None:
        """The same request without a column that has no values; None if the options name it."""
        if error.column in self._empty or error.column in self.options.columns:
            return None
        empty = {**self._empty, error.column: error.reason}
        return Request(self.options, where_missing=self._where_missing, empty=empty)

    def rewrite(self, file: FilterFile) -> Rewrite | None:
        """The file of an engine's filters beside the file, with new ones."""
        options = self.options
        if not options.replace:
            return None
        return rewrite_of(file, self._chosen(file), self._size_rule(file), folds=False, named=options.columns)

    def remarks(self, file: FilterFile) -> tuple[str, ...]:
        """Remarks for the user about the readers, and about columns that the file doesn't have."""
        chosen = self._chosen(file)
        lacking = (why_missing(chosen.missing_columns),) if chosen.missing_columns else ()
        others = [
            f"{column.name}: in {plural(len(why), 'row group')} a value that the filter doesn't have may still"
            f" be there: {next(iter(why.values()))}"
            for column in chosen
            if (why := file.other_types(column))
        ]
        return (
            *lacking,
            *others,
            *self._readers(file).remarks(chosen, self._rule.largest_split_block, file.properties),
        )

    def _readers(self, file: FilterFile) -> Readers:
        if for_old_readers(self._rule.options):  # a form for old readers implies who reads the file
            return Readers(file.format, FilePolicy(readers_given=True))
        return Readers(file.format, self._policy.for_file(file.source.path), file.encrypted_alike)

    def _chosen(self, file: FilterFile) -> ColumnSelection:
        readers = self._readers(file)

        def why_not(column: Column) -> str | None:
            return self._empty.get(column.path) or readers.why_not(file, column)

        options = self.options
        if not options.columns:
            return required_columns(file, self._policy, exclude=options.exclude, why_not=why_not)
        path, lacking = file.source.path, file.missing_columns
        chosen = select(
            file.leaves, options.columns, path=path, exclude=options.exclude, why_not=why_not, lacking=lacking
        )
        if chosen.missing_columns and not chosen:
            raise NothingToFilter(why_missing(chosen.missing_columns), path=path)
        return chosen

    def _size_rule(self, file: FilterFile) -> SizeRule:
        path = file.source.path
        return self._rule._replace(
            min_bytes=self._readers(file).smallest(),
            limit=self._limits(file),
            tight=tight(self._policy.for_file(path), file.format, path, self._rule.options),
        )

    def _limits(self, file: FilterFile) -> Callable[[str], float | None]:
        """The policy's highest rate for each column, unless the options give a rate."""
        if self.options.fpp is not None:
            return no_limit
        rules = self._policy.for_file(file.source.path)
        return lambda column: rules.limits(column).max_fpp


def _refuse(file: FilterFile, columns: Sequence[Column], readers: Readers) -> None:
    """Raise UsageError for a column in which a reader would lose rows."""
    for column in columns:
        refusal = readers.refusal(column)
        if refusal is not None:
            raise UsageError(
                f"column {column.path} gets no filter: {refusal.reason}", path=file.source.path, hint=refusal.hint
            )


def _bits(kinds: dict[str | None, FilterFacts] | None) -> list[tuple[int | None, float | None, float | None]]:
    """Figures that are the same for equal filters."""
    return [(f.bitset_bytes, f.fill, f.fpp) for f in (kinds or {}).values()]


ChunkKey = tuple[int, int | None, int]
"""Column ordinal, stripe, row group."""

Existing = dict[ChunkKey, dict[str | None, FilterFacts]]
"""The filters of each chunk by kind. Only ORC has two kinds. Of several filters of a kind, readers use the first."""


def has_no_rows(file: FilterFile) -> bool:
    """Whether the file has no rows to filter. (Without a row index, an ORC file has rows but no row groups.)"""
    return not file.row_group_count and not (file.stripes and file.rows)


def existing_filters(file: FilterFile, columns: Sequence[Column]) -> Existing:
    """Every filter of these columns that readers may use, read and measured. Other columns aren't read."""
    existing: Existing = {}
    for column in columns:
        for facts in file.facts({column.index}):
            key = (column.index, facts.stripe, facts.row_group)
            existing.setdefault(key, {}).setdefault(facts.encoding, facts)
    return existing


def incomplete(file: FilterFile, columns: Sequence[Column], existing: Existing) -> bool:
    """Whether a chunk of these columns has no filter."""
    filtered = {index for index, _, _ in existing}
    return not has_no_rows(file) and any(c.index not in filtered or file.without_filter(c) for c in columns)


def shortfall(
    file: FilterFile,
    columns: Sequence[Column],
    rule: SizeRule,
    existing: Existing,
    has_to_meet_size: Callable[[ChunkKey], bool],
) -> FilterExists | None:
    """The error about the first filter that doesn't meet the rule; None if all do.

    `has_to_meet_size` says whether the filter of a chunk has to meet the rule's rate, or its number of values.
    """

    @cache
    def largest() -> dict[tuple[int | None, int | None, str], int | None]:
        refuse_foreign(rule.options, file.format, file.source.path)
        plan = file.plan_add(columns, rule, replace=True)
        return {(c.stripe, c.row_group, c.column): c.bitset_bytes for c in plan.estimate}

    def largest_size(facts: FilterFacts) -> int | None:
        """Bytes of the largest filter that the rule makes for the chunk. Some formats have one size for a stripe."""
        sizes = largest()
        by_stripe = sizes.get((facts.stripe, None, facts.column))
        return sizes.get((facts.stripe, facts.row_group, facts.column), by_stripe)

    def too_small(facts: FilterFacts) -> str | None:
        fpp = rule.of(facts.column).fpp
        if rule.ndv is None and facts.fpp is not None and facts.fpp <= fpp:
            return None
        size = largest_size(facts)
        if size is not None and facts.bitset_bytes is not None and facts.bitset_bytes >= size:
            return None
        if rule.ndv is not None:
            take = "takes" if rule.ndv == 1 else "take"
            return f"it has {facts.bitset_bytes} bytes, {counted(rule.ndv, 'value')} {take} {size}"
        return f"its false-positive rate is {facts.fpp:.3g}, {fpp:g} is requested"

    by_index = {c.index: c for c in columns}
    for key, kinds in existing.items():
        first = next(iter(kinds))
        kind = rule.choice("kind")
        wanted = file.encodings(by_index[key[0]], kind)
        if kind is None and wanted[0] not in kinds:
            wanted = (first,)
        for encoding in wanted:
            if encoding not in kinds:
                return _error(file, kinds[first], f"there is no {encoding} stream")
            used = kinds[encoding]
            why = _unfit(used, rule) or (too_small(used) if has_to_meet_size(key) else None)
            if why is not None:
                return _error(file, used, why)
    return None


def _unfit(facts: FilterFacts, rule: SizeRule) -> str | None:
    """Return the reason, other than its rate, why a filter doesn't meet the rule; None if it does."""
    if facts.problem is not None:
        return f"it can't be read ({facts.problem})"
    chosen = recorded_choices(rule.options)
    recorded = {name: value for name in chosen if (value := getattr(facts, name)) is not None}
    for name, value in recorded.items():
        if value != chosen[name]:
            return f"its {name} is {value}, {chosen[name]} is requested"
    if facts.untrusted is not None and not recorded:
        return f"readers must not use it ({facts.untrusted})"
    if rule.max_bytes is not None and (facts.bitset_bytes or 0) > rule.max_bytes:
        return f"it has {facts.bitset_bytes} bytes, at most {rule.max_bytes} are requested"
    return None


def _error(file: FilterFile, facts: FilterFacts, why: str) -> FilterExists:
    where = f"stripe {facts.stripe}" if facts.stripe is not None else f"row group {facts.row_group}"
    return FilterExists(
        f"column {facts.column} has a filter in {where} that doesn't meet the request: {why}",
        path=file.source.path,
        offset=facts.offset,
        hint="--replace builds new ones in place of all existing ones",
    )
