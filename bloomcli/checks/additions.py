"""What `add` may do for the readers of a file: the columns that get a filter, and the sizes of filters.

A column gets none if a reader would lose rows because of a sound filter. Faults that depend on values don't matter
here: `add` inserts both zeros, and intervals in their normal form too. Sizes that aren't powers of two need readers
that all accept them. The hints of findings follow from both (`Remedies`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from bloomcli import limits
from bloomcli.checks.readers import Fault, TypeFaults, lose, titles
from bloomcli.errors import UsageError
from bloomcli.formats.add_options import for_old_readers
from bloomcli.formats.base import FilterFile
from bloomcli.formats.format import NO_OPTIONS, OptionValues, Sizes
from bloomcli.formats.registry import format_named
from bloomcli.hints import Hint, removing
from bloomcli.model.file import TIGHT, Column, Severity
from bloomcli.model.validate import Finding
from bloomcli.policy.globs import matches
from bloomcli.policy.policy import FilePolicy, Policy
from bloomcli.rules.reader_table import NOT_POWER_OF_TWO, SINGLE_BLOCK, Reader
from bloomcli.rules.readers import (
    OVERLOOKED,
    any_size_refusal,
    everyone,
    evidence,
    evidence_text,
    named,
    reader,
    refusing,
    superseded,
)

_OFTEN_NAMED: Final = ("spark", "trino", "duckdb", "clickhouse")
_OFFERED: Final = 2


class Refusal(NamedTuple):
    """Why a column gets no filter."""

    reason: str
    hint: str


class Readers:
    """The readers of a file, and their faults in filters that `add` would write."""

    def __init__(self, file_format: str, rules: FilePolicy, encrypted: Collection[int] = frozenset()) -> None:
        """`rules` contains the readers, the table's types, and the rules that are switched off. `encrypted`: as
        `FilterFile.encrypted_alike`.

        If it names no reader, all known readers count; readers of tables only if the table's schema is given.
        """
        self._rules = rules
        self._format = file_format
        self.who = (
            named(rules.readers, file_format)
            if rules.readers_given
            else everyone(file_format, tables=rules.table is not None)
        )
        self._faults = TypeFaults(file_format, self.who, rules.table, encrypted)
        old = [] if rules.readers_given else superseded(file_format)
        self._old_faults = TypeFaults(file_format, old, rules.table)

    def refusal(self, column: Column) -> Refusal | None:
        """Why a reader would lose rows because of a filter on the column; None if no reader would."""
        faults = [fault for fault in self._faults.of(column) if self._counts(fault, column)]
        if not faults:
            return None
        first = faults[0]
        wrong = {who.name for fault in faults for who in fault.wrong}
        others = [name for name in _OFTEN_NAMED if name not in wrong][:_OFFERED]
        return Refusal(
            reason=f"{first.message} [{first.rule}] ({evidence(first.rule, first.wrong)})",
            hint=f"`--readers {','.join(others)}` or the like says that {titles(first.wrong)}"
            f" {'does' if len(first.wrong) == 1 else 'do'}n't read the file; `bloom validate --explain {first.rule}`"
            " says more",
        )

    def why_not(self, file: FilterFile, column: Column) -> str | None:
        """Why the column gets no filter: a reader would lose rows, or the file itself allows none; None if it may."""
        refusal = self.refusal(column)
        return file.why_unfilterable(column) if refusal is None else refusal.reason

    def _counts(self, fault: Fault, column: Column) -> bool:
        return self._rules.counts(fault.rule, fault.severity, column.path)

    def smallest(self) -> int:
        """Bytes of the smallest filter in which all readers look values up correctly."""
        return limits.FILTER_MIN_BYTES * (2 if self._of_two_blocks() else 1)

    def _of_two_blocks(self) -> list[Reader]:
        if not self._rules.counts(SINGLE_BLOCK, Severity.ERROR):
            return []
        return [who for who in self.who if SINGLE_BLOCK in who.wrong_about]

    def remarks(
        self,
        columns: Sequence[Column],
        largest: int,
        properties: Callable[[Column], Collection[str]] = lambda _: (),
    ) -> Iterator[str]:
        """Yield remarks about filters on these columns that aren't reasons to leave the columns out.

        Args:
            columns: columns that get a filter.
            largest: bytes of the largest filter that may be written.
            properties: `FilterFile.properties`.
        """
        if columns and largest < self.smallest():
            wrong = self._of_two_blocks()
            yield (
                f"{titles(wrong)} {lose(wrong)} rows by filters of one block, which this cap requires"
                f" [{SINGLE_BLOCK}] ({evidence(SINGLE_BLOCK, wrong)})"
            )
        losses: dict[tuple[str, str], tuple[Fault, list[str]]] = {}
        for column in columns:
            for fault in self._old_faults.of(column):
                if self._counts(fault, column):
                    losses.setdefault((fault.rule, titles(fault.wrong)), (fault, []))[1].append(column.path)
        for fault, paths in losses.values():
            yield (
                f"{titles(fault.wrong)} {lose(fault.wrong)} rows by the filters on {', '.join(paths)} [{fault.rule}]"
                f" ({evidence(fault.rule, fault.wrong)})"
            )
        if self._rules.readers_given and columns:
            for who in self.who:
                for item, ability in OVERLOOKED.items():
                    names = [c.name for c in columns if item in who.overlooks and item in properties(c)]
                    if names:
                        yield f"{who.title} isn't {ability}: filters on {', '.join(names)} may do nothing for it"
                for issue in who.issues_of(self._format):
                    yield f"{who.title} may lose rows of files with filters ({evidence_text(issue)})"


_NOBODY = f"--size {TIGHT} needs the names of the files' readers, because some readers accept only powers of two"
_NAMING = "--readers spark,duckdb or the like, or readers in the policy"


def tight(rules: FilePolicy, file_format: str, path: str, options: OptionValues = NO_OPTIONS) -> bool:
    """Return whether a file's filters get tight sizes: they are requested, and the format rounds sizes otherwise.

    Args:
        rules: the file's policy, with its readers and the requested size.
        file_format: as in `FilterFile.format`.
        path: the file's path, for errors.
        options: options of single formats.

    Raises:
        UsageError: tight sizes are requested, but no reader is named, a named reader isn't known to accept them, or
            the format allows only powers of two.
    """
    sizes = format_named(file_format).sizes
    if rules.size != TIGHT or sizes is Sizes.OWN:
        return False
    if sizes is Sizes.POWERS_OF_TWO or for_old_readers(options):
        what = "this form of filters" if sizes is Sizes.ANY else format_named(file_format).title
        raise UsageError(f"{what} allows only powers of two", path=path, hint=f"leave --size {TIGHT} out")
    if not rules.readers:
        raise UsageError(_NOBODY, path=path, hint=_NAMING)
    for name in rules.readers:
        refusal = any_size_refusal(reader(name), file_format)
        if refusal is not None:
            raise UsageError(
                f"--size {TIGHT} makes filters whose size isn't a power of two: {refusal}",
                path=path,
                hint=f"leave --size {TIGHT} out, or {name} out of the readers if it doesn't read the file",
            )
    return True


def refuse_without_readers(policy: Policy) -> None:
    """Raise UsageError if a policy requests tight sizes and names no reader in any part."""
    parts = (policy.whole, *policy.files)
    if any(part.size == TIGHT for part in parts) and not any(part.readers for part in parts):
        raise UsageError(_NOBODY, path=policy.path, hint=_NAMING)


def by_readers(findings: Iterable[Finding], rules: FilePolicy, file_format: str) -> Iterator[Finding]:
    """Yield the findings. Those about sizes that aren't powers of two name the readers that refuse or misread them.

    If all named readers accept such filters, these findings are dropped, unless the policy sets a severity for the
    rule. If a named reader misreads them and so loses rows, they are errors.
    """
    readers = [reader(name) for name in rules.readers]
    refusals = [text for who in readers if (text := any_size_refusal(who, file_format)) is not None]
    loses = any(NOT_POWER_OF_TWO in who.misreads for who in readers)
    for finding in findings:
        if finding.id != NOT_POWER_OF_TWO:
            yield finding
        elif refusals:
            severity = Severity.ERROR if loses else finding.severity
            yield replace(finding, message=f"{finding.message}: {'; '.join(refusals)}", severity=severity)
        elif not readers or NOT_POWER_OF_TWO in rules.severity:
            yield replace(finding, message=f"{finding.message}: {refusing(NOT_POWER_OF_TWO)}")


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
        if hint.command.name == "add" and (reason := self._why_not(name)) is not None:
            if "--replace" not in hint.command.options:
                return f"the column can't have a filter ({reason}): don't require it, or switch the rule off for it"
            hint = removing(name, after=f" takes it out; the column gets no other: {reason}")
        if hint.command.name == "remove" and self._is_required(name):
            return hint.preceded_by("take the column out of `require`, which asks for the filter; then ")
        return hint

    def _reason(self, name: str) -> str | None:
        """Why `bloom add` refuses the column."""
        column = self._columns[name]
        if (reason := self._file.why_not_added(column)) is not None:
            return reason
        refusal = Readers(self._file.format, self._rules, self._file.encrypted_alike).refusal(column)
        return None if refusal is None else refusal.reason

    def _is_required(self, name: str) -> bool:
        return matches(self._required, name) and self._rules.counts("filter-required", Severity.ERROR, name)
