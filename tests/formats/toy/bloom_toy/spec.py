"""Toy files: row groups of integers and texts, split-block filters, a footer.

row group 0: chunk of column 0, chunk of column 1, ...   an integer: 8 bytes, little-endian
row group 1: ...                                         a text: 4 bytes of length, then UTF-8
filters: 4 bytes of bitset length, then the bitset       XXH64 of an integer's 8 bytes, of a text's UTF-8
footer: JSON; 4 bytes of its length; TOYF                filters are listed in the order of their bytes
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bloomcli.errors import CorruptFile
from bloomcli.storage.base import Source

MAGIC = b"TOYF"
INTEGER, TEXT = "INTEGER", "TEXT"
HEADER = struct.Struct("<I")
Key = tuple[int, int]
"""Row group and column."""


@dataclass(frozen=True)
class Footer:
    """A file's metadata. Ranges are (offset, length) in bytes."""

    columns: Sequence[tuple[str, str]]
    """Names and types."""
    rows: Sequence[int]
    """Of each row group."""
    chunks: Sequence[Sequence[tuple[int, int]]]
    """Of each row group, the range of each column's chunk."""
    filters: Mapping[Key, tuple[int, int]] = field(default_factory=dict)

    @property
    def body_end(self) -> int:
        """Where the chunks end and the filters begin."""
        return max((at + length for group in self.chunks for at, length in group), default=0)

    def encoded(self, filters: Mapping[Key, tuple[int, int]]) -> bytes:
        """The footer's bytes, with other filters."""
        found = [[*key, *place] for key, place in sorted(filters.items(), key=lambda item: item[1])]
        text = json.dumps([list(self.columns), list(self.rows), list(self.chunks), found]).encode()
        return text + HEADER.pack(len(text)) + MAGIC


def read_footer(source: Source) -> Footer:
    """The metadata of a file. Raises CorruptFile where it can't be: no range is trusted that it names."""
    end = source.size - HEADER.size - len(MAGIC)
    (length,) = HEADER.unpack(source.read_at(max(end, 0), HEADER.size))
    try:
        columns, rows, chunks, filters = json.loads(source.read_at(end - length, length))
        footer = Footer(
            columns=[(str(name), {INTEGER: INTEGER, TEXT: TEXT}[kind]) for name, kind in columns],
            rows=[int(count) for count in rows],
            chunks=[[(int(at), int(size)) for at, size in group] for group in chunks],
            filters={(int(group), int(column)): (int(at), int(size)) for group, column, at, size in filters},
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptFile(
            f"the footer can't be read: {error}", path=source.path, offset=max(end - length, 0)
        ) from None
    ranges = [place for group in footer.chunks for place in group] + list(footer.filters.values())
    if any(at < 0 or size < 0 or at + size > end - length for at, size in ranges):
        raise CorruptFile("a range lies beyond the footer's start", path=source.path, offset=end - length)
    keys = {(group, column) for group in range(len(footer.rows)) for column in range(len(footer.columns))}
    if len(footer.rows) != len(footer.chunks) or not footer.filters.keys() <= keys:
        raise CorruptFile("row groups, columns and filters don't fit together", path=source.path, offset=end - length)
    if any(len(group) != len(footer.columns) for group in footer.chunks) or any(count < 0 for count in footer.rows):
        raise CorruptFile("a row group has a wrong number of chunks or rows", path=source.path, offset=end - length)
    return footer


def values(source: Source, footer: Footer, group: int, column: int) -> Iterator[bytes]:
    """The bytes of each value of a chunk that are hashed. Raises CorruptFile."""
    at, length = footer.chunks[group][column]
    data, start, count = source.read_at(at, length), 0, 0
    while start < length:
        size = 8
        if footer.columns[column][1] == TEXT:
            (size,) = HEADER.unpack_from(data, start) if start + HEADER.size <= length else (length,)
            start += HEADER.size
        if start + size > length:
            raise CorruptFile("a value lies beyond its chunk", path=source.path, offset=at + start)
        yield data[start : start + size]
        start += size
        count += 1
    if count != footer.rows[group]:
        raise CorruptFile(f"{count} values, the row group has {footer.rows[group]} rows", path=source.path, offset=at)


def written(columns: Mapping[str, Sequence[int] | Sequence[str]], rows_per_group: int) -> bytes:
    """A file without filters."""
    kinds = [(name, TEXT if isinstance(found[0], str) else INTEGER) for name, found in columns.items()]
    count = len(next(iter(columns.values())))
    body, rows, chunks = bytearray(), [], []
    for first in range(0, count, rows_per_group):
        group = []
        for found in columns.values():
            taken = found[first : first + rows_per_group]
            start = len(body)
            for value in taken:
                text = value.encode() if isinstance(value, str) else None
                body += struct.pack("<q", value) if text is None else HEADER.pack(len(text)) + text
            group.append((start, len(body) - start))
        rows.append(min(rows_per_group, count - first))
        chunks.append(group)
    return bytes(body) + Footer(kinds, rows, chunks).encoded({})
