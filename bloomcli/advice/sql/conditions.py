"""Derives the lookups of a condition: values of columns that every matching row has, so that a filter can serve them.

A lookup is a necessary condition of the whole one: `id = 5 AND total > 10` looks up 5, `id = 5 OR id = 7` looks up
both, and `id = 5 OR total > 10` looks up nothing, because rows without 5 match as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from sqlglot import exp

from bloomcli.advice.sql.scopes import ResolvedColumn, Scope, Source, resolve
from bloomcli.values.sql_constants import Values, constant

_NONDETERMINISTIC: Final = (exp.Rand, exp.Randn, exp.Uuid)
_RANGES: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_PATTERNS: Final = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike, exp.Glob)


class Lookup(NamedTuple):
    """Values of a column. Every row of the result has one of them."""

    column: str
    values: Values


class UnservedPredicate(NamedTuple):
    """A predicate that no filter can serve. The fields are those of `model.advice.UnservedPredicate`."""

    kind: str
    column: str | None
    node: exp.Expr


class Predicates(NamedTuple):
    """The lookups of a condition, and its predicates that no filter can serve."""

    lookups: tuple[Lookup, ...] = ()
    unserved: tuple[UnservedPredicate, ...] = ()


_NOTHING: Final = Predicates()


class ConditionAnalyser:
    """Derives the lookups of the conditions of one scope.

    Args:
        scope: the relations in which columns are resolved.
        allowed: whether the condition restricts the rows that are read from a relation. It doesn't for the preserved
            side of an outer join.
    """

    def __init__(self, scope: Scope, allowed: Callable[[Source | None], bool]) -> None:
        self._scope, self._allowed = scope, allowed

    def analyse(self, node: exp.Expr, *, negated: bool = False) -> Predicates:
        """The predicates of a condition."""
        while isinstance(node, exp.Paren | exp.Not):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            parts = [self.analyse(part, negated=negated) for part in node.flatten()]
            return _conjunction(parts) if isinstance(node, exp.And) != negated else _disjunction(parts, node)
        match node:
            case exp.EQ() | exp.NullSafeEQ() if not negated:
                return self._equal(node, node.this, node.expression)
            case exp.NEQ() | exp.NullSafeNEQ() if negated:
                return self._equal(node, node.this, node.expression)
            case exp.In() if not negated:
                return self._in(node)
            case exp.Between() if not negated and _same(node.args["low"], node.args["high"]):
                return self._equal(node, node.this, node.args["low"])
        return self._unserved(_kind(node, negated), node)

    def _equal(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> Predicates:
        for side, other in ((left, right), (right, left)):
            column = resolve(side, self._scope)
            if column is not None:
                return self._column_equal(node, column, other)
        return self._unserved("expression", node)

    def _column_equal(self, node: exp.Expr, column: ResolvedColumn, other: exp.Expr) -> Predicates:
        if isinstance(other, exp.Any):
            members = _members(other.this)
            if members is None:
                query = other.this.find(exp.Query) if isinstance(other.this, exp.Expr) else None
                return self._unserved("expression" if query is None else "subquery", node)
            return self._looked_up(node, column, members)
        second = resolve(other, self._scope)
        if second is not None:
            return self._joined(node, column, second)
        if isinstance(other, exp.Null):
            return self._unserved("null", node)
        return self._looked_up(node, column, [other])

    def _joined(self, node: exp.Expr, first: ResolvedColumn, second: ResolvedColumn) -> Predicates:
        """A comparison of two columns: a join, unless both belong to the same row."""
        kind = "expression" if first.source is not None and first.source is second.source else "join"
        sides = [side for side in (first, second) if side.columns and side.problem != "not-in-files"]
        if kind == "expression":
            return self._unserved(kind, node) if sides else _NOTHING
        names = {name for side in sides for name in side.columns}
        return Predicates(unserved=tuple(UnservedPredicate(kind, name, node) for name in sorted(names)))

    def _in(self, node: exp.In) -> Predicates:
        column = resolve(node.this, self._scope)
        if node.args.get("query") is not None:
            return self._unserved("subquery", node)
        if column is None or node.args.get("field") is not None or node.args.get("unnest") is not None:
            return self._unserved("expression", node)
        members: list[exp.Expr] = node.expressions
        if len(members) == 1 and (inner := _members(members[0])) is not None:  # ClickHouse: id IN [1, 2]
            members = inner
        return self._looked_up(node, column, members)

    def _looked_up(self, node: exp.Expr, column: ResolvedColumn, values: Iterable[exp.Expr]) -> Predicates:
        if not column.columns:
            why = column.problem
            return _NOTHING if why is None else Predicates(unserved=(UnservedPredicate(why, None, node),))
        if column.source is None:  # a column of an outer query: the condition doesn't restrict its rows
            return _NOTHING
        constants = [constant(value) for value in values]
        literals = [value for value in constants if value is not None]
        problem = column.problem
        if len(literals) < len(constants):
            problem = "subquery" if node.find(exp.Query) is not None else "expression"
        elif problem is None and not self._allowed(column.source):
            problem = "join"
        if problem is not None:
            return Predicates(
                unserved=tuple(UnservedPredicate(problem, name, node) for name in dict.fromkeys(column.columns))
            )
        return Predicates(lookups=tuple(Lookup(name, tuple(chain(*literals))) for name in column.columns))

    def _unserved(self, kind: str, node: exp.Expr) -> Predicates:
        """A predicate that no filter serves, if it is about columns of the table in question."""
        names = set(self._columns(node))
        if not names:
            return _NOTHING
        return Predicates(unserved=(UnservedPredicate(kind, names.pop() if len(names) == 1 else None, node),))

    def _columns(self, node: exp.Expr) -> Iterator[str]:
        """Yield the columns of the table in question in an expression, without those in nested queries."""
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
                outermost: exp.Expr = part
                while isinstance(outermost.parent, exp.Dot) and outermost.parent.this is outermost:
                    outermost = outermost.parent
                column = resolve(outermost, self._scope)
                if column is not None and column.source is not None and column.problem != "not-in-files":
                    yield from column.columns


def _members(node: object) -> list[exp.Expr] | None:
    """The elements of a list; None if the node isn't a list."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Array | exp.Tuple) else None


