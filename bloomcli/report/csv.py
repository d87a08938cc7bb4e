"""inspect as CSV: a header row always, then one row a filter; an empty field is "not known"."""

from __future__ import annotations

import csv
import dataclasses
from typing import Final, TextIO

from bloomcli.model import FilterFacts, InspectReport
from bloomcli.rows import DatasetReport, FileRow

HEADER: Final = ("path", *(f.name for f in dataclasses.fields(FilterFacts)))
"""The file's path, then the fields of FilterFacts under the names that they have in JSON."""


ROW_HEADER: Final = tuple(f.name for f in dataclasses.fields(FileRow) if f.name not in {"findings", "totals"})
"""The fields of FileRow, but for those that hold rows of their own."""


def write_rows(report: DatasetReport, stream: TextIO) -> None:
    """Write a dataset's rows, one a file."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(ROW_HEADER)
    for row in report.rows:
        writer.writerow([getattr(row, name) for name in ROW_HEADER])


def write(report: InspectReport, stream: TextIO) -> None:
    """Write the report's filters, lines ended by a newline only."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    for facts in report.filters:
        writer.writerow([report.path, *(getattr(facts, name) for name in HEADER[1:])])
