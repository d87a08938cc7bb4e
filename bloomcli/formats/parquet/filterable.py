"""Which Parquet columns can have filters that readers find values by."""

from __future__ import annotations

from bloomcli.model import Column


def unfilterable(column: Column) -> str | None:
    """What a column is that can't have a filter; None where it can."""
    if column.physical != "BOOLEAN":
        return None
    return "BOOLEAN: it has two values, no reader uses a filter on it, and one that is wrongly written loses rows"
