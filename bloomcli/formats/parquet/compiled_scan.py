"""Creates compiled scans, which find rows in Parquet files with one call for each file. Doesn't import Arrow."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Container, Sequence
from itertools import accumulate
from typing import Final

from bloomcli import kernels
from bloomcli.errors import BloomError
from bloomcli.formats.parquet import codecs, spec
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.spec import field_ids
from bloomcli.model.file import Column
from bloomcli.values.column_types import kind_of

_SAME: Final = ("schema", "created_by", "column_orders", "key_value_metadata")
"""Footer fields that determine the columns, their types in Arrow, and whose bounds can be trusted."""
_INTEGERS: Final = {"INT32": (0, 4), "INT64": (1, 8)}
"""The order of integers, as `kernels.RowScan` takes it, and their size in bytes."""
_BY_BYTES: Final = 2
_BYTES_TYPES: Final = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_OTHER_ORDERS: Final = ("DECIMAL", "FLOAT16", "INTERVAL")
"""Types of bytes whose values aren't ordered bytewise."""
_UNREAD: Final = -1
_BOOLEANS: Final = -2
_BYTES: Final = 0


def compiled_scan(
    footer: Footer,
    column: Column,
    table: kernels.ValueTable,
    ascending: bytes,
    chosen: Container[int],
    summed: set[int] | None,
) -> kernels.RowScan:
    """Create a scan that finds the rows of files that are like an open file.

    Args:
        footer: the footer of the open file.
        column: the searched column, which isn't nested and isn't BOOLEAN.
        table: the values as the column stores them, with a width for INT32 and INT64, with offsets for other types.
        ascending: the numbers of the values in ascending order of the values, as int64s.
        chosen: the ordinals of the columns whose values are picked.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
    """
    ids = field_ids("FileMetaData")
    leaves = footer.columns
    widths = [_width(c) if c.index == column.index or c.index in chosen else _UNREAD for c in leaves]
    return kernels.RowScan(
        parquet_limits.THRIFT_MAX_DEPTH,
        {ids[field]: footer.top.raw(field) for field in _SAME},
        array("i", (number for numbers in footer.usual_chunks.numbers for number in numbers)),
        array("i", widths),
        bytes(c.max_definition_level > 0 for c in leaves),
        column.index,
        bytes(c.index in chosen for c in leaves),
        None if summed is None else bytes(c.index in summed for c in leaves),
        table,
        ascending,
        _INTEGERS.get(column.physical, (_BY_BYTES, 0))[0],
        _unpacked,
        zlib.crc32,
    )


def few_values_scan(
    footer: Footer, column: Column, forms: Sequence[bytes], hashes: bytes, summed: set[int] | None
) -> kernels.RowScan | None:
    """Create a scan that reports whether rows have one of a few values; None if the column's bounds have another
    order.

    Args:
        footer, column, summed: as for `compiled_scan`.
        forms: the bytes that chunks may store for the values.
        hashes: the XXH64 of each form, uint64s in native order.
    """
    as_bytes = column.physical in _BYTES_TYPES and kind_of(column) not in _OTHER_ORDERS
    if not as_bytes and not (column.physical in _INTEGERS and column.signed):
        return None
    width = _INTEGERS.get(column.physical, (_BY_BYTES, 0))[1]
    ends = None if width else array("q", accumulate(map(len, forms), initial=0))
    keys = [int.from_bytes(form, "little", signed=True) for form in forms] if width else forms
    ascending = sorted(range(len(forms)), key=keys.__getitem__)
    table = kernels.ValueTable(hashes, b"".join(forms), ends, width)
    return compiled_scan(footer, column, table, array("q", ascending).tobytes(), (), summed)


def _width(column: Column) -> int:
    """The size of a value in bytes, as `kernels.RowScan` takes it."""
    if column.physical == "BOOLEAN":
        return _BOOLEANS
    return width_of(column) or _BYTES


def _unpacked(codec: int, packed: bytes, size: int) -> codecs.Buffer:
    """Decompress a page. Raises ValueError."""
    try:
        return codecs.decompress(spec.enum_name("CompressionCodec", codec), memoryview(packed), size)
    except BloomError as error:
        raise codecs.CodecError(str(error)) from None
