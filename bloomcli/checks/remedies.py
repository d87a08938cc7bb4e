"""What a finding's hint says if its command line can't work on this file, or would break the policy's other rules.

The code that finds a fault doesn't know whether the column can have another filter. `bloom add` refuses columns of
some types, unreadable ones, those in which a reader would lose rows, and files that can't be changed at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from bloomcli.checks.additions import Readers
from bloomcli.formats.base import FilterFile
from bloomcli.hints import Hint, removing
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.policy.globs import matches
from bloomcli.policy.policy import FilePolicy


class Remedies:
    """The hints of a file's findings.

    Args:
        file: the open file.
        rules: the policy for the file.
        required: names and globs of the columns that must have a filter.
    """

    def __init__(self, file: FilterFile, rules: FilePolicy, required: Sequence[str]) -> None:
        self._file = file
        self._rules = rules
        self._required = required
        self._columns = {column.path: column for column in file.columns}
        self._why_not = lru_cache(maxsize=None)(self._reason)

    def of(self, finding: Finding) -> str | None:
        """The finding's hint, not yet `hints.completed`, with another command line if its own can't work."""
        hint, name = finding.hint, finding.column
        if not isinstance(hint, Hint):
            return hint
        if self._file.unchangeable is not None:
            return f"{self._file.unchangeable.reason}: {self._file.unchangeable.hint}"
        if name is None:
            return hint
        if name not in self._columns:
            return removing(
                after=" takes it out, with all others of the file, which may belong to other columns, too"
            )
        if "--replace" in hint.command.options and (reason := self._why_not(name)) is not None:
            hint = removing(name, after=f" takes it out; the column gets no other: {reason}")
        if hint.command.name == "remove" and self._is_required(name):
            return hint.preceded_by("take the column out of `require`, which asks for the filter; then ")
        return hint

    def _reason(self, name: str) -> str | None:
        """Why `bloom add` refuses the column."""
        index = self._columns[name].index
        column = next((leaf for leaf in self._file.leaves if leaf.index == index), None)
        if column is None:
            return "it has no values of its own"
        refusal = Readers(self._file.format, self._rules, self._file.encrypted_alike).refusal(column)
        return column.unfilterable or (self._file.why_unfilterable(column) if refusal is None else refusal.reason)

    def _is_required(self, name: str) -> bool:
        return matches(self._required, name) and self._rules.counts("filter-required", Severity.ERROR, name)
