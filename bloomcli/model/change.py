"""The report of `add`, `remove`, `fold` and `repair`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bloomcli.model.report import Rows

PAGE_INDEX: Final = "page-index"
STATISTICS: Final = "statistics"
ADDITIONS: Final = (PAGE_INDEX, STATISTICS)
"""What `repair` adds where it is missing."""
OUTPUT_EXISTS: Final = "the output is there already"
"""The reason why a file isn't changed whose output an earlier run made by the same request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChange:
    """One filter that the command wrote, folded or removed (or, in a dry run, would)."""

    row_group: int | None
    """None if the change covers all row groups of a stripe, or of the file."""
    column: str
    action: str
    """``add``, ``replace``, ``remove``, ``fold`` or ``keep``."""
    bitset_bytes: int | None
    """Size after the change; in a dry run of ``add`` an upper bound. None after removal."""
    old_bitset_bytes: int | None = None
    values: int | None = None
    """Number of non-null values hashed."""
    fpp: float | None = None
    """Measured rate after the change; None in a dry run and after removal."""
    target_fpp: float | None = None
    misses_target: bool = False
    """A size limit, the user's or the format's, keeps the filter from meeting the target."""
    source: str | None = None
    """Where the values come from. ``dictionary``: the dictionary page; of the data pages, only the parts that show
    which entries they use are read. ``pages``: the decoded column."""
    stripe: int | None = None
    """ORC: the stripe; the change then covers the filters of all its row groups, and sizes are per filter."""
    filters: int = 1
    """Number of filters that the change covers."""
    reason: str | None = None
    """Why a column that a glob matches gets no filter (``keep``, with 0 filters): its type can't have one, or a
    reader would lose rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureChange:
    """The statistics or a page index of a column chunk that `repair` wrote or took out (or, in a dry run, would)."""

    row_group: int | None
    """None for the file's number of rows."""
    column: str | None
    """None for a number of rows."""
    structure: str
    """``statistics``, ``column_index`` or ``offset_index``. Of those that are only mended: ``encoding_stats``,
    ``size_statistics``, ``sorting_columns``, and ``num_rows``: the number of rows, or of a column's values."""
    action: str
    """``add``, ``replace``, ``remove`` or ``keep``."""
    bytes: int | None = None
    """Size of a page index after the change; in a dry run of ``add`` an upper bound."""
    problems: tuple[str, ...] = ()
    """What was wrong with the structure before."""
    reason: str | None = None
    """Why a missing structure isn't added (``keep``), a wrong one is taken out (``remove``), or new statistics have
    no bounds; in a dry run of ``add``, where the structure isn't added, which only the values show."""
    pages: int | None = None
    """Of a page index that was written: the number of data pages."""
    page_bytes: int | None = None
    """Of a page index that was written: the size of the data pages, headers included."""
    lookup_bytes: int | None = None
    """Of a column index that was written: the size of the pages, of `page_bytes`, that a reader reads on average to
    look up a page's minimum; the bounds of the others exclude it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChangeReport(Rows):
    """The report of add, remove, fold or repair on one file."""

    path: str
    format: str
    command: str
    output: str | None
    """None in a dry run, and if the file needs no change."""
    dry_run: bool
    bytes_before: int
    bytes_after: int
    """In a dry run an upper bound; of `repair --add`, if pages have at least 1,000 values or 8 KiB."""
    bytes_decoded: int
    """Compressed bytes of the decoded column chunks. In a dry run an upper bound."""
    bytes_copied: int
    seconds: float
    changes: tuple[FilterChange, ...]
    bytes_unreclaimed: int = 0
    """Unused bytes that remain in the file: old filters between row groups, because pages can't move; in a store that
    only appends to whole objects, also the old footer."""
    remarks: tuple[str, ...] = ()
    """Notes on the file or the run."""
    requests: int | None = None
    """Requests to the object store, retries included; None for local files. In a dry run this and the following are
    estimates of what the change takes."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the store."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the store."""
    bytes_copied_by_store: int | None = None
    """Bytes that the store copied from object to object, and that didn't pass through this machine."""
    structures: tuple[StructureChange, ...] = ()
    """Statistics and page indexes that `repair` changed."""
    policy: str | None = None
    """The policy file that applied to `add`; None without one."""

    def _rows(self) -> tuple[type, Sequence[FilterChange | StructureChange]]:
        mended = self.command == "repair"
        return (StructureChange, self.structures) if mended else (FilterChange, self.changes)
