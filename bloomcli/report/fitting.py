"""Fits the blocks of a text report to a terminal's width.

`fit` is the only place that decides how a report fits. Text breaks at blanks; numbers with their units, types, names
and commands stay whole. A grid that is too wide loses its bars and sparklines, and then becomes narrower step by
step, until it fits:

1. Columns that are the same in each line move into a line above the grid.
2. The directory that all paths share moves there too.
3. Prose at the end of a row wraps within its column, or goes below the row.
4. Values that are much longer than most others of their column are cut, and end in a mark.
5. Columns are left out, the highest rank first, until the others fit; then those of the lowest rank that still fit
   come back. A line below the grid names the columns that are left out, and the legend doesn't explain them.
6. Rows stack: a line with the row's name, then its other cells with their titles. Nothing is left out.

Without a width, as in pipes and files, all blocks are complete. `render` writes the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bloomcli.report.human import CUT, shorten, width
from bloomcli.report.layout import NOTHING, Block, Cell, Grid, Head, Line, Pairs, Paragraph, Style, line

_BREAK: Final = re.compile(
    r"""(?<!^)(?<!\ )                                   # not within leading or double blanks
    (?!(?<=\d)\ (?:B|[KMGTPE]iB|ms|s|min|%)(?!\w))    # 1.5 KiB, 12 %
    (?!(?<=[A-Z0-9_])\ \([A-Z])                        # INT64 (DATE)
    (?!(?<=->)\ \d)                                    # 1.0 KiB -> 2.0 KiB
    \ (?!\ )""",
    re.VERBOSE,
)
"""Matches a blank at which a line can be broken."""


def wrap_text(text: str, columns: int, hanging: int = 0) -> list[str]:
    """Break text into lines, at blanks only; longer words stay whole.

    Args:
        text: one line.
        columns: the most cells of a line.
        hanging: the number of cells by which further lines are shorter than the first one.
    """
    if width(text) <= columns:
        return [text]
    words, start = [], 0
    for match in _BREAK.finditer(text):
        words.append(text[start : match.start()])
        start = match.end()
    return fill_lines(_whole_commands([*words, text[start:]]), columns, hanging)


def fill_lines(words: Iterable[str], columns: int, hanging: int = 0) -> list[str]:
    """Fill lines with as many words as fit."""
    lines: list[str] = []
    for word in words:
        room = columns - hanging * (len(lines) > 1)
        if lines and width(lines[-1]) + 1 + width(word) <= room:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def _whole_commands(words: Iterable[str]) -> Iterator[str]:
    """Join the words of a command between backticks: users would copy a line break within it."""
    waiting: list[str] = []
    for word in words:
        waiting.append(word)
        if sum(w.count("`") for w in waiting) % 2 == 0:
            yield " ".join(waiting)
            waiting = []
    yield from waiting  # an unpaired backtick doesn't begin a command


Piece = tuple[str, Style]
"""Text of a laid-out line, and its style."""

_SPACE: Final = "  "
_INDENT: Final = "  "
_HANGING: Final = 2
"""Blanks before the further lines of a text that wraps."""
_LEAST_PROSE: Final = 24
"""The least cells of a column of prose; narrower prose goes below its row."""
_LEAST_WIDTH: Final = 20
"""The least cells of a line; narrower terminals break the lines themselves."""


def fit(blocks: Iterable[Block], columns: int | None) -> Iterator[list[Piece]]:
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
            yield from _fitted(block, columns)
        else:
            yield []


def _line(block: Line, columns: int | None) -> Iterator[list[Piece]]:
    text, style = block.cell.text, block.cell.style
    whole = columns is None or block.whole
    lines = [text] if whole else wrap_text(text, (columns or 0) - block.indent, _HANGING)
    for number, part in enumerate(lines):
        yield [(" " * (block.indent + _HANGING * (number > 0)) + part, style)]


def _paragraph(block: Paragraph, columns: int | None) -> Iterator[list[Piece]]:
    texts = [cell.text for cell in block.lines]
    hanging = 0
    if columns is not None:
        hanging = _HANGING if texts[0].startswith(("- ", "* ")) else 0
        texts = wrap_text(" ".join(text.strip() for text in texts), columns, hanging)
    for number, text in enumerate(texts):
        yield [(" " * (hanging * (number > 0)) + text, block.lines[0].style)]


def _pairs(block: Pairs, columns: int | None) -> Iterator[list[Piece]]:
    longest = max((width(name) for name, _ in block.items), default=0)
    for name, cell in block.items:
        room = None if columns is None else columns - longest - len(_SPACE)
        for number, part in enumerate([cell.text] if room is None else wrap_text(cell.text, room)):
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


def _grid(grid: Grid, prose: int | None = None, columns: int = 0) -> Iterator[list[Piece]]:
    """Yield the lines of a grid. `prose` is the width of its last column, which wraps: 0 for below the row, in at
    most `columns` cells."""
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
            room = min(max(_total(widths), _LEAST_PROSE), columns - len(_INDENT))
            rest = [_INDENT + text for text in wrap_text(row[-1].text, room)]
        elif prose:
            first, *rest = wrap_text(cells[-1][0], prose)
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


def _legend(grid: Grid, shown: Grid, left_out: Sequence[str], columns: int | None) -> Iterator[list[Piece]]:
    """Yield the sentences of the legend about shown columns, and about the mark of cut values."""
    unknown = set(left_out)
    if not any(cell.text.endswith(CUT) for row in shown.rows for cell in row):
        unknown.add(CUT)
    text = " ".join(sentence for title, sentence in grid.legend if title not in unknown)
    if text:
        yield []
        yield from _line(line(text, Style.DIM), columns)


def _fitted(whole: Grid, columns: int | None) -> Iterator[list[Piece]]:
    """Yield the lines of a grid in a terminal, by the steps above; without columns, lines of any length."""
    if columns is None:
        whole = whole.without_graphics()
        yield from _grid(whole)
        yield from _legend(whole, whole, (), None)
        return
    if _total(_widths(whole)) > columns:
        without_graphics = whole.without_graphics()
        if _total(_widths(without_graphics)) <= columns or _total(_widths(_without_repetition(whole)[0])) > columns:
            whole = without_graphics
    if _total(_widths(whole)) <= columns:
        yield from _grid(whole)
        yield from _legend(whole, whole, (), columns)
        return
    grid, above = _without_repetition(whole)
    if _total(_widths(grid)) > columns:
        grid, directory = _without_directory(grid)
        above += [[f"in {directory}:"]] if directory else []
    for parts in above:
        yield from _dim(parts, columns)
    if _total(_widths(grid)) > columns:
        grid = _shortened(grid)
    smaller, left_out = _narrowed(grid, columns)
    if smaller is None:
        yield from _stacked(grid, columns)
        yield from _legend(whole, grid, (), columns)
        return
    yield from _grid(smaller, _prose_width(smaller, columns), columns)
    if left_out:
        (parts,) = _listed("not shown:", left_out)
        yield from _dim([*parts, *f"(a wider terminal or {grid.complete} shows all columns)".split()], columns)
    yield from _legend(whole, smaller, left_out, columns)


def _dim(parts: Sequence[str], columns: int) -> Iterator[list[Piece]]:
    for number, text in enumerate(fill_lines(parts, columns, _HANGING)):
        yield [(" " * (_HANGING * (number > 0)) + text, Style.DIM)]


def _without_repetition(grid: Grid) -> tuple[Grid, list[list[str]]]:
    """The grid without the columns that are the same in each line, and the parts of the lines that say so."""
    if len(grid.rows) < 2:
        return grid, []
    without_graphics = [i for i, head in enumerate(grid.heads) if not head.graphic]
    same = {i for i in without_graphics if len({row[i].text for row in grid.rows}) == 1}
    if len(same) == len(grid.heads):
        same -= {0}
    kept = _only(grid, set(range(len(grid.heads))) - same)
    texts = {grid.heads[i].title: grid.rows[0][i].text for i in sorted(same)}
    same_text = [f"{title} {text}" for title, text in texts.items() if text not in NOTHING]
    nothing = [
        grid.heads[i].title for i in sorted(same) if grid.rows[0][i].text in NOTHING and not grid.heads[i].prose
    ]
    above = [*_listed("in each line:", same_text), *_listed("empty in each line:", nothing)]
    if same_text and grid.heads[max(same)].prose and grid.rows[0][max(same)].text not in NOTHING:
        above[0] = [*above[0][:-1], *above[0][-1].split()]  # prose can be broken between words
    return kept, above


def _listed(before: str, items: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of a sentence that lists items; nothing without items. Lines break only between parts."""
    if items:
        yield [before, *(f"{item}," for item in items[:-1]), items[-1]]


def _only(grid: Grid, kept: set[int]) -> Grid:
    order = sorted(kept)
    return grid.with_cells((grid.heads[i] for i in order), (tuple(row[i] for i in order) for row in grid.rows))


def common_directory(paths: Iterable[str]) -> str:
    """The directory that all paths are in, with a slash at its end; empty if they have none in common."""
    # commonpath would join the slashes of URIs
    start, slash, _ = os.path.commonprefix(list(paths)).rpartition("/")  # noqa: RUF071  the name that is cut is dropped
    return start + slash


def _without_directory(grid: Grid) -> tuple[Grid, str]:
    """The grid without the directory that all of its paths are in, and that directory with a slash at its end."""
    position = next((i for i, head in enumerate(grid.heads) if head.path), None)
    if position is None or len(grid.rows) < 2:
        return grid, ""
    directory = common_directory(row[position].text for row in grid.rows)
    if not directory.strip("/"):
        return grid, ""

    def cut(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
        path = Cell(row[position].text[len(directory) :], row[position].style)
        return (*row[:position], path, *row[position + 1 :])

    return grid.with_cells(grid.heads, map(cut, grid.rows)), directory


def _shortened(grid: Grid) -> Grid:
    """The grid, with values cut that are longer than `Head.most`."""

    def cut(cell: Cell, most: int) -> Cell:
        return Cell(shorten(cell.text, most), cell.style) if most else cell

    return grid.with_cells(
        grid.heads,
        (tuple(cut(cell, head.most) for cell, head in zip(row, grid.heads, strict=True)) for row in grid.rows),
    )


def _prose_width(grid: Grid, columns: int) -> int | None:
    """The width of the last column if it is prose and has to wrap; 0 if it goes below its row; otherwise None."""
    widths = _widths(grid)
    if not grid.heads[-1].prose or _total(widths) <= columns:
        return None
    room = columns - _total(widths[:-1]) - len(_SPACE)
    return room if room >= _LEAST_PROSE else 0


def _narrowed(grid: Grid, columns: int) -> tuple[Grid | None, list[str]]:
    """The grid with as many columns as fit, and the titles of the others; None if not enough of them fit."""
    ranks: dict[int, set[int]] = {}
    for i, head in enumerate(grid.heads):
        ranks.setdefault(head.rank, set()).add(i)
    widths = _widths(grid)

    def fits(kept: set[int]) -> bool:
        order = sorted(kept)
        prose = len(order) > 1 and grid.heads[order[-1]].prose
        return _total([widths[i] for i in (order[:-1] if prose else order)]) <= columns

    kept = set(range(len(grid.heads)))
    for rank in sorted(ranks, reverse=True):
        if fits(kept):
            break
        kept -= ranks[rank] if rank else set()
    if not fits(kept):
        return None, []
    for rank in sorted(ranks):
        if fits(kept | ranks[rank]):
            kept |= ranks[rank]
    return _only(grid, kept), [head.title for i, head in enumerate(grid.heads) if i not in kept]


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
            first, *rest = wrap_text(cell.text, room) if head.prose else [cell.text]
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
