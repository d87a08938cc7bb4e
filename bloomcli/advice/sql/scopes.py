"""Resolves column references through aliases, subqueries and CTEs to columns of the table in question.

Names of tables and columns are compared by the rules of the dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from bloomcli.model.file import Column


class Name(NamedTuple):
    """One part of a qualified name."""

    text: str
    quoted: bool = False

    @classmethod
    def of(cls, identifier: exp.Expr) -> Name:
        """The name that an identifier spells."""
        return cls(identifier.name, bool(identifier.args.get("quoted")))


class Names:
    """Compares names, and finds the columns of the table in question.

    Attributes:
        dialect: the dialect, which decides how names are compared.
        known: whether the columns of the table are known.
    """

    def __init__(self, dialect: Dialect, columns: Iterable[str | Column] | None) -> None:
        self.dialect = dialect
        strategy = dialect.normalization_strategy
        self._exact = strategy is NormalizationStrategy.CASE_SENSITIVE
        self._exact_quoted = self._exact or strategy in {
            NormalizationStrategy.LOWERCASE,
            NormalizationStrategy.UPPERCASE,
        }
        self.known = columns is not None
        self.types: dict[str, Column] = {}
        """The columns whose types are known, by their paths."""
        self._paths: dict[str, str] = {}
        self._folded: dict[str, str] = {}
        self._leaves: dict[str, list[str]] = {}
        for column in columns or ():
            path = column if isinstance(column, str) else column.path
            if not isinstance(column, str):
                self.types[path] = column
            self._paths[path] = path
            self._folded.setdefault(path.casefold(), path)
            parts = path.split(".")
            for length in range(1, len(parts)):
                self._leaves.setdefault(".".join(parts[:length]).casefold(), []).append(path)

    def key(self, name: Name) -> str:
        """A text that is the same for equal names."""
        return name.text if self._exact or (self._exact_quoted and name.quoted) else name.text.casefold()

    def same(self, a: Name, b: Name) -> bool:
        """Whether two names are equal."""
        if a.text == b.text:
            return True
        if self._exact or (self._exact_quoted and (a.quoted and b.quoted)):
            return False
        return a.text.casefold() == b.text.casefold()

    def begins(self, name: Name) -> bool:
        """Whether a column of the table has this name, or begins with it and a dot."""
        folded = name.text.casefold()
        if folded in self._leaves:
            return True
        return name.text in self._paths or (not self._exact and folded in self._folded)

    def column(self, parts: Sequence[Name]) -> str | None:
        """The path of a leaf column: as in the statement if the columns aren't known; None if the column doesn't
        exist."""
        path = ".".join(part.text for part in parts)
        if not self.known or path in self._paths:
            return path
        return None if self._exact else self._folded.get(path.casefold())

    def group(self, parts: Sequence[Name]) -> str | None:
        """The single leaf column of a group, or the group's path if it has several; None if the group doesn't
        exist."""
        path = ".".join(part.text for part in parts)
        leaves = self._leaves.get(path.casefold())
        if leaves is None:
            return None
        return leaves[0] if len(leaves) == 1 else path


_MOST_STEPS: Final = 64
"""The most nested subqueries through which a column is resolved."""


@dataclass(eq=False)
class BaseTable:
    """A table that a statement reads."""

    parts: tuple[Name, ...]
    """The qualified name; empty for relations without a name (VALUES, a function, an unnested list)."""
    in_question: bool
    """Whether it is the table in question."""


@dataclass(eq=False)
class DerivedTable:
    """A subquery or a CTE."""

    branches: list[Scope] = field(default_factory=list)
    """The scopes of its SELECTs, of which a UNION has several; empty if no value can be looked up before it is
    computed."""
    columns: tuple[Name, ...] = ()
    """The column names in its alias; empty if the alias names no columns."""


Relation = BaseTable | DerivedTable


class Source(NamedTuple):
    """A relation in FROM, with its alias."""

    alias: Name | None
    relation: Relation


@dataclass(eq=False)
class Scope:
    """The relations that a SELECT, or a statement that changes rows, reads, and the aliases of its expressions."""

    names: Names
    node: exp.Expr
    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    aliases: dict[str, exp.Expr] = field(default_factory=dict)


class ResolvedColumn(NamedTuple):
    """The columns that a column reference refers to."""

    columns: tuple[str, ...] = ()
    """Columns of the table in question; several below a UNION, none for a column of another table."""
    problem: str | None = None
    """The reason for which no filter can serve predicates of the column: `UnservedPredicate.kind`."""
    source: Source | None = None
    """The relation of the scope that the column comes from; None for a column of an outer query."""


_NOTHING: Final = ResolvedColumn()


def parts_of(node: exp.Expr | None) -> tuple[Name, ...] | None:
    """The parts of a column reference: table, column and nested fields; None if the expression isn't a column."""
    match node:
        case exp.Paren():
            return parts_of(node.this)
        case exp.Column() if all(isinstance(part, exp.Identifier) for part in node.parts):
            return tuple(map(Name.of, node.parts))
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            above = parts_of(node.this)
            inner = Name.of(node.expression)
        case exp.Bracket() if len(node.expressions) == 1 and _is_text(node.expressions[0]):
            above = parts_of(node.this)
            inner = Name(str(node.expressions[0].this), quoted=True)
        case exp.StructExtract() if _is_text(node.expression):
            above = parts_of(node.this)
            inner = Name(str(node.expression.this), quoted=True)
        case _:
            return None
    return None if above is None else (*above, inner)


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def resolve(node: exp.Expr, scope: Scope) -> ResolvedColumn | None:
    """Resolve a column reference; None if the expression isn't a column."""
    parts = parts_of(node)
    return None if parts is None else _resolve(parts, scope, _MOST_STEPS)


