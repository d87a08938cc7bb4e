"""A table's schema (`--table-schema FILE`): the types of its columns, by the columns' paths in a file.

Files and engines name the levels of lists and maps differently: `tags.list.element` (the Parquet specification),
`tags.bag.array_element` (Hive), `tags.array` (Avro), `tags._elem` (orc-core). Therefore a path is followed through
the table's types, and such levels are skipped only if the table has a list or a map there.

JSON is Spark's (`df.schema.json()`), an Iceberg schema, or Iceberg table metadata.

Sources: the Iceberg specification's appendix C (JSON serialization), Spark's DataType.fromJson.

SQL is a list of columns, or CREATE TABLE, in the dialects of Spark, Hive, Trino, DuckDB and Iceberg.

    columns = column {"," column} | STRUCT <columns>
    column  = name [":"] type {option}
    type    = name ["(" figures ")"] | ARRAY/LIST <type> | MAP <type, type> | STRUCT/ROW <name [":"] type, ...>

Nested types may use <> or (). A type may end in [] (DuckDB's lists). Options (NOT NULL, COMMENT '...', DEFAULT ...)
and table constraints are skipped.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

from bloomcli import limits
from bloomcli.errors import UsageError, near_names
from bloomcli.storage.os_errors import option_file_error
from bloomcli.storage.registry import read_file

_LISTS: Final = ("list", "bag", "array")
"""Names of a list's repeated group."""
_ELEMENTS: Final = ("element", "item", "array_element", "array", "_elem")
_TUPLE: Final = "_tuple"
"""The suffix of the repeated field's name in parquet-thrift's lists."""
_MAPS: Final = ("key_value", "map", "entries")
"""Names of a map's repeated group."""
_KEYS: Final = ("key", "_key")
_VALUES: Final = ("value", "_value")

