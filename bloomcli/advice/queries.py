"""Reads logs of SQL queries: how often each column is looked up, and for which values.

docs/advice.md defines lookups. The table in question is the one that the files belong to: the tables that statements
read are counted.

A log of any length takes bounded memory: statements are read one after the other, and at most `MOST_LITERALS` values
of a column are kept.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.advice.lookups import LookupCounter, UnservedCounter
from bloomcli.errors import UsageError, near_names, needed
from bloomcli.model.file import Column
from bloomcli.model.queries import QueryLog
from bloomcli.storage.listing import expand
from bloomcli.storage.registry import open_source
from bloomcli.words import counted

with needed("query logs need", "advice"):
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect, Dialects
    from sqlglot.errors import SqlglotError

    from bloomcli.advice.sql.analysis import Analyser, Analysis, Unreadable
    from bloomcli.advice.sql.scopes import Name, Names
    from bloomcli.advice.sql.statements import beginning, statements


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
    if "/" not in name:
        try:
            table = exp.to_table(name, dialect=dialect)
        except (SqlglotError, ValueError):
            return (Name(name),)
        parts = tuple(map(Name.of, table.parts))
        if parts and all(part.text for part in parts):
            return parts
    return (Name(name),)


_EXAMPLES: Final = 5


def read_queries(
    paths: Sequence[str | os.PathLike[str]],
    *,
    dialect: str,
    tables: Sequence[str] = (),
    columns: Iterable[str | Column] | None = None,
    seed: int = 0,
) -> QueryLog:
    """Read logs of SQL queries.

    Args:
        paths: files, directories and patterns, local or in a store. Each file has statements that end in semicolons,
            or lines of JSON, each an object with a statement under the key ``query``.
        dialect: sqlglot's name of the SQL dialect: ``spark``, ``trino``, ``duckdb``, ``clickhouse``, ...
        tables: the names of the table in question in the statements, qualified or not. Without names, the statements
            must read a single table.
        columns: the leaf columns of the table. If they have types, comparisons that need a cast of the column aren't
            lookups. Without columns, each name in a statement counts as a column.
        seed: the seed of the sample of values, if a column has more than `MOST_LITERALS`.

    Raises:
        UsageError: the dialect is unknown; no statement can be read; the statements read several tables, and `tables`
            names none of them; a log isn't text.
        UnreadableError: a log can't be read.
    """
    sql_dialect = _dialect(dialect)
    log = _Log(sql_dialect, QueryTables(sql_dialect, tables), columns, seed)
    listed = expand([os.fspath(path) for path in paths])
    for item in listed:
        if item.problem is not None:
            raise item.problem
        log.read(item.path)
    return log.result(", ".join(os.fspath(path) for path in paths))


def _dialect(name: str) -> Dialect:
    """The dialect of sqlglot with this name. Raises UsageError for an unknown name."""
    known = sorted(found.value for found in Dialects if found.value)
    if name.lower() not in known:
        near = near_names(name.lower(), known)
        raise UsageError(
            f"no SQL dialect {name!r}" + (f"; did you mean {', '.join(near)}?" if near else ""),
            hint=f"the dialects are {', '.join(known)}",
        )
    return Dialect.get_or_raise(name.lower())


class _Log:
    """Reads the files of a log, and counts their lookups."""

    def __init__(
        self, dialect: Dialect, tables: QueryTables, columns: Iterable[str | Column] | None, seed: int
    ) -> None:
        names = Names(dialect, columns)
        self._dialect, self._tables = dialect, tables
        self._analyser = Analyser(dialect, names, tables.in_question)
        self._lookups = LookupCounter(names.types, random.Random(seed))  # noqa: S311  a sample, no secret
        self._unserved = UnservedCounter()
        self._statements = self._about = self._unreadable = 0
        self._examples: list[str] = []

    def read(self, path: str) -> None:
        """Read one file. Raises UsageError, UnreadableError."""
        with open_source(path) as source:
            for text, problem in statements(source, self._dialect):
                try:
                    if problem is not None:
                        raise Unreadable(problem)
                    self._count(self._analyser.analyse(text))
                except Unreadable:
                    self._statements += 1
                    self._unreadable += 1
                    if len(self._examples) < _EXAMPLES:
                        self._examples.append(problem if problem and not text else beginning(text))

    def _count(self, found: Analysis) -> None:
        self._statements += found.statements
        self._tables.count(found.tables)
        if not found.about:
            return
        self._about += found.about
        self._unserved.count(found.unserved)
        self._lookups.count(found.lookups, self._unserved)

    def result(self, paths: str) -> QueryLog:
        """The lookups of all files. Raises UsageError if no statement can be read, or if the table is ambiguous."""
        if self._statements == self._unreadable:
            few = counted(self._unreadable, "statement")
            raise UsageError(
                f"no statement of the log can be read ({few})" if self._unreadable else "the log has no statement",
                path=paths,
                hint="--dialect names the SQL dialect: spark, trino, duckdb, clickhouse, ...",
            )
        self._tables.check(paths, self._about)
        return QueryLog(
            statements=self._statements,
            about_table=self._about,
            unreadable=self._unreadable,
            unreadable_examples=tuple(self._examples),
            columns=self._lookups.result(),
            unserved=self._unserved.result(),
            tables=self._tables.counts(),
        )
