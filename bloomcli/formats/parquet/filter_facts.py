"""The facts of every filter of a file, in compiled code: a file may have a million filters.

Compiled code handles the filters that are encoded as writers usually do. `filter_header.py` and `describe.py` read
each other filter and report its faults. Both produce the same facts.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Final

from bloomcli import kernels
from bloomcli.filters import sizing
from bloomcli.formats.answer import WRONG
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import variants
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.model.file import Column, FilterFacts
from bloomcli.rules.writer_table import Part

_MOST_BYTES: Final = 1 << 20
"""The largest filter that compiled code examines. Reading a larger one takes most of the time anyway."""
_NAMES: Final = tuple(field.name for field in fields(FilterFacts))
_CURRENT: Final = ("BLOCK", "XXHASH", "UNCOMPRESSED")

One = Callable[[ChunkKey], Iterator[tuple[int, FilterFacts]]]
"""Yields the facts of one chunk's filter, if it has one."""


def indexed_facts(filters: Filters, columns: set[int] | None, one: One) -> Iterator[tuple[int, FilterFacts]]:
    """Yield the facts of the filters of these columns (None: of all), each with its column's ordinal.

    Args:
        filters: of an open file.
        columns: leaf ordinals.
        one: describes a filter that compiled code doesn't handle. Raises the error of a damaged chunk.
    """
    footer = filters.footer
    chosen = [column for column in footer.columns if columns is None or column.index in columns]
    unusual = len(footer.columns) != footer.column_count  # then `one` raises
    if unusual or any(footer.fault(Part.NULL_COUNT, column) is not None for column in chosen):
        for key in footer.chunk_keys(columns):
            yield from one(key)
        return
    numbers = array("i", (number for column in chosen for number in footer.usual_chunks.numbers[column.index]))
    row: list[ChunkKey] = []
    for key in footer.chunk_keys(columns):
        row.append(key)
        if len(row) == len(chosen):
            yield from _of_row_group(filters, chosen, numbers, row, one)
            row.clear()


def _of_row_group(
    filters: Filters, columns: list[Column], numbers: array[int], row: list[ChunkKey], one: One
) -> Iterator[tuple[int, FilterFacts]]:
    footer, source = filters.footer, filters.source
    claims = kernels.filter_claims(
        footer.raw, [key.start for key in row], parquet_limits.THRIFT_MAX_DEPTH, numbers, footer.start
    )
    for key, column, claim in zip(row, columns, claims, strict=True):
        if claim is False:
            continue
        if claim is None or not 0 < claim[1] <= _MOST_BYTES:
            yield from one(key)
            continue
        offset, length, values, low, high = claim
        found = kernels.sbbf_examine(source.read_at(offset, length), 0, length, low, high)
        if found is None:
            yield from one(key)
        else:
            yield column.index, _facts(key.row_group, column, offset, length, values, found)


def _facts(
    row_group: int,
    column: Column,
    offset: int,
    length: int,
    values: int,
    found: tuple[int, int, float | None, float, float, float | None, bool],
) -> FilterFacts:
    header_bytes, nbytes, ndv, fill, fpp, per_value, wrong = found
    return kernels.frozen(
        FilterFacts,
        _NAMES,
        (
            row_group,
            column.path,
            column.physical,
            column.logical,
            offset,
            length,
            header_bytes,
            nbytes,
            nbytes // sizing.BLOCK_BYTES,
            *_CURRENT,
            values,
            ndv,
            fill,
            fpp,
            per_value,
            None,  # problem
            None,  # stripe
            None,  # hash_functions
            None,  # encoding
            None,  # asked_fpp
            WRONG if wrong else None,
            variants.CURRENT,
        ),
    )
