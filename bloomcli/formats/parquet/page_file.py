"""Builds a Parquet file from some pages of a column's chunks.

    PAR1 | dictionary page | some data pages | ... of the next chunk | footer of one column | length | PAR1

Pages keep their bytes. Each chunk is a row group of one column. The column has the chunks' levels and physical type
but no logical type, so that the stored values are decoded; INT96 becomes 12 bytes. For the values of records, the
footer has the file's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from bloomcli.formats.parquet import idl, spec
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.spec import BINARY, I32, I64, LIST, STRUCT, varint, zigzag
from bloomcli.model.file import Column, ColumnChunk

_WIDE: Final = 12
"""Bytes of an INT96."""
_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2  # Parquet's enum
_NAME: Final = b"c"
_HIDES_CODEC: Final = b"parquet-cpp version 1.5.1-SNAPSHOT"
"""The writer before Arrow 3.0, whose pages of version 2 Arrow always decompresses."""


class RawPage(NamedTuple):
    """A page as stored in the file."""

    data: bytes
    """The page with its header."""
    values: int
    """The number of values, including nulls; 0 for a dictionary."""
    size: int
    """The decompressed size in bytes."""
    is_dictionary: bool
    offset: int
    """The file offset."""
    longest: int
    """The size of the longest value, if values can share bytes; else 0."""
    hides_codec: bool = False
    """The header says that the values aren't compressed, and they are (`PageHeader.is_packed`)."""


class ChunkPages(NamedTuple):
    """Some pages of a column chunk."""

    chunk: ColumnChunk
    dictionary: RawPage | None
    """The chunk's dictionary page."""
    pages: Sequence[RawPage]
    """Data pages that begin and end with whole rows."""
    rows: int
    """The number of rows of these pages."""

    @property
    def every(self) -> list[RawPage]:
        """All pages."""
        return [*([] if self.dictionary is None else [self.dictionary]), *self.pages]


def file_of(groups: Sequence[ChunkPages], typed: Footer | None) -> bytes:
    """Build a Parquet file from some pages.

    Args:
        groups: pages of chunks of one column, one for each row group of the new file.
        typed: the file's footer, for values of logical types; None for values of the physical type.
    """
    column, rows = groups[0].chunk.column, sum(group.rows for group in groups)
    parts, begin = [spec.MAGIC], len(spec.MAGIC)
    row_groups = []
    for group in groups:
        stored = [page.data for page in group.every]
        row_groups.append(_row_group(group, typed, begin))
        parts += stored
        begin += sum(map(len, stored))
    fields = list(_file_fields(column, typed, rows, _list(STRUCT, row_groups)))
    if typed is None and any(page.hides_codec for group in groups for page in group.pages):
        fields.append((6, BINARY, _binary(_HIDES_CODEC)))
    footer = _struct(*fields)
    return b"".join([*parts, footer, len(footer).to_bytes(4, "little"), spec.MAGIC])


def _row_group(group: ChunkPages, typed: Footer | None, begin: int) -> bytes:
    """The metadata of a row group whose pages begin at an offset of the new file."""
    chunk, dictionary, pages, rows = group
    column = chunk.column
    packed = sum(len(page.data) for page in group.every)
    names = (_NAME,) * max(column.max_definition_level, 1) if typed is None else (column.path.encode(),)
    kind = _type(column)[0] if typed is None else idl.ENUMS["Type"][column.physical]
    metadata = _column_fields(kind, names, chunk.codec) + _struct(
        (5, I64, sum(page.values for page in pages)),
        (6, I64, max(sum(page.size for page in group.every), 1)),
        (7, I64, packed),
        (9, I64, begin + (0 if dictionary is None else len(dictionary.data))),
        *(() if dictionary is None else ((11, I64, begin),)),
        after=4,
    )
    chunks = [_struct((2, I64, 0), (3, STRUCT, metadata))]
    if typed is not None:
        chunks = [_UNREAD] * column.index + chunks + [_UNREAD] * (typed.column_count - column.index - 1)
    return _struct((1, LIST, _list(STRUCT, chunks)), (2, I64, packed), (3, I64, rows))


@lru_cache(maxsize=64)
def _column_fields(kind: int, names: tuple[bytes, ...], codec: str) -> bytes:
    """The encoded fields of ColumnMetaData up to the codec, which are the same for all chunks of a column."""
    return _struct(
        (1, I32, kind),
        (2, LIST, _list(I32, [zigzag(0)])),
        (3, LIST, _list(BINARY, [_binary(name) for name in names])),
        (4, I32, idl.ENUMS["CompressionCodec"][codec]),
    )[:-1]


def _file_fields(column: Column, typed: Footer | None, rows: int, groups: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield the fields of FileMetaData, for the column alone or with the file's schema."""
    yield 1, I32, 2
    if typed is None:
        yield 2, LIST, _schema(*_type(column), column.max_repetition_level, column.max_definition_level)
    else:
        yield 2, LIST, typed.top.raw("schema")
    yield 3, I64, rows
    yield 4, LIST, groups
    for field, kind in (("key_value_metadata", LIST), ("created_by", BINARY), ("column_orders", LIST)):
        raw = None if typed is None else typed.top.raw(field)
        if raw is not None:
            yield spec.field_ids("FileMetaData")[field], kind, raw


@lru_cache(maxsize=64)
def _schema(number: int, length: int | None, repeated: int, defined: int) -> bytes:
    """The encoded schema of the column alone, from the root to the leaf, with the column's levels.

    The repeated fields come first: the order affects neither the values nor their rows.
    """
    *groups, leaf = [_REPEATED] * repeated + [_OPTIONAL] * (defined - repeated) or [_REQUIRED]
    elements = [_struct((4, BINARY, _binary(b"schema")), (5, I32, 1))]
    elements += [_struct((3, I32, group), (4, BINARY, _binary(_NAME)), (5, I32, 1)) for group in groups]
    width = () if length is None else ((2, I32, length),)
    elements.append(_struct((1, I32, number), *width, (3, I32, leaf), (4, BINARY, _binary(_NAME))))
    return _list(STRUCT, elements)


def _type(column: Column) -> tuple[int, int | None]:
    """The number of the physical type, and its length."""
    physical, length = column.physical, column.type_length
    if physical == "INT96":
        physical, length = "FIXED_LEN_BYTE_ARRAY", _WIDE
    return idl.ENUMS["Type"][physical], length if physical == "FIXED_LEN_BYTE_ARRAY" else None


def _struct(*fields: tuple[int, int, Any], after: int = 0) -> bytes:
    """A structure of the compact protocol: ids, wire types, and numbers or encoded values. If there are fields before
    these, the last of them has the id `after`."""
    out, last = bytearray(), after
    for number, kind, value in fields:
        out.append((number - last) << 4 | kind)
        out += zigzag(value) if isinstance(value, int) else value
        last = number
    return bytes(out) + b"\0"


def _list(kind: int, elements: Sequence[bytes]) -> bytes:
    count = len(elements)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return head + b"".join(elements)


def _binary(data: bytes) -> bytes:
    return varint(len(data)) + data


_UNREAD: Final = _struct((2, I64, 0))
"""The ColumnChunk of a column that isn't read."""
