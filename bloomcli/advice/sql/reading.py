"""Reads statements: the tables that they read, and the lookups in the conditions of their scopes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from bloomcli.advice.sql.conditions import ConditionAnalyser, Lookup, UnservedPredicate
from bloomcli.advice.sql.scopes import BaseTable, DerivedTable, Name, Names, Relation, Scope, Source, resolve
from bloomcli.advice.sql.statements import PARSER_ERRORS

_MOST_NESTED: Final = 200
"""The most levels of parentheses in a statement. More levels would exhaust the parser's stack."""
_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_PREFIXES: Final = {TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.CASE, *_OPENING}


class Unreadable(Exception):
    """The dialect's parser can't parse the statement."""


def read_text(text: str, names: Names, in_question: Callable[[tuple[Name, ...]], bool]) -> list[StatementReader]:
    """Read a text, which has one statement, or several if it is a line of JSON.

    Args:
        text: the text.
        names: compares names by the rules of the dialect.
        in_question: whether a qualified name is that of the table in question.

    Raises:
        Unreadable: the dialect's parser can't parse it.
    """
    with _refusing(PARSER_ERRORS):
        tokens = names.dialect.tokenize(text)
        _check_nesting(tokens)
        parsed = [node for node in names.dialect.parser().parse(tokens, text) if node is not None]
    readers = []
    for node in parsed:
        if isinstance(node, exp.Condition | exp.Alias) and not isinstance(node, exp.Query):
            raise Unreadable  # an expression: sqlglot takes SELEC * FRM t for a product
        readers.append(StatementReader(names, in_question))
        with _refusing((RecursionError,)):  # thousands of nested queries
            readers[-1].statement(node)
    return readers


