"""Chooses the values that a trial looks up: present values, which the column has, and absent ones.

Present values are first the extremes, where readers and writers make mistakes (both zeros, NaN, the empty string,
minimum and maximum, the first and the last value of row groups), and then values of random rows. Absent values lie
between minimum and maximum of a row group if possible, so that statistics alone don't exclude them. The whole column
is read twice: to choose the values, and to count the rows that have them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.advice.absent_values import Texts
from bloomcli.trials.columns import ColumnFile, Leaf, comparable
from bloomcli.trials.texts import is_binary, is_text, text_of, ticks

_LEAST_WIDTH: Final = 36
"""The least distance from the upper bound within which numbers beyond it are drawn."""
_BYTES_OF_TEXT: Final = 1 << 10
"""Characters, or bytes, of the longest candidate; longer samples are cut."""


_Range = tuple[pa.Scalar, pa.Scalar]
"""The least and the greatest value."""


def absent_candidates(
    bounds: _Range | None, samples: Sequence[pa.Scalar], count: int, rng: random.Random
) -> list[pa.Scalar]:
    """Values that a column may not have: half of them between its bounds, and half beyond or longer, in case it has
    all of the others.

    Args:
        bounds: the least and the greatest value; None for a column without values.
        samples: values of the column.
        count: the most values to return.
        rng: the seeded source of random numbers.
    """
    make = None if bounds is None else _maker(*bounds, samples, rng)
    return [] if make is None else [value for at in range(count) if (value := make(at >= count // 2)) is not None]


Make = Callable[[bool], pa.Scalar | None]
"""Makes a candidate; if the argument is true, a number beyond the bounds, or a longer text. None if the type can't
hold the value."""


def _maker(low: pa.Scalar, high: pa.Scalar, samples: Sequence[pa.Scalar], rng: random.Random) -> Make | None:
    kind = low.type
    if is_text(kind) or is_binary(kind):
        return _similar(samples, kind, rng) if samples else None
    if pa.types.is_floating(kind):
        return _floats(low.as_py(), high.as_py(), kind, rng)
    if pa.types.is_decimal(kind):
        unscaled = [int(value.as_py().scaleb(kind.scale)) for value in (low, high)]
        return _numbers(unscaled, kind, rng, lambda number: Decimal(number).scaleb(-kind.scale))
    if pa.types.is_temporal(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _numbers([ticks(low), ticks(high)], kind, rng, lambda number: pa.scalar(number, whole).cast(kind))
    if pa.types.is_integer(kind):
        return _numbers([low.as_py(), high.as_py()], kind, rng, lambda number: number)
    return None


def _numbers(bounds: Sequence[int], kind: pa.DataType, rng: random.Random, value: Callable[[int], Any]) -> Make:
    """Numbers between the bounds, or above them by at most the distance between them."""
    low, high = bounds
    width = max(high - low, _LEAST_WIDTH)

    def make(beyond: bool) -> pa.Scalar | None:
        number = high + rng.randint(1, width) if beyond else rng.randint(low, high)
        try:
            scalar = value(number)
            return scalar if isinstance(scalar, pa.Scalar) else pa.scalar(scalar, kind)
        except (pa.ArrowException, OverflowError, ArithmeticError, ValueError):  # beyond the type's range
            return None

    return make


def _floats(low: float, high: float, kind: pa.DataType, rng: random.Random) -> Make:
    """Numbers between the bounds. An infinite bound counts as 1e6."""
    low, high = (value if math.isfinite(value) else math.copysign(1e6, value) for value in (low, high))

    def make(beyond: bool) -> pa.Scalar:
        number = rng.uniform(low, high)
        return pa.scalar(number + (abs(high - low) or 1.0) if beyond else number, kind)

    return make


def _similar(samples: Sequence[pa.Scalar], kind: pa.DataType, rng: random.Random) -> Make:
    """Texts or bytes in which some characters of samples are replaced by those of other samples."""
    prefixes = [value.as_py()[:_BYTES_OF_TEXT] for value in samples]
    sample = [value.encode() if isinstance(value, str) else value for value in prefixes]
    texts = Texts([sample], rng, fixed=pa.types.is_fixed_size_binary(kind))

    def make(beyond: bool) -> pa.Scalar:
        text = texts.absent(rng.choice(sample), longer=beyond)
        return pa.scalar(text.decode() if is_text(kind) else text, kind)

    return make


_MOST_ROW_GROUPS: Final = 16
"""The most row groups whose first and last value are looked up."""
_CANDIDATES: Final = 4
"""Candidates for each value to look up: some are duplicates, and some candidates for absent values are present."""


class LookupValue(NamedTuple):
    """One value to look up."""

    text: str
    """The value as `bloom probe` accepts it."""
    value: pa.Scalar
    """The value in the column's Arrow type."""
    rows: int
    """The number of rows of the file that have the value, compared by Arrow."""

    @property
    def present(self) -> bool:
        """Whether the file has the value."""
        return self.rows > 0

    @property
    def literal(self) -> str:
        """The value for messages. Text is in quotes, as in SQL, which separate it from the sentence around it."""
        return "'" + self.text.replace("'", "''") + "'" if is_text(self.value.type) else self.text


