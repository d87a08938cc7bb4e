"""Paths in VARIANT columns as Spark's `variant_get` spells them: ``$.user.id``, ``$['a.b']``, ``$.tags[*]``.

Column names have the column first: ``v:$.user.id``. The grammar has no escapes: a name in brackets ends at its quote.
"""

from __future__ import annotations

import re
from typing import Final

ROOT: Final = ":$"
"""Stands between the column and the steps."""
ELEMENTS: Final = "[*]"
"""The step to all elements of an array."""

_PLAIN: Final = re.compile(r"[^\s.,:*?\[\]'\"\\]+")
_STEP: Final = re.compile(rf"\.({_PLAIN.pattern})|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[\*\]")


def step(name: str) -> str | None:
    """The step to a field; None for a name with both kinds of quotes, which no path can have."""
    if _PLAIN.fullmatch(name):
        return f".{name}"
    quote = next((quote for quote in "'\"" if quote not in name), None)
    return None if quote is None else f"[{quote}{name}{quote}]"


def canonical(name: str) -> str:
    """A column's name with its path in one spelling; other names as they are."""
    column, root, steps = name.partition(ROOT)
    found, at = column + root, 0
    while at < len(steps):
        match = _STEP.match(steps, at)
        if match is None:
            return name
        field = next((group for group in match.groups() if group is not None), None)
        found += ELEMENTS if field is None else step(field) or match[0]
        at = match.end()
    return found
