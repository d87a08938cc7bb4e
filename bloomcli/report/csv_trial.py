"""Writes the report of `trial` as CSV: one row per reader, column and kind of value."""

from __future__ import annotations

import dataclasses
from typing import Final, TextIO

from bloomcli.model.trial import Quartiles, ReaderTrial, TrialLookups, TrialReport
from bloomcli.report.csv import write_table

_READER: Final = ("reader", "version", "status", "uses_filters", "comparison")
_LOOKUPS: Final = tuple(field.name for field in dataclasses.fields(TrialLookups))
_QUARTILES: Final = ("seconds_without", "seconds_with", "ratio")
HEADER: Final = (
    *_READER,
    *(name for name in _LOOKUPS if name not in _QUARTILES),
    *(f"{name}_{part}" for name in _QUARTILES for part in ("low", "median", "high")),
    "reason",
)
"""The reader, then the fields of TrialLookups, then the quartiles of times. A reader that compared nothing has a row
with the reason."""


def write_trial(report: TrialReport, stream: TextIO) -> None:
    """Write the report of `trial`."""
    write_table(HEADER, (_row(r, found) for r in report.readers for found in r.lookups or (None,)), stream)


def _row(reader: ReaderTrial, found: TrialLookups | None) -> list[object]:
    row: list[object] = [getattr(reader, name) for name in _READER]
    row += [None if found is None else getattr(found, name) for name in _LOOKUPS if name not in _QUARTILES]
    for name in _QUARTILES:
        times: Quartiles | None = None if found is None else getattr(found, name)
        row += [None] * 3 if times is None else [times.low, times.median, times.high]
    return [*row, reader.reason]
