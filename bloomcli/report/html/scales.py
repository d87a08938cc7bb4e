"""Scales of charts: the positions of labels, the places that share a cell, and the levels of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.report.html.charts import Labels, Range
from bloomcli.report.human import count, rate, size

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
    found = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
    low = max((at for at in found if at <= min(least, 0.5)), default=found[0])
    high = min((at for at in found if at >= max(greatest, 2)), default=found[-1])
    return [(at, f"{at:g}") for at in found if low <= at <= high]


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
    return [(10.0**power, _rate(10.0**power)) for power in range(low, high + 1, step)]


def log_sizes(least: float, greatest: float) -> Labels:
    """Return labels of a logarithmic scale of bytes, at all or some powers of two."""
    low, high = math.floor(math.log2(max(least, 1))), math.ceil(math.log2(max(greatest, 2)))
    high = max(high, low + 1)
    step = max(math.ceil((high - low) / 6), 1)
    high = low + math.ceil((high - low) / step) * step
    return [(2.0**power, _size(2**power)) for power in range(low, high + 1, step)]


def _rate(value: float) -> str:
    return f"{value * 100:g} %" if value >= 1e-6 else rate(value)


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
    found = []
    covering = 0
    for slot in range(slots):
        covering += wholly[slot]
        share = min(partly[slot] + covering, 1.0)
        if share > 0:
            found.append((slot * step, (slot + 1) * step, share))
    return found
