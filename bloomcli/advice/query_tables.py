"""Counts the tables that statements read, and identifies the table in question: the one that the files belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from bloomcli.advice.sql.names import Name, Names
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

Parts = tuple[Name, ...]

_MOST_TABLES: Final = 10_000
"""The most distinct tables that are counted, so that a log with random table names takes bounded memory."""
_SHOWN: Final = 10
_REPORTED: Final = 100


class QueryTables:
    """Counts the tables of a log, and identifies the table in question.

    Args:
        dialect: the dialect, which decides how names are compared.
        named: the names of the table; if empty, the table is the first one that a statement reads, and `check` fails
            if there are others.
    """

    def __init__(self, dialect: Dialect, named: Sequence[str]) -> None:
        self._names = Names(dialect, None)
        self._named = [_parsed(name, dialect) for name in named]
        self._given = tuple(named)
        self._first: Parts | None = None
        self._others = False
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._spelled: dict[tuple[str, ...], str] = {}

    def in_question(self, parts: Parts) -> bool:
        """Whether a name is the table in question. Qualified and unqualified names match: `orders`, `db.orders`."""
        if not parts:
            return False
        if self._given:
            return any(self._same(parts, name) for name in self._named)
        if self._first is None:
            self._first = parts
        if not self._same(parts, self._first):
            self._others = True
            return False
        if len(parts) > len(self._first):
            self._first = parts
        return True

    def _same(self, a: Parts, b: Parts) -> bool:
        length = min(len(a), len(b))
        return all(self._names.same(x, y) for x, y in zip(a[-length:], b[-length:], strict=True))

    def count(self, tables: Iterable[Parts]) -> None:
        """Count the tables of a statement."""
        for parts in tables:
            key = tuple(map(self._names.key, parts))
            if key in self._counts or len(self._counts) < _MOST_TABLES:
                self._counts[key] += 1
                self._spelled.setdefault(key, ".".join(name.text for name in parts))

    def check(self, paths: str, about: int) -> None:
        """Raise UsageError if the table in question is ambiguous, or if no statement reads it."""
        tables = [name for name, _ in self.counts()]
        listed = ", ".join(tables[:_SHOWN]) + (", ..." if len(tables) > _SHOWN else "")
        if not tables:
            raise UsageError("no statement of the log reads a table", path=paths)
        if not self._given and self._others:
            raise UsageError(
                f"the statements read several tables: {listed}", path=paths, hint=f"--table-name {tables[0]}"
            )
        if not about:
            given = ", ".join(self._given)
            raise UsageError(
                f"no statement of the log reads {given}; they read {listed}",
                path=paths,
                hint=f"--table-name {tables[0]}",
            )

    def counts(self) -> tuple[tuple[str, int], ...]:
        """The tables that most statements read, each with the number of statements."""
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple((self._spelled[key], count) for key, count in ranked[:_REPORTED])


def _parsed(name: str, dialect: Dialect) -> Parts:
    """The parts of a table name that a user wrote; a path has a single part."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if "/" not in name:
        try:
            table = exp.to_table(name, dialect=dialect)
        except (SqlglotError, ValueError):
            return (Name(name, quoted=False),)
        parts = tuple(Name(part.name, bool(part.args.get("quoted"))) for part in table.parts)
        if parts and all(part.text for part in parts):
            return parts
    return (Name(name, quoted=False),)
