"""Reads, in compiled code, the metadata of chunks in which all is as writers write it. `footer.py` reads others."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from bloomcli import kernels
from bloomcli.formats.parquet import idl, spec
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bounds import kind_of_bounds
from bloomcli.model.file import Column, ColumnChunk

_FIELDS: Final = tuple(field.name for field in fields(ColumnChunk))
_REQUIRED: Final = 1
_ORDERED: Final = 2
_DEPRECATED: Final = 4


class UsualChunks:
    """The chunks of a footer.

    Args:
        raw: the footer.
        data_end: where the file's data end.
        columns: the leaf columns in schema order, and whether min_value and max_value, and min and max, of each can
            be trusted.

    Attributes:
        numbers: of each column, as `kernels.usual_chunk` and `kernels.filter_claims` take them.
    """

    def __init__(self, raw: bytes, data_end: int, columns: Iterable[tuple[Column, tuple[bool, bool]]]) -> None:
        self._raw = raw
        self._data_end = data_end
        self.numbers: list[array[int]] = []
        for column, (ordered, deprecated) in columns:
            required = column.max_definition_level == 0
            flags = _REQUIRED * required + _ORDERED * ordered + _DEPRECATED * deprecated
            kind = idl.ENUMS["Type"].get(column.physical, -1)
            self.numbers.append(array("i", (kind, flags, *kind_of_bounds(column))))

    def read(self, row_group: int, ordinal: int, start: int, column: Column) -> ColumnChunk | None:
        """The metadata of a chunk, which start at a position of the footer; None if they aren't usual.

        `ordinal` is the column's, and `column` what the chunk names as its column.
        """
        found = kernels.usual_chunk(
            self._raw, start, parquet_limits.THRIFT_MAX_DEPTH, self.numbers[ordinal], self._data_end
        )
        if found is None:
            return None
        values, nulls, packed, unpacked, codec, page, dictionary, offset, length, *rest = found
        dictionary = dictionary or page  # 0 is written by some for "none"
        return kernels.frozen(
            ColumnChunk,
            _FIELDS,
            (
                row_group,
                column,
                values,
                nulls,
                packed,
                unpacked,
                spec.enum_name("CompressionCodec", codec),
                min(page, dictionary),
                page - dictionary if dictionary < page else None,
                # PARQUET-1979: writers that know no filter have written 0 and negative offsets
                offset if offset is not None and offset > 0 else None,
                length,
                *rest,
                False,
            ),
        )
