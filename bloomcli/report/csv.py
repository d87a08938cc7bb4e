r"""inspect as CSV: a header row always, then one row a filter; an empty field is "not known".

Control characters in names are written as escapes (``\n``, ``\x1b``, ``\u2028``) and ``\`` as ``\\``, so that a row
is a line and no terminal or CI log acts on it. JSON has names as they are.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from bloomcli.model.dataset import DatasetReport, FileRow
from bloomcli.model.file import FilterFacts, InspectReport
from bloomcli.report.human import csv_field

HEADER: Final = ("path", *(f.name for f in dataclasses.fields(FilterFacts)))
"""The file's path, then the fields of FilterFacts under the names that they have in JSON."""


ROW_HEADER: Final = tuple(f.name for f in dataclasses.fields(FileRow) if f.name not in {"findings", "totals"})
"""The fields of FileRow, but for those that hold rows of their own."""


def write_rows(report: DatasetReport, stream: TextIO) -> None:
    """Write a dataset's rows, one a file."""
    _write(ROW_HEADER, ([getattr(row, name) for name in ROW_HEADER] for row in report.rows), stream)


def write(report: InspectReport, stream: TextIO) -> None:
    """Write the report's filters, lines ended by a newline only."""
    rows = ([report.path, *(getattr(facts, name) for name in HEADER[1:])] for facts in report.filters)
    _write(HEADER, rows, stream)


def _write(header: Sequence[str], rows: Iterable[list[object]], stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(header)
    for row in rows:
        fields = [csv_field(value) if isinstance(value, str) else value for value in row]
        # a line that starts with :: is a command to GitHub's runner, one that starts with a quote isn't
        starts_command = str(fields[0]).lstrip().startswith("::")
        (quoting if starts_command else writer).writerow(fields)
