"""Decides whether a run of `validate` would find an earlier run's findings again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bloomcli.policy.globs import matches
from bloomcli.policy.policy import FilePolicy, Policy
from bloomcli.rules import RULES, When
from bloomcli.rules.reader_table import INTERVAL, ISSUE, WIDENED
from bloomcli.rules.readers import reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The rules, columns and values that a run checks."""

    policy: Policy
    columns: tuple[str, ...] = ()
    """Columns whose filters were checked; none means all."""
    exclude: tuple[str, ...] = ()
    """Columns that get no findings, even if another option names them."""
    require: tuple[str, ...] = ()
    """Columns that must have filters, in addition to those of the policy."""
    values: bool
    """Whether the run reads the values of every row group."""

    def covers(self, path: str, format: str | None, id: str, column: str | None) -> bool:  # noqa: A002  the file's, the rule's
        """Whether the run checks a rule in a column of a file."""
        rules = self.policy.for_file(path)
        if _among(column, self.exclude):
            return False
        if id == "filter-required":  # in all columns, even if the other checks are limited to some
            return _among(column, (*rules.required(), *self.require))
        if self.columns and not _among(column, self.columns):
            return False
        match RULES[id].when:
            case When.DEEP:
                return self.values
            case When.LIMIT:
                limits = rules.limits(column or "")
                return (limits.max_fpp if id == "filter-fpp" else limits.max_oversize) is not None
            case When.POLICY:
                return rules.advice
            case When.READERS:
                if id == INTERVAL and not rules.readers:
                    return self.values  # the file's footer itself names the reader
                return _by_readers(rules, format, id)
        return True


def _among(column: str | None, names: Iterable[str]) -> bool:
    return column is not None and matches(names, column)


def _by_readers(rules: FilePolicy, format: str | None, id: str) -> bool:  # noqa: A002  the file's, the rule's
    """Whether one of the named readers can break the rule."""
    named = [reader(name) for name in rules.readers]
    if id == "profit-dictionary":
        return rules.advice and bool(named) and all(who.dictionary for who in named)
    if id == WIDENED and rules.table is None:
        return False
    if id == ISSUE:
        return format is not None and any(who.issues_of(format) for who in named)
    return any(id in who.wrong_about and format in who.probes for who in named)
