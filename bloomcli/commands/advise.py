"""advise: reads the metadata and sampled values of one file. `bloomcli.advice` computes the estimates over all
files."""

from __future__ import annotations

from dataclasses import replace

from bloomcli.checks.additions import Readers
from bloomcli.commands.advise_units import unit_samples
from bloomcli.commands.columns import is_named, type_alone
from bloomcli.commands.options import ExtentOptions, UnitOptions
from bloomcli.engine_filters.registry import filters_of
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.formats.sampling import Extent
from bloomcli.model.advice import ColumnExtents, FileExtents, SampledRow
from bloomcli.model.dataset import Status
from bloomcli.model.file import Column
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.values.short_bounds import LONGEST_BOUND, cut_high, cut_low


@convert_os_errors_of_file
def extents(path: str, options: ExtentOptions) -> SampledRow:
    """Read a file's metadata. Raises UnreadableError, UnsupportedError."""
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        readers = Readers(file.format, options.policy.for_file(path), file.encrypted_alike)
        chosen = _chosen(file, options)
        found = [_column(file, column, readers) for column in file.leaves if column.index in chosen]
        sizes = found[0][1] if found else ()
        return SampledRow(
            path=source.path,
            status=Status.DONE,
            format=file.format,
            row_groups=file.row_group_count,
            bytes_before=source.size,
            extents=FileExtents(
                format=file.format,
                bytes=source.size,
                rows=file.rows,
                units=tuple(file.units()),
                row_group_bytes=tuple(sizes),
                columns=tuple(column for column, _ in found),
                engine_filters=tuple(one.facts for one in filters_of(file, chosen).filters),
                unverified=file.unverified,
            ),
        )


def _chosen(file: FilterFile, options: ExtentOptions) -> set[int]:
    """Ordinals of the leaves to examine. A file needs to have none of the named columns."""
    return {
        c.index
        for c in file.leaves
        if not c.not_in_table
        and (not options.columns or is_named(options.columns, c))
        and not is_named(options.exclude, c)
    }


def _column(file: FilterFile, column: Column, readers: Readers) -> tuple[ColumnExtents, list[int]]:
    typed = file.literal_column(column)
    found: list[Extent] = list(file.extents(column))
    refusal = readers.refusal(column) if column.unfilterable is None else None
    why = column.unfilterable or (None if refusal is None else refusal.reason)
    if why is None and any(extent.doubtful for extent in found):
        why = file.why_unfilterable(column) or file.why_unreadable(column)
    numbers = not typed.physical.endswith("BYTE_ARRAY") or (typed.logical or "").startswith("DECIMAL")
    nulls = [extent.nulls for extent in found]
    filters = [extent.filter_bytes for extent in found]
    lows, highs = [extent.low for extent in found], [extent.high for extent in found]
    summed = ColumnExtents(
        column=column.path,
        type=column.logical or column.physical,
        typed=replace(type_alone(typed), variant_path=column.variant_path),
        unfilterable=why,
        loses_rows=refusal is not None,
        values=tuple(extent.values for extent in found),
        nulls=None if None in nulls else sum(n for n in nulls if n is not None),
        chunk_bytes=sum(extent.chunk_bytes for extent in found),
        lows=tuple(low if low is None or numbers else cut_low(low) for low in lows),
        highs=tuple(high if high is None or numbers else _short(cut_high(high)) for high in highs),
        empty=bytes(extent.empty for extent in found),
        dictionary=sum(extent.only_dictionary for extent in found),
        filters=sum(size is not None for size in filters),
        without_filter=sum(extent.filter_bytes is None and not extent.empty for extent in found),
        filter_bytes=sum(size or 0 for size in filters),
        properties=frozenset() if why is not None and refusal is None else file.properties(column),
    )
    return summed, [extent.row_group_bytes for extent in found]


def _short(bound: bytes) -> bytes | None:
    """An upper bound, or None if it couldn't be cut: those of all files are held in memory."""
    return bound if len(bound) <= LONGEST_BOUND else None


@convert_os_errors_of_file
def units(path: str, options: UnitOptions) -> SampledRow:
    """Read the values of some units of a file, look values up, and measure the existing filters.

    Raises UnreadableError, UnsupportedError.
    """
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        smallest = Readers(file.format, options.policy.for_file(path)).smallest()
        found = tuple(unit_samples(file, options, options.units.get(path, ()), smallest))
        return SampledRow(path=source.path, status=Status.DONE, format=file.format, units=found)
