"""What the metadata tell of the values behind one filter."""

from __future__ import annotations

from bloomcli.named_tuple import NamedTuple


class FilterBounds(NamedTuple):
    """The metadata about the values of one filter."""

    row_group: int
    stripe: int | None
    low: bytes | None
    """Lower bound, PLAIN-encoded as `literal_column` is; None where it isn't known."""
    high: bytes | None
    only_dictionary: bool = False
    """Every data page is dictionary-encoded, and readers can tell."""
