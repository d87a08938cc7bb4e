"""Draws charts as SVG for a page. Colours are classes of its style sheet: ``f-`` fills, ``s-`` strokes."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.report.human import cut, printable, width

WIDTH: Final = 560
"""The width of a chart in pixels. It can be read on a telephone, without scrolling."""
LETTER: Final = 6.3
"""The width of a character in pixels, in labels."""
LABEL: Final = 11
"""The size of the labels' font in pixels."""
NAME_CELLS: Final = 30
"""The most characters of a name to the left of a chart. Longer names are cut, with the whole name as the title."""

_GAP: Final = 6
"""Pixels between a panel and its labels."""
_MIDDLE: Final = 4
"""Pixels from the middle of a label to its baseline."""

Point = tuple[float, float]
Labels = Sequence[tuple[float, str]]
"""Positions on a scale, with their texts."""
Box = tuple[float, float, float, float]
"""The place of a rectangle: x, y, width, height."""


class Drawing:
    """A chart of this height in pixels, to which `Panel` adds marks and texts."""

    def __init__(self, height: float) -> None:
        self.height = height
        self._root = ET.Element("g")

    def add(self, tag: str, classes: str, **attributes: object) -> ET.Element:
        """Add an element. An underscore in the name of an attribute stands for a hyphen; None leaves it out."""
        named = {key.replace("_", "-"): _text(value) for key, value in attributes.items() if value is not None}
        return ET.SubElement(self._root, tag, {"class": classes, **named})

    @property
    def svg(self) -> str:
        """The markup."""
        return ET.tostring(self._root, encoding="unicode")


class Panel:
    """A rectangle of a drawing with two scales, and the marks in it, whose places are numbers of these scales.

    Args:
        drawing: the drawing.
        place: x, y, width and height in pixels.
        across: the numbers at the left and the right edge.
        down: the numbers at the upper and the lower edge.
        log_x, log_y: the scale is logarithmic.
    """

    def __init__(
        self, drawing: Drawing, place: Box, across: Point, down: Point, *, log_x: bool = False, log_y: bool = False
    ) -> None:
        self._drawing = drawing
        self._left, self._top, wide, high = place
        self._right, self._bottom = self._left + wide, self._top + high
        self._across, self._down, self._log_x, self._log_y = across, down, log_x, log_y

    def _x(self, value: float) -> float:
        return self._left + _share(value, self._across, self._log_x) * (self._right - self._left)

    def _y(self, value: float) -> float:
        return self._top + _share(value, self._down, self._log_y) * (self._bottom - self._top)

    def boxes(self, boxes: Iterable[Box], tone: str) -> None:
        """Draw rectangles of one tone, as one path."""
        corners = ((self._x(x), self._y(y), self._x(x + wide), self._y(y + high)) for x, y, wide, high in boxes)
        path = "".join(f"M{_text(a)} {_text(b)}H{_text(c)}V{_text(d)}H{_text(a)}Z" for a, b, c, d in corners)
        if path:
            self._drawing.add("path", f"f-{tone}", d=path)

    def lines(self, lines: Iterable[tuple[Point, Point]], tone: str, thickness: float) -> None:
        """Draw straight lines of one tone, as one path."""
        ends = (f"M{self._pair(start)}L{self._pair(end)}" for start, end in lines)
        self._path("".join(ends), tone, thickness)

    def curve(self, points: Sequence[Point], tone: str, thickness: float) -> None:
        """Draw a line through points."""
        self._path("M" + "L".join(map(self._pair, points)), tone, thickness)

    def _path(self, path: str, tone: str, thickness: float) -> None:
        if path:
            self._drawing.add("path", f"s-{tone}", d=path, fill="none", stroke_width=thickness)

    def _pair(self, point: Point) -> str:
        return f"{_text(self._x(point[0]))} {_text(self._y(point[1]))}"

    def dot(self, point: Point, face: str, *, radius: float = 3.5, edge: str | None = None) -> None:
        """Draw a disc, with or without an edge of another tone."""
        classes = f"f-{face}" if edge is None else f"f-{face} s-{edge}"
        x, y = self._x(point[0]), self._y(point[1])
        self._drawing.add("circle", classes, cx=x, cy=y, r=radius, stroke_width=None if edge is None else 2)

    def write(self, point: Point, text: str, *, anchor: str = "start", tone: str = "ink", up: float = 0) -> None:
        """Write a text at a place, or `up` pixels above it."""
        self._write(self._x(point[0]), self._y(point[1]) + _MIDDLE - up, text, anchor=anchor, tone=tone)

    def _write(
        self, x: float, y: float, text: str, *, anchor: str, tone: str = "ink", most: int = 200, size: float = LABEL
    ) -> None:
        """Write a text at a place in pixels. A text of more than `most` cells is cut."""
        whole = printable(text) or '""'
        element = self._drawing.add("text", f"f-{tone}", x=x, y=y, font_size=size, text_anchor=anchor)
        element.text = whole if width(whole) <= most else cut(whole, most)
        if element.text != whole:
            ET.SubElement(element, "title").text = whole

    def scale_x(self, labels: Labels, title: str, *, grid: bool = True) -> None:
        """Label the horizontal scale, draw a line at each label, and name the scale."""
        if grid:
            self.lines((((at, self._down[0]), (at, self._down[1])) for at, _ in labels), "line", 1)
        for at, text in labels:
            self._write(self._x(at), self._bottom + _GAP + 2 * _MIDDLE, text, anchor="middle")
        middle, below = (self._left + self._right) / 2, self._bottom + 2 * _GAP + LABEL + 2 * _MIDDLE
        self._write(middle, below, title, anchor="middle", tone="dim")

    def scale_y(self, labels: Labels, *, grid: bool = False) -> None:
        """Label the upright scale; with `grid`, draw a line at each label."""
        if grid:
            self.lines((((self._across[0], at), (self._across[1], at)) for at, _ in labels), "line", 1)
        for at, text in labels:
            self._write(self._left - _GAP, self._y(at) + _MIDDLE, text, anchor="end", most=NAME_CELLS)

    def head(self, text: str) -> None:
        """Write the name of the panel above it."""
        self._write(self._left, self._top - _GAP, text, anchor="start", most=36, size=2 * LETTER)


def _share(value: float, ends: Point, logarithmic: bool) -> float:
    """The place of a number between two others: 0 to 1."""
    low, high = ends
    value = min(max(value, min(ends)), max(ends))
    if logarithmic:
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / (high - low)


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
