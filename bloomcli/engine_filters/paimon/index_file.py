"""Paimon's file index: a header, and behind it an index for each column and type.

All integers are big-endian: int64 magic, int32 version 1, int32 bytes of the header, int32 number of columns; for
each column its name (uint16 length, UTF-8 as Java writes it), int32 number of indexes, and for each index its type
(as the name), int32 start and int32 length; int32 number of spare bytes, and these. A start of -1 is that of an empty
index: no row has a value. Source: Paimon's FileIndexFormat.

The bytes lie in a file of their own (``<data file>.index``) or in the manifest.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

from bloomcli.errors import CorruptFile
from bloomcli.storage.base import Source
from bloomcli.words import counted

MAGIC: Final = 1493475289347502
VERSION: Final = 1
BLOOM: Final = "bloom-filter"
"""The type of index that is a Bloom filter."""
EMPTY: Final = -1
_FIXED: Final = Struct(">qiii")
_INT: Final = Struct(">i")
_LENGTH: Final = Struct(">H")
_SPAN: Final = Struct(">ii")
HEAD_MAX_BYTES: Final = 64 << 20
"""The largest header: one of a million columns."""


class Embedded(NamedTuple):
    """The bytes of an index that lie in a manifest, as an open file."""

    path: str
    data: bytes

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)

    def read_at(self, offset: int, length: int) -> bytes:
        """Read bytes that are there, as `IndexFile` has checked."""
        return self.data[offset : offset + length]


Stored = Source | Embedded
"""What contains the bytes of an index."""


class Entry(NamedTuple):
    """An index in the header."""

    column: str
    """The column's name; of a key of a map column ``name[key]``."""
    kind: str
    start: int
    """Bytes from the start of the header; `EMPTY` for an empty index."""
    length: int
    at: int
    """Where the header has `start` and `length`."""

    @property
    def empty(self) -> bool:
        """Whether the index says that no row has a value."""
        return self.start == EMPTY


class IndexFile:
    """The indexes of one data file.

    Attributes:
        entries: the indexes, in the header's order; of equal ones only the last, which readers use.

    Args:
        stored: the bytes.

    Raises:
        CorruptFile: the header is damaged. Nothing was allocated by its numbers alone.
    """

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.entries: tuple[Entry, ...]
        fixed = self._read(0, _FIXED.size, "the header")
        magic, version, size, columns = _FIXED.unpack(fixed)
        if magic != MAGIC:
            raise self._fault(f"no file index: it begins with {fixed[:8].hex()}, not {MAGIC:016x}", 0)
        if version != VERSION:
            raise self._fault(f"a file index of version {version}; readers know {VERSION}", 8)
        if not _FIXED.size + _INT.size <= size <= min(stored.size, HEAD_MAX_BYTES):
            raise self._fault(f"a header of {counted(size, 'byte')} in {counted(stored.size, 'byte')}", 12)
        self.head = self._read(0, size, "the header")
        self.entries = tuple({(entry.column, entry.kind): entry for entry in self._parse(columns)}.values())

    def _parse(self, columns: int) -> Iterator[Entry]:
        at = _FIXED.size
        if columns < 0:
            raise self._fault(f"{columns} columns", 16)
        for _ in range(columns):
            column, at = self._text(at)
            (count,) = self._unpack(_INT, at)
            if count < 0:
                raise self._fault(f"column {column} has {count} indexes", at)
            at += _INT.size
            for _ in range(count):
                kind, at = self._text(at)
                start, length = self._unpack(_SPAN, at)
                yield Entry(column, kind, start, length, at)
                at += _SPAN.size

    def _text(self, at: int) -> tuple[str, int]:
        (length,) = self._unpack(_LENGTH, at)
        first, end = at + _LENGTH.size, at + _LENGTH.size + length
        data = self.head[first:end]
        try:
            if len(data) < length:
                raise ValueError
            # Java writes NUL as two bytes, and a character beyond 16 bits as two surrogates of three bytes
            units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le"), end
        except ValueError:
            raise self._fault("a name that ends behind the header, or isn't UTF-8", at) from None

    def _unpack(self, form: Struct, at: int) -> tuple[int, ...]:
        if at + form.size > len(self.head):
            raise self._fault("the header ends within its columns", at)
        return form.unpack_from(self.head, at)

    def body(self, entry: Entry) -> bytes:
        """The bytes of an index. Raises CorruptFile if they don't lie behind the header, or the file is cut off."""
        if entry.start < len(self.head) or entry.length < 0:
            raise self._fault(
                f"the index {entry.kind} of column {entry.column} has {counted(entry.length, 'byte')} from"
                f" {entry.start} on, and the header has {len(self.head)}",
                entry.at,
            )
        return self._read(entry.start, entry.length, f"the index {entry.kind} of column {entry.column}")

    def overlapping(self, without: Container[str] = ()) -> Iterator[Entry]:
        """Indexes that share bytes with one before them. Bloom filters of the columns in `without` don't count."""
        end = 0
        for entry in sorted(self.entries, key=lambda entry: entry.start):
            if entry.kind == BLOOM and entry.column in without:
                continue
            if not entry.empty and entry.length > 0:
                if entry.start < end:
                    yield entry
                end = max(end, entry.start + entry.length)

    def with_filters(self, filters: Mapping[str, bytes]) -> bytes:
        """The bytes of an index file in which the Bloom filters of these columns have other bodies. The header keeps
        its order, and every other index its bytes. Raises CorruptFile if one of those can't be read, or if two share
        bytes: a small file could so become a large one."""
        shared = next(self.overlapping(filters), None)
        if shared is not None:
            raise self._fault(
                f"the index {shared.kind} of column {shared.column} has bytes of another one", shared.at
            )
        head, parts, at = bytearray(self.head), [b""], len(self.head)
        for entry in sorted(self.entries, key=lambda entry: entry.start):
            body = filters.get(entry.column) if entry.kind == BLOOM else None
            if body is None and entry.empty:
                continue
            parts.append(self.body(entry) if body is None else body)
            _SPAN.pack_into(head, entry.at, at, len(parts[-1]))
            at += len(parts[-1])
        return b"".join((head, *parts))

    def _read(self, offset: int, length: int, what: str) -> bytes:
        if offset > self.stored.size - length:
            raise self._fault(
                f"{what} has {counted(length, 'byte')} from {offset} on, and the file ends at {self.stored.size}",
                min(offset, self.stored.size),
            )
        return self.stored.read_at(offset, length)

    def _fault(self, reason: str, offset: int) -> CorruptFile:
        return CorruptFile(reason, path=self.stored.path, offset=offset)


def new_index(filters: Mapping[str, bytes]) -> bytes:
    """The bytes of an index file with a Bloom filter for each of these columns, by their bodies."""
    columns = b"".join(_text(name) + _INT.pack(1) + _text(BLOOM) + _SPAN.pack(EMPTY, 0) for name in filters)
    head = _FIXED.pack(MAGIC, VERSION, _FIXED.size + len(columns) + _INT.size, len(filters))
    return IndexFile(Embedded("", head + columns + _INT.pack(0))).with_filters(filters)


def _text(name: str) -> bytes:
    """A name as Java writes it."""
    units = memoryview(name.encode("utf-16-le")).cast("H")
    data = "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return _LENGTH.pack(len(data)) + data
