"""Where a filter is, and of what type its column, as every text report says it."""

from __future__ import annotations

from bloomcli.model.file import Finding


def where(stripe: int | None, row_group: int | None) -> str:
    """``row group 3``, ``stripe 0, row group 3``, ``stripe 0``."""
    places = [] if stripe is None else [f"stripe {stripe}"]
    if row_group is not None:
        places.append(f"row group {row_group}")
    return ", ".join(places)


def type_text(physical: str, logical: str | None) -> str:
    return f"{physical} ({logical})" if logical else physical


def finding_place(finding: Finding) -> str:
    """`` (row group 1, id, byte 77)`` behind a finding's message; empty where it is about the whole file."""
    places = []
    if finding.stripe is not None or finding.row_group is not None:
        places.append(where(finding.stripe, finding.row_group))
    if finding.column is not None:
        places.append(finding.column)
    if finding.offset is not None:
        places.append(f"byte {finding.offset}")
    return f" ({', '.join(places)})" if places else ""