def _resolve(parts: Sequence[Name], scope: Scope, steps: int) -> ResolvedColumn:
    if steps == 0:
        return ResolvedColumn(problem="subquery")
    names = scope.names
    for source in scope.sources:
        rest = _without_source(parts, source, names)
        if rest:
            return _within(rest, source, names, steps)._replace(source=source)
    for source in scope.sources:
        if _has(source.relation, parts, names):
            return _within(parts, source, names, steps)._replace(source=source)
    alias = scope.aliases.get(names.key(parts[0])) if len(parts) == 1 else None
    aliased = None if alias is None else parts_of(alias)
    if alias is not None and (aliased or ())[-1:] != tuple(parts):
        return ResolvedColumn(problem="expression") if aliased is None else _resolve(aliased, scope, steps - 1)
    if scope.parent is not None:
        outer = _resolve(parts, scope.parent, steps - 1)
        if outer.columns or outer.problem:
            return outer._replace(source=None)
    if len(scope.sources) == 1 and (scope.parent is None or not names.known):
        (source,) = scope.sources
        return _within(parts, source, names, steps)._replace(source=source)
    return _NOTHING


def _without_source(parts: Sequence[Name], source: Source, names: Names) -> Sequence[Name]:
    """The parts after the name of a relation; empty if the reference doesn't begin with this name."""
    if source.alias is not None:
        return parts[1:] if names.same(parts[0], source.alias) else ()
    if isinstance(source.relation, BaseTable):
        own = source.relation.parts
        for length in range(1, min(len(own), len(parts) - 1) + 1):
            if all(names.same(a, b) for a, b in zip(own[-length:], parts[:length], strict=True)):
                return parts[length:]
    return ()


def _has(relation: Relation, parts: Sequence[Name], names: Names, steps: int = _MOST_STEPS) -> bool:
    """Whether a relation is known to have a column."""
    if isinstance(relation, BaseTable):
        return relation.in_question and names.known and names.begins(parts[0])
    return steps > 0 and any(
        output is not None or any(_has(below.relation, parts, names, steps - 1) for below in branch.sources)
        for branch, output in _outputs(relation, parts[0], names)
    )


def _within(parts: Sequence[Name], source: Source, names: Names, steps: int) -> ResolvedColumn:
    """Resolve a column within a relation."""
    relation = source.relation
    if isinstance(relation, DerivedTable):
        columns = [_output(branch, output, parts, steps) for branch, output in _outputs(relation, parts[0], names)]
        served = tuple(column for inner in columns if inner.problem is None for column in inner.columns)
        return ResolvedColumn(served) if served else next((inner for inner in columns if inner.problem), _NOTHING)
    if not relation.in_question:
        return _NOTHING
    column = names.column(parts)
    if column is not None:
        return ResolvedColumn((column,))
    group = names.group(parts)
    if group is not None:
        return ResolvedColumn((group,), "expression")
    return ResolvedColumn((".".join(part.text for part in parts),), "not-in-files")


def _output(branch: Scope, output: exp.Expr | None, parts: Sequence[Name], steps: int) -> ResolvedColumn:
    """Resolve a column of a subquery in one of its SELECTs. `output` is None for a column of a star."""
    inner = tuple(parts) if output is None else parts_of(output)
    if inner is None:
        return ResolvedColumn(problem="expression")
    column = _resolve(inner if output is None else (*inner, *parts[1:]), branch, steps - 1)
    if column.problem is None and column.columns and not _passes(branch.node, inner[-1], branch.names):
        return ResolvedColumn(column.columns, "subquery")
    return column


def _passes(select: exp.Expr, column: Name, names: Names) -> bool:
    """Whether engines may look up a value before they compute the SELECT.

    They can't if the SELECT takes only some of the rows (LIMIT), or if a window function needs rows with other
    values.
    """
    if any(select.args.get(name) for name in ("limit", "offset", "fetch")):
        return False
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        return False
    computed = [*select.expressions, *filter(None, [select.args.get("qualify")])]
    return all(
        any(_is_called(key, column, names) for key in window.args.get("partition_by") or ())
        for item in computed
        for window in item.find_all(exp.Window)
    )


def _outputs(relation: DerivedTable, name: Name, names: Names) -> Iterator[tuple[Scope, exp.Expr | None]]:
    """Yield, for each SELECT of a subquery, the expression that the column comes from; None for a column of a
    star."""
    position = next((i for i, column in enumerate(relation.columns) if names.same(column, name)), None)
    for branch in relation.branches:
        items = branch.node.expressions
        star = next((i for i, item in enumerate(items) if _is_star(item)), len(items))
        called = next((i for i, item in enumerate(items) if _is_called(item, name, names)), None)
        if position is None and called is not None:
            yield branch, items[called].unalias()
            position = called if called < star else None  # in a UNION, the other SELECTs have it at the same position
        elif position is not None and position < star:
            if position < len(items):
                yield branch, items[position].unalias()
        elif star < len(items):
            yield branch, None


def _is_called(item: exp.Expr, name: Name, names: Names) -> bool:
    if isinstance(item, exp.Alias):
        alias = item.args["alias"]
        return isinstance(alias, exp.Identifier) and names.same(Name.of(alias), name)
    parts = parts_of(item)
    return parts is not None and names.same(parts[-1], name)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
