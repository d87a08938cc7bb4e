"""Makes the report row of an inspected file: its columns and their filters."""

from __future__ import annotations

from bloomcli.model.dataset import ColumnFilters, FileRow, Status
from bloomcli.model.file import ColumnSummary
from bloomcli.model.inspect import InspectReport


def inspect_row(report: InspectReport, *, every: bool) -> FileRow:
    """The row of an inspected file; with all its filters if `every` is true."""
    broken = [f for f in report.filters if f.problem is not None]
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        row_groups=report.row_groups,
        columns=len({f.column for f in report.filters}),
        filters=len(report.filters),
        filter_bytes=sum(f.bitset_bytes or 0 for f in report.filters),
        bytes_before=report.file_bytes,
        max_fpp=max((f.fpp for f in report.filters if f.fpp is not None), default=None),
        reason=f"{len(broken)} unreadable: {broken[0].problem}" if broken else None,
        created_by=report.created_by,
        by_column=tuple(map(_filters_of, report.by_column)),
        filter_facts=report.filters if every else (),
    )


def _filters_of(column: ColumnSummary) -> ColumnFilters:
    return ColumnFilters(
        column=column.column,
        type=column.logical or column.physical,
        row_groups_with_filter=column.row_groups_with_filter,
        row_groups_without_filter=column.row_groups_without_filter,
        filters=column.filters,
        unreadable=column.unreadable,
        bitset_bytes=column.bitset_bytes,
        max_fpp=column.max_fpp,
    )
