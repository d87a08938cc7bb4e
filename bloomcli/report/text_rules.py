"""Text of `bloom validate --explain`: the lists of the rules and of a policy's keys, and their pages."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from bloomcli.model.file import Severity
from bloomcli.policy.policy_keys import PAGES
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Line, Paragraph, Style
from bloomcli.rules import RULES, page

_WIDTH: Final = 78
_STYLE: Final = {Severity.ERROR: Style.BAD, Severity.WARNING: Style.WARN, Severity.NOTE: Style.DIM}


def rule_list() -> Iterator[Block]:
    """Yield a table of every rule: id, default severity, when it is checked, and title."""
    grid = Grid((Head("rule"), Head("severity"), Head("checked with"), Head("what", prose=True)))
    for rule in RULES.values():
        grid.add(rule.id, Cell(rule.severity.value, _STYLE[rule.severity]), rule.when.value, rule.title)
    yield grid


def all_pages() -> Iterator[Block]:
    """Yield the table of every rule, and that of every key of a policy."""
    yield from rule_list()
    yield Gap()
    grid = Grid((Head("key of the policy"), Head("what")))
    for key, found in PAGES.items():
        grid.add(key, found.title)
    yield grid


def page_of(name: str) -> Iterator[Block]:
    """Yield the page of a rule or of a key of a policy. Raises UsageError for an unknown name."""
    if name not in PAGES:
        yield from rule_page(name)
        return
    found = PAGES[name]
    yield Line(Cell(f"{name}: {found.title}", Style.TITLE))
    yield Gap()
    yield Paragraph(tuple(map(Cell, wrap(found.text, _WIDTH, break_on_hyphens=False))))
    yield Gap()
    for text in found.example.splitlines():
        yield Line(Cell(text), indent=4, whole=True)


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
