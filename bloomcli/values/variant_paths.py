"""Paths in VARIANT columns as Spark's `variant_get` spells them: ``$.user.id``, ``$['a.b']``, ``$.tags[*]``.

Column names have the column first: ``v:$.user.id``. The grammar has no escapes: a name in brackets ends at its quote.
"""

from __future__ import annotations

import re
from glob import escape
from typing import Final

ROOT: Final = ":$"
"""Stands between the column and the steps."""
ELEMENTS: Final = "[*]"
"""The step to all elements of an array."""

_PLAIN: Final = re.compile(r"[^\s.,:*?\[\]'\"\\]+")
_OTHERS: Final = r"|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[\*\]"
_STEP: Final = re.compile(rf"\.({_PLAIN.pattern}){_OTHERS}")
_GLOB_STEP: Final = re.compile(rf"\.([^\s.,:\[\]'\"\\]+){_OTHERS}")
"""A step whose plain name may have wildcards."""


def step(name: str) -> str | None:
    """The step to a field; None for a name with both kinds of quotes, which no path can have."""
    if _PLAIN.fullmatch(name):
        return f".{name}"
    quote = next((quote for quote in "'\"" if quote not in name), None)
    return None if quote is None else f"[{quote}{name}{quote}]"


def canonical(name: str) -> str:
    """A column's name with its path in one spelling; other names as they are."""
    column, root, steps = name.partition(ROOT)
    fields = _fields(steps, _STEP)
    if not root or fields is None:
        return name
    return column + root + "".join(ELEMENTS if field is None else step(field[0]) or field[1] for field in fields)


def is_path(name: str) -> bool:
    """Whether a name has a path, so that a bracket in it makes no glob."""
    column, root, steps = name.partition(ROOT)
    return bool(root and column) and _fields(steps, _STEP) is not None


def leaf(name: str) -> str:
    """The glob of the whole leaf path of a column that is named, or matched, by a path; other names as they are.

    Source: VariantShredding.md, "Value Shredding" and "Arrays", which fixes the names of groups.
    """
    column, root, steps = name.partition(ROOT)
    fields = _fields(steps, _GLOB_STEP)
    if not root or fields is None:
        return name
    below = (
        "list.element" if field is None else field[0] if field[1][0] == "." else escape(field[0]) for field in fields
    )
    return ".".join((column, *(f"typed_value.{group}" for group in below), "typed_value"))


def _fields(steps: str, grammar: re.Pattern[str]) -> list[tuple[str, str] | None] | None:
    """The name of each step's field and the step as spelled, or None for all elements; None for other texts."""
    fields: list[tuple[str, str] | None] = []
    at = 0
    while at < len(steps):
        match = grammar.match(steps, at)
        if match is None:
            return None
        name = next((group for group in match.groups() if group is not None), None)
        fields.append(None if name is None else (name, match[0]))
        at = match.end()
    return fields
