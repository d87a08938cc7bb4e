"""Analyses statements: the tables that they read, and the values of columns that they look up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from bloomcli.advice.sql.conditions import UnservedPredicate
from bloomcli.advice.sql.reading import StatementReader
from bloomcli.advice.sql.scopes import Name, Names
from bloomcli.advice.sql.statements import PARSER_ERRORS, example
from bloomcli.values.sql_constants import Values

_MOST_NESTED: Final = 200
"""The most levels of parentheses in a statement. More levels would exhaust the parser's stack."""
_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


class Unreadable(Exception):
    """The dialect's parser can't parse the statement."""


class ColumnLookup(NamedTuple):
    """Values of a column that a statement looks up."""

    column: str
    values: Values
    statement: int
    """The position of the statement in the text, counted from 0."""


@dataclass(frozen=True)
class Analysis:
    """The tables and predicates of a text, which has one statement, or several if it is a line of JSON."""

    tables: tuple[tuple[Name, ...], ...]
    """The tables of each statement."""
    about: int
    """The number of statements that read the table in question."""
    lookups: tuple[ColumnLookup, ...]
    unserved: tuple[tuple[str, str | None, str], ...]
    """The kind, the column and the example of each predicate that no filter can serve. The example is empty if the
    analyser has already returned one for this kind and column."""
    statements: int = 1


class Analyser:
    """Analyses the statements of a log.

    Args:
        in_question: whether a qualified name is that of the table in question.
    """

    def __init__(self, dialect: Dialect, names: Names, in_question: Callable[[tuple[Name, ...]], bool]) -> None:
        self._dialect, self._names, self._in_question = dialect, names, in_question
        self._parser = dialect.parser()
        self._examples: set[tuple[str, str | None]] = set()

    def analyse(self, text: str) -> Analysis:
        """Analyse a statement.

        Raises:
            Unreadable: the dialect's parser can't parse it.
        """
        with _refusing(PARSER_ERRORS):
            tokens = self._dialect.tokenize(text)
        _check_nesting(tokens)
        with _refusing(PARSER_ERRORS):
            parsed = [node for node in self._parser.parse(tokens, text) if node is not None]
        readers = []
        for node in parsed:
            if isinstance(node, exp.Condition | exp.Alias) and not isinstance(node, exp.Query):
                raise Unreadable  # an expression: sqlglot takes SELEC * FRM t for a product
            reader = StatementReader(self._names, self._in_question)
            with _refusing((RecursionError,)):  # thousands of nested queries
                reader.statement(node)
            readers.append(reader)
        return Analysis(
            tables=tuple(table for reader in readers for table in dict.fromkeys(filter(None, reader.tables))),
            about=sum(any(map(self._in_question, reader.tables)) for reader in readers),
            lookups=tuple(
                ColumnLookup(lookup.column, values, number)
                for number, reader in enumerate(readers)
                for found in reader.predicates
                for lookup in found.lookups
                for values in lookup.values
            ),
            unserved=tuple(
                self._unserved(item) for reader in readers for found in reader.predicates for item in found.unserved
            ),
            statements=len(parsed),
        )

    def _unserved(self, item: UnservedPredicate) -> tuple[str, str | None, str]:
        """The kind, column and example of a predicate. Only the first predicate of a kind and column has an example,
        because formatting SQL takes longer than parsing it."""
        key = (item.kind, item.column)
        if key in self._examples:
            return (*key, "")
        self._examples.add(key)
        return (*key, example(item.node, self._dialect))


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
        if kind in _OPENING:
            level += 1
            if level > _MOST_NESTED:
                raise Unreadable
        elif kind in _CLOSING:
            level -= 1
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if prefixes > _MOST_NESTED:
            raise Unreadable


_PREFIXES: Final = {TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.CASE, *_OPENING}
