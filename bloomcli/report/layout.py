"""The blocks of a text report (lines, pairs and grids), and how they fit a terminal's width.

`laid_out` is the only place that decides how a report fits. Numbers with their units, types and names are never
broken. A grid that is too wide becomes narrower step by step, until it fits:

1. Columns that are the same in every row move into a line above the grid.
2. The directory that all paths share moves there too.
3. Prose at the end of a row wraps within its column, or goes below the row.
4. Columns are left out, the highest rank first; a line below the grid names them.
5. Rows stack: a line with the row's name, then its other cells with their titles. Nothing is left out.

Without a width, as in pipes and files, every block is whole. `render` writes the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from bloomcli.model.file import Presence
from bloomcli.report.human import is_plain, printable, width
from bloomcli.report.wrapping import filled, wrapped


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
    """A piece of text and its style. This class escapes control characters, for all reports."""

    text: str
    style: Style = Style.PLAIN

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
    """Lines of one paragraph, which are filled again on a terminal. An item of a list starts with a mark."""

    lines: tuple[Cell, ...]


class Pairs(NamedTuple):
    """Names and their values, aligned, for the head of a report."""

    items: tuple[tuple[str, Cell], ...]


class Head(NamedTuple):
    """The title of a grid column, and how the column becomes narrower."""

    title: str
    figures: bool = False
    """Numbers, aligned right."""
    rank: int = 0
    """Columns with the highest rank are left out first; those with 0 never are."""
    path: bool = False
    """Paths: the directory that all share can be cut."""
    prose: bool = False
    """Sentences, which can wrap. Only the last column can be prose."""


class Grid:
    """A table. Each row has as many cells as there are heads."""

    def __init__(
        self,
        heads: tuple[Head, ...],
        rows: Sequence[tuple[Cell, ...]] = (),
        *,
        complete: str = "--format csv",
    ) -> None:
        """`complete` is the option that shows all columns at any width."""
        self.heads = heads
        self.rows = list(rows)
        self.complete = complete

    def add(self, *cells: Cell | str) -> None:
        """Append a row."""
        self.rows.append(tuple(c if isinstance(c, Cell) else Cell(c) for c in cells))


class Gap:
    """An empty line."""


Block = Line | Paragraph | Pairs | Grid | Gap


def line(text: str, style: Style = Style.PLAIN, *, indent: int = 0, whole: bool = False) -> Line:
    """Create a :class:`Line` from text."""
    return Line(Cell(text, style), indent, whole)


Piece = tuple[str, Style]
"""Text of a laid-out line, and its style."""

_SPACE: Final = "  "
_INDENT: Final = "  "
_HANGING: Final = 2
"""Blanks before the further lines of a text that wraps."""
_UNKNOWN: Final = ("", "-")
"""Cells without a value."""
_LEAST_PROSE: Final = 24
"""Cells that prose needs within its column; narrower prose goes below its row."""
_LEAST_WIDTH: Final = 20
"""Narrower terminals get lines of this width, which they break themselves."""


def laid_out(blocks: Iterable[Block], columns: int | None) -> Iterator[list[Piece]]:
    """Yield the lines of a report, as pieces of text with their styles.

    Args:
        blocks: the report.
        columns: the terminal's width, in cells; None where lines can have any length.
    """
    columns = None if columns is None else max(columns, _LEAST_WIDTH)
    for block in blocks:
        if isinstance(block, Line):
            yield from _line(block, columns)
        elif isinstance(block, Paragraph):
            yield from _paragraph(block, columns)
        elif isinstance(block, Pairs):
            yield from _pairs(block, columns)
        elif isinstance(block, Grid):
            yield from _grid(block) if columns is None else _fitted(block, columns)
        else:
            yield []


def _line(block: Line, columns: int | None) -> Iterator[list[Piece]]:
    text, style = block.cell.text, block.cell.style
    whole = columns is None or block.whole
    lines = [text] if whole else wrapped(text, (columns or 0) - block.indent, _HANGING)
    for number, part in enumerate(lines):
        yield [(" " * (block.indent + _HANGING * (number > 0)) + part, style)]


def _paragraph(block: Paragraph, columns: int | None) -> Iterator[list[Piece]]:
    texts = [cell.text for cell in block.lines]
    hanging = 0
    if columns is not None:
        hanging = _HANGING if texts[0].startswith(("- ", "* ")) else 0
        texts = wrapped(" ".join(text.strip() for text in texts), columns, hanging)
    for number, text in enumerate(texts):
        yield [(" " * (hanging * (number > 0)) + text, block.lines[0].style)]


def _pairs(block: Pairs, columns: int | None) -> Iterator[list[Piece]]:
    longest = max((width(name) for name, _ in block.items), default=0)
    for name, cell in block.items:
        room = None if columns is None else columns - longest - len(_SPACE)
        for number, part in enumerate([cell.text] if room is None else wrapped(cell.text, room)):
            yield [(_padded("" if number else name, longest) + _SPACE, Style.DIM), (part, cell.style)]


def _padded(text: str, cells: int, *, right: bool = False) -> str:
    if text.isascii():
        return text.rjust(cells) if right else text.ljust(cells)
    space = " " * (cells - width(text))
    return space + text if right else text + space


def _widths(grid: Grid) -> list[int]:
    """The cells that each column takes."""
    return [
        max(width(head.title), max((width(row[i].text) for row in grid.rows), default=0))
        for i, head in enumerate(grid.heads)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_SPACE) * (len(widths) - 1)


def _grid(grid: Grid, prose: int | None = None) -> Iterator[list[Piece]]:
    """Yield the lines of a grid. `prose` is the width of its last column, which wraps: 0 for below the row."""
    heads, widths = grid.heads, _widths(grid)
    if prose == 0:
        heads, widths = heads[:-1], widths[:-1]
    elif prose is not None:
        widths[-1] = prose
    title = Style.TITLE
    yield _row([(head.title, title) for head in heads], widths, heads)
    for row in grid.rows:
        cells = [(cell.text, cell.style) for cell in row[: len(heads)]]
        rest: list[str] = []
        if prose == 0 and row[-1].text:
            rest = [_INDENT + text for text in wrapped(row[-1].text, max(_total(widths), _LEAST_PROSE))]
        elif prose:
            first, *rest = wrapped(cells[-1][0], prose)
            cells[-1] = (first, cells[-1][1])
            rest = [" " * (_total(widths) - prose) + text for text in rest]
        yield _row(cells, widths, heads)
        for text in rest:
            yield [(text, row[-1].style)]


def _row(cells: Sequence[Piece], widths: Sequence[int], heads: Sequence[Head]) -> list[Piece]:
    last = len(cells) - 1
    return [
        (_padded(text, w, right=head.figures) + (_SPACE if i < last else ""), style)
        for i, ((text, style), w, head) in enumerate(zip(cells, widths, heads, strict=True))
    ]


def _fitted(grid: Grid, columns: int) -> Iterator[list[Piece]]:
    """Yield the lines of a grid in a terminal, by the steps above."""
    if _total(_widths(grid)) <= columns:
        yield from _grid(grid)
        return
    grid, above = _without_repetition(grid)
    if _total(_widths(grid)) > columns:
        grid, directory = _without_directory(grid)
        above += [[f"in {directory}:"]] if directory else []
    for parts in above:
        yield from _dim(parts, columns)
    smaller, left_out = _narrowed(grid, columns)
    if smaller is None:
        yield from _stacked(grid, columns)
        return
    yield from _grid(smaller, _prose_width(smaller, columns))
    if left_out:
        (parts,) = _listed("not shown:", left_out)
        yield from _dim([*parts, *f"(a wider terminal or {grid.complete} shows all columns)".split()], columns)


def _dim(parts: Sequence[str], columns: int) -> Iterator[list[Piece]]:
    for number, text in enumerate(filled(parts, columns, _HANGING)):
        yield [(" " * (_HANGING * (number > 0)) + text, Style.DIM)]


def _without_repetition(grid: Grid) -> tuple[Grid, list[list[str]]]:
    """The grid without the columns that are the same in every row, and the parts of the lines that say so."""
    if len(grid.rows) < 2:
        return grid, []
    same = {i for i in range(len(grid.heads)) if len({row[i].text for row in grid.rows}) == 1}
    if len(same) == len(grid.heads):
        same -= {0}
    kept = _only(grid, set(range(len(grid.heads))) - same)
    texts = {grid.heads[i].title: grid.rows[0][i].text for i in sorted(same)}
    same_text = [f"{title} {text}" for title, text in texts.items() if text not in _UNKNOWN]
    nothing = [title for title, text in texts.items() if text in _UNKNOWN]
    return kept, [*_listed("in every row:", same_text), *_listed("empty in every row:", nothing)]


def _listed(before: str, items: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of a sentence that lists items, if there are any. Only between parts a line is broken."""
    if items:
        yield [before, *(f"{item}," for item in items[:-1]), items[-1]]


