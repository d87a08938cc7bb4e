"""Reads all hashed slices of a column."""

from __future__ import annotations

from pathlib import Path

from bloomcli.formats.parquet.encodings import Slice
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.formats.parquet.values import hashed_slices
from bloomcli.storage.registry import open_source


def pages_of(path: Path, column: int = 0) -> list[Slice]:
    """The slices of the column in all row groups."""
    with open_source(path) as source:
        footer = read_footer(source)
        keys = footer.chunk_keys({column})
        return [page for key in keys for page in hashed_slices(source, footer.chunk(key))]