def _same(low: exp.Expr, high: exp.Expr) -> bool:
    """Whether the ends of BETWEEN are the same constant."""
    return low == high and low.find(exp.Column, exp.Query, exp.Placeholder, *_NONDETERMINISTIC) is None


def _kind(node: exp.Expr, negated: bool) -> str:
    """The kind of a predicate that isn't an equality: the reason for which no filter can serve it."""
    if isinstance(node, exp.Is):
        return "null" if isinstance(node.expression, exp.Null) else "expression"
    if isinstance(node, exp.Exists | exp.SubqueryPredicate) or node.find(exp.Query) is not None:
        return "subquery"
    if isinstance(node, _RANGES):
        return "range"
    if negated or isinstance(node, exp.NEQ | exp.NullSafeNEQ):
        return "negation"
    return "like" if isinstance(node, _PATTERNS) else "expression"


def _conjunction(parts: Iterable[Predicates]) -> Predicates:
    """The predicates of a conjunction: those of all parts."""
    parts = list(parts)
    return Predicates(
        tuple(lookup for part in parts for lookup in part.lookups),
        tuple(unserved for part in parts for unserved in part.unserved),
    )


def _disjunction(parts: list[Predicates], node: exp.Expr) -> Predicates:
    """The predicates of a disjunction: lookups of the columns that every part looks up, with the values of all
    parts."""
    each: list[dict[str, Lookup]] = []
    for part in parts:
        by_column: dict[str, Lookup] = {}
        for lookup in part.lookups:  # if there are several of a column, the part's rows match all: one suffices
            by_column.setdefault(lookup.column, lookup)
        each.append(by_column)
    common = [column for column in each[0] if all(column in lookups for lookups in each)]
    others = dict.fromkeys(column for lookups in each for column in lookups if column not in common)
    return Predicates(
        tuple(Lookup(column, tuple(v for lookups in each for v in lookups[column].values)) for column in common),
        (*_conjunction(parts).unserved, *(UnservedPredicate("or", column, node) for column in others)),
    )
