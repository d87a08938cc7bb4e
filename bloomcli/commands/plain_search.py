"""find without Arrow: a few rows of files whose columns have plain types."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Sequence
from enum import Enum
from typing import Any

from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.one_column import only_column
from bloomcli.commands.record_columns import selected
from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import BloomError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.plain_rows import NeedsArrow, PlainSearch, PossibleRowGroup
from bloomcli.model.find import FileFound
from bloomcli.model.paths import shown
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.counting_source import CountingSource


class Fallback(Enum):
    """Why the search of a file needs Arrow."""

    NOT_PLAIN = "its columns, its pages or the values aren't plain, or the file is damaged"
    HAS_ROWS = "it has rows, and this search only decides files without rows"


class PlainRows(NamedTuple):
    """Rows with the interface of a record batch of `find_columns.COLUMNS`."""

    rows: Sequence[dict[str, Any]]
    """A dict with the keys `find_columns.COLUMNS` for each row; `value` is text."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """0: the rows are few and short."""
        return 0

    def slice(self, start: int, count: int) -> PlainRows:
        """`count` rows from `start` on."""
        return PlainRows(self.rows[start : start + count])


def search_of(file: FilterFile, options: FindOptions, texts: Sequence[str]) -> PlainSearch | None:
    """The search of an open file without Arrow; None if it needs Arrow. The search with Arrow then reports errors."""
    try:
        column = only_column(file, options.column, purpose="find")
        return file.plain_search(column, texts, selected(file, options) if options.rows else ())
    except (NeedsArrow, BloomError):
        return None


def found(
    file: FilterFile,
    source: CountingSource,
    search: PlainSearch,
    options: FindOptions,
    texts: Sequence[str],
    row_groups: Container[int] | None,
    emit: Callable[[Any], None] | None,
    stop: Stop | None,
) -> FileFound | Fallback:
    """Find the rows of one file, or return why the search needs Arrow.

    Args:
        file: the open file.
        source: the source that the file reads from.
        search: the file's search.
        options: checked options.
        texts: the values to find.
        row_groups: the row groups that may have a value; None: all.
        emit: called once with `PlainRows`, if rows are found; not called with `maybe` and `files_only`. None: a file
            with rows returns `Fallback.HAS_ROWS`.
        stop: cancels the search.
    """
    groups = file.row_group_count
    rows: list[dict[str, Any]] = []
    count = read = 0
    limit = (options.limit or sys.maxsize) if options.rows else 1
    try:
        possible = list(search.possible(range(groups) if row_groups is None else row_groups))
        for row_group in () if options.maybe else possible:
            if stop is not None:
                stop.check()
            read += 1
            if not options.rows:
                count = sum(1 for _ in search.rows(row_group, 1))
            elif emit is None:
                if any(True for _ in search.rows(row_group, 1)):
                    return Fallback.HAS_ROWS
            else:
                rows += _rows(
                    file, search, row_group, texts, None if options.limit is None else options.limit - len(rows)
                )
                count = len(rows)
            if count >= limit:
                break
        scanned = search.scanned_bytes()
    except (NeedsArrow, BloomError):
        return Fallback.NOT_PLAIN
    if emit is not None and rows:
        emit(PlainRows(rows))
    return FileFound(
        path=source.path,
        format=file.format,
        row_groups=groups,
        row_groups_possible=tuple(row_group.row_group for row_group in possible),
        row_groups_read=read,
        pages_read=search.pages_read,
        pages_left_out=search.pages_left_out,
        rows=count,
        bytes_read=source.bytes_read,
        scan_bytes=scanned,
    )


def _rows(
    file: FilterFile, search: PlainSearch, possible: PossibleRowGroup, texts: Sequence[str], limit: int | None
) -> list[dict[str, Any]]:
    """The rows of a row group, up to `limit`; None: all."""
    rows = list(search.rows(possible, limit))[:limit]
    if not rows:
        return []
    first = sum(file.row_group_rows()[: possible.row_group])
    path = shown(file.source.path).encode("utf-8", "backslashreplace").decode()
    return [
        {
            "path": path,
            "stripe": None,
            "row_group": possible.row_group,
            "row": first + row.row,
            "value": texts[row.text].encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
            "record": record,
        }
        for row, record in zip(rows, search.records(possible.row_group, rows), strict=True)
    ]
