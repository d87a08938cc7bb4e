"""Analyses statements; those that differ only in their literals are parsed once.

A statement is tokenized, and its literals are replaced by marks: the result is its template. The first statement of a
template is parsed with the marks, and its lookups are kept as functions of the literals. For further statements of
the template, these functions are called with the statement's literals.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from bloomcli.advice.sql.conditions import UnservedPredicate
from bloomcli.advice.sql.constants import Compiler, Slots, Values
from bloomcli.advice.sql.examples import example
from bloomcli.advice.sql.names import Name, Names
from bloomcli.advice.sql.reading import StatementReader
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

_MOST_TEMPLATES: Final = 4096
"""The most templates that are kept. The least recently used one is dropped first."""
_MOST_NESTED: Final = 200
"""The most levels of parentheses in a statement. More levels would exhaust the parser's stack."""
_LITERALS: Final = {TokenType.NUMBER: "0", TokenType.STRING: "'", TokenType.HEX_STRING: "x"}
_FIXED_BEHIND: Final = {
    TokenType.L_BRACKET,
    TokenType.DOT,
    TokenType.COLON,
    TokenType.PARAMETER,
    TokenType.PLACEHOLDER,
    TokenType.DOLLAR,
    TokenType.HASH,
}
"""Tokens after which a literal belongs to the statement's structure: an index, a field, a parameter's number."""
_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_MARK: Final = "\ue000"
"""A private-use character, which begins the marks that replace text literals in a template."""


class Unreadable(Exception):
    """The dialect's parser can't parse the statement."""


class ColumnLookup(NamedTuple):
    """Values of a column that a statement looks up."""

    column: str
    values: Callable[[Slots], Values]
    statement: int
    """The position of the statement in the text, counted from 0."""


@dataclass(frozen=True)
class Analysis:
    """The tables and predicates of a text, or of all texts of a template. A text has one statement, or several if it
    is a line of JSON."""

    tables: tuple[tuple[Name, ...], ...]
    """The tables of each statement."""
    about: int
    """The number of statements that read the table in question."""
    lookups: tuple[ColumnLookup, ...]
    unserved: tuple[tuple[str, str | None, str], ...]
    """The kind, the column and the example of each predicate that no filter can serve. The example is empty if the
    analyser has already returned one for this kind and column."""
    statements: int = 1


