"""Picks the values of a few rows out of pages, without the other values being made.

These are pages without nulls of a column at the top level, PLAIN or dictionary-encoded, of types whose bytes are the
same in Arrow. Whatever else there is, and whatever is damaged, is left to Arrow.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.formats.parquet.pages import ChunkReader, Page, read_page
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source

MOST: Final = 64
"""Rows of a chunk; of more, Arrow takes less time."""
_BYTES_MOST: Final = 1 << 30
"""Bytes of values that are picked: Arrow's strings have offsets of 32 bits."""
_RUNS_MOST: Final = 4096
"""Runs of dictionary indices of a page that are walked through."""
_WIDTH_MOST: Final = 32
"""Bits of a dictionary index."""
_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")
_NUMBERS: Final = {
    "INT32": (pa.int32(), pa.uint32(), pa.date32()),
    "INT64": (pa.int64(), pa.uint64()),
    "FLOAT": (pa.float32(),),
    "DOUBLE": (pa.float64(),),
}


def alike(chunk: ColumnChunk, kind: pa.DataType) -> bool:
    """Whether the stored values of a chunk are those of an Arrow type."""
    physical = chunk.column.physical
    if physical == "BYTE_ARRAY":
        return kind in (pa.string(), pa.binary())
    return kind in _NUMBERS.get(physical, ()) or (physical == "INT64" and pa.types.is_timestamp(kind))


def picked(
    source: Source,
    chunk: ColumnChunk,
    data_end: int,
    places: Sequence[PagePlace],
    rows: Sequence[int],
    kind: pa.DataType,
) -> pa.Array | None:
    """The values in some rows; None where Arrow has to decode them.

    Args:
        source: the file.
        chunk: the column chunk, of which `alike` is true.
        data_end: where the file's data end.
        places: the pages that have the rows, in order.
        rows: ascending positions in the row group.
        kind: the type of the values.
    """
    try:
        found = _picked(source, chunk, data_end, places, rows)
    except (CorruptFile, UnsupportedError, kernels.PageError):
        return None
    if found is None or len(found) != len(rows):
        return None
    if chunk.column.physical == "BYTE_ARRAY":
        offsets = array("q", accumulate(map(len, found), initial=0))
        if offsets[-1] > _BYTES_MOST:
            return None
        buffers = [None, pa.py_buffer(array("i", offsets)), pa.py_buffer(b"".join(found))]
        return pa.Array.from_buffers(kind, len(found), buffers)
    return pa.Array.from_buffers(kind, len(found), [None, pa.py_buffer(b"".join(found))])


def _picked(
    source: Source, chunk: ColumnChunk, data_end: int, places: Sequence[PagePlace], rows: Sequence[int]
) -> list[bytes] | None:
    reader = ChunkReader(source, chunk, data_end, checked=True)
    dictionary: Page | None = None
    if chunk.dictionary_bytes is not None:
        reader.window = chunk.dictionary_bytes
        dictionary = read_page(reader, lambda _: False)
        if dictionary is None or not dictionary.dictionary:
            return None
    found: list[bytes] = []
    for place in places:
        inside = [row - place.first_row for row in rows if place.first_row <= row < place.first_row + place.rows]
        reader.position, reader.window = place.offset, place.length
        page = read_page(reader, lambda _: False)
        if page is None or page.dictionary or page.end != place.offset + place.length:
            return None
        if not page.num_values == page.non_null == place.rows:
            return None
        values = _of_page(page, dictionary, inside, width_of(chunk.column))
        if values is None:
            return None
        found += values
    return found


def _of_page(page: Page, dictionary: Page | None, positions: Sequence[int], width: int | None) -> list[bytes] | None:
    """The values at ascending positions of a page."""
    assert page.body is not None  # noqa: S101  none was skipped
    data = memoryview(page.body.whole())
    if page.encoding == "PLAIN":
        return _plain(data, page.start, positions, width)
    if page.encoding not in _DICTIONARY or dictionary is None or dictionary.body is None:
        return None
    indices = _indices(data, page.start, positions)
    if indices is None or any(index >= dictionary.num_values for index in indices):
        return None
    return _plain(memoryview(dictionary.body.whole()), dictionary.start, indices, width)


def _plain(data: memoryview, start: int, positions: Sequence[int], width: int | None) -> list[bytes] | None:
    found = []
    for position in positions:
        at, size = (start + position * width, width) if width else kernels.plain_at(data, start, 0, position, True)
        value = bytes(data[at : at + size])
        if len(value) != size:
            return None
        found.append(value)
    return found


def _indices(data: memoryview, at: int, positions: Sequence[int]) -> list[int] | None:
    """The dictionary indices at ascending positions: a byte with their width, then runs. None where they aren't all
    there."""
    width = data[at] if at < len(data) else _WIDTH_MOST + 1
    at += 1
    if width > _WIDTH_MOST:
        return None
    if width == 0:
        return [0] * len(positions)
    found: list[int] = []
    first = runs = 0
    while len(found) < len(positions):
        head, at = _varint(data, at)
        runs += 1
        if head < 0 or runs > _RUNS_MOST:
            return None
        packed = head & 1
        count, size = ((head >> 1) * 8, (head >> 1) * width) if packed else (head >> 1, (width + 7) // 8)
        if at + size > len(data):  # the last run may be cut off: left to Arrow
            return None
        while len(found) < len(positions) and positions[len(found)] < first + count:
            bit = (positions[len(found)] - first) * width if packed else 0
            start = at + bit // 8
            end = at + (bit + width + 7) // 8 if packed else at + size
            found.append(int.from_bytes(data[start:end], "little") >> bit % 8 & (1 << width) - 1)
        first, at = first + count, at + size
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of 32 bits and the position behind it; a negative one where there is none."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return -1, at
