"""Finds the rows of a column chunk that have one of the values to find, with `page_scan`, without decoding values.

If it can't read a page, Arrow reads that page and all later ones, so that it reports the errors.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.formats.arrays import int64s, numbers_of, shifted
from bloomcli.formats.finding import Candidates, WantedValues
from bloomcli.formats.parquet import page_scan
from bloomcli.formats.parquet.page_parts import BYTES_MOST, TooManyBytes
from bloomcli.formats.parquet.page_scan import UnreadablePage
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.model.file import ColumnChunk
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import Source


class MatchedRows(NamedTuple):
    """Matching rows of some pages."""

    rows: pa.Int64Array
    """Positions in the row group, ascending."""
    numbers: pa.Int64Array
    """For each row, the position of its value in the candidates' forms."""
    pages: int
    """The number of data pages that were read."""


class KnownValues(NamedTuple):
    """Values of a column in matching rows: each is the form that it equals, byte by byte."""

    row_group: int
    column: int
    rows: pa.Int64Array
    """Positions in the row group, ascending, each once."""
    numbers: pa.Int64Array
    """For each row, the position of its value in `forms`."""
    forms: pa.Array

    def stored(self, rows: memoryview) -> pa.Array:
        """The values in these known rows (int64s), in the type of `WantedValues.forms`. Raises
        TooManyBytes."""
        known = numbers_of(self.rows)
        at = bisect_left(known, rows[0])
        numbers = self.numbers[at : at + len(rows)]
        if known[at : at + len(rows)].cast("B") != rows.cast("B"):
            numbers = self.numbers.take(int64s(bisect_left(known, row, at) for row in rows))
        if len(rows) > 1 and pa.types.is_large_binary(self.forms.type):
            sizes = pc.binary_length(self.forms).take(numbers)
            if sum(memoryview(sizes.buffers()[1]).cast("q")[: len(sizes)]) > BYTES_MOST:
                raise TooManyBytes
        return self.forms.take(numbers)


def combined(parts: Sequence[KnownValues]) -> KnownValues:
    """Combine values of the same column in different rows."""
    forms: list[pa.Array] = []
    numbers: list[pa.Int64Array] = []
    before = 0
    for part in parts:
        if not forms or forms[-1] is not part.forms:
            before = sum(map(len, forms))
            forms.append(part.forms)
        numbers.append(shifted(part.numbers, before) if before else part.numbers)
    rows, every = pa.concat_arrays([part.rows for part in parts]), pa.concat_arrays(numbers)
    if len(forms) > 1:  # their rows can be interleaved
        order = pc.array_sort_indices(rows)
        rows, every = rows.take(order), every.take(order)
    return parts[0]._replace(rows=rows, numbers=every, forms=pa.concat_arrays(forms))


def readable(wanted: WantedValues, candidates: Candidates, chunk: ColumnChunk) -> bool:
    """Whether this module can compare a chunk's values: by their bytes, in a column that isn't nested."""
    return page_scan.readable(chunk) and bool(wanted.hashes) and not candidates.nan


def matched(
    source: Source,
    chunk: ColumnChunk,
    data_end: int,
    places: Sequence[PagePlace] | None,
    wanted: WantedValues,
    candidates: Candidates,
) -> Iterator[MatchedRows | UnreadablePage]:
    """Yield the rows that have one of the candidates, some pages at a time.

    If a page can't be read, the last item is an `UnreadablePage`, from which Arrow continues.

    Args:
        source: the file.
        chunk: the chunk, for which `readable` is true.
        data_end: the end of the file's data.
        places: the pages to read; None for all.
        wanted, candidates: the values to find.
    """
    for found in page_scan.scanned(source, chunk, data_end, places, _table(wanted, candidates)):
        yield (
            found
            if isinstance(found, UnreadablePage)
            else MatchedRows(_int64s(found.rows), _int64s(found.numbers), found.pages)
        )


def _int64s(numbers: array[int]) -> pa.Int64Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _table(wanted: WantedValues, candidates: Candidates) -> kernels.ValueTable:
    """A table of the candidates' forms."""
    hashes = pa.Array.from_buffers(pa.uint64(), len(wanted.forms), [None, pa.py_buffer(wanted.hashes)])
    forms = wanted.forms.take(candidates.forms)
    own = _bytes(hashes.take(candidates.forms).buffers()[1], 8 * len(forms))
    if not pa.types.is_large_binary(forms.type):
        width = forms.type.bit_width // 8
        return kernels.ValueTable(own, _bytes(forms.buffers()[1], width * len(forms)), None, width)
    _, offsets, values = forms.buffers()
    starts = _bytes(offsets, 8 * (len(forms) + 1)) if len(forms) else memoryview(bytes(8))
    return kernels.ValueTable(own, memoryview(values or b"").cast("B"), starts.cast("q"), 0)


def _bytes(buffer: pa.Buffer | None, size: int) -> memoryview:
    return memoryview(buffer or b"").cast("B")[:size]
