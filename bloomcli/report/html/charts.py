"""Draws each kind of chart: a map of places, ranges by row, stacked bars, estimates with intervals, curves, a strip.

It also computes the scales: the positions of labels, the places that share a cell, and the levels of sizes.

Each function draws one chart from numbers and names. Nothing depends on colour alone: a table has the numbers of
bars, cells of a map show their share by height and problems by a cross, and tones differ in lightness.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bloomcli.report.html.drawing import LETTER, NAME_CELLS, WIDTH, Box, Drawing, Labels, Panel, Point
from bloomcli.report.human import count, printable, width
from bloomcli.words import rate, size

_ROW: Final = 24.0
"""The height of a row in pixels."""
_BOTTOM: Final = 44.0
"""Pixels below a chart: the labels and the title of its scale."""
_TOP: Final = 8.0
LEAST_SHARE: Final = 0.2
"""The height of the lowest marks of a strip, so that they are visible."""
_CELL_LETTERS: Final = 7
"""Characters of a text in a cell of a map. Narrower cells have no text."""


@dataclass(frozen=True, slots=True)
class Place:
    """A cell of a map: a row group, a stripe or a file, or several neighbouring ones."""

    share: float
    """The share that has filters: the height of the cell."""
    level: int
    """The level of the filters' size, 1 to 5: the shade of the cell."""
    text: str = ""
    broken: bool = False
    """Whether a filter can't be read or must not be used: draws a cross."""


@dataclass(frozen=True, slots=True)
class Range:
    """A row of a chart of ranges: minimum, quartiles and maximum."""

    name: str
    low: float
    first: float
    median: float
    third: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with the ends of its interval, in the tone of its series."""

    tone: str
    value: float
    low: float
    high: float
    hollow: bool = False
    """Drawn as a circle instead of a disc."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve, with the chosen point on it."""

    name: str
    points: tuple[Point, ...]
    chosen: Point | None
    label: str = ""


def _left(names: Sequence[str]) -> float:
    """The width in pixels of the names to the left of a chart."""
    longest = max((min(width(printable(name)), NAME_CELLS) for name in names), default=0)
    return longest * LETTER + 16


def _rows(
    names: Sequence[str], across: Point, *, right: float = 16, row: float = _ROW, logarithmic: bool = False
) -> tuple[Drawing, Panel]:
    """A drawing with a row for each name, the first one on top."""
    high = len(names) * row
    drawing = Drawing(_TOP + high + _BOTTOM)
    left = _left(names)
    place = (left, _TOP, WIDTH - left - right, high)
    panel = Panel(drawing, place, across, (-0.5, len(names) - 0.5), log_x=logarithmic)
    panel.scale_y(list(enumerate(names)))
    return drawing, panel


def _ends(ticks: Labels) -> Point:
    """The first and the last number of a scale."""
    return ticks[0][0], ticks[-1][0]


def place_map(names: Sequence[str], cells: Sequence[Sequence[Place | None]], ticks: Labels, title: str) -> Drawing:
    """Draw a map: a row for each name, a cell for each place.

    Args:
        names: the names of the rows.
        cells: for each row, its places, the same number in all rows; None for an empty cell.
        ticks: labels below the cells: the number of a cell, and its text.
        title: the title of the scale below.
    """
    across = len(cells[0])
    drawing, panel = _rows(names, (0, across))
    panel.scale_x([(at + 0.5, text) for at, text in ticks], title, grid=False)
    pixels = (WIDTH - _left(names) - 16) / across
    gap = min(1.5 / pixels, 0.12)
    by_level: dict[int, list[Box]] = {}
    frames, crosses = [], []
    for y, row in enumerate(cells):
        for x, place in enumerate(row):
            if place is None:
                continue
            left, wide = x + gap / 2, 1 - gap
            high = 0.84 * max(place.share, 0.12 if place.share else 0)
            frames.append((left, y + 0.37, wide, 0.05))
            if place.share:
                by_level.setdefault(place.level, []).append((left, y + 0.42 - high, wide, high))
            if place.broken:
                half = min(5 / pixels, 0.4)
                crosses += [((x + 0.5 - half, y - 0.22), (x + 0.5 + half, y + 0.22))]
                crosses += [((x + 0.5 - half, y + 0.22), (x + 0.5 + half, y - 0.22))]
    panel.boxes(frames, "dim")
    for level in sorted(by_level):
        panel.boxes(by_level[level], f"q{level}")
    panel.lines(crosses, "paper", 5)
    panel.lines(crosses, "bad", 2.5)
    if pixels >= _CELL_LETTERS * LETTER + 6:
        for y, row in enumerate(cells):
            for x, place in enumerate(row):
                if place is not None and place.text and place.share == 1 and not place.broken:
                    tone = "paper" if place.level > 3 else "ink"
                    panel.write((x + 0.5, y), place.text, anchor="middle", tone=tone)
    return drawing


