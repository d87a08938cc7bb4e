"""Formats the location of a filter or finding and the type of a column, for all text reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bloomcli.model.validate import Finding


def row_group_text(stripe: int | None, row_group: int | None) -> str:
    """Format a row group: ``row group 3``, ``stripe 0, row group 3``, ``stripe 0``."""
    parts = [] if stripe is None else [f"stripe {stripe}"]
    if row_group is not None:
        parts.append(f"row group {row_group}")
    return ", ".join(parts)


def type_text(physical: str, logical: str | None) -> str:
    """Format a column's type: ``INT64``, ``INT64 (TIMESTAMP(MICROS,UTC))``."""
    return f"{physical} ({logical})" if logical else physical


def finding_location(finding: Finding) -> str:
    """Format the suffix of a finding's message, `` (row group 1, id, byte 77)``; empty if it concerns the whole
    file."""
    parts = []
    if finding.stripe is not None or finding.row_group is not None:
        parts.append(row_group_text(finding.stripe, finding.row_group))
    if finding.column is not None:
        parts.append(finding.column)
    if finding.offset is not None:
        parts.append(f"byte {finding.offset}")
    return f" ({', '.join(parts)})" if parts else ""
