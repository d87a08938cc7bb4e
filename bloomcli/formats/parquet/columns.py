"""Sums up a column's metadata over all row groups, in compiled code: a file may have 20,000 chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bloomcli import kernels
from bloomcli.formats.column_facts import NO_BOUNDS, ColumnFacts, merged_bounds
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.usual_chunks import first_page
from bloomcli.model.file import Column
from bloomcli.words import counted

_OTHER: Final = 63
"""The bit for encodings whose number is negative, 63 or more."""


def column_facts(footer: Footer, columns: set[int] | None) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (None: of all), in schema order. Raises CorruptFile."""
    groups = [footer.row_group(index) for index in range(footer.row_group_count)]
    count = len(footer.columns)
    for group in groups:
        if len(group.chunks) != count:
            raise footer.location.fault(
                f"row group {group.ordinal} has {counted(len(group.chunks), 'column chunk')}, the schema"
                f" has {count} leaves",
                footer.group_struct(group.ordinal).start,
                f"row_groups[{group.ordinal}].columns",
            )
    for column in footer.columns:
        if columns is None or column.index in columns:
            ordered, deprecated = footer.trusted_bounds(column)
            try:
                chunks = [
                    kernels.chunk_facts(
                        footer.raw,
                        group.chunks[column.index],
                        parquet_limits.THRIFT_MAX_DEPTH,
                        ordered,
                        deprecated,
                    )
                    for group in groups
                ]
            except kernels.CompactError as error:
                raise footer.location.fault(error.reason, error.offset) from None
            yield _facts(footer, column, chunks)


def _facts(footer: Footer, column: Column, chunks: Sequence[tuple[Any, ...] | None]) -> ColumnFacts:
    known = [chunk for chunk in chunks if chunk is not None]
    if not chunks:
        return ColumnFacts(column, column, values=0, nulls=0, compressed_bytes=0, uncompressed_bytes=0)
    if len(known) < len(chunks):
        return ColumnFacts(column, column, compression=("encrypted",))
    values, unpacked, packed, codecs, encodings, pages, dictionaries, _, nulls, distinct, lows, highs, *exact = zip(
        *known, strict=True
    )
    if column.max_definition_level == 0:
        nulls = (0,) * len(known)
    believed = [footer.believed(column, *stated) for stated in zip(values, nulls, lows, highs, exact[1], strict=True)]
    counted = [nulls for nulls, _, _ in believed]
    full = [v is None or n is None or v - n > 0 for v, n in zip(values, counted, strict=True)]
    rows = [
        (low, high, *are_exact)
        for (_, low, high), are_exact, has_values in zip(believed, zip(*exact, strict=True), full, strict=True)
        if has_values
    ]
    bounds = NO_BOUNDS
    if rows:
        lows, highs, exact_lows, exact_highs = zip(*rows, strict=True)
        if any(low is not None for low in lows) or any(high is not None for high in highs):
            bounds = merged_bounds(lows, highs, column, (exact_lows, exact_highs))
    total = _sum(values)
    null_count = _sum(counted)
    if None in values:
        null_count = None
    most = _distinct(values, counted, distinct)
    return ColumnFacts(
        column,
        column,
        encodings=_encodings(encodings),
        compression=tuple(dict.fromkeys(spec.enum_name("CompressionCodec", c) for c in codecs if c is not None)),
        values=total,
        nulls=null_count,
        compressed_bytes=_sum(packed),
        uncompressed_bytes=_sum(unpacked),
        dictionary_bytes=_dictionary_bytes(pages, dictionaries),
        distinct=most,
        distinct_from=None if most is None else "statistics",
        bounds=bounds,
    )


def _sum(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(values)  # type: ignore[arg-type]  # none is None


def _encodings(masks: Sequence[int]) -> tuple[str, ...]:
    together = 0
    for mask in masks:
        together |= mask
    found = [spec.enum_name("Encoding", bit) for bit in range(_OTHER) if together >> bit & 1]
    return (*found, "unknown") if together >> _OTHER else tuple(found)


def _dictionary_bytes(pages: Sequence[int | None], dictionaries: Sequence[int | None]) -> int | None:
    found = (first_page(page, first)[1] for page, first in zip(pages, dictionaries, strict=True) if page)
    sizes = [size for size in found if size is not None]
    return sum(sizes) if sizes else None


def _distinct(
    values: Sequence[int | None], nulls: Sequence[int | None], distinct: Sequence[int | None]
) -> int | None:
    """The largest number of distinct values in a row group; None if a row group has no valid number."""
    for all_values, null, found in zip(values, nulls, distinct, strict=True):
        if all_values is None or found is None or not 0 <= found <= all_values - (null or 0):
            return None
    return max((d for d in distinct if d is not None), default=None)
