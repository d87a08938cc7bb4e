"""Sums up the row-group index of a Mosaic file by column."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.formats.column_facts import NO_BOUNDS, Bounds, ColumnFacts, merged_bounds
from bloomcli.formats.mosaic import statistics
from bloomcli.formats.mosaic.footer import Footer
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn, column_of, literal_column
from bloomcli.model.file import Column


def column_facts(footer: Footer, columns: set[int] | None) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (None: all), in name-sorted order."""
    for column in footer.columns:
        if columns is None or column.index in columns:
            yield _facts(footer, column)


def _facts(footer: Footer, column: MosaicColumn) -> ColumnFacts:
    found = [group.statistics.get(column.index) for group in footer.row_groups]
    known = [s for s in found if s is not None]
    shown = column_of(column)
    typed = shown if column.kind in COMPOUND else literal_column(column)
    alone = len(footer.members[column.bucket]) == 1
    groups = footer.row_groups
    return ColumnFacts(
        shown,
        typed,
        compression=(footer.compression,),
        values=sum(group.rows for group in groups),
        nulls=sum(s.nulls for s in known) if len(known) == len(found) else 0 if not column.nullable else None,
        compressed_bytes=sum(group.bucket_bytes(column.bucket) for group in groups) if alone else None,
        bucket=column.bucket,
        bounds=NO_BOUNDS if column.kind in COMPOUND else _bounds(footer, column, typed),
    )


def _bounds(footer: Footer, column: MosaicColumn, typed: Column) -> Bounds:
    lows, highs = [], []
    for group in footer.row_groups:
        found = group.statistics.get(column.index)
        if found is not None and found.nulls >= group.rows:
            continue
        lows.append(None if found is None else statistics.plain(found.minimum, column))
        highs.append(None if found is None else statistics.plain(found.maximum, column))
    if not any(bound is not None for bound in (*lows, *highs)):
        return NO_BOUNDS
    return merged_bounds(lows, highs, typed)
