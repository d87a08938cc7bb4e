"""Picks the values of some rows out of pages as Arrow arrays, with `page_parts`.

It supports columns at the top level, of types whose values can be built from their bytes. Arrow decodes all other
columns, and reports damaged ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.page_parts import Part, TooManyBytes, parts_of
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source

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


def supports(chunk: ColumnChunk, kind: pa.DataType) -> bool:
    """Whether this module can build values of an Arrow type from the stored values of a chunk."""
    column, types = chunk.column, pa.types
    if types.is_decimal128(kind):
        fixed = column.physical == "FIXED_LEN_BYTE_ARRAY" and 0 < (column.type_length or 0) <= _DECIMAL_BYTES
        return fixed or column.physical in {"INT32", "INT64"}
    if column.physical == "FIXED_LEN_BYTE_ARRAY":
        return bool(types.is_fixed_size_binary(kind)) and kind.byte_width == column.type_length
    if column.physical == "INT64" and (types.is_timestamp(kind) or types.is_time64(kind) or types.is_duration(kind)):
        return True
    return kind in _NUMBERS.get(column.physical, ())


def picked(
    source: Source,
    chunk: ColumnChunk,
    data_end: int,
    places: Sequence[PagePlace],
    rows: memoryview,
    kind: pa.DataType,
) -> pa.Array | None:
    """The values in some rows; None if Arrow has to decode them.

    Args:
        source: the file.
        chunk: the column chunk, for which `supports` is true.
        data_end: the end of the file's data.
        places: the pages with these rows, in order.
        rows: ascending positions in the row group, int64s.
        kind: the type of the values.

    Raises:
        TooManyBytes: several rows have too many bytes.
    """
    try:
        parts = parts_of(source, chunk, data_end, places, rows)
        return None if parts is None else _array(parts, len(rows), chunk, kind)
    except (CorruptFile, UnsupportedError, kernels.PageError):
        return None
    except TooManyBytes:
        if len(rows) > 1:
            raise
        return None


def of_forms(forms: pa.Array, chunk: ColumnChunk, kind: pa.DataType) -> pa.Array:
    """Convert stored values, in the form of `finding.WantedValues.forms`, to an Arrow type for which `supports` is
    true. The array is the result of `take`, and so has no offset."""
    if not pa.types.is_large_binary(forms.type):
        part = Part(_bytes(forms.buffers()[1], len(forms) * forms.type.bit_width // 8), bytearray(), bytearray())
    else:
        sizes = _bytes(pc.binary_length(forms).buffers()[1], 8 * len(forms))
        part = Part(_bytes(forms.buffers()[2], sum(memoryview(sizes).cast("q"))), sizes, bytearray())
    return _array([part], len(forms), chunk, kind)


def of_part(part: Part, rows: int, chunk: ColumnChunk, kind: pa.DataType) -> pa.Array:
    """Convert picked values of `rows` rows to an Arrow type for which `supports` is true. Raises PageError."""
    return _array([part], rows, chunk, kind)


def _bytes(buffer: pa.Buffer | None, size: int) -> bytearray:
    return bytearray(memoryview(buffer or b"").cast("B")[:size])


def _array(parts: Sequence[Part], rows: int, chunk: ColumnChunk, kind: pa.DataType) -> pa.Array:
    """The values of all pages. Raises PageError if they have another number of rows."""
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


def _validity(parts: Sequence[Part], chunk: ColumnChunk) -> tuple[pa.Buffer | None, int]:
    """The bitmap of non-null values, or None without nulls, and the number of nulls."""
    if not any(part.positions for part in parts):
        return None, 0
    width = width_of(chunk.column) or 1
    every = bytearray()
    for part in parts:
        count = len(part.sizes) // 8 if chunk.column.physical == "BYTE_ARRAY" else len(part.values) // width
        every += part.positions or bytearray(8 * count)
    bitmap, nulls = kernels.validity_of(memoryview(every).cast("q"))
    return pa.py_buffer(bitmap), nulls
