"""Reads logs of SQL queries: how often each column is looked up, and for which values. docs/advice.md defines
lookups.

A log of any length takes bounded memory: statements are read one after the other, and at most `MOST_LITERALS` values
of a column are kept.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from bloomcli.advice.lookups import LookupCounter, UnservedCounter
from bloomcli.advice.sql.statements import statements
from bloomcli.errors import UsageError, near_names
from bloomcli.extras import needed
from bloomcli.model.file import Column
from bloomcli.model.queries import QueryLog
from bloomcli.storage.listing import expand
from bloomcli.storage.registry import open_source
from bloomcli.words import counted

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from bloomcli.advice.query_tables import QueryTables
    from bloomcli.advice.sql.analysis import Analysis

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
        UnsupportedError: sqlglot isn't installed.
    """
    with needed("query logs need", "advice"):
        import sqlglot  # noqa: F401  the error names the extra
    from bloomcli.advice.query_tables import QueryTables

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
    from sqlglot.dialects.dialect import Dialect, Dialects

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
        from bloomcli.advice.sql.analysis import Analyser
        from bloomcli.advice.sql.names import Names

        names = Names(dialect, columns)
        self._dialect, self._tables = dialect, tables
        self._analyser = Analyser(dialect, names, tables.in_question)
        self._lookups = LookupCounter(names.types, random.Random(seed))  # noqa: S311  a sample, no secret
        self._unserved = UnservedCounter()
        self._statements = self._about = self._unreadable = 0
        self._examples: list[str] = []

    def read(self, path: str) -> None:
        """Read one file. Raises UsageError, UnreadableError."""
        from bloomcli.advice.sql.analysis import Unreadable
        from bloomcli.advice.sql.examples import beginning

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