def ranges(rows: Sequence[Range], ticks: Labels, title: str, *, logarithmic: bool = False) -> Drawing:
    """Draw, for each row, a line from minimum to maximum, a bar between the quartiles, and the median."""
    drawing, panel = _rows([row.name for row in rows], _ends(ticks), right=28, logarithmic=logarithmic)
    panel.scale_x(ticks, title)
    panel.lines([((row.low, y), (row.high, y)) for y, row in enumerate(rows)], "accent", 2)
    ends = [((x, y - 0.16), (x, y + 0.16)) for y, row in enumerate(rows) for x in (row.low, row.high)]
    panel.lines(ends, "accent", 2)
    panel.boxes([(row.first, y - 0.2, row.third - row.first, 0.4) for y, row in enumerate(rows)], "q2")
    for y, row in enumerate(rows):
        panel.dot((row.median, y), "ink")
    return drawing


def bars(rows: Sequence[tuple[str, Sequence[tuple[str, float]], str]], ticks: Labels, title: str) -> Drawing:
    """Draw a bar for each row: its parts (tone, length) one after the other, and its text at the end."""
    longest = max((width(text) for _, _, text in rows), default=0)
    drawing, panel = _rows([name for name, _, _ in rows], _ends(ticks), right=longest * LETTER + 20)
    panel.scale_x(ticks, title)
    by_tone: dict[str, list[Box]] = {}
    gaps = []
    for y, (_, parts, text) in enumerate(rows):
        at = 0.0
        for tone, length in parts:
            by_tone.setdefault(tone, []).append((at, y - 0.34, length, 0.68))
            if at and length:
                gaps.append(((at, y - 0.36), (at, y + 0.36)))
            at += length
        panel.write((at, y), f"\N{NO-BREAK SPACE}{text}")
    for tone, boxes in by_tone.items():
        panel.boxes(boxes, tone)
    panel.lines(gaps, "paper", 2)
    return drawing


def estimates(
    rows: Sequence[tuple[str, Sequence[Estimate]]],
    ticks: Labels,
    title: str,
    *,
    logarithmic: bool = False,
    mark: float | None = None,
) -> Drawing:
    """Draw the estimates of each row below each other, each with its interval; and an upright line at `mark`."""
    series = max(len(group) for _, group in rows)
    names = [name for name, _ in rows]
    high = max(_ROW, 12.0 * series + 6)
    drawing, panel = _rows(names, _ends(ticks), right=44, row=high, logarithmic=logarithmic)
    panel.scale_x(ticks, title)
    if mark is not None:
        panel.lines([((mark, -0.5), (mark, len(rows) - 0.5))], "ink", 1.5)
    edges = [((ticks[0][0], y + 0.5), (ticks[-1][0], y + 0.5)) for y in range(len(rows) - 1)]
    panel.lines(edges, "line", 1)
    for y, (_, group) in enumerate(rows):
        step = 0.8 / max(len(group), 1)
        for number, estimate in enumerate(group):
            at = y - 0.4 + step * (number + 0.5)
            panel.lines([((estimate.low, at), (estimate.high, at))], estimate.tone, 2)
            panel.dot((estimate.value, at), "paper" if estimate.hollow else estimate.tone, edge=estimate.tone)
    return drawing


