"""Writes blocks to a stream: with rich on a terminal, as plain text elsewhere.

Plain text is never wrapped or truncated, regardless of COLUMNS, so that scripts and pagers get whole rows. Rich is
imported only for terminals, because its import takes longer than inspecting a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from bloomcli.report import human
from bloomcli.report.human import width
from bloomcli.report.layout import Block, Cell, Grid, Line, Pairs

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

RICH_ROWS_MAX = 2000
"""Longer reports are printed as plain text even on a terminal, because rich measures every cell several times."""

_SPACE = "  "


def write(blocks: Iterable[Block], stream: TextIO) -> None:
    """Write the blocks: with rich on a terminal (rich respects NO_COLOR), as plain text otherwise."""
    blocks = list(blocks)
    many = len(blocks) > RICH_ROWS_MAX or any(isinstance(b, Grid) and len(b.rows) > RICH_ROWS_MAX for b in blocks)
    if many or not stream.isatty():
        stream.writelines(text + "\n" for text in plain(blocks))
    else:
        _write_rich(blocks, stream)


def plain(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the blocks as lines of unstyled text that a CI log doesn't interpret as commands."""
    return map(human.line, _lines(blocks))


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Line):
            yield " " * block.indent + block.cell.text
        elif isinstance(block, Pairs):
            longest = max((width(name) for name, _ in block.items), default=0)
            for name, cell in block.items:
                yield f"{_padded(name, longest)}{_SPACE}{cell.text}".rstrip()
        elif isinstance(block, Grid):
            yield from _plain_grid(block)
        else:
            yield ""


def _plain_grid(grid: Grid) -> Iterator[str]:
    table = [[h.title for h in grid.heads], *([c.text for c in row] for row in grid.rows)]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (_padded(text, w, right=head.figures) for text, w, head in zip(row, widths, grid.heads, strict=True))
        yield _SPACE.join(cells).rstrip()


def _padded(text: str, cells: int, *, right: bool = False) -> str:
    if text.isascii():
        return text.rjust(cells) if right else text.ljust(cells)
    space = " " * (cells - width(text))
    return space + text if right else text + space


def _write_rich(blocks: list[Block], stream: TextIO) -> None:
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    for block in blocks:
        console.print(_renderable(block, console))


def _renderable(block: Block, console: Console) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    def text(cell: Cell) -> Text:
        return Text(cell.text, style=cell.style.value, overflow="fold")

    if isinstance(block, Line):
        return Padding(text(block.cell), (0, 0, 0, block.indent))
    if isinstance(block, Pairs):
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for name, cell in block.items:
            table.add_row(Text(name), text(cell))
        return table
    if isinstance(block, Grid):
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=False)
        # if the terminal is wide enough for the figures, only names and types wrap
        keep = _figures_width(block) < console.width
        for head in block.heads:
            table.add_column(
                head.title,
                justify="right" if head.figures else "left",
                no_wrap=head.figures and keep,
                overflow="fold",
            )
        for row in block.rows:
            table.add_row(*map(text, row))
        return table
    return Text("")


def _figures_width(grid: Grid) -> int:
    """Return the minimum width of the grid, in terminal cells, if its figures don't wrap."""
    total = 0
    for index, head in enumerate(grid.heads):
        longest = max((width(row[index].text) for row in grid.rows), default=0)
        total += 2 + (max(longest, width(head.title)) if head.figures else 4)
    return total
