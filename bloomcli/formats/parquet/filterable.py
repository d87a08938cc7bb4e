"""Decides which Parquet columns can have filters that readers use."""

from __future__ import annotations

from bloomcli.formats.parquet import codecs
from bloomcli.formats.parquet.footer import Footer
from bloomcli.model.file import Column


def unfilterable(column: Column) -> str | None:
    """Why a column can't have a filter, as a noun phrase; None if it can."""
    if column.physical != "BOOLEAN":
        return None
    return "BOOLEAN: it has two values, no reader uses a filter on it, and one that is wrongly written loses rows"


def unreadable(footer: Footer, column: Column) -> str | None:
    """Why a column's values can't be read in a row group; None if the metadata show no reason."""
    for key in footer.chunk_keys({column.index}):
        chunk = footer.chunk(key)
        if chunk.encrypted:
            return "encrypted: bloom has no keys"
        if chunk.codec != "UNCOMPRESSED" and not codecs.supported(chunk.codec):
            return f"compressed by {chunk.codec}, which isn't known here"
    return None
