"""Finds, before filters are added, the columns in which a reader would lose rows because of a sound filter.

Faults that depend on values don't matter here: `add` inserts both zeros, and intervals in their normal form too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from bloomcli import limits
from bloomcli.checks.readers import Fault, TypeFaults, lose, titles
from bloomcli.model.file import Column, Severity
from bloomcli.policy.policy import FilePolicy
from bloomcli.rules.filter_use import OVERLOOKED
from bloomcli.rules.reader_table import SINGLE_BLOCK, Reader
from bloomcli.rules.readers import everyone, evidence, evidence_text, named, superseded

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
        if self._rules.readers_given and columns:
            for who in self.who:
                for item, known in OVERLOOKED.items():
                    names = [c.name for c in columns if item in who.overlooks and item in properties(c)]
                    if names:
                        yield f"{who.title} isn't {known}: filters on {', '.join(names)} may do nothing for it"
                for issue in who.issues_of(self._format):
                    yield f"{who.title} may lose rows of files with filters ({evidence_text(issue)})"
