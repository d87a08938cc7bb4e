"""The blocks of a text report: lines, pairs and grids, and the bars and sparklines of a grid's columns; the line
about the requests to a store, which most reports have.

`fitting` fits them to a terminal's width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from bloomcli.model.file import Presence
from bloomcli.model.traffic import TrafficFields, traffic_of
from bloomcli.report.human import count, is_plain, printable
from bloomcli.words import plural, size

CELLS: Final = 10
"""Cells of a whole bar, and of the longest sparkline."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LEVELS: Final = "▁▂▃▄▅▆▇█"


def bar(share: float | None) -> str:
    """Return a bar for a share in [0, 1]: ``████▍``. Any share above 0 has at least an eighth of a cell; only the
    share 1 fills all cells."""
    if share is None or share <= 0:
        return ""
    eighths = min(max(round(share * CELLS * 8), 1), CELLS * 8 - (share < 1))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def sparkline(shares: Sequence[float]) -> str:
    """Return a character for each share in [0, 1]: ``▂▂█▂``. With more than `CELLS` shares, a character shows the
    highest of several neighbouring ones."""
    number = min(len(shares), CELLS)
    highest = [max(shares[i * len(shares) // number : (i + 1) * len(shares) // number]) for i in range(number)]
    return "".join(_LEVELS[min(int(share * len(_LEVELS)), len(_LEVELS) - 1)] for share in highest)


class Style(StrEnum):
    """The meaning of a piece of text. Terminals show it as a colour; plain output ignores it."""

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
    """A text and its style. This class escapes control characters for all text reports."""

    text: str
    style: Style = Style.PLAIN
    value: float | None = None
    """The number by which pages sort the cell; None for the text."""

    def __post_init__(self) -> None:
        text = self.text
        if not is_plain(text):  # a quick test: nearly every cell is plain, and a report may have a million cells
            object.__setattr__(self, "text", printable(text))


class Line(NamedTuple):
    """One line of text. It wraps on a terminal only, unless it is `whole`: code, a path."""

    cell: Cell
    indent: int = 0
    whole: bool = False


class Paragraph(NamedTuple):
    """The lines of one paragraph, which are refilled to the width of a terminal. A list item starts with a mark."""

    lines: tuple[Cell, ...]


class Pairs(NamedTuple):
    """Aligned names and values, for the head of a report."""

    items: tuple[tuple[str, Cell], ...]


class Head(NamedTuple):
    """The title of a grid column, and how the column becomes narrower."""

    title: str
    figures: bool = False
    """Numbers, aligned right."""
    rank: int = 0
    """Columns with the highest rank are left out first, columns with the same rank together, columns with 0 never."""
    path: bool = False
    """Paths: the common directory can be cut."""
    prose: bool = False
    """Sentences, which can wrap. Only the last column can be prose."""
    most: int = 0
    """If the grid is too wide, values of more cells are cut; 0 cuts none."""
    graphic: bool = False
    """Bars or sparklines, which repeat figures of other columns. Shown only on terminals with UTF-8, and only if
    there is room."""
    shown: bool = True
    """Whether `Grid.of` makes the column."""
    optional: bool = False
    """`Grid.of` leaves the column out if it says nothing of any item."""


NOTHING: Final = ("", "-")
"""Cells without a value."""

T = TypeVar("T")
Columns = Sequence[tuple[Head, Callable[[T], "Cell | str"]]]
"""The columns of a grid of items: the head of each, and what it says of an item."""


def figures(
    title: str, value: Callable[[T], float | None], text: Callable[[Any], str] = count, **head: Any
) -> tuple[Head, Callable[[T], Cell | str]]:
    """Return a column of numbers, formatted by `text`; pages sort an unknown number below all others. The other
    arguments are fields of its `Head`."""

    def cell(item: T) -> Cell:
        number = value(item)
        return Cell(text(number), value=float("-inf") if number is None else number)

    return Head(title, figures=True, **head), cell


class Grid:
    """A table. Each row has as many cells as there are heads."""

    def __init__(
        self,
        heads: tuple[Head, ...],
        rows: Sequence[tuple[Cell, ...]] = (),
        *,
        complete: str = "--format csv",
        legend: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Create a grid.

        Args:
            heads: the heads of the columns.
            rows: the rows.
            complete: the option that shows all columns at any width.
            legend: titles of columns, each with a sentence that is shown below the grid if the column is. Instead of
                a title, `human.CUT` stands for the mark of a cut value, and an empty text for the whole grid.
        """
        self.heads = heads
        self.rows = list(rows)
        self.complete = complete
        self.legend = list(legend)

    @classmethod
    def of(
        cls,
        items: Sequence[T],
        columns: Columns[T],
        *,
        complete: str = "--format csv",
        legend: Iterable[tuple[str, str]] = (),
    ) -> Grid:
        """Return a grid with a row for each item. The other arguments are those of the constructor."""
        pairs = [(head, [as_cell(text(item)) for item in items]) for head, text in columns if head.shown]
        kept = [pair for pair in pairs if not pair[0].optional or any(cell.text not in NOTHING for cell in pair[1])]
        rows = list(zip(*(cells for _, cells in kept), strict=True))
        return cls(tuple(head for head, _ in kept), rows, complete=complete, legend=legend)

    def add(self, *cells: Cell | str) -> None:
        """Append a row."""
        self.rows.append(tuple(map(as_cell, cells)))

    def explain(self, title: str, sentence: str) -> None:
        """Add a sentence to the legend."""
        self.legend.append((title, sentence))

    def without_graphics(self) -> Grid:
        """The same grid without bars and sparklines."""
        kept = [i for i, head in enumerate(self.heads) if not head.graphic]
        if len(kept) == len(self.heads):
            return self
        grid = self.with_cells((self.heads[i] for i in kept), (tuple(row[i] for i in kept) for row in self.rows))
        titles = {head.title for head in self.heads if head.graphic}
        grid.legend = [(title, sentence) for title, sentence in self.legend if title not in titles]
        return grid

    def with_cells(self, heads: Iterable[Head], rows: Iterable[tuple[Cell, ...]]) -> Grid:
        """A grid with these columns and rows, and this grid's legend and option."""
        return Grid(tuple(heads), tuple(rows), complete=self.complete, legend=self.legend)


class Gap:
    """An empty line."""


Block = Line | Paragraph | Pairs | Grid | Gap


def as_cell(cell: Cell | str) -> Cell:
    """Make a cell of a text."""
    return cell if isinstance(cell, Cell) else Cell(cell)


def line(text: str, style: Style = Style.PLAIN, *, indent: int = 0, whole: bool = False) -> Line:
    """Create a :class:`Line` from text."""
    return Line(Cell(text, style), indent, whole)


def planned(command: str) -> str:
    """What a dry run's sizes are: bounds, but `repair` reads no page to count the pages."""
    return "about" if command == "repair" else "at most"


def traffic_text(report: TrafficFields) -> str | None:
    """Return ``12 requests, 1.0 MiB downloaded, 3.0 KiB uploaded, 1.0 GiB copied by the store``; None for local
    files."""
    traffic = traffic_of(report)
    if traffic is None:
        return None
    parts = (
        (traffic.bytes_downloaded, "downloaded"),
        (traffic.bytes_uploaded, "uploaded"),
        (traffic.bytes_copied_by_store, "copied by the store"),
    )
    return ", ".join([plural(traffic.requests, "request"), *(f"{size(n)} {how}" for n, how in parts if n)])


def traffic_line(report: TrafficFields, *, dry_run: bool = False) -> Iterator[Block]:
    """Yield the line about the requests; nothing for local files."""
    text = traffic_text(report)
    if text is not None:
        yield line(f"object store: {'would take about ' if dry_run else ''}{text}")


def traffic_pairs(report: TrafficFields) -> Iterator[tuple[str, Cell]]:
    """Yield the requests as a name and a value; nothing for local files."""
    text = traffic_text(report)
    if text is not None:
        yield "object store", Cell(text)