@contextmanager
def _refusing(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Turn exceptions into Unreadable, without their messages, which contain SQL. Keep sqlglot from logging
    statements that it doesn't understand: they contain values."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    except errors:
        raise Unreadable from None
    finally:
        logger.disabled = before


def _check_nesting(tokens: Iterable[Token]) -> None:
    """Raise Unreadable for more levels of parentheses, or more prefix operators in a row, than a parser can
    handle."""
    level = prefixes = 0
    for token in tokens:
        kind = token.token_type
        level += (kind in _OPENING) - (kind in _CLOSING)
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if max(level, prefixes) > _MOST_NESTED:
            raise Unreadable


_NAMELESS = Name("")
_JOINED: dict[str, str] = {"LEFT": "right", "RIGHT": "left", "FULL": "neither"}
"""The side of an outer join whose rows the ON condition restricts."""


@dataclass(eq=False)
class StatementReader:
    """Collects what one statement reads.

    Attributes:
        tables: the tables, with repetitions.
        lookups: the lookups of all conditions.
        unserved: their predicates that no filter can serve.
    """

    names: Names
    in_question: Callable[[tuple[Name, ...]], bool]
    tables: list[tuple[Name, ...]] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    unserved: list[UnservedPredicate] = field(default_factory=list)

    def statement(self, node: exp.Expr) -> None:
        """Read a statement of any kind. Statements that only define an object read nothing."""
        ctes = self._ctes(node, {}, None)
        match node:
            case exp.Query():
                self._query(node, ctes, None)
            case exp.Delete() | exp.Update():
                self._change(node, ctes)
            case exp.Merge():
                self._merge(node, ctes)
            case exp.Create() if str(node.args.get("kind")).upper() != "TABLE":
                return
            case exp.Describe() | exp.Command():
                return
            case _:
                self._within(node, ctes, None)

    def _change(self, node: exp.Expr, ctes: dict[str, DerivedTable]) -> None:
        """Read a DELETE or UPDATE, which looks up the rows that it changes."""
        scope = Scope(self.names, node)
        using = node.args.get("using") or []
        from_ = node.args.get("from_")
        for item in [node.this, *(using if isinstance(using, list) else [using]), *([from_.this] if from_ else [])]:
            self._add(item, scope, ctes)
        self._where(node, scope, ctes)
        self._within_all(node.args.get("expressions") or (), ctes, scope)

    def _merge(self, node: exp.Merge, ctes: dict[str, DerivedTable]) -> None:
        """Read a MERGE. ON restricts the target's rows that are read, unless rows without a match change, too."""
        scope = Scope(self.names, node)
        self._add(node.this, scope, ctes)
        target = scope.sources[0] if scope.sources else None
        self._add(node.args["using"], scope, ctes)
        keeps = any(
            not when.args.get("matched") and when.args.get("source")
            for when in (node.args["whens"].expressions if node.args.get("whens") else ())
        )
        condition = node.args.get("on")
        if condition is not None:
            self._condition(condition, scope, ctes, lambda source: source is target and not keeps)

    def _ctes(self, node: exp.Expr, ctes: dict[str, DerivedTable], parent: Scope | None) -> dict[str, DerivedTable]:
        """The CTEs that are visible in a statement: those of the outer statement and its own."""
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        ctes = dict(ctes)
        for cte in with_.expressions:
            name = self.names.key(_alias(cte) or _NAMELESS)
            recursive = bool(with_.args.get("recursive")) and any(
                table.name.casefold() == name.casefold() for table in cte.this.find_all(exp.Table)
            )
            if recursive:  # its rows derive from each other, so values can't be looked up in the first rows alone
                self._query(cte.this, {**ctes, name: DerivedTable()}, parent)
                ctes[name] = DerivedTable()
            else:
                relation = self._query(cte.this, ctes, parent)
                ctes[name] = DerivedTable(relation.branches, _alias_columns(cte))
        return ctes

    def _query(self, node: exp.Expr, ctes: dict[str, DerivedTable], parent: Scope | None) -> DerivedTable:
        """Read a query, and return it as a relation."""
        while isinstance(node, exp.Subquery) and not node.args.get("joins"):
            ctes = self._ctes(node, ctes, parent)
            limited = node.args.get("limit") or node.args.get("offset")
            node = node.this
            if limited:
                self._query(node, ctes, parent)
                return DerivedTable()
        ctes = self._ctes(node, ctes, parent)
        if isinstance(node, exp.SetOperation):
            sides = [self._query(side, ctes, parent) for side in (node.this, node.expression)]
            if node.args.get("limit") or node.args.get("offset"):
                return DerivedTable()
            return DerivedTable([branch for side in sides for branch in side.branches])
        if isinstance(node, exp.Select):
            return DerivedTable([self._select(node, ctes, parent)])
        if isinstance(node, exp.Subquery | exp.Table):
            self._add(node, Scope(self.names, node, parent), ctes)
        return DerivedTable()

    def _select(self, node: exp.Select, ctes: dict[str, DerivedTable], parent: Scope | None) -> Scope:
        scope = Scope(self.names, node, parent)
        from_ = node.args.get("from_")
        if from_ is not None:
            self._add(from_.this, scope, ctes)
        self._joins(node, scope, ctes)
        for lateral in node.args.get("laterals") or ():
            self._add(lateral, scope, ctes)
        for item in node.expressions:
            if isinstance(item, exp.Alias):
                scope.aliases.setdefault(self.names.key(_alias(item) or _NAMELESS), item.this)
        prewhere = node.args.get("prewhere")
        if prewhere is not None:
            self._condition(prewhere.this, scope, ctes)
        self._where(node, scope, ctes)
        read = {"with_", "from_", "joins", "laterals", "prewhere", "where"}
        self._within_all([value for name, value in node.args.items() if name not in read], ctes, scope)
        return scope

    def _joins(self, node: exp.Expr, scope: Scope, ctes: dict[str, DerivedTable]) -> None:
        for join in node.args.get("joins") or ():
            left = list(scope.sources)
            self._add(join.this, scope, ctes)
            right = scope.sources[len(left) :]
            condition = join.args.get("on")
            if condition is None:
                self._using(join, scope)
                continue
            narrowed = _JOINED.get(join.side.upper(), "both")
            if join.kind.upper() == "ANTI":
                narrowed = "right"
            elif join.kind.upper() == "SEMI":
                narrowed = "both"
            sides = {"left": left, "right": right, "both": scope.sources, "neither": []}[narrowed]
            self._condition(condition, scope, ctes, lambda source, sides=sides: source in sides)  # type: ignore[misc]

    def _using(self, join: exp.Join, scope: Scope) -> None:
        """Read JOIN ... USING (id): a join on the columns of both sides."""
        for name in join.args.get("using") or ():
            column = name if isinstance(name, exp.Column) else exp.Column(this=name.copy())
            resolved_column = resolve(column, scope)
            if resolved_column is not None and resolved_column.problem is None:
                self.unserved += (UnservedPredicate("join", path, column) for path in resolved_column.columns)

    def _add(self, node: exp.Expr, scope: Scope, ctes: dict[str, DerivedTable]) -> None:
        """Add a relation in FROM, and the relations joined to it, to a scope."""
        alias = _alias(node)
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier | exp.Dot):
                relation = self._table(node, ctes)
                if node.args.get("pivots"):
                    relation = BaseTable((), in_question=False)
                scope.sources.append(Source(alias, relation))
            case exp.Subquery() | exp.Paren() if isinstance(node.this, exp.Table | exp.Join) or (
                isinstance(node.this, exp.Subquery) and alias is None
            ):
                self._add(node.this, scope, ctes)
            case exp.Query():
                below = self._query(node, ctes, scope.parent)
                branches = [] if node.args.get("pivots") else below.branches
                scope.sources.append(Source(alias or _NAMELESS, DerivedTable(branches, _alias_columns(node))))
            case exp.Lateral() if isinstance(node.this, exp.Query):
                below = self._query(node.this, ctes, scope)
                scope.sources.append(Source(alias, DerivedTable(below.branches, _alias_columns(node))))
            case exp.Table() if (named := _function_path(node)) is not None:
                self.tables.append((named,))
                scope.sources.append(Source(alias or _NAMELESS, BaseTable((named,), self.in_question((named,)))))
            case _:  # VALUES, an unnested list, a function without a path
                self._within(node, ctes, scope)
                columns = _alias_columns(node)
                scope.sources.append(Source(alias or _NAMELESS, DerivedTable([], columns)))
        self._joins(node, scope, ctes)

    def _table(self, node: exp.Table, ctes: dict[str, DerivedTable]) -> Relation:
        parts = tuple(Name.of(part) for part in node.parts if isinstance(part, exp.Identifier))
        if len(parts) == 1 and self.names.key(parts[0]) in ctes:
            cte = ctes[self.names.key(parts[0])]
            return DerivedTable(cte.branches, _alias_columns(node) or cte.columns)
        self.tables.append(parts)
        return BaseTable(parts, self.in_question(parts))

    def _where(self, node: exp.Expr, scope: Scope, ctes: dict[str, DerivedTable]) -> None:
        where = node.args.get("where")
        if where is not None:
            self._condition(where.this, scope, ctes)

    def _condition(
        self,
        node: exp.Expr,
        scope: Scope,
        ctes: dict[str, DerivedTable],
        allowed: Callable[[Source | None], bool] = lambda _: True,
    ) -> None:
        predicates = ConditionAnalyser(scope, allowed).analyse(node)
        self.lookups += predicates.lookups
        self.unserved += predicates.unserved
        self._within(node, ctes, scope)

    def _within_all(self, items: Iterable[object], ctes: dict[str, DerivedTable], scope: Scope | None) -> None:
        for item in items:
            for node in item if isinstance(item, list) else [item]:
                if isinstance(node, exp.Expr):
                    self._within(node, ctes, scope)

    def _within(self, node: exp.Expr, ctes: dict[str, DerivedTable], scope: Scope | None) -> None:
        """Read the queries within an expression."""
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Query):
                self._query(part, ctes, scope)


def _alias(node: exp.Expr) -> Name | None:
    """The alias of a relation, a CTE or an expression; None if it has none."""
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias):
        alias = alias.this
    return Name.of(alias) if isinstance(alias, exp.Identifier) else None


def _function_path(node: exp.Table) -> Name | None:
    """The path that a function such as read_parquet('...') reads; None for functions without a path."""
    function = node.this
    arguments = function.expressions or [function.this] if isinstance(function, exp.Func) else []
    if not arguments or not isinstance(arguments[0], exp.Literal) or not arguments[0].is_string:
        return None
    return Name(str(arguments[0].this), quoted=True)


def _alias_columns(node: exp.Expr) -> tuple[Name, ...]:
    """The column names in the alias of a relation."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return tuple(map(Name.of, columns or ()))