def _only(grid: Grid, kept: set[int]) -> Grid:
    order = sorted(kept)
    heads = tuple(grid.heads[i] for i in order)
    return Grid(heads, [tuple(row[i] for i in order) for row in grid.rows], complete=grid.complete)


def _without_directory(grid: Grid) -> tuple[Grid, str]:
    """The grid without the directory that all of its paths are in, and that directory with a slash at its end."""
    found = next((i for i, head in enumerate(grid.heads) if head.path), None)
    if found is None or len(grid.rows) < 2:
        return grid, ""
    paths = [row[found].text for row in grid.rows]
    low, high = min(paths), max(paths)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    directory = low[: low.rfind("/", 0, same) + 1]
    if not directory.strip("/"):
        return grid, ""

    def cut(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
        path = Cell(row[found].text[len(directory) :], row[found].style)
        return (*row[:found], path, *row[found + 1 :])

    return Grid(grid.heads, [cut(row) for row in grid.rows], complete=grid.complete), directory


def _prose_width(grid: Grid, columns: int) -> int | None:
    """The width of the last column, which is prose, where it has to wrap; 0 where it goes below its row; else
    None."""
    widths = _widths(grid)
    if not grid.heads[-1].prose or _total(widths) <= columns:
        return None
    room = columns - _total(widths[:-1]) - len(_SPACE)
    return room if room >= _LEAST_PROSE else 0


def _narrowed(grid: Grid, columns: int) -> tuple[Grid | None, list[str]]:
    """The grid with as many columns as fit, and the titles of the others; None if not enough of them fit."""
    kept = set(range(len(grid.heads)))
    left_out: list[int] = []
    while True:
        smaller = _only(grid, kept)
        needed = _widths(smaller)
        if len(kept) > 1 and smaller.heads[-1].prose:
            needed = needed[:-1]
        if _total(needed) <= columns:
            return smaller, [grid.heads[i].title for i in sorted(left_out)]
        ranked = [i for i in kept if grid.heads[i].rank]
        if not ranked:
            return None, []
        worst = max(ranked, key=lambda i: (grid.heads[i].rank, i))
        kept.remove(worst)
        left_out.append(worst)


def _stacked(grid: Grid, columns: int) -> Iterator[list[Piece]]:
    """Yield each row as its name, then the other cells with their titles, as many on a line as fit."""
    name = next((i for i, head in enumerate(grid.heads) if not head.figures), 0)
    for row in grid.rows:
        yield [(row[name].text, row[name].style or Style.TITLE)]
        pieces: list[Piece] = []
        used = 0
        for i, (head, cell) in enumerate(zip(grid.heads, row, strict=True)):
            if i == name or not cell.text:
                continue
            title = f"{head.title} "
            room = columns - len(_INDENT) - width(title)
            first, *rest = wrapped(cell.text, room) if head.prose else [cell.text]
            needed = len(_SPACE) + width(title) + width(first)
            if pieces and used + needed > columns:
                yield pieces
                pieces, used = [], 0
            pieces += [((_SPACE if pieces else _INDENT) + title, Style.DIM), (first, cell.style)]
            used += needed
            for part in rest:
                yield pieces
                pieces, used = [(_INDENT + part, cell.style)], len(_INDENT) + width(part)
        if pieces:
            yield pieces
