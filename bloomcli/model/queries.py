"""The lookups in a log of SQL queries, for `advise --queries` and `trial --queries`.

Only `QueriedColumn.literals` contains values of the queries. The examples are SQL with `?` in place of each literal,
so that reports can show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedColumn:
    """The lookups of one column in all statements."""

    column: str
    """The leaf path as the files spell it. If no columns are given: as the statements write it, with aliases
    resolved."""
    lookups: int
    """Values in `=` and `IN` predicates, with repetitions: an `IN` of 3 values counts as 3."""
    statements: int
    """Statements that look the column up."""
    without_literal: int = 0
    """The part of `lookups` whose value isn't in the statement: parameters (`?`, `:id`, `$1`), results of functions,
    and texts that are too long to keep."""
    literals: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """Values as `bloom probe` takes them, each with its count, the most frequent first. All values if at most
    `MOST_LITERALS` are distinct; otherwise the values of a uniform random sample of `MOST_LITERALS` lookups."""
    sampled: bool = False
    """`literals` are a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedPredicate:
    """Predicates of one kind and column that no filter of a single column can serve."""

    kind: str
    """``range``, ``like``, ``expression`` (of the column, or a comparison that casts it), ``join``, ``negation``,
    ``null``, ``or``, ``subquery``, ``not-in-files`` (the files have no such column: a partition column)."""
    column: str | None
    """None if the predicate involves several columns."""
    count: int
    example: str
    """The first one, as SQL with `?` in place of each literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLog:
    """All statements of a log."""

    statements: int
    """All statements, the unreadable ones included."""
    about_table: int
    """Statements that read the table in question."""
    unreadable: int
    """Statements that the dialect's parser rejects, and lines of JSON without a statement."""
    unreadable_examples: tuple[str, ...]
    """The first ones, shortened, with `?` in place of each literal."""
    columns: tuple[QueriedColumn, ...]
    """The column with the most lookups first."""
    unserved: tuple[UnservedPredicate, ...]
    """The most frequent first."""
    tables: tuple[tuple[str, int], ...] = ()
    """Every table that statements read, with the number of statements, the most read first."""
