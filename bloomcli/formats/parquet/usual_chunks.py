"""Reads chunk metadata that are encoded as writers usually do, in compiled code. `footer.py` reads all others."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from bloomcli import kernels
from bloomcli.formats.parquet import idl, spec
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.model.file import Column, ColumnChunk

_FIELDS: Final = tuple(field.name for field in fields(ColumnChunk))
_REQUIRED: Final = 1
_ORDERED: Final = 2
_DEPRECATED: Final = 4


class UsualChunks:
    """The chunks of a footer.

    Args:
        raw: the footer.
        data_end: the end of the file's data.
        columns: the leaf columns in schema order, each with whether min_value and max_value, and whether min and max,
            can be trusted, and with the result of `bounds.kind_of_bounds`.

    Attributes:
        numbers: the numbers of each column for `kernels.usual_chunk` and `kernels.filter_claims`.
    """

    def __init__(
        self, raw: bytes, data_end: int, columns: Iterable[tuple[Column, tuple[bool, bool], tuple[int, int]]]
    ) -> None:
        self._raw = raw
        self._data_end = data_end
        self.numbers: list[array[int]] = []
        for column, (ordered, deprecated), kind_of_bounds in columns:
            required = column.max_definition_level == 0
            flags = _REQUIRED * required + _ORDERED * ordered + _DEPRECATED * deprecated
            kind = idl.ENUMS["Type"].get(column.physical, -1)
            self.numbers.append(array("i", (kind, flags, *kind_of_bounds)))

    def read(self, row_group: int, ordinal: int, start: int, column: Column) -> ColumnChunk | None:
        """Read the metadata of a chunk at a position of the footer; None if they need `footer.py`.

        `ordinal` is the column's, and `column` becomes the chunk's column.
        """
        found = kernels.usual_chunk(
            self._raw, start, parquet_limits.THRIFT_MAX_DEPTH, self.numbers[ordinal], self._data_end
        )
        if found is None:
            return None
        values, nulls, packed, unpacked, codec, page, dictionary, offset, length, *rest = found
        start, dictionary_bytes = first_page(page, dictionary)
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
                start,
                dictionary_bytes,
                # PARQUET-1979: writers without filters have written 0 and negative offsets
                offset if offset is not None and offset > 0 else None,
                length,
                *rest,
                False,
            ),
        )


def first_page(data_page_offset: int, dictionary_page_offset: int | None) -> tuple[int, int | None]:
    """Where a chunk's pages begin, and the bytes before its first data page as far as the metadata give them.

    A dictionary is always the chunk's first page, but the metadata needn't say that there is one: parquet-mr before
    1.12 (PARQUET-1850), Impala 1 and Polars before 1.39 write no `dictionary_page_offset`, or 0, and a
    `data_page_offset` that is the dictionary's. A reader of whole chunks therefore looks at the first page's header,
    and a reader of single pages at `page_selection.dictionary_extent`.
    """
    if dictionary_page_offset is not None and 0 < dictionary_page_offset < data_page_offset:
        return dictionary_page_offset, data_page_offset - dictionary_page_offset
    return data_page_offset, None
