"""Decides which Mosaic columns can have filters."""

from __future__ import annotations

from bloomcli.formats.mosaic.filter_header import HASHED
from bloomcli.formats.mosaic.schema import MosaicColumn


def unfilterable(column: MosaicColumn) -> str | None:
    """Why a column can't have a filter, as a noun phrase; None if it can."""
    return None if column.family in HASHED else f"{column.type_name}: the draft has no filters for such values"