_NAMES: Final = {
    **dict.fromkeys(("boolean", "bool"), "BOOLEAN"),
    **dict.fromkeys(("tinyint", "byte", "int1"), "TINYINT"),
    **dict.fromkeys(("smallint", "short", "int2"), "SMALLINT"),
    **dict.fromkeys(("int", "integer", "int4"), "INT"),
    **dict.fromkeys(("bigint", "long", "int8"), "BIGINT"),
    **dict.fromkeys(("float", "real", "float4"), "FLOAT"),
    **dict.fromkeys(("double", "float8"), "DOUBLE"),
    **dict.fromkeys(("decimal", "dec", "numeric"), "DECIMAL"),
    **dict.fromkeys(("string", "varchar", "text"), "STRING"),
    **dict.fromkeys(("char", "character"), "CHAR"),
    **dict.fromkeys(("binary", "varbinary", "blob", "bytea", "fixed"), "BINARY"),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ntz", "timestamp_ltz", "datetime"), "TIMESTAMP"),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), "TIMESTAMP_NANOS"),
    **{
        name: name.upper()
        for name in (
            *("date", "time", "timetz", "uuid", "interval", "void", "null", "unknown", "variant", "json", "object"),
            *("geometry", "geography", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint", "uhugeint"),
            *("timestamp_s", "timestamp_ms"),
        )
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableType:
    """The type of a leaf column."""

    name: str
    """The canonical name, for all engines: ``INT``, ``BIGINT``, ``DECIMAL``, ``STRING``, ..."""
    precision: int = 0
    """Decimals only."""
    scale: int = 0

    def __str__(self) -> str:
        """Return the type in SQL."""
        return f"{self.name}({self.precision},{self.scale})" if self.name == "DECIMAL" else self.name


@dataclass(frozen=True, slots=True)
class Group:
    """A struct, a list or a map. The table itself is a struct."""

    kind: str
    fields: tuple[tuple[str, AnyType], ...]
    """Names and types, in order. A list has the field `element`, a map has `key` and `value`."""


AnyType = TableType | Group
_LEVELS: Final = {"list": ("element",), "map": ("key", "value")}


def group(kind: str, *types: AnyType) -> Group:
    """A list or a map of these types."""
    return Group(kind, tuple(zip(_LEVELS[kind], types, strict=True)))


def canonical(name: str) -> str | None:
    """Return the canonical name of a type, for all engines; None if there is no such type."""
    return _NAMES.get(name.lower())


def near_types(name: str) -> str:
    """Return the hint for an unknown type's name."""
    near = near_names(name.lower(), _NAMES, n=3, cutoff=0.5)
    return (
        f"did you mean {' or '.join(near)}?" if near else "types are those of Spark, Hive, Trino, DuckDB or Iceberg"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The columns of a table and their types."""

    path: str
    """The schema's file."""
    root: Group

    def leaves(self) -> Iterator[tuple[str, TableType]]:
        """Yield the dotted path and type of every leaf column. Levels are named `element`, `key` and `value`."""
        waiting: list[tuple[tuple[str, ...], AnyType]] = [((), self.root)]
        while waiting:
            steps, node = waiting.pop()
            if isinstance(node, TableType):
                yield ".".join(steps), node
            else:
                waiting += reversed([((*steps, name), child) for name, child in node.fields])

    def type_of(self, path: str) -> TableType | None:
        """Return the table's type for a file's leaf path.

        Names are compared exactly, then without regard to case, as in Spark and Hive. None if the table has no such
        column, or if the path matches several of different types.
        """
        for fold in (str, str.lower):
            types = set(_walk(self.root, fold(path), fold))
            if types:
                return types.pop() if len(types) == 1 else None
        return None


def _walk(root: AnyType, path: str, fold: Callable[[str], str]) -> Iterator[TableType]:
    """Yield every leaf type that matches a path. Each state is visited once, which bounds time by types times
    steps."""
    waiting: list[tuple[AnyType, int]] = [(root, 0)]
    states: set[tuple[int, int]] = set()
    while waiting:
        node, at = waiting.pop()
        if (id(node), at) in states:
            continue
        states.add((id(node), at))
        if isinstance(node, TableType):
            if at >= len(path):
                yield node
        else:
            for name, child in node.fields:
                waiting += [(child, end) for end in _ends(node.kind, fold(name), path, at)]


def _ends(kind: str, name: str, path: str, at: int) -> Iterator[int]:
    """Yield the positions after a field of a group."""
    if kind == "struct":
        yield from _skip_name(path, at, name)
    elif kind == "list":
        yield from _skip_list(path, at)
    else:
        for start in (at, *_skip_any(path, at, _MAPS)):
            yield from _skip_any(path, start, _KEYS if name == "key" else _VALUES)


def _skip_name(path: str, at: int, name: str) -> Iterator[int]:
    """Yield the position after a name, which may contain dots, if the path has this name there."""
    end = at + len(name)
    if at < len(path) and path.startswith(name, at) and path[end : end + 1] in {"", "."}:
        yield end + 1


def _skip_any(path: str, at: int, names: tuple[str, ...]) -> Iterator[int]:
    step = path[at:].partition(".")[0]
    if step.lower() in names:
        yield at + len(step) + 1


def _skip_list(path: str, at: int) -> Iterator[int]:
    """Yield the positions after a list's levels: none (a repeated field), one (of either name), or two."""
    yield at
    yield from _skip_any(path, at, _ELEMENTS)
    step = path[at:].partition(".")[0]
    if step.lower() in _LISTS or step.lower().endswith(_TUPLE):
        yield at + len(step) + 1
        yield from _skip_any(path, at + len(step) + 1, _ELEMENTS)


HINT: Final = "give Spark's `df.schema.json()`, an Iceberg schema or metadata.json, or columns as in CREATE TABLE"
_SCALAR: Final = re.compile(r"\s*(\w+)\s*(?:[(\[]\s*([^)\]]*?)\s*[)\]])?(?:\s+collate\s+\S+)?\s*", re.IGNORECASE)
_DIGITS: Final = re.compile(r"(\d{1,4})\s*,\s*(-?\d{1,4})")
_FIELD_MAX: Final = 80
"""The number of characters in the field path of an error about nesting."""
_INTERVAL: Final = "interval"
_KEYS_OF_TYPES: Final = {
    "array": ("elementType",),
    "list": ("element",),
    "map": ("keyType", "valueType"),
    "iceberg map": ("key", "value"),
}
"""Where Spark's arrays and maps, and Iceberg's lists and maps, have the types of their fields."""


def parse_json(text: str, path: str) -> Group:
    """Parse the table's columns. Raises UsageError with the field path in the JSON."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"line {error.lineno}: not JSON: {error.msg}",
            path=path,
            offset=len(text[: error.pos].encode("utf-8", "surrogatepass")),
            hint=HINT,
        ) from None
    except (ValueError, RecursionError):  # a number with thousands of digits; thousands of nested braces
        raise UsageError("not a table's schema", path=path, hint=HINT) from None
    at = ""
    if isinstance(document, dict) and ("schemas" in document or "schema" in document):
        document, at = _current(document, path)
    if not isinstance(document, dict) or document.get("type") != "struct":
        _fault("not a table's schema", path, at or "type")
    return _struct(document, path, at, 0)


def _fault(reason: str, path: str, at: str, hint: str = HINT) -> NoReturn:
    raise UsageError(reason, path=path, field=at, hint=hint)


def _current(document: dict[str, Any], path: str) -> tuple[Any, str]:
    """Return the current schema of Iceberg table metadata, and its path. Version 1 may have a single schema."""
    schemas, wanted = document.get("schemas"), document.get("current-schema-id")
    if not isinstance(schemas, list) or wanted is None:
        return document.get("schema"), "schema"
    for index, schema in enumerate(schemas):
        if isinstance(schema, dict) and schema.get("schema-id", 0) == wanted:
            return schema, f"schemas[{index}]"
    _fault(f"no schema has the id {wanted!r}", path, "current-schema-id")


def _struct(node: dict[str, Any], path: str, at: str, depth: int) -> Group:
    fields = node.get("fields")
    inside = f"{at}.fields" if at else "fields"
    if not isinstance(fields, list):
        _fault("a struct without a list of fields", path, inside)
    members: list[tuple[str, AnyType]] = []
    for index, field in enumerate(fields):
        here = f"{inside}[{index}]"
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            _fault("a field without a name", path, here)
        members.append((field["name"], _type(field.get("type"), path, f"{here}.type", depth + 1)))
    return Group("struct", tuple(members))


def _type(node: Any, path: str, at: str, depth: int) -> AnyType:
    if depth > limits.TABLE_SCHEMA_MAX_DEPTH:
        _fault(f"the schema nests deeper than {limits.TABLE_SCHEMA_MAX_DEPTH}", path, at[:_FIELD_MAX] + "...")
    if isinstance(node, str):
        return _scalar(node, path, at)
    kind = node.get("type") if isinstance(node, dict) else None
    if kind == "struct":
        return _struct(node, path, at, depth)
    if kind == "udt":
        return _type(node.get("sqlType"), path, f"{at}.sqlType", depth + 1)
    if isinstance(kind, str) and kind in {"array", "list", "map"}:
        keys = _KEYS_OF_TYPES[kind if kind != "map" or "keyType" in node else "iceberg map"]
        types = [_type(node.get(key), path, f"{at}.{key}", depth + 1) for key in keys]
        return group("map" if kind == "map" else "list", *types)
    _fault("not a type", path, at)


def _scalar(text: str, path: str, at: str) -> TableType:
    match = _SCALAR.fullmatch(text)
    if match is None:
        if text.lower().startswith(_INTERVAL):
            return TableType(name="INTERVAL")
        _fault(f"unknown type {text[:40]!r}", path, at, near_types(text[:40]))
    name = canonical(match[1])
    if name is None:
        _fault(f"unknown type {text[:40]!r}", path, at, near_types(match[1]))
    if name != "DECIMAL":
        return TableType(name=name)
    digits = _DIGITS.fullmatch(match[2] or "")
    if digits is None:
        _fault(f"{text[:40]!r} has no precision and scale", path, at, "write it like decimal(9,2)")
    return TableType(name=name, precision=int(digits[1]), scale=int(digits[2]))


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


def parse_ddl(text: str, path: str) -> Group:
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
        tokens = []
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup or "sign"
            if kind != "skip":
                raw = match[0]
                text = raw[1:-1].replace(raw[0] * 2, raw[0]) if kind == "quoted" else raw
                tokens.append(Token(text, kind, match.start()))
        return tokens

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

    def table(self) -> Group:
        """Parse the whole text."""
        if self.peek().word() == "struct" and self.peek(1).word() == "<":
            self.next += 1
            return self.all_of(self.columns(self.opening(), 1))
        within = self.peek().word() == "(" or (
            self.peek().word() in {"create", "replace"} and self.peek(1).word() in _CREATED
        )
        if within:
            while not self.accept("("):
                if self.peek().kind == "end" or self.accept("as", ";"):
                    self.fault("a CREATE TABLE without a list of columns")
                self.next += 1
            columns = self.columns(")", 1, constraints=True)
            self.next = len(self.tokens) - 1  # the rest (USING, PARTITIONED BY, ...) doesn't affect types
            return self.all_of(columns)
        return self.all_of(self.columns("", 1, constraints=True))

    def all_of(self, columns: list[tuple[str, AnyType]]) -> Group:
        """Return these columns if the text ends here and there is at least one column."""
        self.accept(";")
        if self.peek().kind != "end":
            self.fault(f"unexpected {self.next_text()} after the columns")
        if not columns:
            self.fault("no columns")
        return Group("struct", tuple(columns))

    def columns(self, closing: str, depth: int, *, constraints: bool = False) -> list[tuple[str, AnyType]]:
        """Parse columns, or fields of a struct, up to the closing sign, or to the end if it is empty.

        Args:
            closing: the closing sign.
            depth: the depth of the columns' types.
            constraints: there may be table constraints among the columns.
        """
        columns: list[tuple[str, AnyType]] = []
        while not (closing and self.accept(closing)):
            if not closing and self.peek().kind == "end":
                return columns
            if not (constraints and self.constraint()):
                name = self.name()
                self.accept(":")
                columns.append((name, self.type(depth)))
            self.options()
            if self.accept(","):
                continue
            if closing:
                self.expect(closing)
            return columns
        return columns

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
        kind = self.plain_type(depth)
        while self.accept("["):
            if self.peek().text.isdecimal():
                self.next += 1
            self.expect("]")
            depth += 1
            if depth > limits.TABLE_SCHEMA_MAX_DEPTH:
                self.fault(f"the types nest deeper than {limits.TABLE_SCHEMA_MAX_DEPTH}")
            kind = group("list", kind)
        return kind

    def plain_type(self, depth: int) -> AnyType:
        token = self.take()
        if token.kind != "word":
            self.next -= 1
            self.fault(f"expected a type, found {self.next_text()}")
        word = token.word()
        if word in {"array", "list", "map"} and self.peek().word() in _CLOSING:
            closing = self.opening()
            types = [self.type(depth + 1)]
            if word == "map":
                self.expect(",")
                types.append(self.type(depth + 1))
            self.expect(closing)
            return group("map" if word == "map" else "list", *types)
        if word in {"struct", "row"} and self.peek().word() in _CLOSING:
            return Group("struct", tuple(self.columns(self.opening(), depth + 1)))
        return self.scalar(token)

    def opening(self) -> str:
        return _CLOSING[self.take().text]

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
        figures = []
        while not self.accept(")"):
            token = self.take()
            if token.kind == "end":
                self.fault("a bracket that is never closed", token)
            if token.text.isdecimal() and len(token.text) <= _FIGURE_DIGITS:
                figures.append(int(token.text))
            elif token.kind != "word" and token.text != ",":
                self.fault(f"unexpected {token.text[:40]!r} in a type's parameters", token)
        return tuple(figures)


_TEXT: Final = (
    "a table's schema is text: JSON of Spark or Iceberg (not compressed by gzip), or columns as in CREATE TABLE"
)


def read(path: str | os.PathLike[str]) -> TableSchema:
    """Read a table's schema from a file.

    Raises:
        UsageError: the file doesn't exist or isn't a schema. The error has the location in the file.
        UnreadableError: the file exists but can't be read.
    """
    name = os.fspath(path)
    try:
        data = read_file(name, limits.TABLE_SCHEMA_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        problem = option_file_error(error, name, "the table's schema") if isinstance(error, OSError) else None
        if problem is not None:
            raise problem from None
        why = (getattr(error, "strerror", None) or "not a path").lower()
        raise UsageError(f"the table's schema can't be read: {why}", path=name, hint="check the path") from None
    if len(data) > limits.TABLE_SCHEMA_MAX_BYTES:
        raise UsageError(
            f"larger than {limits.TABLE_SCHEMA_MAX_BYTES:,} bytes, the limit for a table's schema",
            path=name,
            hint=_TEXT,
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", path=name, offset=error.start, hint=_TEXT) from None
    return parse(text, name)


def parse(text: str, path: str) -> TableSchema:
    """Parse a table's schema; `path` names the file in errors. Raises UsageError."""
    parser = parse_json if text.lstrip()[:1] in {"{", "["} else parse_ddl
    return TableSchema(path=path, root=parser(text, path))
