"""Reads TOML with tomllib: bounds what a hostile text costs, and finds the lines of keys, which tomllib doesn't.

Both need only a text's tokens: comments and strings are skipped, brackets and dots count. What is valid TOML is
tomllib's decision alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from bloomcli import limits

_TOKEN: Final = re.compile(
    r"""
      (?P<comment>\#[^\n]*+ | [ \t\r]++)
    | (?P<newline>\n)
    | (?P<string>
          \"{3}(?:\\.|\"{1,2}(?!\")|[^\"\\])*+(?:\"{3,5}|\Z)
        | '{3}(?:'{1,2}(?!')|[^'])*+(?:'{3,5}|\Z)
        | \"(?:\\.|[^\"\\\n])*+\"
        | '[^'\n]*+')
    | (?P<sign>[\[\]{}=,.])
    | (?P<word>[^\s\"'\#\[\]{}=,.]++)
    """,
    re.VERBOSE | re.DOTALL,
)
"""A token. A string of several lines without an end reaches to the end of the text, so that a scan is linear."""

_AT_LINE: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")
_AT_END: Final = re.compile(r" \(at end of document\)$")


class InvalidToml(Exception):
    """A text that isn't TOML, or exceeds a limit.

    Attributes:
        reason: why.
        line: where, from 1; None if that is unknown.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(text: str) -> dict[str, Any]:
    """Parse a text.

    Raises:
        InvalidToml: it isn't TOML, or it nests deeper than `limits.POLICY_MAX_DEPTH`. tomllib recurses for arrays,
            and for a dotted key takes memory by the square of the number of its parts.
    """
    _check_depth(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        if (position := _AT_LINE.search(reason)) is not None:
            line, where = int(position[1]), f"column {position[2]}"
        else:
            line, where = text.rstrip().count("\n") + 1, "at the end"
        reason = _AT_END.sub("", _AT_LINE.sub("", reason))
        raise InvalidToml(f"not TOML: {reason[:1].lower()}{reason[1:]}, {where}", line) from None
    except ValueError:  # Python converts no integer of more than 4,300 digits
        raise InvalidToml("an integer with thousands of digits") from None


def _check_depth(text: str) -> None:
    """Raise InvalidToml if arrays and tables, or the parts of a dotted key, nest too deeply."""
    depth = parts = 0
    for kind, sign, line in _tokens(text):
        if kind == "sign":
            depth += (sign in "[{") - (sign in "]}")
            parts = parts + 1 if sign == "." else 0
        elif kind == "newline":
            parts = 0
        if depth + parts > limits.POLICY_MAX_DEPTH:
            raise InvalidToml("nested too deeply", line)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a text, without white space and comments."""
    line = 1
    for match in _TOKEN.finditer(text):
        if (kind := match.lastgroup) is not None and kind != "comment":
            yield _Token(kind, match[0], line)
            line += match[0].count("\n")


KeyPath = tuple[str | int, ...]
"""Keys, and the indexes of elements, the outermost first."""


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1, on which each key, table and element in a text that `parse` accepts is first named."""
    lines: dict[KeyPath, int] = {}
    lengths: dict[KeyPath, int] = {}  # of the arrays so far
    table: KeyPath = ()
    opened: list[tuple[KeyPath, bool]] = []  # the brackets around a token: what they enclose, and whether an array
    value: KeyPath | None = None  # what the token belongs to the value of; None in front of a key or an element
    keys: list[str] = []
    first = brackets = 0

    def named(path: KeyPath, step: str | int, line: int) -> KeyPath:
        lines.setdefault((*path, step), line)
        return (*path, step)

    def element(array: KeyPath, line: int) -> KeyPath:
        lengths[array] = lengths.get(array, 0) + 1
        return named(array, lengths[array] - 1, line)

    for token in _tokens(text.removeprefix("\ufeff")):
        sign = token.text if token.kind == "sign" else ""
        if value is None and opened and opened[-1][1] and token.kind != "newline" and sign not in {",", "]"}:
            value = element(opened[-1][0], token.line)
        if token.kind == "newline":
            value = value if opened else None
        elif sign in {"]", "}"} and opened:
            value, _ = opened.pop()
        elif value is not None:
            if sign in {"[", "{"}:
                opened.append((value, sign == "["))
            value = None if sign in {"[", "{", ","} else value
        elif sign == "[":
            brackets += 1
        elif sign == "]" and keys:  # the end of a header, or the first of its two ends
            table = ()
            for number, key in enumerate(keys, 1):
                table = named(table, key, first)
                if number == len(keys) and brackets == 2:
                    table = element(table, first)
                elif table in lengths:  # a table below an array of tables is in the array's last one
                    table = (*table, lengths[table] - 1)
            keys, brackets = [], 0
        elif sign == "=":
            value = opened[-1][0] if opened else table
            for key in keys:
                value = named(value, key, first)
            keys = []
        elif not sign:
            first = first if keys else token.line
            keys.append(_key(token))
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of what a path names, or of the innermost part of it that is known; 0 for the whole text."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0)


def _key(token: _Token) -> str:
    """A key, parsed by tomllib if it has quotes and escapes."""
    if token.kind == "word":
        return token.text
    parsed: str = tomllib.loads(f"key = {token.text}")["key"]
    return parsed
