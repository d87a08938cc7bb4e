"""Parses a table's schema in SQL: a list of columns, or CREATE TABLE, in the dialects of Spark, Hive, Trino, DuckDB
and Iceberg.

    columns = column {"," column} | STRUCT <columns>
    column  = name [":"] type {option}
    type    = name ["(" figures ")"] | ARRAY/LIST <type> | MAP <type, type> | STRUCT/ROW <name [":"] type, ...>

Nested types may use <> or (). A type may end in [] (DuckDB's lists). Options (NOT NULL, COMMENT '...', DEFAULT ...)
and table constraints are skipped.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from bloomcli import limits
from bloomcli.errors import UsageError
from bloomcli.policy.table_types import AnyType, ListType, MapType, StructType, TableType, canonical, near_types

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*(?s:.*?)\*/)"""
    r"""|(?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")"""
    r"""|(?P<string>'(?:[^'\\]|''|\\.)*')"""
    r"""|(?P<word>[^\W\d][\w$@]*|\d+\w*)"""
    r"""|(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_HINT: Final = "write columns as in CREATE TABLE: `id BIGINT, price DECIMAL(9,2), user STRUCT<email: STRING>`"
_CLOSING: Final = {"(": ")", "<": ">"}
_CONSTRAINTS: Final = {
    "primary": ("key",),
    "foreign": ("key",),
    "unique": ("(", "key"),
    "check": ("(",),
    "constraint": (),
    "like": (),
}
"""The first words of table constraints, and the words that must follow if the first may also be a column's name."""
_CREATED: Final = {"table", "external", "or", "temporary", "temp", "global", "local", "unlogged", "transient"}
"""Words that may follow CREATE or REPLACE. CREATE and REPLACE may also be names of columns."""
_DEFAULT_DECIMAL: Final = (10, 0)
"""Precision and scale of DECIMAL without parameters in Spark and Hive."""
_FIGURE_DIGITS: Final = 9
"""The maximum number of digits of a length, precision or scale."""


class Token(NamedTuple):
    """One token: its unquoted text, its kind, and its position in characters."""

    text: str
    kind: str
    at: int

    def word(self) -> str:
        """Return the text in lower case, to compare with keywords; empty for a quoted name."""
        return self.text.lower() if self.kind in {"word", "sign"} else ""


def parse(text: str, path: str) -> StructType:
    """Parse the table's columns. Raises UsageError with the line and the byte offset."""
    return _Parser(text, path).table()


