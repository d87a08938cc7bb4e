"""The parts of an HTML page: facts, charts, tables, command lines, texts. `rendering` writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from bloomcli.model.file import Severity
from bloomcli.report.human import count, printable
from bloomcli.report.layout import NOTHING, Head
from bloomcli.words import plural

ROWS_SHOWN: Final = 500
"""The most rows of a table. A note above the table counts the rows that are left out."""
TEXT_SHOWN: Final = 300
"""The most characters of a text in a table. A longer text is cut, and ends in a mark."""
CUT: Final = "…"

SEVERITY_TONE: Final = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "dim"}
"""The tone of a finding's severity."""


def shown(text: str, most: int = TEXT_SHOWN) -> str:
    """Return a text for a page: with control characters escaped, and cut after `most` characters."""
    return printable(text) if len(text) <= most else printable(text[: most - 1]) + CUT


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    value: float | None = None
    """The key by which the column is sorted; None for the text."""
    tone: str = ""
    """``good``, ``warn``, ``bad`` or ``dim``. The text has the same meaning without colour."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", shown(self.text))


def figure(text: str, value: float | None) -> Cell:
    """Return a cell with a number, sorted by its value. An unknown number is sorted below all others."""
    return Cell(text, float("-inf") if value is None else float(value))


T = TypeVar("T")
Column = tuple[Head, Callable[[T], Cell | str]]
"""A column of a table: its head, and what it says of an item."""


def figures(title: str, value: Callable[[T], float | None], text: Callable[[float | None], str] = count) -> Column[T]:
    """Return a column of numbers, which are sorted by their values and formatted by `text`."""

    def cell(item: T) -> Cell:
        number = value(item)
        return figure(text(number), number)

    return Head(title, figures=True), cell


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
    svg: str
    """The markup from `drawing`."""
    legend: tuple[Key, ...] = ()
    table: Table | None = None
    """The figures of the chart."""
    note: str = ""
    """A sentence about data that the chart leaves out or aggregates; empty if it shows all."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and their values."""

    items: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    tone: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", shown(self.text, 2000))


@dataclass(frozen=True, slots=True)
class Command:
    """A command line to copy."""

    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text of the package, in Markdown, that can be unfolded."""

    title: str
    markdown: str


Part = Table | Chart | Facts | Text | Command | Document


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
    lead: Text
    """The result of the report in one sentence."""
    sections: tuple[Section, ...] = field(default=())


def table(
    caption: str,
    items: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    most: int | None = None,
    total: int | None = None,
    chosen: str = "first ones",
    complete: str = "--format json",
) -> Table:
    """Return a table of the first `most` items, without columns that have nothing for any item; `total` is the number
    of all items if these are only a part."""
    made = [(head, [_as_cell(text(item)) for item in items[:most]]) for head, text in columns if head.shown]
    kept = [one for one in made if not items or any(cell.text not in NOTHING for cell in one[1])]
    rows = tuple(zip(*(cells for _, cells in kept), strict=True))
    heads = tuple(head for head, _ in kept)
    return Table(caption, heads, rows, len(items) if total is None else total, chosen, complete)


def _as_cell(cell: Cell | str) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def first_columns(shown: int, total: int, what: str = "columns") -> str:
    """Return the sentence about a chart that doesn't show all; empty if it does."""
    return f"The chart shows the first {shown} of {count(total)} {what}." if total > shown else ""


def failures(failed: Sequence[tuple[str, str]], most: int) -> Iterator[Text]:
    """Yield the files that could not be read, with the reasons."""
    for path, why in failed[:most]:
        yield Text(why if path in why else f"{path}: {why}", "bad")
    if len(failed) > most:
        yield Text(f"… and {plural(len(failed) - most, 'more file')}: --format json", "bad")


def slug(title: str) -> str:
    """Return the id of a section: ``filters-by-column``."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
