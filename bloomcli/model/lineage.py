"""The row lineage of a data file."""

from __future__ import annotations

from typing import NamedTuple


class RowLineage(NamedTuple):
    """The row numbers that a table's metadata assigns to a data file, for rows without stored numbers."""

    first_row_id: int
    """The number of the first row; the others follow in the file's order."""
    sequence_number: int
    """The number of the commit that last changed the rows."""
