"""Reads the Arrow IPC streams of an index's tables without Arrow, whose import takes longer than a lookup.

Source: the Arrow columnar format, "IPC Streaming Format", and its Message.fbs and Schema.fbs. A stream is a schema,
then a record batch; each is

    FFFFFFFF | length of the metadata, int32 | metadata: a flatbuffer | body

`columns_of` reads the layout that Arrow itself writes for such a table. It returns None for another layout or a
damaged stream: Arrow then reads it, or reports the error.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from bloomcli.named_tuple import NamedTuple

_CONTINUED: Final = 0xFFFFFFFF
_V5: Final = 4
_SCHEMA, _BATCH = 1, 3
"""Types of messages."""
_LARGE_UTF8, _LARGE_LIST = 20, 21
_INT, _FLOAT, _TIMESTAMP = 2, 3, 10
"""Types of columns."""
_OFFSET_BYTES: Final = 8
_ALIGNMENT: Final = 8
"""Buffers begin at multiples of this. Compiled code reads only aligned numbers."""
_MOST_FIELDS: Final = 16
_NUMBERS: Final[Mapping[tuple[int, int, bool], str]] = {
    (_INT, 8, False): "B",
    (_INT, 32, True): "i",
    (_INT, 64, True): "q",
    (_FLOAT, 1, False): "f",
}
"""Formats of `memoryview`, by the type, the width (of floating point numbers the precision), and the sign."""

TEXT: Final = "text"
LISTS: Final = "lists"
"""Kinds of columns: large utf8, large lists of int64. The other kinds are formats of `memoryview`."""


class Lists(NamedTuple):
    """A column of lists of numbers."""

    ends: memoryview
    """int64s: the start of the first list, and the end of each."""
    values: memoryview
    """int64s."""


Column = memoryview | Lists | list[str]


class _Unknown(Exception):
    """The stream has another layout, or is damaged."""


def columns_of(raw: bytes, kinds: Mapping[str, str]) -> tuple[int, list[Column]] | None:
    """Read the rows and the columns of a stream's batch, without nulls.

    Args:
        raw: the stream.
        kinds: the columns' kinds, by their names, in order. Text becomes a list, numbers a view of `raw`.

    Returns:
        The number of rows, and the columns; None for an unknown layout.
    """
    if sys.byteorder != "little":
        return None
    try:
        return _columns_of(memoryview(raw), kinds)
    except (_Unknown, struct.error, UnicodeDecodeError):
        return None


def type_codes(raw: bytes, most: int) -> list[tuple[str, int | None]] | None:
    """Read the names of a schema's columns, and the numbers of their types in Schema.fbs.

    The number is None for columns with dictionaries or metadata (extension types), and for timestamps with another
    time zone than UTC.

    Args:
        raw: a stream, or its schema alone.
        most: limit for the number of columns.

    Returns:
        None for an unknown layout.
    """
    try:
        schema, _, _ = _message(memoryview(raw), 0, _SCHEMA)
        return [(field.text(0), _type_code(field)) for field in schema.tables(1, most)]
    except (_Unknown, struct.error, UnicodeDecodeError):
        return None


def _type_code(field: _Table) -> int | None:
    code = field.number(2, "B")
    if field.has(4) or field.has(6):
        return None
    if code == _TIMESTAMP:
        timestamp = field.table(3)
        return code if not timestamp.has(1) or timestamp.text(1) == "UTC" else None
    return code


def _columns_of(raw: memoryview, kinds: Mapping[str, str]) -> tuple[int, list[Column]]:
    schema, body_at, body_bytes = _message(raw, 0, _SCHEMA)
    _need(body_bytes == 0 and schema.number(0, "h") == 0)  # little-endian
    fields = list(schema.tables(1))
    _need([(field.text(0), _kind(field)) for field in fields] == list(kinds.items()))
    batch, body_at, body_bytes = _message(raw, body_at, _BATCH)
    _need(body_at % _ALIGNMENT == 0)
    _need(not batch.has(3) and not batch.has(4))  # neither compressed nor of views
    body = raw[body_at : body_at + body_bytes]
    _need(len(body) == body_bytes)
    rows = batch.number(0, "q")
    reader = _Body(body, iter(batch.structs(1)), iter(batch.structs(2)))
    columns = [reader.column(kind, rows) for kind in kinds.values()]
    reader.finish()
    return rows, columns


def _need(condition: bool) -> None:
    if not condition:
        raise _Unknown


class _Table:
    """A table of a flatbuffer. A missing number is 0."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - self._read("i", at)
        self._size = self._read("H", self._fields)

    def _read(self, form: str, at: int) -> int:
        _need(at >= 0)  # struct counts from the end
        value: int = struct.unpack_from(f"<{form}", self._data, at)[0]
        return value

    def _where(self, field: int) -> int:
        """The offset of a field; 0 if the table doesn't have it."""
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return 0
        offset = self._read("H", self._fields + entry)
        return self._at + offset if offset else 0

    def has(self, field: int) -> bool:
        """Whether the table has a field."""
        return self._where(field) != 0

    def number(self, field: int, form: str) -> int:
        """A number, in a format of `struct`."""
        at = self._where(field)
        return self._read(form, at) if at else 0

    def _target(self, field: int) -> int:
        at = self._where(field)
        _need(at != 0)
        return at + self._read("I", at)

    def table(self, field: int) -> _Table:
        """Another table."""
        return _Table(self._data, self._target(field))

    def text(self, field: int) -> str:
        """A text."""
        at = self._target(field)
        data = self._data[at + 4 : at + 4 + self._read("I", at)]
        return str(data, "utf-8")

    def tables(self, field: int, most: int = _MOST_FIELDS) -> Iterator[_Table]:
        """A vector of up to `most` tables."""
        at = self._target(field)
        count = self._read("I", at)
        _need(count <= most)
        for place in range(at + 4, at + 4 + 4 * count, 4):
            yield _Table(self._data, place + self._read("I", place))

    def structs(self, field: int) -> Sequence[tuple[int, int]]:
        """A vector of pairs of int64s."""
        at = self._target(field)
        count = self._read("I", at)
        _need(count <= 4 * _MOST_FIELDS)
        numbers = struct.unpack_from(f"<{2 * count}q", self._data, at + 4)
        return list(zip(numbers[::2], numbers[1::2], strict=True))


