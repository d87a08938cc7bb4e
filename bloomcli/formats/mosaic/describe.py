"""The facts of a filter that reports show, and the details of a Mosaic file."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.formats.base import FilterProblem
from bloomcli.formats.mosaic import spec
from bloomcli.formats.mosaic.filter_header import LoadedFilter, column_of
from bloomcli.formats.mosaic.filters import Filters
from bloomcli.formats.mosaic.footer import Bucket, FilterLocation, Footer, RowGroup
from bloomcli.model.file import FilterFacts
from bloomcli.words import counted, noun

ALGORITHM = "BLOCK"
HASH = "XXHASH"
COMPRESSION = "UNCOMPRESSED"


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
        logical=None,
        offset=location.offset,
        length=location.length,
        header_bytes=len(loaded.header_raw),
        bitset_bytes=bits.nbytes,
        blocks=bits.blocks,
        algorithm=ALGORITHM,
        hash=HASH,
        compression=COMPRESSION,
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
        logical=None,
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
