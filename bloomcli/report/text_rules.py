"""Text of `bloom validate --rules` and `--explain`: the list of the rules, and a rule's page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli.model.file import Severity
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Line, Paragraph, Style
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
    paragraph: list[Cell] = []
    code = False
    for text in page(name).splitlines():
        code ^= text.startswith("```")
        heading = text.startswith("#") and not code
        whole = code or heading or text.startswith(("```", "|"))
        if paragraph and (not text or whole or text.startswith("- ")):
            yield Paragraph(tuple(paragraph))
            paragraph = []
        if not text:
            yield Gap()
        elif whole:
            yield Line(Cell(text, Style.TITLE if heading else Style.PLAIN), whole=True)
        else:
            paragraph.append(Cell(text))
    if paragraph:
        yield Paragraph(tuple(paragraph))
