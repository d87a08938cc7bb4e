"""Where the keys of a TOML text stand. `tomllib` reads the values but doesn't say; a syntax tree does.

Only asked when there is something to say about a policy file: the tree's library is imported then, and not before.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tree_sitter import Node

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and positions in arrays, from the outermost: ``("files", 1, "paths", 0)``."""


def lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1, on which each key, table and array element of a valid TOML text is first named.

    Nothing where the tree doesn't cover all of the text (a newer TOML than its grammar knows): no line is better than
    a wrong one.
    """
    import tree_sitter_toml
    from tree_sitter import Language, Parser

    normal = text.removeprefix("\ufeff").replace("\r\n", "\n")
    root = Parser(Language(tree_sitter_toml.language())).parse(normal.encode()).root_node
    if root.has_error:
        return {}
    places = _Places()
    for node in root.named_children:
        if node.type == "pair":
            places.pair(node, ())
        elif node.type in {"table", "table_array_element"}:
            places.table(node)
    return places.found


class _Places:
    """The lines, as they are collected in the order of the text."""

    def __init__(self) -> None:
        self.found: dict[KeyPath, int] = {}
        self._tables: Counter[KeyPath] = Counter()
        """For each array of tables, how many were begun."""

    def table(self, node: Node) -> None:
        """``[a.b]`` or ``[[a.b]]`` with the pairs below it."""
        header, *pairs = node.named_children
        at: KeyPath = ()
        *outer, last = _keys(header)
        for key in outer:
            at = self._named((*at, key), header)
            if at in self._tables:  # a table within the one begun last
                at = (*at, self._tables[at] - 1)
        at = self._named((*at, last), header)
        if node.type == "table_array_element":
            self._tables[at] += 1
            at = self._named((*at, self._tables[at] - 1), header)
        for pair in pairs:
            if pair.type == "pair":
                self.pair(pair, at)

    def pair(self, node: Node, at: KeyPath) -> None:
        """``a.b = value`` in the table at `at`."""
        header, value = (child for child in node.named_children if child.type != "comment")
        for key in _keys(header):
            at = self._named((*at, key), header)
        self._value(value, at)

    def _value(self, node: Node, at: KeyPath) -> None:
        parts = [child for child in node.named_children if child.type != "comment"]
        if node.type == "inline_table":
            for pair in parts:
                self.pair(pair, at)
        elif node.type == "array":
            for index, element in enumerate(parts):
                self._value(element, self._named((*at, index), element))

    def _named(self, at: KeyPath, node: Node) -> KeyPath:
        self.found.setdefault(at, node.start_point.row + 1)
        return at


def _keys(node: Node) -> list[str]:
    """The keys of ``a."b c".d``, by tomllib itself: quotes and escapes mean what they mean to it."""
    keys = []
    table: object = tomllib.loads(f"{(node.text or b'').decode()} = 0")
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return keys