@dataclass
class _Split:
    """A statement, divided into its template and its literals."""

    parts: list[str]
    tokens: list[Token]
    """The tokens, with marks in place of the literals."""
    marks: dict[str, int]
    slots: list[list[str]]
    _mark_at: dict[int, str] = field(default_factory=dict)

    def fixed(self, token: Token) -> None:
        """Add a token of the template."""
        self.parts.append(f"{int(token.token_type)} {token.text}")
        self.tokens.append(token)

    def literal(
        self, token: Token, texts: list[str], more: str = "", *, same: int | None = None, position: int = -1
    ) -> None:
        """Add a literal, or the literals of a list. `same` is the position of an equal literal, whose mark is
        used."""
        mark = self._mark_at.get(-1 if same is None else same)
        if mark is None:
            mark = _mark(token.token_type, len(self.slots))
            self.marks[mark] = len(self.slots)
            self.slots.append(texts)
            self.parts.append(_LITERALS[token.token_type] + more)
        else:
            self.parts.append("=")
        if position >= 0:
            self._mark_at[position] = mark
        self.tokens.append(_like(token, mark))

    @property
    def key(self) -> bytes:
        """A digest of the template: equal for statements that differ only in their literals."""
        return hashlib.blake2b("\0".join(self.parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Analyser:
    """Analyses the statements of a log.

    Args:
        in_question: whether a qualified name is that of the table in question.
        cached: whether to keep the analyses of templates.
    """

    def __init__(
        self,
        dialect: Dialect,
        names: Names,
        in_question: Callable[[tuple[Name, ...]], bool],
        *,
        cached: bool = True,
    ) -> None:
        self._dialect, self._names, self._in_question, self._cached = dialect, names, in_question, cached
        self._parser = dialect.parser()
        self._known: OrderedDict[bytes, Analysis | None] = OrderedDict()
        self._examples: set[tuple[str, str | None]] = set()

    def analyse(self, text: str) -> tuple[Analysis, Slots]:
        """Analyse a statement. Returns the analysis, and the statement's literals.

        Raises:
            Unreadable: the dialect's parser can't parse it.
        """
        with _quiet(), _refusing():
            tokens = self._dialect.tokenize(text)
        _check_nesting(tokens)
        if not self._cached:
            return self._analyse_tokens(tokens, text, {}), ()
        split = _split(tokens)
        key = split.key
        if key not in self._known:
            self._known[key] = self._template(split, text)
            if len(self._known) > _MOST_TEMPLATES:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        found = self._known[key]
        return (self._analyse_tokens(tokens, text, {}), ()) if found is None else (found, split.slots)

    def _template(self, split: _Split, text: str) -> Analysis | None:
        """The analysis of all statements of a template; None if it depends on their literals."""
        try:
            return self._analyse_tokens(split.tokens, text, split.marks)
        except (Unreadable, _LiteralMatters):
            return None

    def _analyse_tokens(self, tokens: list[Token], text: str, marks: dict[str, int]) -> Analysis:
        with _quiet(), _refusing():
            parsed = [node for node in self._parser.parse(tokens, text) if node is not None]
        readers = []
        for node in parsed:
            if isinstance(node, exp.Condition | exp.Alias) and not isinstance(node, exp.Query):
                raise Unreadable  # an expression: sqlglot takes SELEC * FRM t for a product
            if marks and any(_MARK in str(part.this) for part in node.find_all(exp.Identifier, exp.Var)):
                raise _LiteralMatters
            reader = StatementReader(self._names, Compiler(marks), self._in_question)
            with _refusing_depth():
                reader.statement(node)
            readers.append(reader)
        tables = [table for reader in readers for table in dict.fromkeys(filter(None, reader.tables))]
        if any(name.text in marks for table in tables for name in table):
            raise _LiteralMatters
        return Analysis(
            tables=tuple(tables),
            about=sum(any(map(self._in_question, reader.tables)) for reader in readers),
            lookups=tuple(
                ColumnLookup(lookup.column, constant, number)
                for number, reader in enumerate(readers)
                for found in reader.predicates
                for lookup in found.lookups
                for constant in lookup.values
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


class _LiteralMatters(Exception):
    """A literal is part of the statement's structure: a table's path, an alias."""


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn exceptions of a parser into Unreadable, without their messages, which contain SQL. The parsers of 30
    dialects raise many types of exceptions."""
    try:
        yield
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        raise Unreadable from None


@contextmanager
def _refusing_depth() -> Iterator[None]:
    """Turn the RecursionError for a statement with thousands of nested queries into Unreadable."""
    try:
        yield
    except RecursionError:
        raise Unreadable from None


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


def _split(tokens: list[Token]) -> _Split:
    """Divide a statement into its template and its literals."""
    split = _Split([], [], {}, [])
    twins: dict[int, int] = {}
    position = 0
    while position < len(tokens):
        token = tokens[position]
        kind = token.token_type
        if kind is TokenType.IN and (found := _list(tokens, position + 1)) is not None:
            literal, texts, after = found
            split.fixed(token)
            split.fixed(tokens[position + 1])
            split.literal(literal, texts, "...")
            split.fixed(tokens[after - 1])
            position = after
            continue
        if kind is TokenType.BETWEEN:
            twins |= _equal_ends(tokens, position + 1)
        if kind in _LITERALS and not _belongs_to_structure(tokens, position):
            split.literal(token, [token.text], same=twins.get(position), position=position)
        else:
            split.fixed(token)
        position += 1
    return split


def _belongs_to_structure(tokens: list[Token], position: int) -> bool:
    """Whether a literal is an index, a field or a parameter's number, or decides a type (1.5BD in Spark)."""
    if position and tokens[position - 1].token_type in _FIXED_BEHIND:
        return True
    return (
        position + 2 < len(tokens)
        and tokens[position + 1].token_type is TokenType.DCOLON
        and tokens[position + 2].token_type is TokenType.DECIMAL
    )


def _list(tokens: list[Token], start: int) -> tuple[Token, list[str], int] | None:
    """The literals of an IN list: the first token, all texts, and the position after the list.

    None if the list contains anything other than literals of one kind.
    """
    if start >= len(tokens) or tokens[start].token_type is not TokenType.L_PAREN:
        return None
    texts: list[str] = []
    first: Token | None = None
    position = start + 1
    while position + 1 < len(tokens):
        sign = ""
        if tokens[position].token_type is TokenType.DASH:
            sign, position = "-", position + 1
        token = tokens[position]
        first = first or token
        kind = token.token_type
        if kind not in _LITERALS or kind is not first.token_type or (sign and kind is not TokenType.NUMBER):
            return None
        texts.append(sign + token.text)
        if position + 1 >= len(tokens):
            return None
        separator = tokens[position + 1].token_type
        if separator is TokenType.R_PAREN:
            return first, texts, position + 2
        if separator is not TokenType.COMMA:
            return None
        position += 2
    return None


def _equal_ends(tokens: list[Token], start: int) -> dict[int, int]:
    """For each token of BETWEEN's upper end, the position of the same token in its lower end; empty if the ends
    differ."""
    level = 0
    for middle in range(start, len(tokens)):
        kind = tokens[middle].token_type
        level += (kind in _OPENING) - (kind in _CLOSING)
        if level < 0:
            return {}
        if kind is TokenType.AND and level == 0:
            length = middle - start
            upper = tokens[middle + 1 : middle + 1 + length]
            same = [(t.token_type, t.text) for t in tokens[start:middle]] == [(t.token_type, t.text) for t in upper]
            return {middle + 1 + i: start + i for i in range(length)} if same else {}
    return {}


def _mark(kind: TokenType, number: int) -> str:
    """The mark for a literal: a literal of the same kind that no statement contains."""
    if kind is TokenType.NUMBER:
        return f"9151748036257{number:017}"
    return f"{_MARK}{number}{_MARK}" if kind is TokenType.STRING else f"e0009151748036257e{number:012}"


def _like(token: Token, text: str) -> Token:
    return Token(token.token_type, text, token.line, token.col, token.start, token.end)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep sqlglot from logging statements that it doesn't understand: they contain values."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
