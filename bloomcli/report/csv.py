r"""Writes `inspect` and dataset reports as CSV: a header row, then one row per filter or file.

Unknown fields are empty. Control characters in names are written as escapes (``\n``, ``\x1b``, ``\u2028``) and ``\``
as ``\\``, so that each row is one line and terminals and CI logs don't interpret it. JSON has the original names.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from bloomcli.model.dataset import DatasetReport, FileRow
from bloomcli.model.file import FilterFacts
from bloomcli.report.human import csv_field

if TYPE_CHECKING:
    from bloomcli.model.inspect import InspectReport

HEADER: Final = ("path", *(f.name for f in dataclasses.fields(FilterFacts)))
"""The file's path, then the fields of FilterFacts, named as in JSON."""


ROW_HEADER: Final = tuple(f.name for f in dataclasses.fields(FileRow) if f.name not in {"findings", "totals"})
"""The fields of FileRow, except those that contain rows themselves."""


def write_rows(report: DatasetReport, stream: TextIO) -> None:
    """Write a dataset's report, one row per file."""
    _write(ROW_HEADER, ([getattr(row, name) for name in ROW_HEADER] for row in report.rows), stream)


def write(report: InspectReport, stream: TextIO) -> None:
    """Write the report of `inspect`, one row per filter. Lines end with a newline only."""
    rows = ([report.path, *(getattr(facts, name) for name in HEADER[1:])] for facts in report.filters)
    _write(HEADER, rows, stream)


def _write(header: Sequence[str], rows: Iterable[list[object]], stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(header)
    for row in rows:
        fields = [csv_field(value) if isinstance(value, str) else value for value in row]
        # GitHub's runner takes a line that starts with :: for a command; a quote at the start prevents that
        starts_command = str(fields[0]).lstrip().startswith("::")
        (quoting if starts_command else writer).writerow(fields)
