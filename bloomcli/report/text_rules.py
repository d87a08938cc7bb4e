"""Text of `bloom validate --rules` and `--explain`: the list of the rules, and a rule's page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli.model.file import Severity
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Line, Style
from bloomcli.rules import RULES, page

_STYLE: Final = {Severity.ERROR: Style.BAD, Severity.WARNING: Style.WARN, Severity.NOTE: Style.DIM}


def rule_list() -> Iterator[Block]:
    """Yield a table of every rule: id, default severity, when it is checked, and title."""
    grid = Grid((Head("rule"), Head("severity"), Head("checked with"), Head("what", prose=True)))
    for rule in RULES.values():
        grid.add(rule.id, Cell(rule.severity.value, _STYLE[rule.severity]), rule.when.value, rule.title)
    yield grid


def rule_page(name: str) -> Iterator[Block]:
    """Yield a rule's page. Raises UsageError for an unknown rule."""
    for text in page(name).splitlines():
        if not text:
            yield Gap()
        elif text.startswith("#"):
            yield Line(Cell(text, Style.TITLE))
        else:
            yield Line(Cell(text), whole=text.startswith(("    ", "|")))
