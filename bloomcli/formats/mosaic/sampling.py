"""The metadata and the values of Mosaic row groups, for `advise`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import LiteralError
from bloomcli.formats.mosaic import decoder, schema, statistics, values
from bloomcli.formats.mosaic.bloom_filter import Filters
from bloomcli.formats.mosaic.values import HashedColumn
from bloomcli.formats.sampling import Extent, RowGroupValues, SampleBatch, SplitBlockBuilder, UnitValues
from bloomcli.model.file import Column
from bloomcli.values.literals import parse


def extents(filters: Filters, column: Column) -> Iterator[Extent]:
    """The row-group index's facts about a column in each row group."""
    mosaic = filters.footer.columns[column.index]
    for group in filters.footer.row_groups:
        stats = group.statistics.get(column.index)
        used = filters.preferred(group, column.index)
        count = group.non_null(column.index)
        low, high = statistics.bounds(group, mosaic)
        yield Extent(
            rows=group.rows,
            row_group_bytes=group.data_bytes,
            chunk_bytes=group.bucket_bytes(mosaic.bucket),
            values=count,
            nulls=None if stats is None else stats.nulls,
            low=low,
            high=high,
            empty=not count,
            filter_bytes=None if used is None else used.length,
        )


def unit_values(
    filters: Filters, columns: Sequence[Column], unit: int, rates: Sequence[float], least: int, stop: Stop
) -> Iterator[UnitValues]:
    """The values of columns in a row group. They are decoded together. Raises UnsupportedError, CorruptFile."""
    del stop  # the package decodes a row group at once
    decoder.check(filters.source.path)
    group = filters.footer.row_groups[unit]
    chosen = [filters.footer.columns[c.index] for c in columns]
    filters.source.will_read(filters.value_ranges(group, {c.index for c in chosen}))
    with values.ColumnReader(filters.footer, chosen) as reader:
        decoded = reader.row_group(group)
    for column, mosaic in zip(columns, chosen, strict=True):
        hashed = decoded[mosaic.index]
        most = values.distinct_bound(mosaic, group.non_null(mosaic.index))
        zeros = array("Q", values.zero_hashes(mosaic)).tobytes() if hashed.has_zero else b""
        key = partial(_plain, hashed, schema.literal_column(mosaic))
        batch = SampleBatch(hashed.hashes, hashed.count, key, zeros)
        row_group = RowGroupValues(SplitBlockBuilder(most, rates, least), iter([batch]))
        yield UnitValues(column, iter([row_group]))


def _plain(hashed: HashedColumn, typed: Column, at: int) -> bytes | None:
    """The value with the hash at a position; None if its text isn't a value of the type."""
    with suppress(LiteralError):
        return next(iter(parse(hashed.value(at), typed).encodings), None)
    return None
