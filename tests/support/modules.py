"""Facts about modules for the tests of the architecture. Each module is parsed once."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import NamedTuple


class Import(NamedTuple):
    """``from module import name``, or ``import module`` without a name."""

    module: str
    name: str | None
    level: int


class Module(NamedTuple):
    """A module's docstring, its imports at any depth, and its string and bytes literals."""

    docstring: str | None
    imports: frozenset[Import]
    literals: frozenset[str | bytes]


@functools.cache
def facts(path: Path) -> Module:
    """The facts of a Python file. The tree isn't kept: the trees of all modules would take 200 MB."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: set[Import] = set()
    literals: set[str | bytes] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (str, bytes)):
                literals.add(node.value)
        elif isinstance(node, ast.Import):
            imports.update(Import(alias.name, None, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imports.update(Import(node.module or "", alias.name, node.level) for alias in node.names)
    return Module(ast.get_docstring(tree), frozenset(imports), frozenset(literals))