class ColumnSample(NamedTuple):
    """The extremes of a column, and values of random rows, in a type that all Arrow functions support."""

    extremes: list[pa.Scalar]
    others: list[pa.Scalar]
    whole: _Range | None
    """Minimum and maximum; None for a column without values."""
    ranges: list[_Range]
    """Minimum and maximum of each row group that has values."""


def sampled_values(file: ColumnFile, leaf: Leaf, rows: int, count: int, seed: int) -> tuple[LookupValue, ...]:
    """Choose the values of a column to look up.

    Args:
        file, leaf: the column.
        rows: rows of the file.
        count: the number of present values, and of absent values; fewer if there are no more.
        seed: the seed of the random choice.
    """
    rng = random.Random(f"{seed} {leaf.column.path}")  # noqa: S311  a sample, not a secret
    sample = _sample(file, leaf, rows, count, rng)
    in_column = _first_of_each([*sample.extremes, *sample.others], leaf)
    candidates = absent_candidates(sample.whole, sample.others, count * _CANDIDATES, rng)
    pool = _first_of_each(_inner_first(candidates, sample), leaf)
    counts = count_rows(file, leaf, [*in_column.values(), *pool.values()])
    present = [value for value in _lookup_values(in_column, counts, leaf) if value.rows]
    absent = [value for value in _lookup_values(pool, counts, leaf) if not value.rows and value.text not in in_column]
    return (*present[:count], *absent[:count])


def counted_values(file: ColumnFile, leaf: Leaf, values: Sequence[pa.Scalar]) -> tuple[LookupValue, ...]:
    """The values of a query log, each with the number of rows that have it."""
    keyed = _first_of_each(values, leaf)
    return tuple(_lookup_values(keyed, count_rows(file, leaf, list(keyed.values())), leaf))


def _inner_first(candidates: Sequence[pa.Scalar], sample: ColumnSample) -> list[pa.Scalar]:
    """The candidates between minimum and maximum of a row group, which filters alone exclude, then the others."""
    if not sample.ranges:
        return list(candidates)
    kind = sample.ranges[0][0].type
    lows, highs = (pa.array([ends[side] for ends in sample.ranges], kind) for side in (0, 1))

    def is_outer(value: pa.Scalar) -> bool:
        inside = pc.and_(pc.less_equal(lows, value), pc.less_equal(value, highs))
        return not pc.any(inside).as_py()

    return sorted(candidates, key=is_outer)


def _lookup_values(keyed: dict[str, pa.Scalar], counts: dict[str, int], leaf: Leaf) -> Iterator[LookupValue]:
    for text, value in keyed.items():
        yield LookupValue(text, value.cast(leaf.type), counts[text])


