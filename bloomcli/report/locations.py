"""Formats the location of a filter or finding and the type of a column, for all text reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bloomcli.model.validate import Finding


_RUNS_SHOWN: Final = 5
"""Maximum number of runs of row groups that a location names."""


def row_group_text(stripe: int | None, row_group: int | None) -> str:
    """Format a row group: ``row group 3``, ``stripe 0, row group 3``, ``stripe 0``."""
    parts = [] if stripe is None else [f"stripe {stripe}"]
    if row_group is not None:
        parts.append(f"row group {row_group}")
    return ", ".join(parts)


def _places_text(finding: Finding) -> str:
    """Format all row groups of a finding: ``row groups 0-3, 7``, ``stripe 0: row group 2; stripe 1: row groups 0-4``,
    ``stripes 0-4``. Shows the first of very many."""
    if finding.places is None or not re.search("[-, ]", finding.places):
        return row_group_text(finding.stripe, finding.row_group)
    unit = "stripe" if finding.row_group is None else "row group"
    parts, left = [], _RUNS_SHOWN
    for part in finding.places.split(" "):
        stripe, _, groups = part.rpartition(":")
        runs = groups.split(",")
        more = ", ..." if len(runs) > left else ""
        plural = "s" if len(runs) > 1 or "-" in groups else ""
        within = f"stripe {stripe}: " if stripe else ""
        parts.append(f"{within}{unit}{plural} {', '.join(runs[:left])}{more}" if left else "...")
        left = max(left - len(runs), 0)
        if more or parts[-1] == "...":
            break
    return "; ".join(parts)


def type_text(physical: str, logical: str | None) -> str:
    """Format a column's type: ``INT64``, ``INT64 (TIMESTAMP(MICROS,UTC))``."""
    return f"{physical} ({logical})" if logical else physical


def finding_location(finding: Finding) -> str:
    """Format the suffix of a finding's message, `` (row group 1, id, byte 77)``; empty if it concerns the whole
    file."""
    parts = []
    if finding.stripe is not None or finding.row_group is not None:
        parts.append(_places_text(finding))
    if finding.column is not None:
        parts.append(finding.column)
    if finding.offset is not None:
        parts.append(f"byte {finding.offset}")
    return f" ({', '.join(parts)})" if parts else ""
