"""Patches of one structure of a sound Parquet file: of the chunks of its last row group, their statistics and page
indexes, by code that shares nothing with bloomcli.

Field ids are those of the official parquet.thrift. A column is named by the first part of its path.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from support import footers, thrift
from support.thrift import Fields, Items

LAST: Final = -1

MAX, MIN, NULLS, DISTINCT, MAX_VALUE, MIN_VALUE, MAX_EXACT, MIN_EXACT, NANS = range(1, 10)
NULL_PAGES, MINS, MAXS, ORDER, NULL_COUNTS, REPETITION, DEFINITION, NAN_COUNTS = range(1, 9)
LOCATIONS, UNENCODED = 1, 2
ROWS, SORTING = 3, 4
ENCODINGS, PATH, ENCODING_STATS, SIZES = 2, 3, 13, 16
COLUMN_ORDERS: Final = 7

Edit = Callable[[bytes], bytes]


def number_of(metadata: Fields, column: str) -> int:
    """The number of a column's first leaf."""
    chunks: list[Fields] = metadata[footers.ROW_GROUPS][1].values[LAST][footers.COLUMNS][1].values
    paths: list[bytes] = [chunk[footers.META_DATA][1][PATH][1].values[0] for chunk in chunks]
    return paths.index(column.encode())


def footer(edit: Callable[[Fields], None]) -> Edit:
    """Another footer."""
    return lambda data: footers.edited(data, edit)


def meta(column: str, edit: Callable[[Fields], None]) -> Edit:
    """Other metadata of the column's last chunk."""

    def edited(metadata: Fields) -> None:
        there = footers.meta(metadata, LAST, number_of(metadata, column))
        edit(there)
        ordered = dict(sorted(there.items()))
        there.clear()
        there.update(ordered)

    return footer(edited)


def stats(column: str, **fields: Any) -> Edit:
    """Other statistics of the column's last chunk, by the names of the constants above; None leaves a field out."""

    def edit(there: Fields) -> None:
        statistics: Fields = there[footers.STATISTICS][1]
        for name, value in fields.items():
            number = globals()[name]
            statistics.pop(number, None)
            if value is not None:
                kind = thrift.BINARY if isinstance(value, bytes) else thrift.I64
                if isinstance(value, bool):
                    kind = thrift.TRUE if value else thrift.FALSE
                statistics[number] = (kind, value)
        ordered = dict(sorted(statistics.items()))
        statistics.clear()
        statistics.update(ordered)

    return meta(column, edit)


def column_index(column: str, edit: Callable[[Fields], None]) -> Edit:
    """Another column index of the column's last chunk."""
    return _index(column, footers.COLUMN_INDEX_OFFSET, edit)


def offset_index(column: str, edit: Callable[[Fields], None]) -> Edit:
    """Another offset index of the column's last chunk."""
    return _index(column, footers.OFFSET_INDEX_OFFSET, edit)


def _index(column: str, field: int, edit: Callable[[Fields], None]) -> Edit:
    def edited(data: bytes) -> bytes:
        return footers.edited_index(data, LAST, number_of(footers.tree(data), column), field, edit)

    return edited


def of_page(field: int, page: int, value: Any) -> Callable[[Fields], None]:
    """Another value of a page in a list of the index."""

    def edit(index: Fields) -> None:
        index[field][1].values[page] = value

    return edit


def in_location(page: int, field: int, more: int) -> Callable[[Fields], None]:
    """A number of a page's location, and some more."""

    def edit(index: Fields) -> None:
        kind, value = index[LOCATIONS][1].values[page][field]
        index[LOCATIONS][1].values[page][field] = (kind, value + more)

    return edit


def without_last(*fields: int) -> Callable[[Fields], None]:
    """An index without its last page."""

    def edit(index: Fields) -> None:
        for field in fields:
            if field in index:
                index[field][1].values.pop()

    return edit


