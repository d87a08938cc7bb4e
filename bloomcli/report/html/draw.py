"""Makes the charts of a page: the markup, with ids that are unique on the page, and the text alternative."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Final

from bloomcli.report.html.charts import Svg
from bloomcli.report.html.drawing import Drawing
from bloomcli.report.html.parts import Chart, Key, Table

NUMBERS: Final[ContextVar[count[int]]] = ContextVar("numbers")
"""Counts the charts of a page."""


def chart(
    title: str,
    description: str,
    draw: Callable[[Svg], str],
    *,
    legend: tuple[Key, ...] = (),
    table: Table | None = None,
    note: str = "",
) -> Chart:
    """Return a chart that `draw` draws, with a unique name on the page."""
    name = f"c{next(NUMBERS.get())}"
    if table is not None:
        description += " The table below has the figures."

    def markup(drawing: Drawing) -> str:
        return drawing.svg(name, title, description)

    return Chart(title, description, draw(markup), legend, table, note.strip())
