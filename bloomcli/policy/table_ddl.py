"""A table's schema as SQL: a list of columns, alone or within CREATE TABLE, in the dialects of Spark, Hive, Trino,
DuckDB and Iceberg.

    columns = column {"," column} | STRUCT <columns>
    column  = name [":"] type {option}
    type    = name ["(" figures ")"] | ARRAY/LIST <type> | MAP <type, type> | STRUCT/ROW <name [":"] type, ...>

Types may stand in <> or (). A type may end in [] (DuckDB's lists). Options (NOT NULL, COMMENT '...', DEFAULT ...) and
table constraints are passed over.
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
"""What starts a table constraint, and what then has to follow where the word may be a column's name too."""
_CREATED: Final = {"table", "external", "or", "temporary", "temp", "global", "local", "unlogged", "transient"}
"""What may follow CREATE or REPLACE; a column may have these names too."""
_DEFAULT_DECIMAL: Final = (10, 0)
"""Spark's and Hive's DECIMAL without figures."""
_FIGURE_DIGITS: Final = 9
"""Digits of a length, precision or scale; none is longer."""


class Token(NamedTuple):
    """One token: its text (unquoted), whether it was quoted, and where it starts."""

    text: str
    kind: str
    at: int

    def word(self) -> str:
        """In lower case, for keywords; a quoted name is none."""
        return self.text.lower() if self.kind in {"word", "sign"} else ""


def parse(text: str, path: str) -> StructType:
    """The table's columns. Raises UsageError with the line and the byte offset."""
    return _Parser(text, path).table()


class _Parser:
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
        """Take the next token if it is one of these."""
        if self.peek().word() in words:
            self.next += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.fault(f"{self.shown()} where {sign!r} should be")

    def shown(self) -> str:
        token = self.peek()
        return "the end" if token.kind == "end" else repr(token.text[:40])

    def table(self) -> StructType:
        """The whole text."""
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
            self.next = len(self.tokens) - 1  # what follows (USING, PARTITIONED BY, ...) is not about types
            return self.all_of(columns)
        return self.all_of(tuple(self.columns("")))

    def all_of(self, columns: tuple[tuple[str, AnyType], ...]) -> StructType:
        """These columns, where there are some and nothing is behind them."""
        self.accept(";")
        if self.peek().kind != "end":
            self.fault(f"{self.shown()} behind the columns")
        if not columns:
            self.fault("no columns")
        return StructType(columns)

    def columns(self, closing: str) -> list[tuple[str, AnyType]]:
        """Columns up to the closing sign, or up to the end."""
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
            self.fault(f"{self.shown()} where a column's name should be")
        return token.text

    def options(self) -> None:
        """Pass over what stands between a type and the next comma or closing sign, brackets balanced."""
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
        """One type, with DuckDB's [] behind it."""
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
            self.fault(f"{self.shown()} where a type should be")
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
            self.fault(f"{token.text[:40]!r} is no type", token, near_types(token.text[:40]))
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
        """(9, 2), (10), (max)."""
        self.expect("(")
        found = []
        while not self.accept(")"):
            token = self.take()
            if token.kind == "end":
                self.fault("a bracket that is never closed", token)
            if token.text.isdecimal() and len(token.text) <= _FIGURE_DIGITS:
                found.append(int(token.text))
            elif token.kind != "word" and token.text != ",":
                self.fault(f"{token.text[:40]!r} among a type's figures", token)
        return tuple(found)