def _message(raw: memoryview, at: int, kind: int) -> tuple[_Table, int, int]:
    """Read the message at an offset: its header, and the offset and length of its body."""
    marker, length = struct.unpack_from("<Ii", raw, at)
    _need(marker == _CONTINUED and length > 0)
    metadata = raw[at + 8 : at + 8 + length]
    _need(len(metadata) == length)
    message = _Table(metadata, struct.unpack_from("<I", metadata)[0])
    _need(message.number(0, "h") == _V5 and message.number(1, "B") == kind)
    body_bytes = message.number(3, "q")
    _need(body_bytes >= 0)
    return message.table(2), at + 8 + length, body_bytes


def _kind(field: _Table) -> str | None:
    """The kind of a column; None if it may have nulls, or has a type that no index has."""
    if field.number(1, "B") or field.has(4):
        return None
    kind = field.number(2, "B")
    if kind == _LARGE_UTF8:
        return TEXT
    if kind == _LARGE_LIST:
        items = list(field.tables(5))
        return LISTS if [(item.text(0), _kind(item)) for item in items] == [("item", "q")] else None
    if kind not in {_INT, _FLOAT}:
        return None
    type_table = field.table(3)
    width = type_table.number(0, "i" if kind == _INT else "h")
    return _NUMBERS.get((kind, width, kind == _INT and type_table.number(1, "B") == 1))


class _Body:
    """The body of a batch: a sequence of columns, each with a node and buffers."""

    def __init__(
        self, body: memoryview, nodes: Iterator[tuple[int, int]], buffers: Iterator[tuple[int, int]]
    ) -> None:
        self._body, self._nodes, self._buffers = body, nodes, buffers

    def column(self, kind: str, rows: int) -> Column:
        """The next column."""
        self._node(rows)
        if kind == LISTS:
            ends = self._ends(rows)
            self._node(ends[rows])
            return Lists(ends, self._numbers("q", ends[rows]))
        if kind == TEXT:
            ends = self._ends(rows)
            return _texts(ends, self._buffer(), rows)
        return self._numbers(kind, rows)

    def finish(self) -> None:
        """Check that no node and no buffer is left."""
        _need(next(self._nodes, None) is None and next(self._buffers, None) is None)

    def _node(self, rows: int) -> None:
        """Read a node of `rows` rows without nulls, and its empty bitmap of nulls."""
        _need(next(self._nodes, None) == (rows, 0) and rows >= 0)
        _need(len(self._buffer()) == 0)

    def _buffer(self) -> memoryview:
        offset, length = next(self._buffers, (-1, -1))
        _need(offset >= 0 and offset % _ALIGNMENT == 0 and 0 <= length <= len(self._body) - offset)
        return self._body[offset : offset + length]

    def _numbers(self, form: str, count: int) -> memoryview:
        data, width = self._buffer(), struct.calcsize(form)
        _need(len(data) // width >= count)
        numbers: memoryview = data[: count * width].cast(form)  # type: ignore[call-overload]  # one of `_NUMBERS`
        return numbers

    def _ends(self, rows: int) -> memoryview:
        """Read the offsets: 0, and the end of each row's values."""
        data = self._buffer()
        if not rows and not len(data):  # Arrow may write this for a column without rows
            return memoryview(bytes(_OFFSET_BYTES)).cast("q")
        _need(len(data) // _OFFSET_BYTES > rows)
        ends = data[: (rows + 1) * _OFFSET_BYTES].cast("q")
        offsets = ends.tolist()
        _need(offsets[0] == 0 and offsets == sorted(offsets))
        return ends


def _texts(ends: memoryview, data: memoryview, rows: int) -> list[str]:
    """The texts of a column."""
    places = ends.tolist()
    _need(places[rows] <= len(data))
    joined = bytes(data[: places[rows]])
    if not joined:
        return [""] * rows
    if joined.isascii():
        text = joined.decode("ascii")
        return [text[start:end] for start, end in pairwise(places)]
    return [joined[start:end].decode() for start, end in pairwise(places)]
