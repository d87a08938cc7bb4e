"""The blocks of a text report: lines, pairs and grids. `render` prints them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from bloomcli.report.human import is_plain, printable


class Style(StrEnum):
    """The meaning of a piece of text. Rich uses these colours; plain output ignores them."""

    PLAIN = ""
    TITLE = "bold"
    DIM = "dim"
    GOOD = "green"
    WARN = "yellow"
    BAD = "red"


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text and its style. This class escapes control characters, for all reports."""

    text: str
    style: Style = Style.PLAIN

    def __post_init__(self) -> None:
        text = self.text
        if not is_plain(text):  # a quick test: nearly every cell is plain, and a report may have a million cells
            object.__setattr__(self, "text", printable(text))


class Line(NamedTuple):
    """One line of text. It wraps on a terminal only."""

    cell: Cell
    indent: int = 0


class Pairs(NamedTuple):
    """Names and their values, aligned, for the head of a report."""

    items: tuple[tuple[str, Cell], ...]


class Head(NamedTuple):
    """The title of a grid column, which is aligned right if `figures` is true."""

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
    """Create a :class:`Line` from text."""
    return Line(Cell(text, style), indent)
