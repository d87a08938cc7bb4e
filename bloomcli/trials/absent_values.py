"""Candidates for absent values: values of a column's domain. The caller then looks them up in the column."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from bloomcli.trials.texts import is_binary, is_text, ticks

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_BYTES_OF_TEXT: Final = 1 << 10
"""Characters, or bytes, of the longest candidate; longer samples are cut."""


def absent_candidates(
    low: pa.Scalar | None, high: pa.Scalar | None, samples: Sequence[pa.Scalar], count: int, rng: random.Random
) -> list[pa.Scalar]:
    """Values that a column may not have: half of them between its bounds, and half beyond, in case it has all values
    in between.

    Args:
        low, high: the bounds; None for a column without values.
        samples: values of the column.
        count: the most values to return.
        rng: the seeded source of random numbers.
    """
    if low is None or high is None:
        return []
    make = _maker(low, high, samples, rng)
    return [] if make is None else [value for at in range(count) if (value := make(at >= count // 2)) is not None]


Make = Callable[[bool], pa.Scalar | None]
"""Makes a candidate; beyond the bounds if the argument is true. None if the type can't hold the value."""


def _maker(low: pa.Scalar, high: pa.Scalar, samples: Sequence[pa.Scalar], rng: random.Random) -> Make | None:
    kind = low.type
    if is_text(kind) or is_binary(kind):
        return _changed(samples, kind, rng) if samples else None
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
    width = max(high - low, len(_LETTERS))

    def make(beyond: bool) -> pa.Scalar | None:
        number = high + rng.randint(1, width) if beyond else rng.randint(low, high)
        try:
            found = value(number)
            return found if isinstance(found, pa.Scalar) else pa.scalar(found, kind)
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


def _changed(samples: Sequence[pa.Scalar], kind: pa.DataType, rng: random.Random) -> Make:
    """Samples in which some characters or bytes are replaced by those of other samples."""
    fixed = pa.types.is_fixed_size_binary(kind)
    texts: list[Any] = [value.as_py() if fixed else value.as_py()[:_BYTES_OF_TEXT] for value in samples]
    characters: list[Any] = list(dict.fromkeys(_characters(texts))) or list(_LETTERS if is_text(kind) else range(256))

    def make(beyond: bool) -> pa.Scalar | None:
        text = list(rng.choice(texts))
        for _ in range(1 + len(text) // 4):
            if text:
                text[rng.randrange(len(text))] = rng.choice(characters)
        if (beyond or not text) and not fixed:
            text += [rng.choice(characters) for _ in range(3)]
        return pa.scalar("".join(text) if is_text(kind) else bytes(text), kind)

    return make


def _characters(texts: Sequence[Any]) -> Iterator[Any]:
    for text in texts:
        yield from text
