"""What reports show: the facts of a filter, the buckets of a column, the row-group index's facts about it in each row
group and over all, and the details of a Mosaic file.
"""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.formats.base import FilterProblem
from bloomcli.formats.column_facts import NO_BOUNDS, Bounds, ColumnFacts, merged_bounds
from bloomcli.formats.mosaic import spec, statistics
from bloomcli.formats.mosaic.bloom_filter import Filters, LoadedFilter, column_of
from bloomcli.formats.mosaic.footer import Bucket, FilterLocation, Footer, RowGroup
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn, literal_column
from bloomcli.formats.mosaic.schema import column_of as shown_column
from bloomcli.model.file import Column, FilterFacts, IndexEntry, PageFacts
from bloomcli.values.literals import bound_text
from bloomcli.words import counted, noun


def column_name(footer: Footer, location: FilterLocation) -> str:
    """The name of a filter's column, or its number if the file has no such column."""
    column = column_of(footer, location)
    return f"column {location.column}" if column is None else column.name


def ordinal(location: FilterLocation) -> int:
    """The ordinal of a filter's column."""
    return location.column


def facts(filters: Filters, location: FilterLocation, loaded: LoadedFilter) -> Iterator[FilterFacts]:
    """A filter's facts, measured on its bits."""
    footer, bits = filters.footer, loaded.bits
    ndv = bits.ndv_estimate
    yield FilterFacts(
        row_group=location.row_group,
        column=column_name(footer, location),
        physical=footer.columns[location.column].type_name,
        offset=location.offset,
        length=location.length,
        header_bytes=len(loaded.header_raw),
        bitset_bytes=bits.nbytes,
        blocks=bits.blocks,
        algorithm="BLOCK",
        hash="XXHASH",
        compression="UNCOMPRESSED",
        values=footer.row_groups[location.row_group].non_null(location.column),
        ndv_estimate=ndv,
        fill=bits.fill,
        fpp=bits.fpp,
        bits_per_value=bits.nbytes * 8 / ndv if ndv else None,
    )


def raw(loaded: LoadedFilter, row_group: int) -> tuple[bytes, bytes]:
    """Return a filter's header and bitset, as stored in the file."""
    del row_group
    return loaded.header_raw, bytes(loaded.bits.bitset)


def problem_facts(filters: Filters, location: FilterLocation, problem: FilterProblem) -> FilterFacts:
    """The facts of a filter that can't be used, with the problem."""
    footer = filters.footer
    column = column_of(footer, location)
    return FilterFacts(
        row_group=location.row_group,
        column=column_name(footer, location),
        physical="?" if column is None else column.type_name,
        offset=location.offset,
        length=location.length,
        problem=problem.reason,
    )


def details(footer: Footer) -> tuple[tuple[str, str], ...]:
    """Footer, schema in name-sorted order, and each row group's buckets."""
    schema = footer.schema
    version = "2, the draft with filters" if footer.version == spec.DRAFT else str(footer.version)
    names = "plain" if schema.rules is None else f"byte-pair encoded, {counted(schema.rules, 'rule')}"
    written = ", ".join(schema.columns[index].name for index in schema.order)
    head = (
        ("version", version),
        ("compression", footer.compression),
        ("schema block", f"at {footer.schema_at}, {counted(footer.index_at - footer.schema_at, 'byte')}"),
        ("row-group index", f"at {footer.index_at}, {counted(footer.footer_at - footer.index_at, 'byte')}"),
        ("buckets", str(schema.buckets)),
        ("column names", names),
        ("columns as written", written),
    )
    columns = tuple(
        (f"column {c.index}", f"{c.name}: {c.type_name}{'' if c.nullable else ' NOT NULL'}, bucket {c.bucket}")
        for c in schema.columns
    )
    groups = tuple((f"row group {g.ordinal}", _row_group(footer, g)) for g in footer.row_groups)
    return head + columns + groups


def _row_group(footer: Footer, group: RowGroup) -> str:
    parts = [counted(group.rows, "row"), *(_bucket(bucket) for bucket in group.buckets)]
    if group.statistics:
        parts.append("statistics of " + ", ".join(footer.columns[c].name for c in group.statistics))
    return "; ".join(parts)


def _bucket(bucket: Bucket) -> str:
    size = f" of {bucket.unpacked}" if bucket.unpacked else ""
    return (
        f"bucket {bucket.id} {bucket.layout}, {bucket.size}{size}"
        f" {noun(bucket.unpacked or bucket.size, 'byte')} at {bucket.offset}"
    )


def pages(footer: Footer, column: Column) -> Iterator[PageFacts]:
    """Yield the column's bucket in each row group that has it. Several columns share a bucket."""
    wanted = footer.columns[column.index].bucket
    for group in footer.row_groups:
        for bucket in group.buckets:
            if bucket.id == wanted:
                yield PageFacts(
                    row_group=group.ordinal,
                    kind=bucket.layout,
                    offset=bucket.offset,
                    compressed_bytes=bucket.size,
                    uncompressed_bytes=bucket.unpacked or None,
                    values=group.rows,
                    bucket=bucket.id,
                )


def index(filters: Filters, column: Column) -> Iterator[IndexEntry]:
    """Yield the column's statistics in each row group that has them."""
    mosaic = filters.footer.columns[column.index]
    typed = None if mosaic.kind in COMPOUND else literal_column(mosaic)
    for group in filters.footer.row_groups:
        stats = group.statistics.get(column.index)
        if stats is not None:
            low, high = statistics.bounds(group, mosaic)
            yield IndexEntry(
                row_group=group.ordinal,
                values=group.rows,
                nulls=stats.nulls,
                only_nulls=stats.nulls >= group.rows,
                min=None if typed is None else bound_text(low, typed),
                max=None if typed is None else bound_text(high, typed),
            )


def column_facts(footer: Footer, columns: set[int] | None) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (all if None), in name-sorted order."""
    for column in footer.columns:
        if columns is None or column.index in columns:
            yield _facts(footer, column)


def _facts(footer: Footer, column: MosaicColumn) -> ColumnFacts:
    of_groups = [group.statistics.get(column.index) for group in footer.row_groups]
    stats = [s for s in of_groups if s is not None]
    shown = shown_column(column)
    typed = shown if column.kind in COMPOUND else literal_column(column)
    alone = len(footer.members[column.bucket]) == 1
    groups = footer.row_groups
    return ColumnFacts(
        shown,
        typed,
        compression=(footer.compression,),
        values=sum(group.rows for group in groups),
        nulls=sum(s.nulls for s in stats) if len(stats) == len(of_groups) else 0 if not column.nullable else None,
        compressed_bytes=sum(group.bucket_bytes(column.bucket) for group in groups) if alone else None,
        bucket=column.bucket,
        bounds=NO_BOUNDS if column.kind in COMPOUND else _bounds(footer, column, typed),
    )


def _bounds(footer: Footer, column: MosaicColumn, typed: Column) -> Bounds:
    lows, highs = [], []
    for group in footer.row_groups:
        stats = group.statistics.get(column.index)
        if stats is not None and stats.nulls >= group.rows:
            continue
        low, high = statistics.bounds(group, column)
        lows.append(low)
        highs.append(high)
    has_bounds = any(bound is not None for bound in (*lows, *highs))
    return merged_bounds(lows, highs, typed) if has_bounds else NO_BOUNDS
