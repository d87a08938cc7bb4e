"""Makes an index's bits for a column's row groups: from the file's filters if their hashes are Parquet's, or from the
values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli.concurrency.threads import Stop
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats import arrays, index_bits
from bloomcli.formats.base import BitsSource, FilterProblem, RowGroupBits
from bloomcli.formats.index_bits import BitsMaker
from bloomcli.formats.mosaic import schema, statistics, values
from bloomcli.formats.mosaic.bloom_filter import Filters
from bloomcli.formats.mosaic.footer import Footer, RowGroup
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn
from bloomcli.model.file import Column

_SHARED_HASHES: Final = frozenset(("INT32", "INT64", "FLOAT", "DOUBLE", "DATE", "STRING"))
"""Families whose filters have the same hashes as Parquet's. Small integers are hashed at their own width."""


def indexed_column(footer: Footer, column: Column) -> Column:
    """The column with the Parquet type by which an index hashes values."""
    return index_bits.indexed_column(schema.literal_column(footer.columns[column.index]))


def row_groups(filters: Filters, column: Column, fpp: float, stop: Stop) -> Iterator[RowGroupBits]:
    """Yield the bits of each row group of a file, in order. If a filter can't be used, the values are read.

    Args:
        filters: the file's filters.
        column: one of its leaf columns.
        fpp: the rate for which filters are made, and to which existing ones are folded.
        stop: ends the reading.

    Raises:
        CorruptFile, UnsupportedError: the column's buckets can't be read.
        Stopped: soon after `stop` is set.
    """
    mosaic = filters.footer.columns[column.index]
    filters.source.will_read(filters.ranges({column.index}))
    with values.ColumnReader(filters.footer, [mosaic]) as reader:
        for group in filters.footer.row_groups:
            stop.check()
            none = RowGroupBits(group.ordinal, group.rows)
            if not _has_values(group, mosaic):
                yield none
            elif not _is_read(mosaic):
                yield none._replace(possible=True)
            elif (bits := _usable(filters, group, mosaic)) is not None:
                yield none._replace(bits=bits.folded_to(fpp).bitset)
            else:
                filters.source.will_read(filters.value_ranges(group, {mosaic.index}))
                yield _bits_from_values(reader, group, mosaic, fpp, none)


def sources(filters: Filters, column: Column) -> Iterator[BitsSource]:
    """What `row_groups` reads of each row group, by the row-group index: whether a filter can be used isn't known
    yet."""
    mosaic = filters.footer.columns[column.index]
    for group in filters.footer.row_groups:
        if not _is_read(mosaic) or not _has_values(group, mosaic):
            yield BitsSource()
        elif mosaic.family in _SHARED_HASHES and filters.preferred(group, mosaic.index) is not None:
            yield BitsSource(filter=True)
        else:
            yield BitsSource(reads=group.bucket_bytes(mosaic.bucket))


def _is_read(mosaic: MosaicColumn) -> bool:
    return mosaic.family != "BOOLEAN" and mosaic.kind not in COMPOUND


def _has_values(group: RowGroup, mosaic: MosaicColumn) -> bool:
    """Whether a row group may have values of a column. A filter counts more than a number of nulls."""
    filtered = any(location.column == mosaic.index for location in group.filters)
    return group.rows > 0 and (group.non_null(mosaic.index) > 0 or filtered)


def _usable(filters: Filters, group: RowGroup, mosaic: MosaicColumn) -> SplitBlockFilter | None:
    """The filter that readers use in a row group, if it has Parquet's hashes and the group's own bounds; else
    None."""
    location = filters.preferred(group, mosaic.index)
    if location is None or mosaic.family not in _SHARED_HASHES:
        return None
    try:
        bits = filters.load(location).bits
    except FilterProblem:
        return None
    return bits if all(map(bits.check, statistics.bound_hashes(group, mosaic))) else None


def _bits_from_values(
    reader: values.ColumnReader, group: RowGroup, mosaic: MosaicColumn, fpp: float, none: RowGroupBits
) -> RowGroupBits:
    array = reader.decoded(group).column(0).drop_null()
    if not len(array):
        return none
    maker = BitsMaker(values.distinct_bound(mosaic, len(array)), fpp)
    maker.add(index_bits.hashes_of(arrays.forms_of(array), schema.literal_column(mosaic)))
    return none._replace(bits=maker.bits(), decoded=max(group.bucket_bytes(mosaic.bucket), 1))
