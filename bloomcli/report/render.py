"""Writes blocks to a stream: in colours and as wide as the terminal on a terminal, as plain text elsewhere.

Plain text has whole rows, so that scripts and pagers get them, unless the variable COLUMNS asks for a width of
standard output, as of `ls -C`.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Final, TextIO

from bloomcli.report import human
from bloomcli.report.fitting import Piece, fit
from bloomcli.report.layout import Block, Cell, Grid, Line, Pairs, Paragraph, Style

_CODES: Final = {Style.TITLE: "1", Style.DIM: "2", Style.GOOD: "32", Style.WARN: "33", Style.BAD: "31"}
"""Parameters of the escape sequence SGR. Source: ECMA-48, 8.3.117."""

_USUAL_WIDTH: Final = 80
"""The width of a terminal that doesn't know its own."""


def write(blocks: Iterable[Block], stream: TextIO) -> None:
    """Write the blocks: fitted and in colours on a terminal, as plain text otherwise."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name != "utf-8":
        blocks = (_encodable(block, encoding) for block in blocks)
    if not stream.isatty():
        stream.writelines(text + "\n" for text in plain(blocks, columns_of(stream)))
        return
    text = _coloured if _has_colours() else _text
    stream.writelines(text(pieces) + "\n" for pieces in fit(blocks, columns_of(stream)))


def _encodable(block: Block, encoding: str) -> Block:
    r"""Escape, as ``\u540d``, the characters that an encoding doesn't have: before anything is aligned."""

    def shown(cell: Cell) -> Cell:
        return Cell(cell.text.encode(encoding, "backslashreplace").decode(encoding), cell.style)

    match block:
        case Line(cell=cell):
            return block._replace(cell=shown(cell))
        case Paragraph(lines):
            return Paragraph(tuple(map(shown, lines)))
        case Pairs(items):
            return Pairs(tuple((name, shown(cell)) for name, cell in items))
        case Grid():
            grid = block.without_graphics()
            return grid.with_cells(grid.heads, (tuple(map(shown, row)) for row in grid.rows))
    return block


def plain(blocks: Iterable[Block], columns: int | None = None) -> Iterator[str]:
    """Yield the blocks as lines of unstyled text that a CI log doesn't interpret as commands."""
    return (human.line(_text(pieces)) for pieces in fit(blocks, columns))


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(text for text, _ in pieces).rstrip()


def _coloured(pieces: Sequence[Piece]) -> str:
    shown = len(_text(pieces))
    out = []
    for text, style in pieces:
        part = text[:shown]
        shown -= len(part)
        out.append(f"\x1b[{_CODES[style]}m{part}\x1b[0m" if part and style in _CODES else part)
    return "".join(out)


def _has_colours() -> bool:
    """Whether the terminal shows colours and the user wants them. Source: no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in {"dumb", "unknown"}


def columns_of(stream: IO[str]) -> int | None:
    """The width to fit text to, in cells: the variable COLUMNS, or the terminal's. None for files, and for pipes
    without the variable."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) and (stream is sys.stdout or stream.isatty()):
        return int(wanted)
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH
