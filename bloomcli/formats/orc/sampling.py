"""The metadata and the values of ORC stripes, row group by row group, for `advise`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bloomcli.concurrency.threads import Stop
from bloomcli.formats.orc import hashes, statistics
from bloomcli.formats.orc.arrow_forms import PlainValues, entries_of
from bloomcli.formats.orc.bloom_filter import Filters
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.hashes import HashBatch
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import ColumnStreams, LeafReader
from bloomcli.formats.sampling import (
    Extent,
    KirschMitzenmacherBuilder,
    RowGroupValues,
    SampleBatch,
    UnitValues,
    as_given,
)
from bloomcli.model.file import Column


def extents(filters: Filters, column: Column) -> Iterator[Extent]:
    """The row index's facts about a column in each row group."""
    footer = filters.footer
    orc = footer.types[column.index]
    footer.will_read_stripes()
    indexes = (footer.stripe_footer(stripe).find("ROW_INDEX", column.index) for stripe in footer.stripes)
    filters.source.will_read(index.range for index in indexes if index is not None)
    for stripe in footer.stripes:
        streams = footer.stripe_footer(stripe)
        index = filters.statistics(streams, orc.id)
        chunk = sum(s.length for s in filters.value_streams(streams, orc.id))
        used = filters.preferred(streams, orc.id)
        for rows, stats in zip(footer.units(stripe), index, strict=True):
            counted = stats is not None and stats.HasField("number_of_values")
            low, high = (None, None) if stats is None or orc.fault else statistics.comparable_bounds(stats, orc)
            yield Extent(
                rows=rows,
                row_group_bytes=stripe.data_length * rows // stripe.rows,
                chunk_bytes=chunk * rows // stripe.rows,
                values=int(stats.number_of_values) if stats is not None and counted else rows,
                nulls=max(rows - stats.number_of_values, 0) if stats is not None and counted else None,
                low=low,
                high=high,
                empty=bool(stats is not None and counted and not stats.number_of_values),
                filter_bytes=None if used is None else used.length // len(index),
            )


def unit_values(
    filters: Filters, columns: Sequence[Column], unit: int, rates: Sequence[float], least: int, stop: Stop
) -> Iterator[UnitValues]:
    """The values of columns in a stripe. Raises CorruptFile, UnsupportedError."""
    del least  # orc-core's rule alone sizes filters
    footer = filters.footer
    streams = footer.stripe_footer(footer.stripes[unit])
    filters.source.will_read(r for c in columns for r in filters.value_ranges(streams, c.index))
    for column in columns:
        orc = footer.types[column.index]
        if orc.id in footer.encrypted_columns or orc.fault is not None or not footer.stride:
            continue
        values_of = partial(_plain, ColumnStreams(footer, streams, orc, stop))
        yield UnitValues(column, _row_groups(filters, streams, orc, rates, stop), values_of)


def _row_groups(
    filters: Filters, streams: StripeFooter, orc: OrcType, rates: Sequence[float], stop: Stop
) -> Iterator[RowGroupValues]:
    hasher = hashes.column_hasher(filters.footer, streams, orc, stop)
    for rows in filters.footer.units(streams.stripe):
        yield RowGroupValues(
            KirschMitzenmacherBuilder(filters.footer.sizing_rows, rates),
            (_batch(batch, hasher.leaf) for batch in hasher.take(rows)),
        )


def _batch(batch: HashBatch, leaf: LeafReader) -> SampleBatch:
    """Values, whose keys are their PLAIN bytes or, with a dictionary, the indexes of their entries."""
    indexes = leaf.entries is not None
    key = memoryview(batch.values.data).cast("q").__getitem__ if indexes else PlainValues(batch.values, leaf).plain
    zeros = hashes.zero_hashes() if batch.has_zero else b""
    return SampleBatch(batch.hashes, batch.count, key, bytes(zeros) + bytes(batch.other_hashes))


def _plain(streams: ColumnStreams, keys: Sequence[object]) -> Sequence[bytes | None]:
    """The values by their keys. A dictionary is read again."""
    indexes = {key for key in keys if isinstance(key, int)}
    entries = entries_of(LeafReader(streams), indexes, PlainValues.plain) if indexes else {}
    return as_given([entries[key] if isinstance(key, int) else key for key in keys])
