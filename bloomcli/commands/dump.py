"""dump: one filter's bits."""

from __future__ import annotations

import os

from bloomcli.commands.columns import select
from bloomcli.errors import UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model import Column, FilterDump
from bloomcli.source import open_source


def only_column(file: FilterFile, name: str | None, *, purpose: str) -> Column:
    """The named column; without a name the only one that has filters. Raises UsageError, UnknownColumn."""
    path = file.source.path
    if name is not None:
        found = select(file.columns, [name], path=path)
        if len(found) > 1:
            raise UsageError(
                f"{name!r} means {len(found)} columns; {purpose} takes one",
                path=path,
                hint="one of " + ", ".join(c.path for c in found[:8]),
            )
        return found[0]
    found_in = file.filtered_columns()
    filtered = [c for c in file.columns if c.index in found_in]
    if len(filtered) == 1:
        return filtered[0]
    if not filtered:
        raise UsageError(
            "no column has a filter",
            path=path,
            hint="name a column with --column, or add filters with `bloom add`",
        )
    raise UsageError(
        f"{len(filtered)} columns have filters",
        path=path,
        hint="name one with --column: " + ", ".join(c.path for c in filtered[:8]),
    )


def dump(
    path: str | os.PathLike[str], *, column: str | None = None, row_group: int = 0, stripe: int = 0
) -> FilterDump:
    """Read one filter's header and bitset.

    Args:
        path: the file, local or a URI.
        column: leaf path; may be left out where one column only has filters.
        row_group: counted from 0; in ORC within its stripe.
        stripe: of an ORC file, counted from 0.

    Returns the facts, the header's bytes, and the bitset: in Parquet blocks of 32 bytes, each eight
    little-endian 32-bit words; in ORC little-endian longs.

    Raises:
        UsageError: no such row group, or no filter there.
        CorruptFile: the filter can't be read.
    """
    with open_source(path) as source:
        file = open_file(source)
        return file.dump(only_column(file, column, purpose="dump"), row_group, stripe)