def added(field: int, kind: int, items: Sequence[Any]) -> Callable[[Fields], None]:
    """An index, or metadata, with another list."""

    def edit(there: Fields) -> None:
        there[field] = (thrift.LIST, Items(kind, list(items)))

    return edit


def exchanged(field: int, kind: int, value: Any) -> Callable[[Fields], None]:
    """An index, or metadata, with another field."""

    def edit(there: Fields) -> None:
        there[field] = (kind, value)

    return edit


def rows(count: int, *, whole_file: bool = False) -> Edit:
    """Another number of rows, of the last row group or of the file."""

    def edit(metadata: Fields) -> None:
        there = metadata if whole_file else metadata[footers.ROW_GROUPS][1].values[LAST]
        there[ROWS] = (thrift.I64, count)

    return footer(edit)


def sorted_by(column: str, *, descending: bool = False, nulls_first: bool = False, everywhere: bool = False) -> Edit:
    """The last row group, or all, is said to be sorted by a column."""

    def edit(metadata: Fields) -> None:
        flags = {2: (thrift.TRUE if descending else thrift.FALSE, descending)}
        flags[3] = (thrift.TRUE if nulls_first else thrift.FALSE, nulls_first)
        sorting = {1: (thrift.I32, number_of(metadata, column)), **flags}
        for group in metadata[footers.ROW_GROUPS][1].values[0 if everywhere else LAST :]:
            group[SORTING] = (thrift.LIST, Items(thrift.STRUCT, [sorting]))

    return footer(edit)


def order(column: str, number: int) -> Edit:
    """Another order of a column's bounds."""

    def edit(metadata: Fields) -> None:
        metadata[COLUMN_ORDERS][1].values[number_of(metadata, column)] = {number: (thrift.STRUCT, {})}

    return footer(edit)


def in_turn(*edits: Edit) -> Edit:
    """Several edits."""

    def edit(data: bytes) -> bytes:
        for one in edits:
            data = one(data)
        return data

    return edit


def plain_dictionary(there: Fields) -> None:
    """Only the old encodings of dictionaries are named, and no page's."""
    there[ENCODINGS] = (thrift.LIST, Items(thrift.I32, [2, 3]))
    del there[ENCODING_STATS]


def dictionary_pages(there: Fields) -> None:
    """All pages are said to be dictionary-encoded."""
    there[ENCODING_STATS] = (
        thrift.LIST,
        Items(thrift.STRUCT, [{1: (thrift.I32, 0), 2: (thrift.I32, 8), 3: (thrift.I32, 5)}]),
    )


def num_values(more: int) -> Callable[[Fields], None]:
    """Some more values, or fewer."""

    def edit(there: Fields) -> None:
        there[footers.NUM_VALUES] = (thrift.I64, there[footers.NUM_VALUES][1] + more)

    return edit


def sizes(field: int, value: Any) -> Callable[[Fields], None]:
    """Other size statistics."""

    def edit(there: Fields) -> None:
        there[SIZES][1][field] = value

    return edit


def bounds(column: str, **others: str) -> Edit:
    """Bounds of the column's last chunk, as far as they are there, that are replaced by other bounds of it."""

    def edit(there: Fields) -> None:
        statistics: Fields = there[footers.STATISTICS][1]
        before = dict(statistics)
        for name, other in others.items():
            if globals()[name] in before:
                statistics[globals()[name]] = before[globals()[other]]

    return meta(column, edit)


def page_bounds(column: str, page: int, field: int, other: int) -> Edit:
    """A page's bound that is replaced by its other one."""

    def edit(index: Fields) -> None:
        index[field][1].values[page] = index[other][1].values[page]

    return column_index(column, edit)


def int64(value: int) -> bytes:
    return struct.pack("<q", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def levels(*counts: int) -> tuple[int, Items]:
    return thrift.LIST, Items(thrift.I64, list(counts))
