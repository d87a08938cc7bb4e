"""Picks the values of some rows out of pages, without the other values being made.

These are PLAIN or dictionary-encoded pages of a column at the top level, of types whose values are easily made of
their bytes. Whatever else there is, and whatever is damaged, is left to Arrow. One page is in memory at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet.codecs import Buffer
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.formats.parquet.pages import ChunkReader, Page, read_page
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source

BYTES_MOST: Final = 64 << 20
"""Bytes of a column's values that are made together, unless it is one value."""
_VALUE_MOST: Final = 1 << 30
"""Bytes of one value: Arrow's strings have offsets of 32 bits."""
_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")
_INT32: Final = (pa.int32(), pa.uint32(), pa.date32())
_NARROW: Final = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16())
_NUMBERS: Final = {
    "INT32": (*_INT32, *_NARROW),
    "INT64": (pa.int64(), pa.uint64()),
    "FLOAT": (pa.float32(),),
    "DOUBLE": (pa.float64(),),
    "BOOLEAN": (pa.bool_(),),
    "BYTE_ARRAY": (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()),
}
_DECIMAL_BYTES: Final = 16


def alike(chunk: ColumnChunk, kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are made here of the stored values of a chunk."""
    column, types = chunk.column, pa.types
    if types.is_decimal128(kind):
        fixed = column.physical == "FIXED_LEN_BYTE_ARRAY" and 0 < (column.type_length or 0) <= _DECIMAL_BYTES
        return fixed or column.physical in {"INT32", "INT64"}
    if column.physical == "FIXED_LEN_BYTE_ARRAY":
        return bool(types.is_fixed_size_binary(kind)) and kind.byte_width == column.type_length
    if column.physical == "INT64" and (types.is_timestamp(kind) or types.is_time64(kind) or types.is_duration(kind)):
        return True
    return kind in _NUMBERS.get(column.physical, ())


class TooManyBytes(Exception):
    """The values of some rows have more than `BYTES_MOST` bytes: fewer rows at a time have less."""


class _Part(NamedTuple):
    """The values of some rows of a page."""

    values: bytearray
    """As they are stored: those of fixed widths, with zeros for nulls; booleans, a byte for each; or the bytes of
    byte arrays."""
    sizes: bytearray
    """Of each byte array its size, an int64; empty for others."""
    positions: bytearray
    """Of each row an int64, which is negative for nulls; empty where there are none."""


def picked(
    source: Source,
    chunk: ColumnChunk,
    data_end: int,
    places: Sequence[PagePlace],
    rows: memoryview,
    kind: pa.DataType,
) -> pa.Array | None:
    """The values in some rows; None where Arrow has to decode them.

    Args:
        source: the file.
        chunk: the column chunk, of which `alike` is true.
        data_end: where the file's data end.
        places: the pages that have the rows, in order.
        rows: ascending positions in the row group, int64s.
        kind: the type of the values.

    Raises:
        TooManyBytes: of several rows.
    """
    try:
        parts = _picked(source, chunk, data_end, places, rows)
        return None if parts is None else _array(parts, len(rows), chunk, kind)
    except (CorruptFile, UnsupportedError, kernels.PageError):
        return None
    except TooManyBytes:
        if len(rows) > 1:
            raise
        return None


def of_forms(forms: pa.Array, chunk: ColumnChunk, kind: pa.DataType) -> pa.Array:
    """Stored values, as `finding.Wanted.forms` has them, as an Arrow type of which `alike` is true. They were taken:
    the array has no offset."""
    if not pa.types.is_large_binary(forms.type):
        part = _Part(_bytes(forms.buffers()[1], len(forms) * forms.type.bit_width // 8), bytearray(), bytearray())
    else:
        sizes = _bytes(pc.binary_length(forms).buffers()[1], 8 * len(forms))
        part = _Part(_bytes(forms.buffers()[2], sum(memoryview(sizes).cast("q"))), sizes, bytearray())
    return _array([part], len(forms), chunk, kind)


def _bytes(buffer: pa.Buffer | None, size: int) -> bytearray:
    return bytearray(memoryview(buffer or b"").cast("B")[:size])


def _picked(
    source: Source, chunk: ColumnChunk, data_end: int, places: Sequence[PagePlace], rows: memoryview
) -> list[_Part] | None:
    reader = ChunkReader(source, chunk, data_end, checked=True)
    dictionary: _Dictionary | None = None
    if chunk.dictionary_bytes is not None:
        reader.window = chunk.dictionary_bytes
        page = read_page(reader, lambda _: False)
        if page is None or not page.dictionary:
            return None
        dictionary = _Dictionary(page, width_of(chunk.column))
    found: list[_Part] = []
    most = BYTES_MOST if len(rows) > 1 else _VALUE_MOST
    at = 0
    for place in places:
        at = bisect_left(rows, place.first_row, at)
        end = bisect_left(rows, place.first_row + place.rows, at)
        if at == end:
            continue
        reader.position, reader.window = place.offset, place.length
        page = read_page(reader, lambda _: False)
        if page is None or page.dictionary or page.end != place.offset + place.length:
            return None
        if page.num_values != place.rows:
            return None
        part = _of_page(page, dictionary, kernels.positions_within(rows, at, end, place.first_row), chunk, most)
        if part is None:
            return None
        most -= len(part.values)
        found.append(part)
        at = end
    return found


class _Dictionary:
    """The values of a chunk's dictionary page. Raises PageError where they aren't all there."""

    def __init__(self, page: Page, width: int | None) -> None:
        assert page.body is not None  # noqa: S101  none was skipped
        self.data, self.start, self.count = page.body.whole(), page.start, page.num_values
        self._places = b"" if width else kernels.binary_places(self.data, page.start, page.num_values)

    def starts(self, indices: memoryview) -> memoryview:
        """Where byte arrays begin."""
        places = memoryview(self._places).cast("q")
        return memoryview(array("q", [places[index] if index >= 0 else -1 for index in indices]))


def _of_page(
    page: Page, dictionary: _Dictionary | None, positions: bytearray, chunk: ColumnChunk, most: int
) -> _Part | None:
    """The values at ascending positions of a page, of at most so many bytes."""
    assert page.body is not None  # noqa: S101  none was skipped
    data, start = page.body.whole(), page.start
    at = memoryview(positions).cast("q")
    nulls = page.non_null != page.num_values
    if nulls:
        if page.levels is None or chunk.column.max_definition_level != 1:
            return None
        kernels.pick_levels(page.levels.body.whole(), page.levels.start, page.levels.end, at)
    there = positions if nulls else bytearray()
    width = width_of(chunk.column)
    if page.encoding in _DICTIONARY:
        if dictionary is None:
            return None
        at = memoryview(bytearray(positions)).cast("q")
        kernels.pick_indices(data, start, dictionary.count, at)
        if width:
            return _Part(kernels.pick_fixed(dictionary.data, dictionary.start, width, at), bytearray(), there)
        return _binary(dictionary.data, dictionary.starts(at), there, most)
    if page.encoding != "PLAIN":
        return None
    if chunk.column.physical == "BOOLEAN":
        return _Part(kernels.pick_bits(data, start, at), bytearray(), there)
    if width:
        return _Part(kernels.pick_fixed(data, start, width, at), bytearray(), there)
    at = memoryview(bytearray(positions)).cast("q")
    kernels.binary_starts(data, start, at)
    return _binary(data, at, there, most)


def _binary(data: Buffer, starts: memoryview, there: bytearray, most: int) -> _Part:
    sizes = bytearray(8 * len(starts))
    values = kernels.pick_binary(data, starts, most, memoryview(sizes).cast("q"))
    if values is None:
        raise TooManyBytes
    return _Part(values, sizes, there)


def _array(parts: Sequence[_Part], rows: int, chunk: ColumnChunk, kind: pa.DataType) -> pa.Array:
    """The values of all pages. Raises PageError where they aren't those of so many rows."""
    column, values = chunk.column, bytearray().join(part.values for part in parts)
    validity, nulls = _validity(parts, chunk)
    if column.physical == "BYTE_ARRAY":
        wide = kind in (pa.large_string(), pa.large_binary())
        sizes = b"".join(part.sizes for part in parts)
        if len(sizes) != 8 * rows:
            raise kernels.PageError("there are values of other rows")
        offsets = kernels.offsets_of(memoryview(sizes).cast("q"), 8 if wide else 4)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(values)]
        return pa.Array.from_buffers(kind, rows, buffers, nulls)
    width = width_of(column) or 1
    if len(values) != rows * width:
        raise kernels.PageError("there are values of other rows")
    if pa.types.is_decimal128(kind):
        values = kernels.decimals_of(values, width, column.physical == "FIXED_LEN_BYTE_ARRAY")
    stored = pa.int32() if kind in _NARROW else pa.uint8() if pa.types.is_boolean(kind) else kind
    found = pa.Array.from_buffers(stored, rows, [validity, pa.py_buffer(values)], nulls)
    return found if stored == kind else found.cast(kind, safe=False)


def _validity(parts: Sequence[_Part], chunk: ColumnChunk) -> tuple[pa.Buffer | None, int]:
    """The bitmap of the values that aren't null, if any is, and the number of nulls."""
    if not any(part.positions for part in parts):
        return None, 0
    width = width_of(chunk.column) or 1
    every = bytearray()
    for part in parts:
        count = len(part.sizes) // 8 if chunk.column.physical == "BYTE_ARRAY" else len(part.values) // width
        every += part.positions or bytearray(8 * count)
    bitmap, nulls = kernels.validity_of(memoryview(every).cast("q"))
    return pa.py_buffer(bitmap), nulls
