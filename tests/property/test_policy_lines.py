"""Lines of keys in TOML texts: a writer of random texts, which knows where it puts each key, decides."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bloomcli.errors import PolicyError
from bloomcli.policy.policy_file import key_lines, parse_toml
from bloomcli.policy.policy_keys import At

pytestmark = pytest.mark.slow

BARE = st.text("abcXYZ019-_", min_size=1, max_size=4)
ANY = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\"'\\.#=[]{} \t\n\r\x00\x7f"), max_size=6
)
SPACE = st.sampled_from(["", " ", "\t", "  "])
COMMENT = st.sampled_from(["# plain", "# [a.b]", "# c = '''", '#"""', "#\tx = [", "# ünï"])
SCALARS = ("0", "-1.5e3", "true", "nan", "1979-05-27T07:32:00Z", "1979-05-27", "''", '"#"', "'[a]'", r'"\"]"')
DEPTH = 3


class Writer:
    """Writes a valid text and notes the line of each key, table and element when it is first named."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], newline: str) -> None:
        self.draw = draw
        self.newline = newline
        self.text = ""
        self.row = 1
        self.found: dict[At, int] = {}
        self.tables = 0

    def put(self, text: str) -> None:
        self.row += text.count("\n")
        self.text += text.replace("\n", self.newline)

    def named(self, at: At) -> At:
        self.found.setdefault(at, self.row)
        return at

    def maybe(self) -> bool:
        return bool(self.draw(st.booleans()))

    def key(self, used: set[str]) -> str:
        """Write a key that the table doesn't have, in any spelling."""
        name: str = self.draw((BARE | ANY).filter(lambda k: k not in used))
        used.add(name)
        forms = [json.dumps(name).replace("\x7f", "\\u007f") if name.isascii() else basic(name)]
        if name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
            forms.append(name)
            forms.append('"' + "".join(f"\\U{ord(c):08x}" for c in name) + '"')
        if "'" not in name and (name.isprintable() or not name):
            forms.append(f"'{name}'")
        self.put(self.draw(st.sampled_from(forms)))
        return name

    def keys(self, at: At, used: set[str]) -> At:
        """Write a dotted key whose first part is new, so that nothing is defined twice."""
        first = self.row
        path: At = (*at, self.key(used))
        self.found.setdefault(path, first)
        for _ in range(self.draw(st.integers(0, 2))):
            self.put(self.draw(SPACE) + "." + self.draw(SPACE))
            path = self.named((*path, self.key(set())))
        return path

    def pair(self, at: At, used: set[str], depth: int) -> None:
        path = self.keys(at, used)
        self.put(self.draw(SPACE) + "=" + self.draw(SPACE))
        self.value(path, depth)

    def value(self, at: At, depth: int) -> None:
        kinds = [self.scalar, self.long_text]
        if depth < DEPTH:
            kinds += [self.array, self.inline]
        kind = self.draw(st.sampled_from(kinds))
        kind(at, depth)

    def scalar(self, at: At, depth: int) -> None:
        del at, depth
        self.put(self.draw(st.sampled_from(SCALARS)))

    def long_text(self, at: At, depth: int) -> None:
        del at, depth
        inner = self.draw(
            st.lists(st.sampled_from(["a = 1", "[t]", "", "# x", "]", "''", '""', "[[f]]"]), max_size=4)
        )
        quote = self.draw(st.sampled_from(["'''", '"""']))
        other = "''" if quote == "'''" else '""'
        self.put(quote + "\n".join(line.replace(other, "") for line in inner) + quote)

    def gap(self) -> None:
        """White space within an array, which may hold newlines and comments."""
        self.put(self.draw(SPACE))
        for _ in range(self.draw(st.integers(0, 2))):
            self.put((self.draw(COMMENT) if self.maybe() else "") + "\n" + self.draw(SPACE))

    def array(self, at: At, depth: int) -> None:
        self.put("[")
        for index in range(self.draw(st.integers(0, 3))):
            if index:
                self.put(",")
            self.gap()
            self.named((*at, index))
            self.value((*at, index), depth + 1)
            self.gap()
        self.gap()
        self.put("]")

    def inline(self, at: At, depth: int) -> None:
        self.put("{")
        used: set[str] = set()
        for index in range(self.draw(st.integers(0, 3))):
            self.put(", " if index else " ")
            self.pair(at, used, depth + 1)
            self.put(self.draw(SPACE))
        self.put("}")

    def between(self) -> None:
        for _ in range(self.draw(st.integers(0, 2))):
            self.put(self.draw(SPACE) + (self.draw(COMMENT) if self.maybe() else "") + "\n")

    def pairs(self, at: At, used: set[str]) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.put(self.draw(SPACE))
            self.pair(at, used, 0)
            self.put(self.draw(SPACE) + (self.draw(COMMENT) if self.maybe() else "") + "\n")
            self.between()

    def name(self) -> str:
        self.tables += 1
        return f"table {self.tables}"

    def header(self, path: tuple[str, ...], at: At, brackets: int) -> None:
        """Write a table's header; `at` has the positions in arrays too."""
        self.put(self.draw(SPACE))
        step: At = ()
        for part in at:
            step = self.named((*step, part))
        inner = (self.draw(SPACE) + "." + self.draw(SPACE)).join(basic(part) for part in path)
        self.put("[" * brackets + self.draw(SPACE) + inner + self.draw(SPACE) + "]" * brackets)
        self.put(self.draw(SPACE) + (self.draw(COMMENT) if self.maybe() else "") + "\n")
        self.between()

    def table(self, path: tuple[str, ...], at: At) -> None:
        """``[path.new]``, or one level further below a table that only this names."""
        new = [self.name() for _ in range(self.draw(st.integers(1, 2)))]
        self.header((*path, *new), (*at, *new), 1)
        self.pairs((*at, *new), set())

    def tables_of(self, path: tuple[str, ...], at: At, depth: int) -> None:
        """``[[path.new]]`` some times, each with tables of its own."""
        new = self.name()
        for index in range(self.draw(st.integers(1, 3))):
            self.header((*path, new), (*at, new, index), 2)
            self.pairs((*at, new, index), set())
            self.below((*path, new), (*at, new, index), depth + 1)

    def below(self, path: tuple[str, ...], at: At, depth: int) -> None:
        for _ in range(self.draw(st.integers(0, 2))):
            if depth < DEPTH and self.maybe():
                self.tables_of(path, at, depth)
            else:
                self.table(path, at)


