"""Finds the line numbers of keys in a TOML text, from a syntax tree; `tomllib` doesn't report them.

Only the errors of a policy file need it, so the tree's library is imported on use.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tree_sitter import Node

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and array indexes, the outermost first: ``("files", 1, "paths", 0)``."""


def lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of the first occurrence of each key, table and array element of a valid TOML text.

    The result is empty if the tree's grammar doesn't cover the text (a newer version of TOML), to avoid wrong lines.
    """
    import tree_sitter_toml
    from tree_sitter import Language, Parser

    normal = text.removeprefix("\ufeff").replace("\r\n", "\n")
    root = Parser(Language(tree_sitter_toml.language())).parse(normal.encode()).root_node
    if root.has_error:
        return {}
    collector = _LineCollector()
    for node in root.named_children:
        if node.type == "pair":
            collector.pair(node, ())
        elif node.type in {"table", "table_array_element"}:
            collector.table(node)
    return collector.found


class _LineCollector:
    """Collects the lines in the order of the text."""

    def __init__(self) -> None:
        self.found: dict[KeyPath, int] = {}
        self._tables: Counter[KeyPath] = Counter()
        """For each array of tables, the number of its tables so far."""

    def table(self, node: Node) -> None:
        """Collect ``[a.b]`` or ``[[a.b]]`` with the pairs below it."""
        header, *pairs = node.named_children
        at: KeyPath = ()
        *outer, last = _keys(header)
        for key in outer:
            at = self._named((*at, key), header)
            if at in self._tables:  # a table nested in the last one of the array
                at = (*at, self._tables[at] - 1)
        at = self._named((*at, last), header)
        if node.type == "table_array_element":
            self._tables[at] += 1
            at = self._named((*at, self._tables[at] - 1), header)
        for pair in pairs:
            if pair.type == "pair":
                self.pair(pair, at)

    def pair(self, node: Node, at: KeyPath) -> None:
        """Collect ``a.b = value`` in the table at `at`."""
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
    """Return the keys of ``a."b c".d``, parsed by tomllib for its treatment of quotes and escapes."""
    keys = []
    table: object = tomllib.loads(f"{(node.text or b'').decode()} = 0")
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return keys