def _first_of_each(values: Iterable[pa.Scalar], leaf: Leaf) -> dict[str, pa.Scalar]:
    """The values by their texts, each once. A value that the column's type can't hold is left out."""
    by_text: dict[str, pa.Scalar] = {}
    for value in values:
        try:
            by_text.setdefault(text_of(value.cast(leaf.type)), value)
        except (pa.ArrowException, ValueError, OverflowError, UnicodeError):
            continue
    return by_text


def count_rows(file: ColumnFile, leaf: Leaf, values: Sequence[pa.Scalar]) -> dict[str, int]:
    """Count the rows that have each value, by the value's text. Positive and negative zero are equal, as in SQL."""
    texts = [text_of(value.cast(leaf.type)) for value in values]
    counts = dict.fromkeys(texts, 0)
    if not values:
        return counts
    kind = comparable(pa.array([], leaf.type)).type
    zero = pa.scalar(0, kind) if pa.types.is_floating(kind) else None  # added, it makes -0.0 positive (IEEE 754)
    keys = pa.array(list(values), kind)
    keys = keys if zero is None else pc.add(keys, zero)
    places = keys.unique()
    totals = [0] * len(places)
    for _, part in file.values(leaf):
        array = part if zero is None else pc.add(part, zero)
        for entry in pc.value_counts(pc.index_in(array, value_set=places).drop_null()).to_pylist():
            totals[entry["values"]] += entry["counts"]
    for text, place in zip(texts, pc.index_in(keys, value_set=places).to_pylist(), strict=True):
        counts[text] = totals[place]
    return counts


def _sample(file: ColumnFile, leaf: Leaf, rows: int, count: int, rng: random.Random) -> ColumnSample:
    positions = sorted(rng.sample(range(rows), min(rows, count * _CANDIDATES)))
    specials: dict[str, pa.Scalar] = {}
    ends: dict[int, list[pa.Scalar]] = {}
    others: list[pa.Scalar] = []
    whole: _Range | None = None
    ranges: dict[int, _Range] = {}
    at = 0
    for row_group, array in file.values(leaf):
        if not len(array):
            continue
        while positions and positions[0] < at + len(array):
            others.append(array[positions.pop(0) - at])
        at += len(array)
        for value in _specials(array):
            specials.setdefault(text_of(value), value)
        ends[row_group] = [ends.get(row_group, [array[0]])[0], array[-1]]
        bounds = pc.min_max(array) if not pa.types.is_boolean(array.type) else {"min": array[0], "max": array[-1]}
        whole = _widened(whole, bounds["min"], bounds["max"])
        ranges[row_group] = _widened(ranges.get(row_group), bounds["min"], bounds["max"])
    some = sorted(rng.sample(sorted(ends), min(len(ends), _MOST_ROW_GROUPS)))
    rng.shuffle(others)
    extremes = [*specials.values(), *(whole or ()), *(value for group in some for value in ends[group])]
    return ColumnSample(extremes, others, whole, list(ranges.values()))


def _specials(array: pa.Array) -> list[pa.Scalar]:
    """Both zeros if floats have a zero, NaN if they have it, and the empty string if texts or bytes have it."""
    kind = array.type
    if pa.types.is_floating(kind):
        specials = []
        if pc.any(pc.equal(array, pa.scalar(0.0, kind))).as_py():
            specials += [pa.scalar(0.0, kind), pa.scalar(-0.0, kind)]
        return specials + [pa.scalar(float("nan"), kind)] * bool(pc.any(pc.is_nan(array)).as_py())
    if is_text(kind) or (is_binary(kind) and not pa.types.is_fixed_size_binary(kind)):
        empty = pa.scalar("" if is_text(kind) else b"", kind)
        return [empty] * bool(pc.any(pc.equal(array, empty)).as_py())
    return []


def _widened(ends: _Range | None, low: pa.Scalar, high: pa.Scalar) -> _Range:
    """The range that has all values of two ranges."""
    if ends is None:
        return low, high
    return (low if pc.less(low, ends[0]).as_py() else ends[0], ends[1] if pc.less(high, ends[1]).as_py() else high)
