"""The parts of an HTML page: blocks of the text report, charts, tables with captions, and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from bloomcli.report.html.drawing import Drawing
from bloomcli.report.human import CUT, count, printable
from bloomcli.report.layout import Block, Cell, Columns, Grid, Head, Line, Style, line
from bloomcli.words import plural

ROWS_SHOWN: Final = 500
"""The most rows of a table. A note above the table counts the rows that are left out."""
TEXT_SHOWN: Final = 300
"""The most characters of a text in a table. A longer text is cut, and ends in a mark."""

T = TypeVar("T")


def shown(text: str, most: int = TEXT_SHOWN) -> str:
    """Return a text for a page: with control characters escaped, and cut after `most` characters."""
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + CUT


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Its first column has the names of the rows."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    """The number of all rows, shown or not."""
    chosen: str = "first ones"
    """Which of the rows are shown: "first ones", "largest filters"."""
    complete: str = "--format json"
    """The option whose output has all rows."""

    @property
    def note(self) -> str:
        """The sentence about the number of shown rows; empty if all rows are shown."""
        if self.total <= len(self.rows):
            return ""
        return (
            f"The table shows {count(len(self.rows))} of {count(self.total)} lines, the {self.chosen}; "
            f"{self.complete} has all."
        )


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a chart's legend."""

    tone: str
    """The class of its swatch."""
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, with its text alternative."""

    title: str
    description: str
    """The accessible description: sentences about the content."""
    drawing: Drawing
    legend: tuple[Key, ...] = ()
    table: Table | None = None
    """The figures of the chart."""
    note: str = ""
    """A sentence about data that the chart leaves out or aggregates; empty if it shows all."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text of the package, in Markdown, that can be unfolded."""

    title: str
    markdown: str


Part = Table | Chart | Document | Block
"""Lines, pairs and gaps are those of the text report."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: a report of one command."""

    title: str
    command: str
    lead: Line
    """The result of the report in one sentence."""
    sections: tuple[Section, ...]


def table(
    caption: str,
    items: Sequence[T],
    columns: Columns[T],
    *,
    most: int | None = None,
    total: int | None = None,
    chosen: str = "first ones",
    complete: str = "--format json",
) -> Table:
    """Return a table of the first `most` items, without columns that have nothing for any item; `total` is the number
    of all items if these are only a part."""
    name = next((column for column in columns if not column[0].figures), columns[0])
    ordered = [name, *(column for column in columns if column is not name and not column[0].graphic)]
    grid = Grid.of(items[:most], [(head._replace(optional=bool(items)), text) for head, text in ordered])
    return Table(caption, grid.heads, tuple(grid.rows), len(items) if total is None else total, chosen, complete)


def first_columns(shown: int, total: int, what: str = "columns") -> str:
    """Return the sentence about a chart that doesn't show all; empty if it does."""
    return f"The chart shows the first {shown} of {count(total)} {what}." if total > shown else ""


def failures(failed: Sequence[tuple[str, str]], most: int) -> Iterator[Line]:
    """Yield the files that could not be read, with the reasons."""
    for path, why in failed[:most]:
        yield line(why if path in why else f"{path}: {why}", Style.BAD)
    if len(failed) > most:
        yield line(f"… and {plural(len(failed) - most, 'more file')}: --format json", Style.BAD)


def slug(title: str) -> str:
    """Return the id of a section: ``filters-by-column``."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
