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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bloomcli.errors import LiteralError, UsageError, near_names, needed
from bloomcli.model.advice import QueriedColumn, QueryLog, UnservedPredicate
from bloomcli.model.file import Column
from bloomcli.storage.listing import expand
from bloomcli.storage.registry import open_source
from bloomcli.values.literals import kind_of, parse
from bloomcli.words import counted

with needed("query logs need", "advice"):
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect, Dialects
    from sqlglot.errors import SqlglotError

    from bloomcli.advice.sql.reading import StatementReader, Unreadable, read_text
    from bloomcli.advice.sql.scopes import Name, Names
    from bloomcli.advice.sql.statements import beginning, example, statements
    from bloomcli.values.sql_constants import Value


Parts = tuple[Name, ...]

MOST_LITERALS: Final = 10_000
"""The most distinct values of a column that are kept."""
_MOST_COLUMNS: Final = 10_000
_MOST_TABLES: Final = 10_000
"""The most distinct tables that are counted, so that a log with random table names takes bounded memory."""
_SHOWN: Final = 10
_REPORTED: Final = 100
_EXAMPLES: Final = 5
_TEXTS: Final = {"STRING", "ENUM", "JSON"}


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
    log = _Log(Names(_dialect(dialect), columns), tables, seed)
    for item in expand([os.fspath(path) for path in paths]):
        if item.problem is not None:
            raise item.problem
        log.read(item.path)
    return log.result(", ".join(os.fspath(path) for path in paths))


def _dialect(name: str) -> Dialect:
    """The dialect of sqlglot with this name. Raises UsageError for an unknown name."""
    dialects = sorted(dialect.value for dialect in Dialects if dialect.value)
    if name.lower() not in dialects:
        near = near_names(name.lower(), dialects)
        raise UsageError(
            f"no SQL dialect {name!r}" + (f"; did you mean {', '.join(near)}?" if near else ""),
            hint=f"the dialects are {', '.join(dialects)}",
        )
    return Dialect.get_or_raise(name.lower())


class QueryTables:
    """Counts the tables of a log, and identifies the table in question.

    Args:
        names: compares names by the rules of the dialect.
        named: the names of the table; if empty, the table is the first one that a statement reads, and `check` fails
            if there are others.
    """

    def __init__(self, names: Names, named: Sequence[str]) -> None:
        self._names = names
        self._named = [_parsed(name, names.dialect) for name in named]
        self._table_names = tuple(named)
        self._first: Parts | None = None
        self._others = False
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._spelled: dict[tuple[str, ...], str] = {}

    def in_question(self, parts: Parts) -> bool:
        """Whether a name is the table in question. Qualified and unqualified names match: `orders`, `db.orders`."""
        if not parts:
            return False
        if self._table_names:
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
        if not self._table_names and self._others:
            raise UsageError(
                f"the statements read several tables: {listed}", path=paths, hint=f"--table-name {tables[0]}"
            )
        if not about:
            table_names = ", ".join(self._table_names)
            raise UsageError(
                f"no statement of the log reads {table_names}; they read {listed}",
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


class LiteralSample:
    """The looked-up values of a column: all of them, or a uniform random sample of the lookups.

    Up to `most` distinct values are counted exactly. After that, the sample has `most` lookups: each further lookup
    replaces a random one with the probability that keeps the sample uniform (Vitter's algorithm R, ACM Transactions
    on Mathematical Software 11, 1985).
    """

    def __init__(self, rng: random.Random, most: int = MOST_LITERALS) -> None:
        self._random, self._most = rng, most
        self._counts: Counter[str] = Counter()
        self._drawn: list[str] | None = None
        self._lookups = 0

    def add(self, text: str) -> None:
        """Add the value of one lookup."""
        self._lookups += 1
        if self._drawn is None:
            self._counts[text] += 1
            if len(self._counts) > self._most:
                self._drawn = self._random.sample(list(self._counts), self._most, counts=list(self._counts.values()))
                self._counts.clear()
        else:
            place = self._random.randrange(self._lookups)
            if place < self._most:
                self._drawn[place] = text

    @property
    def sampled(self) -> bool:
        """Whether there were more distinct values than are kept."""
        return self._drawn is not None

    def values(self) -> tuple[tuple[str, int], ...]:
        """The values with their counts, the most frequent first."""
        counts = self._counts if self._drawn is None else Counter(self._drawn)
        return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass
class _Column:
    """The counts of one column."""

    values: LiteralSample
    lookups: int = 0
    statements: int = 0
    unknown: int = 0
    """Lookups whose value isn't in the statement."""


class _Log:
    """Reads the files of a log, and counts their lookups."""

    def __init__(self, names: Names, tables: Sequence[str], seed: int) -> None:
        self._names, self._tables = names, QueryTables(names, tables)
        self._random = random.Random(seed)  # noqa: S311  a sample, no secret
        self._columns: dict[str, _Column] = {}
        self._unserved: Counter[tuple[str, str | None]] = Counter()
        self._unserved_examples: dict[tuple[str, str | None], str] = {}
        self._statements = self._about = self._unreadable = 0
        self._examples: list[str] = []

    def read(self, path: str) -> None:
        """Read one file. Raises UsageError, UnreadableError."""
        with open_source(path) as source:
            for text, problem in statements(source, self._names.dialect):
                try:
                    if problem is not None:
                        raise Unreadable(problem)
                    readers = read_text(text, self._names, self._tables.in_question)
                except Unreadable:
                    self._statements += 1
                    self._unreadable += 1
                    if len(self._examples) < _EXAMPLES:
                        self._examples.append(problem if problem and not text else beginning(text))
                else:
                    self._count(readers)

    def _count(self, readers: Sequence[StatementReader]) -> None:
        """Count the tables of the statements of a text and, if one of them is about the table in question, their
        predicates."""
        self._statements += len(readers)
        for reader in readers:
            self._tables.count(dict.fromkeys(filter(None, reader.tables)))
        about = sum(any(map(self._tables.in_question, reader.tables)) for reader in readers)
        self._about += about
        for reader in readers if about else ():
            for kind, column, node in reader.unserved:
                self._count_unserved(kind, column, node)
            self._count_lookups(reader)

    def _count_unserved(self, kind: str, column: str | None, node: exp.Expr | str) -> None:
        """Count a predicate that no filter serves, given as a node or as a text."""
        key = (kind, column)
        if key in self._unserved or len(self._unserved) < _MOST_COLUMNS:
            self._unserved[key] += 1
            if key not in self._unserved_examples:  # to format SQL takes longer than to parse it
                text = node if isinstance(node, str) else example(node, self._names.dialect)
                self._unserved_examples[key] = text

    def _count_lookups(self, statement: StatementReader) -> None:
        """Count the lookups of a statement. Predicates that need a cast of the column count as unserved."""
        looked_up = set()
        for path, values in statement.lookups:
            if path not in self._columns and len(self._columns) >= _MOST_COLUMNS:
                continue
            column = self._columns.setdefault(path, _Column(LiteralSample(self._random)))
            typed = self._names.types.get(path)
            for value in values:
                if value is not None and typed is not None and _casts(typed, value):
                    self._count_unserved("expression", path, f"{path} = ?")
                    continue
                looked_up.add(path)
                column.lookups += 1
                if value is None:
                    column.unknown += 1
                else:
                    column.values.add(_text(value, typed))
        for path in looked_up:
            self._columns[path].statements += 1

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
            columns=tuple(self._queried()),
            unserved=tuple(
                UnservedPredicate(
                    kind=kind, column=column, count=count, example=self._unserved_examples[kind, column]
                )
                for (kind, column), count in sorted(
                    self._unserved.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "")
                )
            ),
            tables=self._tables.counts(),
        )

    def _queried(self) -> Iterator[QueriedColumn]:
        """Yield the columns that are looked up, those with the most lookups first."""
        columns = [(path, column) for path, column in self._columns.items() if column.lookups]
        for path, column in sorted(columns, key=lambda item: (-item[1].lookups, item[0])):
            yield QueriedColumn(
                column=path,
                lookups=column.lookups,
                statements=column.statements,
                without_literal=column.unknown,
                literals=column.values.values(),
                sampled=column.values.sampled,
            )


def _casts(column: Column, value: Value) -> bool:
    """Whether engines compare with a cast of the column: a text column is compared with a number or a date, or the
    value isn't one of the column's type, such as ``'n/a'`` for a number."""
    texts = kind_of(column) in _TEXTS or (column.physical == "BYTE_ARRAY" and column.logical is None)
    if texts:
        return value.kind in {"number", "time", "boolean"}
    try:
        parse(_text(value, column), column)
    except LiteralError:
        return True
    return False


def _text(value: Value, column: Column | None) -> str:
    """The value as `bloom probe` accepts it for the column."""
    binary = column is not None and column.logical is None and column.physical.endswith("BYTE_ARRAY")
    if binary and value.kind == "text" and value.text[:2].lower() == "0x":  # the text, not bytes in hex
        return f"0x{value.text.encode('utf-8', 'surrogateescape').hex()}"
    return value.text
