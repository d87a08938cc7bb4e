"""The blocks that text reports are made of: lines, pairs and grids, still without any rendering."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from bloomcli.report.human import is_plain, printable


class Style(StrEnum):
    """What a piece of text means; rich shows it by these colours, plain output not at all."""

    PLAIN = ""
    TITLE = "bold"
    DIM = "dim"
    GOOD = "green"
    WARN = "yellow"
    BAD = "red"


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text and its meaning. Control characters are made visible here, once for every report."""

    text: str
    style: Style = Style.PLAIN

    def __post_init__(self) -> None:
        text = self.text
        if not is_plain(text):  # nearly every cell is, and a report may have a million
            object.__setattr__(self, "text", printable(text))


class Line(NamedTuple):
    """One line of prose. It wraps on a terminal and doesn't elsewhere."""

    cell: Cell
    indent: int = 0


class Pairs(NamedTuple):
    """Names and what they are, aligned: the head of a report."""

    items: tuple[tuple[str, Cell], ...]


class Head(NamedTuple):
    """A grid column's title; figures are aligned to the right."""

    title: str
    figures: bool = False


@dataclass(slots=True)
class Grid:
    """A table. Each row has as many cells as there are heads."""

    heads: tuple[Head, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)

    def add(self, *cells: Cell | str) -> None:
        """Append a row."""
        self.rows.append(tuple(c if isinstance(c, Cell) else Cell(c) for c in cells))


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line."""


Block = Line | Pairs | Grid | Gap


def line(text: str, style: Style = Style.PLAIN, *, indent: int = 0) -> Line:
    """A :class:`Line` from text."""
    return Line(Cell(text, style), indent)
