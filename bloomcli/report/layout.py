"""The blocks of a text report: lines, pairs and grids. `render` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from bloomcli.model.file import Presence
from bloomcli.report.human import is_plain, printable


class Style(StrEnum):
    """The meaning of a piece of text. Rich uses these colours; plain output ignores them."""

    PLAIN = ""
    TITLE = "bold"
    DIM = "dim"
    GOOD = "green"
    WARN = "yellow"
    BAD = "red"


PRESENCE_STYLE: Final = {
    Presence.ABSENT: Style.GOOD,
    Presence.MAYBE: Style.WARN,
    Presence.NO_FILTER: Style.DIM,
    Presence.UNKNOWN: Style.DIM,
}


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


class Grid:
    """A table. Each row has as many cells as there are heads."""

    def __init__(self, heads: tuple[Head, ...], rows: Sequence[tuple[Cell, ...]] = ()) -> None:
        self.heads = heads
        self.rows = list(rows)

    def add(self, *cells: Cell | str) -> None:
        """Append a row."""
        self.rows.append(tuple(c if isinstance(c, Cell) else Cell(c) for c in cells))


class Gap:
    """An empty line."""


Block = Line | Pairs | Grid | Gap


def line(text: str, style: Style = Style.PLAIN, *, indent: int = 0) -> Line:
    """Create a :class:`Line` from text."""
    return Line(Cell(text, style), indent)
