"""Filters that aren't there yet: in which columns a reader would lose rows by them, sound as they would be.

What depends on values is no matter of `add`: it inserts both zeros, and intervals in their normal form too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bloomcli import limits
from bloomcli.checks.reader_faults import Fault, TypeFaults, lose, titles
from bloomcli.model.file import Column, Finding, Severity
from bloomcli.policy.policy import FilePolicy
from bloomcli.rules.reader_types import SINGLE_BLOCK, Reader
from bloomcli.rules.readers import everyone, evidence, named, superseded, told

_OFTEN_NAMED: Final = ("spark", "trino", "duckdb", "clickhouse")
_OFFERED: Final = 2


class Refusal(NamedTuple):
    """Why a column gets no filter."""

    reason: str
    hint: str


class Readers:
    """Who reads a file, as far as filters that are to be added go."""

    def __init__(self, file_format: str, rules: FilePolicy) -> None:
        """`rules`: who reads the file, the table's types, and which rules are switched off. Where no reader is named,
        all are meant that read the file as it is; those that read it through a table, where its schema is given."""
        self._rules = rules
        self._format = file_format
        self.who = (
            named(rules.readers, file_format)
            if rules.readers_said
            else everyone(file_format, tables=rules.table is not None)
        )
        self._faults = TypeFaults(file_format, self.who, rules.table)
        old = [] if rules.readers_said else superseded(file_format)
        self._old_faults = TypeFaults(file_format, old, rules.table)

    def refusal(self, column: Column) -> Refusal | None:
        """Why a filter on the column would lose rows; None where it doesn't."""
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

    def _counts(self, fault: Fault, column: Column) -> bool:
        finding = Finding(id=fault.rule, severity=fault.severity, message=fault.message, column=column.path)
        return self._rules.judge(finding).counts

    def smallest(self) -> int:
        """Bytes of the smallest filter that all of them look values up in rightly."""
        return limits.FILTER_MIN_BYTES * (2 if self._of_two_blocks() else 1)

    def _of_two_blocks(self) -> list[Reader]:
        finding = Finding(id=SINGLE_BLOCK, severity=Severity.ERROR, message="")
        if not self._rules.judge(finding).counts:
            return []
        return [who for who in self.who if SINGLE_BLOCK in who.wrong_about]

    def remarks(self, columns: Sequence[Column], largest: int) -> Iterator[str]:
        """What is to be known of filters on these columns that is no reason against them.

        Args:
            columns: those that get a filter.
            largest: bytes of the largest filter that is wanted.
        """
        if columns and largest < self.smallest():
            wrong = self._of_two_blocks()
            yield (
                f"{titles(wrong)} {lose(wrong)} rows by filters of one block, which this cap asks for"
                f" [{SINGLE_BLOCK}] ({evidence(SINGLE_BLOCK, wrong)})"
            )
        seen: dict[tuple[str, str], tuple[Fault, list[str]]] = {}
        for column in columns:
            for fault in self._old_faults.of(column):
                if self._counts(fault, column):
                    seen.setdefault((fault.rule, titles(fault.wrong)), (fault, []))[1].append(column.path)
        for fault, paths in seen.values():
            yield (
                f"{titles(fault.wrong)} {lose(fault.wrong)} rows by the filters on {', '.join(paths)} [{fault.rule}]"
                f" ({evidence(fault.rule, fault.wrong)})"
            )
        if self._rules.readers_said and columns:
            for who in self.who:
                for issue in who.issues_of(self._format):
                    yield f"{who.title} may lose rows of files with filters ({told(issue)})"