def basic(text: str) -> str:
    """A basic string, with what TOML doesn't allow in it escaped."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


@st.composite
def texts(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[str, dict[At, int]]:
    """A valid text and the lines of its keys."""
    writer = Writer(draw, draw(st.sampled_from(["\n", "\r\n"])))
    writer.between()
    writer.pairs((), set())
    writer.below((), (), 0)
    return draw(st.sampled_from(["", "\ufeff"])) + writer.text, writer.found


def paths(value: object, at: At = ()) -> set[At]:
    """Every key and position within a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = set()
    for step, inner in items:
        found |= {(*at, step)} | paths(inner, (*at, step))
    return found


@settings(max_examples=40, deadline=None)
@given(texts())
def test_each_key_and_element_is_on_the_line_on_which_it_was_written(written: tuple[str, dict[At, int]]) -> None:
    text, expected = written
    assert paths(tomllib.loads(text.removeprefix("\ufeff"))) == set(expected), "the writer knows what it writes"
    assert key_lines(text) == expected


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text("ab.=[]{}'\"#,\n\r\t 1\\", max_size=60)
)
@settings(max_examples=150, deadline=None)
def test_lines_of_whatever_tomllib_reads_are_those_of_its_keys(text: str) -> None:
    try:
        known = paths(parse_toml(text, "bloom.toml"))
    except PolicyError as error:
        line = (error.path or "").removeprefix("bloom.toml").removeprefix(":")
        assert not line or 1 <= int(line) <= text.count("\n") + 1
        return
    found = key_lines(text)
    assert set(found) == known
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())