def curves(panels: Sequence[Curve], xticks: Labels, yticks: Labels, title: str) -> Drawing:
    """Draw a panel for each curve, two in a row, on logarithmic scales, with the chosen point."""
    across = 2
    wide, high, left, between = (WIDTH - 3 * 64 - 16) / 2, 170.0, 64.0, 72.0
    drawing = Drawing(-(-len(panels) // across) * (high + between))
    (first, last), (least, most) = _ends(xticks), _ends(yticks)
    for number, curve in enumerate(panels):
        column, row = number % across, number // across
        place = (left + column * (wide + 80), 24 + row * (high + between), wide, high)
        panel = Panel(drawing, place, (first, last), (most, least), log_x=True, log_y=True)
        panel.scale_x(xticks, title)
        panel.scale_y(yticks, grid=True)
        panel.curve(curve.points, "accent", 2)
        for point in curve.points:
            panel.dot(point, "accent", radius=2)
        panel.head(curve.name)
        if curve.chosen is not None:
            x, y = curve.chosen
            panel.lines([((x, least), (x, y)), ((first, y), (x, y))], "ink", 1)
            panel.dot(curve.chosen, "ink", radius=4.5)
            late = x > (first * last) ** 0.5
            aside = (last / first) ** (-0.02 if late else 0.02)
            panel.write((x * aside, y), curve.label, anchor="end" if late else "start", up=12)
    return drawing


def strip(rows: Sequence[tuple[str, Sequence[tuple[float, float, float]]]], ticks: Labels, title: str) -> Drawing:
    """Draw a band for each row, and on it the row's parts (start, end, share), whose height is their share."""
    drawing, panel = _rows([name for name, _ in rows], _ends(ticks), right=44)
    panel.scale_x(ticks, title)
    panel.boxes([(0, y + 0.36, ticks[-1][0], 0.04) for y in range(len(rows))], "dim")
    boxes = []
    for y, (_, parts) in enumerate(rows):
        for start, stop, share in parts:
            high = 0.74 * max(share, LEAST_SHARE)
            boxes.append((start, y + 0.36 - high, stop - start, high))
    panel.boxes(boxes, "accent")
    return drawing


CELLS: Final = 48
"""The most cells in a row of a map. If there are more places, several share a cell."""
ROWS: Final = 40
"""The most rows of a chart."""

PERCENT: Final[Labels] = tuple((n / 100, f"{n} %") for n in (0, 25, 50, 75, 100))


def bins(places: int, most: int = CELLS) -> list[range]:
    """Divide the places into at most `most` ranges of nearly equal length."""
    number = min(places, most)
    return [range(i * places // number, (i + 1) * places // number) for i in range(number)]


def ordinals(ranges: Sequence[range], most: int = 9) -> Labels:
    """Return labels for at most `most` of the ranges: their first and last places."""
    step = max(math.ceil(len(ranges) / most), 1)
    return [(i, _ordinals(ranges[i])) for i in range(0, len(ranges), step)]


def _ordinals(places: range) -> str:
    return count(places[0]) if len(places) == 1 else f"{count(places[0])}–{count(places[-1])}"


def level(value: float, low: float, high: float) -> int:
    """Return the level, 1 to 5, of a size between `low` and `high`, on a logarithmic scale."""
    if value <= 0 or high <= low:
        return 3
    return 1 + min(int(5 * math.log(value / low) / math.log(high / low)), 4)


def level_texts(low: float, high: float) -> list[tuple[int, str]]:
    """Return each level with its sizes, the smallest first."""
    if high <= low:
        return [(3, size(round(low)))]
    edges = [low * (high / low) ** (i / 5) for i in range(6)]
    return [(i + 1, f"{size(round(edges[i]))} to {size(round(edges[i + 1]))}") for i in range(5)]


def place(share: float, mean: float | None, bounds: tuple[float, float], *, broken: bool) -> Place:
    """Return a cell of a map by the mean size of its filters, which is None without any, and the bounds of sizes."""
    if mean is None:
        return Place(share, 1, broken=broken)
    return Place(share, level(mean, *bounds), _size(mean), broken)


def sizes(greatest: float) -> Labels:
    """Return labels of a linear scale of bytes, from 0 to at least `greatest`."""
    unit = 1024 ** max(int(math.log(max(greatest, 1), 1024)), 0)
    step = _step(greatest / unit / 4) * unit
    steps = max(math.ceil(greatest / step), 1)
    return [(i * step, _size(i * step)) for i in range(steps + 1)]


def signed_sizes(least: float, greatest: float) -> Labels:
    """Return labels of a linear scale of bytes with 0, which can have negative numbers."""
    upper = sizes(max(greatest, -least, 1))
    lower = [(-at, f"-{text}") for at, text in reversed(upper) if at]
    below = sum(-at > least for at, _ in upper[1:]) + 1 if least < 0 else 0
    return [*(lower[-below:] if below else []), *(upper if greatest > 0 else upper[:1])]


def ratios(least: float, greatest: float) -> Labels:
    """Return labels of a logarithmic scale of ratios, which contains 1."""
    ticks = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
    low = max((at for at in ticks if at <= min(least, 0.5)), default=ticks[0])
    high = min((at for at in ticks if at >= max(greatest, 2)), default=ticks[-1])
    return [(at, f"{at:g}") for at in ticks if low <= at <= high]


def numbers(greatest: float) -> Labels:
    """Return labels of a linear scale of counts, from 0 to at least `greatest`."""
    step = max(_step(greatest / 4), 1)
    return [(i * step, count(i * step)) for i in range(max(math.ceil(greatest / step), 1) + 1)]


def rates(least: float, greatest: float = 1) -> Labels:
    """Return labels of a logarithmic scale of rates, at all or some powers of ten."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(greatest))
    low = min(low, high - 1)
    step = max(math.ceil((high - low) / 7), 1)
    low = high - math.ceil((high - low) / step) * step
    return [
        (10.0**power, f"{10.0**power * 100:g} %" if power >= -6 else rate(10.0**power))
        for power in range(low, high + 1, step)
    ]


def log_sizes(least: float, greatest: float) -> Labels:
    """Return labels of a logarithmic scale of bytes, at all or some powers of two."""
    low, high = math.floor(math.log2(max(least, 1))), math.ceil(math.log2(max(greatest, 2)))
    high = max(high, low + 1)
    step = max(math.ceil((high - low) / 6), 1)
    high = low + math.ceil((high - low) / step) * step
    return [(2.0**power, _size(2**power)) for power in range(low, high + 1, step)]


def _size(value: float) -> str:
    return size(round(value)).replace(".0 ", " ")


def _step(rough: float) -> float:
    """The next higher number of 1, 2, 5, 10, 20, ..."""
    if rough <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999999)


def spread(name: str, values: Iterable[float], least: float = 0) -> Range:
    """Return minimum, quartiles and maximum of figures; figures below `least` count as `least`."""
    ordered = sorted(max(value, least) for value in values)

    def at(share: float) -> float:
        return ordered[round(share * (len(ordered) - 1))]

    return Range(name, ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1])


def shares(parts: Iterable[tuple[int, int]], whole: int, slots: int = 350) -> list[tuple[float, float, float]]:
    """Divide a file of `whole` bytes into slots. Return (start, end, share of the bytes) of each slot that has bytes
    of `parts`, which are (start, end)."""
    step = whole / slots
    partly = [0.0] * slots
    wholly = [0] * (slots + 1)
    """For each slot, the change in the number of parts that cover it completely, against the previous slot."""
    for start, end in parts:
        first, last = min(int(start / step), slots - 1), min(int(end / step), slots - 1)
        if first == last:
            partly[first] += (end - start) / step
        else:
            partly[first] += first + 1 - start / step
            partly[last] += end / step - last
            wholly[first + 1] += 1
            wholly[last] -= 1
    spans = []
    covering = 0
    for slot in range(slots):
        covering += wholly[slot]
        share = min(partly[slot] + covering, 1.0)
        if share > 0:
            spans.append((slot * step, (slot + 1) * step, share))
    return spans
