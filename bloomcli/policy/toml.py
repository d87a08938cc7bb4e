"""Reads TOML with tomllib: bounds what a hostile text costs, and finds the lines of keys, which tomllib doesn't.

Both need only a text's tokens: comments and strings are skipped, brackets and dots count. What is valid TOML is
tomllib's decision alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
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


class KeyLines:
    """The line of a key, a table or an array's element, and of all that it contains.

    Attributes:
        line: the line, from 1, on which it is first named; 0 for the whole text.
        inside: what it contains, by key or by index.
    """

    def __init__(self, line: int = 0) -> None:
        self.line = line
        self.inside: dict[str | int, KeyLines] = {}

    def at(self, path: Sequence[str | int]) -> int:
        """The line of what a path of keys and indexes names, or of the innermost part of it that is known."""
        node, line = self, self.line
        for step in path:
            if step not in node.inside:
                break
            node = node.inside[step]
            line = node.line
        return line

    def named(self, step: str | int, line: int) -> KeyLines:
        """What a key or an index names in it, on this line unless it was named before."""
        return self.inside.setdefault(step, KeyLines(line))


def key_lines(text: str) -> KeyLines:
    """The lines of the keys in a text that `parse` accepts."""
    return _Scanner(text).whole()


class _Scanner:
    """A recursive-descent scanner of valid TOML, in which keys matter and other values don't."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text.removeprefix("\ufeff")), _Token("end", "", 0)]
        self._next = 0

    def whole(self) -> KeyLines:
        root = KeyLines()
        table = root
        while self._skip_newlines().kind != "end":
            if self._accept("["):
                table = self._header(root)
            else:
                self._pair(table)
        return root

    def _header(self, root: KeyLines) -> KeyLines:
        """``a.b]`` or ``[a.b]]``; returns the table. A table below an array of tables is in the array's last one."""
        is_array = self._accept("[")
        table = root
        line, keys = self._keys()
        for number, key in enumerate(keys):
            table = table.named(key, line)
            last = len(table.inside) - 1
            if number == len(keys) - 1 and is_array:
                table = table.named(last + 1, line)
            elif last in table.inside:
                table = table.inside[last]
        while self._accept("]"):
            pass
        return table

    def _pair(self, table: KeyLines) -> None:
        """``a.b = value``."""
        line, keys = self._keys()
        for key in keys:
            table = table.named(key, line)
        self._next += 1  # =
        self._value(table)

    def _keys(self) -> tuple[int, list[str]]:
        """A dotted key: its line and its parts."""
        first = self._skip_newlines()
        keys = [_key(self._take())]
        while self._accept("."):
            keys.append(_key(self._take()))
        return first.line, keys

    def _value(self, at: KeyLines) -> None:
        if self._accept("["):
            while self._skip_newlines().text != "]":
                self._value(at.named(len(at.inside), self._tokens[self._next].line))
                self._skip_newlines()
                self._accept(",")
            self._next += 1
        elif self._accept("{"):
            while self._skip_newlines().text != "}":
                self._pair(at)
                self._skip_newlines()
                self._accept(",")
            self._next += 1
        else:
            while self._tokens[self._next].kind in {"word", "string"} or self._tokens[self._next].text == ".":
                self._next += 1

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, sign: str) -> bool:
        token = self._tokens[self._next]
        found = token.kind == "sign" and token.text == sign
        self._next += found
        return found

    def _skip_newlines(self) -> _Token:
        """The next token that isn't a newline."""
        while self._tokens[self._next].kind == "newline":
            self._next += 1
        return self._tokens[self._next]


def _key(token: _Token) -> str:
    """A key, parsed by tomllib if it has quotes and escapes."""
    if token.kind == "word":
        return token.text
    parsed: str = tomllib.loads(f"key = {token.text}")["key"]
    return parsed