class _Parser:
    """A recursive-descent parser for the grammar above."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.tokens = [*self._tokens(), Token("", "end", len(text))]
        self.next = 0

    def _tokens(self) -> list[Token]:
        found = []
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup or "sign"
            if kind != "skip":
                raw = match[0]
                text = raw[1:-1].replace(raw[0] * 2, raw[0]) if kind == "quoted" else raw
                found.append(Token(text, kind, match.start()))
        return found

    def fault(self, reason: str, token: Token | None = None, hint: str = _HINT) -> NoReturn:
        at = (token or self.peek()).at
        raise UsageError(
            f"line {self.text.count(chr(10), 0, at) + 1}: {reason}",
            path=self.path,
            offset=len(self.text[:at].encode("utf-8", "surrogatepass")),
            hint=hint,
        )

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.next + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self.next += 1
        return token

    def accept(self, *words: str) -> bool:
        """Consume the next token if it is one of these."""
        if self.peek().word() in words:
            self.next += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.fault(f"expected {sign!r}, found {self.next_text()}")

    def next_text(self) -> str:
        """Return the next token as text for errors."""
        token = self.peek()
        return "the end" if token.kind == "end" else repr(token.text[:40])

    def table(self) -> StructType:
        """Parse the whole text."""
        if self.peek().word() == "struct" and self.peek(1).word() == "<":
            self.next += 1
            return self.all_of(self.struct(0).fields)
        within = self.peek().word() == "(" or (
            self.peek().word() in {"create", "replace"} and self.peek(1).word() in _CREATED
        )
        if within:
            while not self.accept("("):
                if self.peek().kind == "end" or self.accept("as", ";"):
                    self.fault("a CREATE TABLE without a list of columns")
                self.next += 1
            columns = tuple(self.columns(")"))
            self.next = len(self.tokens) - 1  # the rest (USING, PARTITIONED BY, ...) doesn't affect types
            return self.all_of(columns)
        return self.all_of(tuple(self.columns("")))

    def all_of(self, columns: tuple[tuple[str, AnyType], ...]) -> StructType:
        """Return these columns if the text ends here and there is at least one column."""
        self.accept(";")
        if self.peek().kind != "end":
            self.fault(f"unexpected {self.next_text()} after the columns")
        if not columns:
            self.fault("no columns")
        return StructType(columns)

    def columns(self, closing: str) -> list[tuple[str, AnyType]]:
        """Parse columns up to the closing sign, or to the end if it is empty."""
        found: list[tuple[str, AnyType]] = []
        while not (closing and self.accept(closing)):
            if not closing and self.peek().kind == "end":
                return found
            if not self.constraint():
                name = self.name()
                self.accept(":")
                found.append((name, self.type(1)))
            self.options()
            if self.accept(","):
                continue
            if closing:
                self.expect(closing)
            return found
        return found

    def constraint(self) -> bool:
        first = self.peek().word()
        if first not in _CONSTRAINTS:
            return False
        follow = _CONSTRAINTS[first]
        second = self.peek(1)
        if follow:
            return second.word() in follow
        return second.kind in {"word", "quoted"} and canonical(second.text) is None

    def name(self) -> str:
        token = self.take()
        if token.kind not in {"word", "quoted"} or not token.text:
            self.next -= 1
            self.fault(f"expected a column's name, found {self.next_text()}")
        return token.text

    def options(self) -> None:
        """Skip everything between a type and the next comma or closing sign, with balanced brackets."""
        depth: list[Token] = []
        while True:
            token = self.peek()
            if token.kind == "end":
                if depth:
                    self.fault("a bracket that is never closed", depth[-1])
                return
            word = token.word()
            if not depth and word in {",", ")", ">", ";"}:
                return
            if word == "(":
                depth.append(token)
            elif word == ")":
                depth.pop()
            self.next += 1

    def type(self, depth: int) -> AnyType:
        """Parse one type, including DuckDB's []."""
        if depth > limits.TABLE_SCHEMA_MAX_DEPTH:
            self.fault(f"the types nest deeper than {limits.TABLE_SCHEMA_MAX_DEPTH}")
        found = self.plain_type(depth)
        while self.accept("["):
            if self.peek().text.isdecimal():
                self.next += 1
            self.expect("]")
            depth += 1
            if depth > limits.TABLE_SCHEMA_MAX_DEPTH:
                self.fault(f"the types nest deeper than {limits.TABLE_SCHEMA_MAX_DEPTH}")
            found = ListType(found)
        return found

    def plain_type(self, depth: int) -> AnyType:
        token = self.take()
        if token.kind != "word":
            self.next -= 1
            self.fault(f"expected a type, found {self.next_text()}")
        word = token.word()
        if word in {"array", "list"} and self.peek().word() in _CLOSING:
            closing = self.opening()
            element = self.type(depth + 1)
            self.expect(closing)
            return ListType(element)
        if word == "map" and self.peek().word() in _CLOSING:
            closing = self.opening()
            key = self.type(depth + 1)
            self.expect(",")
            value = self.type(depth + 1)
            self.expect(closing)
            return MapType(key, value)
        if word in {"struct", "row"} and self.peek().word() in _CLOSING:
            return self.struct(depth)
        return self.scalar(token)

    def opening(self) -> str:
        return _CLOSING[self.take().text]

    def struct(self, depth: int) -> StructType:
        closing = self.opening()
        fields: list[tuple[str, AnyType]] = []
        while not self.accept(closing):
            name = self.name()
            self.accept(":")
            fields.append((name, self.type(depth + 1)))
            self.options()
            if not self.accept(","):
                self.expect(closing)
                break
        return StructType(tuple(fields))

    def scalar(self, token: Token) -> TableType:
        name = canonical(token.text)
        if name is None:
            self.fault(f"unknown type {token.text[:40]!r}", token, near_types(token.text[:40]))
        if name == "DOUBLE":
            self.accept("precision")
        figures = self.figures() if self.peek().word() == "(" else ()
        if name in {"TIMESTAMP", "TIME"} and self.peek().word() in {"with", "without"}:
            self.next += 1
            while self.accept("local", "time", "zone"):
                pass
        if name != "DECIMAL":
            return TableType(name=name)
        precision, scale = (*figures, 0)[:2] if figures else _DEFAULT_DECIMAL
        return TableType(name=name, precision=precision, scale=scale)

    def figures(self) -> tuple[int, ...]:
        """Parse a type's parameters: (9, 2), (10), (max)."""
        self.expect("(")
        found = []
        while not self.accept(")"):
            token = self.take()
            if token.kind == "end":
                self.fault("a bracket that is never closed", token)
            if token.text.isdecimal() and len(token.text) <= _FIGURE_DIGITS:
                found.append(int(token.text))
            elif token.kind != "word" and token.text != ",":
                self.fault(f"unexpected {token.text[:40]!r} in a type's parameters", token)
        return tuple(found)
