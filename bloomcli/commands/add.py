"""add: filters for chosen columns, without re-encoding the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bloomcli.checks.additions import Readers
from bloomcli.checks.sizes import tight
from bloomcli.commands.change import ChangeRequest, change, target_of
from bloomcli.commands.columns import required_columns, select
from bloomcli.commands.existing_filters import ChunkKey, existing_filters, has_no_rows, incomplete, shortfall
from bloomcli.commands.options import AddOptions, policy_of
from bloomcli.commands.progress import Progress
from bloomcli.errors import NothingToFilter, NoValues, UsageError
from bloomcli.formats.add_options import for_old_readers, refuse_foreign
from bloomcli.formats.base import ColumnSelection, FilterFile, Plan
from bloomcli.formats.size_rule import SizeRule, no_limit
from bloomcli.formats.table_names import why_missing
from bloomcli.model.change import ChangeReport
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.policy.policy import FilePolicy, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class _AddRequest:
    """The request of `add`, for any file. The policy names the readers: columns in which a reader would lose rows get
    no filter."""

    options: AddOptions
    rule: SizeRule
    policy: Policy
    where_missing: bool
    empty: Mapping[str, str] = field(default_factory=dict)
    """Columns whose pages turned out to hold no value although their statistics count some, each with the reason why
    a glob leaves it out."""

    def plan(self, file: FilterFile) -> Plan:
        """The change of one file. Raises UsageError."""
        chosen = self._chosen(file)
        _refuse(file, chosen, self._readers(file))
        replace = self.options.replace
        missing = self.where_missing and not replace
        refuse_foreign(self.rule.options, file.format, file.source.path)
        return file.plan_add(chosen, self._size_rule(file), replace=replace, missing=missing)

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
        rules = self.policy.for_file(file.source.path)
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
        if options.replace and any(_bits(found) == _bits(existing.get(key)) for key, found in before.items()):
            return False  # may be the filter that had to be replaced

        def has_to_meet_size(key: ChunkKey) -> bool:
            return (
                options.sized or options.replace or key not in before
            )  # other writers may have made the source's filters

        return shortfall(output, chosen, self._size_rule(file), existing, has_to_meet_size) is None

    def remarks(self, file: FilterFile) -> tuple[str, ...]:
        """Remarks for the user about the readers, and about columns that the file doesn't have."""
        chosen = self._chosen(file)
        lacking = (why_missing(chosen.missing_columns),) if chosen.missing_columns else ()
        return (*lacking, *self._readers(file).remarks(chosen, self.rule.largest_split_block))

    def _readers(self, file: FilterFile) -> Readers:
        if for_old_readers(self.rule.options):  # a form for old readers implies who reads the file
            return Readers(file.format, FilePolicy(readers_given=True))
        return Readers(file.format, self.policy.for_file(file.source.path))

    def _chosen(self, file: FilterFile) -> ColumnSelection:
        readers = self._readers(file)

        def why_not(column: Column) -> str | None:
            refusal = readers.refusal(column)
            if column.path in self.empty:
                return self.empty[column.path]
            return file.why_unfilterable(column) if refusal is None else refusal.reason

        options = self.options
        if not options.columns:
            return required_columns(file, self.policy, exclude=options.exclude, why_not=why_not)
        path, lacking = file.source.path, file.missing_columns
        chosen = select(
            file.leaves, options.columns, path=path, exclude=options.exclude, why_not=why_not, lacking=lacking
        )
        if chosen.missing_columns and not chosen:
            raise NothingToFilter(why_missing(chosen.missing_columns), path=path)
        return chosen

    def _size_rule(self, file: FilterFile) -> SizeRule:
        path = file.source.path
        return self.rule._replace(
            min_bytes=self._readers(file).smallest(),
            limit=self._limits(file),
            tight=tight(self.policy.for_file(path), file.format, path, self.rule.options),
        )

    def _limits(self, file: FilterFile) -> Callable[[str], float | None]:
        """The policy's highest rate for each column, unless the options give a rate."""
        if self.options.fpp is not None:
            return no_limit
        rules = self.policy.for_file(file.source.path)
        return lambda column: rules.limits(column).max_fpp


def request(options: AddOptions, *, where_missing: bool = False) -> ChangeRequest:
    """Make the request for any file. Raises UsageError.

    With `where_missing`, or if the policy chooses the columns, only chunks without a filter get one.
    """
    options = options.checked()
    by_policy = not options.columns
    add_request = _AddRequest(
        options=options,
        rule=options.size_rule(),
        policy=policy_of(options),
        where_missing=where_missing or by_policy,
    )
    return _change_request(add_request)


def _change_request(request: _AddRequest) -> ChangeRequest:
    def without(error: NoValues) -> ChangeRequest | None:
        if error.column in request.empty or error.column in request.options.columns:
            return None
        return _change_request(replace(request, empty={**request.empty, error.column: error.reason}))

    return ChangeRequest(
        command="add",
        plan=request.plan,
        why_unchanged=request.why_unchanged,
        is_result=request.is_result,
        remarks=request.remarks,
        without=without,
        only_where_needed=not request.options.columns,
        names=request.options.names,
    )


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


def run(path: str | os.PathLike[str], options: AddOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file. Raises: as `add`."""
    return change(path, request(options), target_of(options), threads=options.threads, progress=progress)
