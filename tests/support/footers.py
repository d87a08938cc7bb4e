"""Parquet footers edited as trees: field ids as the official parquet.thrift numbers them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from support import thrift
from support.thrift import Fields

# FileMetaData
ROW_GROUPS: Final = 4
ENCRYPTION_ALGORITHM: Final = 8
# RowGroup
COLUMNS: Final = 1
# ColumnChunk
META_DATA: Final = 3
OFFSET_INDEX_OFFSET: Final = 4
COLUMN_INDEX_OFFSET: Final = 6
CRYPTO_METADATA: Final = 8
# ColumnMetaData
NUM_VALUES: Final = 5
COMPRESSED_BYTES: Final = 7
DATA_PAGE_OFFSET: Final = 9
STATISTICS: Final = 12
BLOOM_FILTER_OFFSET: Final = 14
BLOOM_FILTER_LENGTH: Final = 15


def split(data: bytes) -> tuple[bytes, bytes]:
    """(body, footer) of a file's bytes."""
    size = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - size], data[-8 - size : -8]


def join(body: bytes, footer: bytes, magic: bytes = b"PAR1") -> bytes:
    """A file from its body and footer."""
    return body + footer + len(footer).to_bytes(4, "little") + magic


def tree(data: bytes) -> Fields:
    """A file's FileMetaData as a tree."""
    return thrift.parse(split(data)[1])[0]


def chunk(metadata: Fields, row_group: int, column: int) -> Fields:
    """One ColumnChunk."""
    group: Fields = metadata[ROW_GROUPS][1].values[row_group]
    found: Fields = group[COLUMNS][1].values[column]
    return found


def meta(metadata: Fields, row_group: int, column: int) -> Fields:
    """One ColumnMetaData."""
    found: Fields = chunk(metadata, row_group, column)[META_DATA][1]
    return found


def edited(data: bytes, edit: Callable[[Fields], None]) -> bytes:
    """The file with its footer taken apart, edited and put together again."""
    body, footer = split(data)
    metadata, end = thrift.parse(footer)
    assert end == len(footer)
    assert thrift.encode(metadata) == footer, "the tree doesn't give the footer back"
    edit(metadata)
    return join(body, thrift.encode(metadata))


SIGNED_BY: Final = {"footer_key": bytes(16)}
"""The key of `with_encrypted`, for the keyword `keys`."""


def with_encrypted(data: bytes, *chunks: tuple[int, int]) -> bytes:
    """The file whose chunks (row group, column) are said to be encrypted by a key of their own that nobody has; the
    footer is signed."""
    from bloomcli.formats.parquet.encryption import Algorithm, Cipher

    def edit(metadata: Fields) -> None:
        for place in chunks:
            found = chunk(metadata, *place)
            found[CRYPTO_METADATA] = (thrift.STRUCT, {2: (thrift.STRUCT, {2: (thrift.BINARY, b"kx")})})
            ordered = dict(sorted(found.items()))
            found.clear()
            found.update(ordered)
        metadata[ENCRYPTION_ALGORITHM] = (thrift.STRUCT, {1: (thrift.STRUCT, {2: (thrift.BINARY, b"file")})})

    body, footer = split(edited(data, edit))
    return join(body, footer + Cipher(bytes(16), Algorithm("AES_GCM_V1", b"file")).signature(footer))


def edit_file(path: Path, target: Path, edit: Callable[[Fields], None]) -> Path:
    """`edited`, from file to file."""
    target.write_bytes(edited(path.read_bytes(), edit))
    return target


def edited_index(data: bytes, row_group: int, column: int, field: int, edit: Callable[[Fields], None]) -> bytes:
    """The file with a page index of a chunk edited, at the end of its data. `field`: that of the index's offset; the
    next one has the length."""
    found = chunk(tree(data), row_group, column)
    offset, length = found[field][1], found[field + 1][1]
    index, end = thrift.parse(data[offset : offset + length])
    assert end == length
    edit(index)
    encoded = thrift.encode(dict(sorted(index.items())))
    body, footer = split(data)

    def moved(metadata: Fields) -> None:
        there = chunk(metadata, row_group, column)
        there[field], there[field + 1] = (thrift.I64, len(body)), (thrift.I32, len(encoded))

    return edited(join(body + encoded, footer), moved)


def set_filter(row_group: int, column: int, offset: int | None, length: int | None) -> Callable[[Fields], None]:
    """An edit that claims a filter at `offset` with `length`; None leaves a field out."""

    def edit(metadata: Fields) -> None:
        found = meta(metadata, row_group, column)
        values = {BLOOM_FILTER_OFFSET: (thrift.I64, offset), BLOOM_FILTER_LENGTH: (thrift.I32, length)}
        for number, (kind, value) in values.items():
            found.pop(number, None)
            if value is not None:
                found[number] = (kind, value)
        ordered = dict(sorted(found.items()))
        found.clear()
        found.update(ordered)

    return edit


_FILTER_FIELDS: Final = (BLOOM_FILTER_OFFSET, BLOOM_FILTER_LENGTH)


def places(data: bytes) -> list[tuple[int, int]]:
    """(row group, column) of every chunk."""
    groups = tree(data)[ROW_GROUPS][1].values
    return [(g, c) for g, group in enumerate(groups) for c in range(len(group[COLUMNS][1].values))]


def stripped(data: bytes) -> bytes:
    """The footer with the filter fields of every chunk taken out, by this Thrift."""
    metadata = tree(data)
    for group, column in places(data):
        found = meta(metadata, group, column)
        for number in _FILTER_FIELDS:
            found.pop(number, None)
    return thrift.encode(metadata)


def claims(data: bytes) -> list[tuple[int, int, int, int]]:
    """(row group, column, offset, length) of every filter that the footer names."""
    metadata = tree(data)
    found = []
    for group, column in places(data):
        fields = meta(metadata, group, column)
        if BLOOM_FILTER_OFFSET in fields:
            found.append((group, column, *(fields[n][1] for n in _FILTER_FIELDS)))
    return found
