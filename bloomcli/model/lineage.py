"""The row lineage of a data file."""

from __future__ import annotations

from bloomcli.named_tuple import NamedTuple


class RowLineage(NamedTuple):
    """What a table's metadata say of the numbers of a data file's rows, for rows without numbers of their own."""

    first_row_id: int
    """The number of the first row; the others follow in the file's order."""
    sequence_number: int
    """The number of the commit that last changed the rows."""
