"""What a log of SQL queries looks up: for `advise --queries` and `trial --queries`.

Only `QueriedColumn.literals` has values of the queries. The examples are SQL with `?` in place of each literal, so
that they can be shown in reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedColumn:
    """The lookups of one column in all statements."""

    column: str
    """The leaf path as the files spell it; as the statements write it, aliases resolved, if no columns are given."""
    lookups: int
    """Values in `=` and `IN` predicates, counted as often as statements have them: an `IN` of 3 values is 3."""
    statements: int
    """Statements that look the column up."""
    without_literal: int = 0
    """Lookups, among `lookups`, whose value the statement doesn't hold: parameters (`?`, `:id`, `$1`), results of
    functions, and texts too long to keep."""
    literals: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """Values as `bloom probe` takes them, each with its number, the most frequent first. All of them if there are at
    most `MOST_LITERALS` different ones; otherwise those of a uniform random sample of `MOST_LITERALS` lookups."""
    sampled: bool = False
    """`literals` are a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedPredicate:
    """Predicates that no filter of one column can serve, of one kind and column."""

    kind: str
    """``range``, ``like``, ``expression`` (of the column, or a comparison that casts it), ``join``, ``negation``,
    ``null``, ``or``, ``subquery``, ``not-in-files`` (the files have no such column: a partition column)."""
    column: str | None
    """None if the predicate is about several columns."""
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
    """Statements that the dialect's parser refuses, and lines of JSON without one."""
    unreadable_examples: tuple[str, ...]
    """The first ones, shortened, with `?` in place of each literal."""
    columns: tuple[QueriedColumn, ...]
    """The most looked up first."""
    unserved: tuple[UnservedPredicate, ...]
    """The most frequent first."""
    tables: tuple[tuple[str, int], ...] = ()
    """Every table that statements read, with their number, the most read first."""
