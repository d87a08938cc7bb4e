"""Writes the report of `advise` as CSV, one row per column. An interval is three fields: X, X_low and X_high."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final, TextIO, get_type_hints

from bloomcli.model.advice import AdviseReport, ColumnAdvice, ExistingFilters, Interval, LookupGain
from bloomcli.report.csv import write_table

_GAINS: Final = ("present", "absent", "queried")
_LEFT_OUT: Final = ("rates", *_GAINS, "existing")
_HINTS: Final = get_type_hints(ColumnAdvice)
_INTERVALS: Final = frozenset(name for name, hint in _HINTS.items() if hint == Interval | None)
_COSTS: Final = ("today", "with_filter")
_FIGURES: Final = ("row_groups", "bytes")
_EXISTING: Final = tuple(field.name for field in fields(ExistingFilters))


def write(report: AdviseReport, stream: TextIO) -> None:
    """Write the report: the fields of ColumnAdvice, named as in JSON, then those of its lookups and its filters."""
    write_table(HEADER, (list(_row(column)) for column in report.columns), stream)


def _header() -> Iterator[str]:
    for field in fields(ColumnAdvice):
        if field.name not in _LEFT_OUT:
            yield from _ends(field.name) if field.name in _INTERVALS else (field.name,)
    for gain in _GAINS:
        yield f"{gain}_values"
        for cost in _COSTS:
            for figure in _FIGURES:
                yield from _ends(f"{gain}_{cost}_{figure}")
    yield from (f"existing_{name}" for name in _EXISTING)


def _row(column: ColumnAdvice) -> Iterator[object]:
    for field in fields(ColumnAdvice):
        if field.name not in _LEFT_OUT:
            value = getattr(column, field.name)
            yield from _three(value) if field.name in _INTERVALS else (value,)
    for gain in _GAINS:
        yield from _gain(getattr(column, gain))
    yield from (None if column.existing is None else getattr(column.existing, name) for name in _EXISTING)


def _gain(gain: LookupGain | None) -> Iterator[object]:
    yield None if gain is None else gain.values
    for cost in _COSTS:
        for figure in _FIGURES:
            yield from _three(None if gain is None else getattr(getattr(gain, cost), figure))


def _ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _three(value: Interval | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if value is None else (value.estimate, value.low, value.high)


HEADER: Final = tuple(_header())
