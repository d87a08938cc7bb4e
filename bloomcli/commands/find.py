"""find: the rows of one file that have one of some values."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from itertools import compress, takewhile
from typing import TYPE_CHECKING

from bloomcli.commands.find_columns import Emit, batch_of_files
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.commands.one_column import only_column
from bloomcli.commands.record_columns import distinct_fields, selected
from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import CorruptFile, SourceChanged, UnsupportedError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.filter_answer import FalsePositives
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Column
from bloomcli.model.find import FileFound
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.counting_source import CountingSource
from bloomcli.storage.registry import open_from_parts, open_source, system_name
from bloomcli.storage.write_check import check_not_written
from bloomcli.values.literals import how_looked_up

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.value_parts import ValueParts
    from bloomcli.formats.filter_answer import FileRows, FileScan, FilterAnswer, FilterLookup
    from bloomcli.formats.finding import ColumnSearch
    from bloomcli.storage.base import Fingerprint, Source


class FilterResult(NamedTuple):
    """The answer of a file's filters, from a lookup before the file is searched."""

    lookup: FilterLookup
    """The lookup that gave the answer."""
    answer: FilterAnswer


class IndexedRowGroups(NamedTuple):
    """The row groups of a file that may have a value, by an index."""

    row_groups: frozenset[int]
    """Numbers of the row groups (ORC: stripes)."""
    seen: Fingerprint
    """Fingerprint of the file when it was indexed."""
    end: bytes | None = None
    """The packed end of the file (`bloomcli.index.ends`), which saves the request that opens it."""

    def possible(self, source: Source) -> frozenset[int] | None:
        """The row groups; None if the open file isn't the one that was indexed."""
        return self.row_groups if source.fingerprint.has_content_of(self.seen) else None


def run(
    path: str,
    options: FindOptions,
    values: Values | ValueParts,
    emit: Emit,
    stop: Stop | None = None,
    indexed: IndexedRowGroups | None = None,
    filter_result: FilterResult | None = None,
) -> FileFound:
    """Find the rows of one file.

    Args:
        path: a file or a URI.
        options: checked options.
        values: the values to find.
        emit: called with the rows in order, at most `options.limit`. Not called with `maybe` and `files_only`.
        stop: cancels the search.
        indexed: the row groups to search, from an index; None: all. Ignored if the file changed since.
        filter_result: the answer of the file's filters, if it is known already.

    Raises:
        UsageError, LiteralError: no such column, a text that isn't a value of the column.
        UnreadableError, UnsupportedError, CorruptFile: as `bloomcli.inspect`, and for the column's pages.
    """
    if indexed is None or indexed.end is None:
        return _run(path, options, values, emit, stop, indexed, filter_result)
    emitted = _RowCounter(emit)
    try:
        return _run(path, options, values, emitted, stop, indexed, filter_result)
    except SourceChanged:
        if emitted.rows:  # these rows are from the file that was indexed
            raise
    return _run(path, options, values, emit, stop, indexed._replace(end=None), filter_result)


class _RowCounter:
    """Counts the rows that it passes on to `emit`."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.rows = 0

    def __call__(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self._emit(batch)


def opened(path: str, indexed: IndexedRowGroups | None) -> Source:
    """Open a file. Raises as `open_source`.

    If an index has the file's end, this sends no request, and reads raise SourceChanged if the file isn't the one
    that was indexed.
    """
    if indexed is None or indexed.end is None:
        return open_source(path)
    from bloomcli.index.ends import unpacked_end

    return open_from_parts(path, indexed.seen, unpacked_end(indexed.end, indexed.seen.size)) or open_source(path)


def _run(
    path: str,
    options: FindOptions,
    values: Values | ValueParts,
    emit: Emit,
    stop: Stop | None,
    indexed: IndexedRowGroups | None,
    filter_result: FilterResult | None,
) -> FileFound:
    """As `run`; raises SourceChanged for a file whose end an index has, and that changed since it was indexed."""
    with opened(path, indexed) as original:
        try:
            result = _searched(original, options, values, emit, stop, indexed, filter_result)
        except (CorruptFile, UnsupportedError):
            check_not_written(original)  # raises another error if something writes to the file
            raise
        check_not_written(original)
        return result


def _searched(
    original: Source,
    options: FindOptions,
    values: Values | ValueParts,
    emit: Emit,
    stop: Stop | None,
    indexed: IndexedRowGroups | None,
    filter_result: FilterResult | None,
) -> FileFound:
    """Find the rows of an open file."""
    row_groups: Collection[int] | None = None if indexed is None else indexed.possible(original)
    by_index = row_groups is not None  # the index has the filters' answers
    source = _counted(original, values)
    if not by_index and (scanned := _scanned(original, values, options, emit)) is not None:
        return scanned
    filters = None if by_index else _filter_result(original, values, filter_result)
    answer = None if filters is None else filters.answer
    row_groups = row_groups if answer is None else answer.possible
    without_rows = _without_rows(original, values, row_groups, options, filters)
    if without_rows is not None:
        return without_rows
    values = values if answer is None else _remaining(values, answer)
    file = open_file(source, options.names)
    plain = _plain(file, source, values, row_groups, options, emit, stop)
    if plain is not None:
        return plain if answer is None else replace(plain, bytes_read=plain.bytes_read + answer.bytes_read)
    from bloomcli.commands.find_work import placed, work_of

    column, search = _column_search(file, options)
    search.stop, search.row_groups = stop, row_groups
    search.bounds_checked = by_index and indexed is not None and indexed.end is not None
    search.values_filtered = answer is not None and answer.texts is not None
    work = work_of(values, file, column, search, options, emit, stop)
    if isinstance(values, Values) and work.wanted is not None and row_groups is None:
        values.filter_lookup = search.filter_lookup(work.wanted, work.columns)
    groups = list(placed(work.candidates()))
    is_possible = [
        place.candidates.possible and (row_groups is None or place.candidates.indexed_unit in row_groups)
        for place in groups
    ]
    if not options.maybe:
        work.row_groups_of(compress(groups, is_possible), stop)
    possible = [
        p.candidates for p, some in zip(groups, is_possible, strict=True) if some or work.was_read(p.candidates)
    ]
    return FileFound(
        path=original.path,
        format=file.format,
        row_groups=len(groups),
        row_groups_possible=tuple(candidates.row_group for candidates in possible),
        stripes_possible=tuple(c.stripe for c in possible if c.stripe is not None),
        row_groups_read=work.row_groups,
        pages_read=work.pages_read,
        pages_left_out=work.pages_left_out,
        rows=work.rows,
        bytes_read=source.bytes_read + (0 if answer is None else answer.bytes_read),
        scan_bytes=work.scan_bytes(groups),
    )


def _column_search(file: FilterFile, options: FindOptions) -> tuple[Column, ColumnSearch]:
    """The column, and its search."""
    if not file.searched:  # raises UnsupportedError, whatever the file's columns are
        file.search(Column(path=options.column, index=0, physical=""))
    column = only_column(file, options.column, purpose="find")
    search = file.search(column)
    search.pages_follow = not options.maybe
    return column, search


def record_type(path: str, options: FindOptions) -> tuple[pa.StructType, int]:
    """The type of a file's records, and the number of bytes read. Raises as `run`."""
    import pyarrow as pa

    with open_source(path) as original:
        source = CountingSource(original)
        file = open_file(source, options.names)
        search = file.search(only_column(file, options.column, purpose="find"))
        return pa.struct(distinct_fields(search.no_records(selected(file, options)).schema)), source.bytes_read


def lookup_remarks(path: str, options: FindOptions, texts: Sequence[str]) -> list[str]:
    """What was looked up for values that may mean several things in a file's column. Raises as `run`."""
    with open_source(path) as source:
        file = open_file(source, options.names)
        column = file.literal_column(only_column(file, options.column, purpose="find"))
        return [remark for text in texts if (remark := how_looked_up(text, column)) is not None]


def _plain(
    file: FilterFile,
    source: CountingSource,
    values: Values | ValueParts,
    row_groups: Container[int] | None,
    options: FindOptions,
    emit: Emit,
    stop: Stop | None,
) -> FileFound | None:
    """Search a file without Arrow; None if the search needs Arrow.

    `row_groups`: the row groups that may have values; None if not known.
    """
    if not isinstance(values, Values) or values.plain == "nothing" or values.few is None:
        return None
    from bloomcli.commands import plain_search

    search = plain_search.search_of(file, options, values.few)
    if search is None:
        return values.searched_plainly(plain_search.Fallback.NOT_PLAIN)
    rows = emit if values.plain == "rows" or not options.rows else None
    result = plain_search.found(file, source, search, options, values.few, row_groups, rows, stop)
    if isinstance(result, FileFound) and (values.filter_lookup is None or row_groups is None):
        values.filter_lookup = search.filter_lookup()
    return values.searched_plainly(result)


def _scanned(original: Source, values: Values | ValueParts, options: FindOptions, emit: Emit) -> FileFound | None:
    """Find the rows of a file by a scan of its column, without its filters; None if the filters are to be read.

    This is for files with the schema of one that was searched before.
    """
    filter_lookup = values.filter_lookup if isinstance(values, Values) else None
    if filter_lookup is None or not options.rows or options.limit is not None:
        return None
    scan = filter_lookup.rows(original)
    if scan is None or not isinstance(values, Values):
        return None
    if len(scan.rows):
        emit(_batch_of([original.path], scan, values))
    return _of_scan(original.path, filter_lookup, scan.files[0])


def scanned_together(
    paths: Sequence[str], options: FindOptions, values: Values, rows: int, size: int
) -> tuple[list[FileFound], pa.RecordBatch | None]:
    """Find the rows of several files by a scan of the column, without their filters. As `_scanned`.

    Args:
        paths: files. The scan ends before the first one that isn't local.
        options: the options of `run`.
        values: the values to find.
        rows: the scan ends after the file with which it has this number of rows,
        size: or this number of bytes of values.

    Returns:
        The results of the first files, and their rows in order; None if they have no rows. If there are no results,
        the caller searches the next file alone.
    """
    filter_lookup = values.filter_lookup
    if filter_lookup is None or not filter_lookup.scans or not options.rows or options.limit is not None:
        return [], None
    names = [name for name in takewhile(lambda name: name is not None, map(system_name, paths)) if name is not None]
    scans = filter_lookup.rows_of(names, rows, size) if names else None
    if scans is None:
        return [], None
    scanned_paths = paths[: len(scans.files)]
    results = [_of_scan(path, filter_lookup, scan) for path, scan in zip(scanned_paths, scans.files, strict=True)]
    return results, _batch_of(scanned_paths, scans, values) if len(scans.rows) else None


def _batch_of(paths: Sequence[str], found: FileRows, values: Values) -> pa.RecordBatch:
    texts = values.texts.take(found.texts)
    counts = [scan.rows for scan in found.files]
    return batch_of_files(paths, counts, None, found.groups, found.rows, texts, found.records)


def _of_scan(path: str, filter_lookup: FilterLookup, scan: FileScan) -> FileFound:
    return FileFound(
        path=path,
        format=filter_lookup.format,
        row_groups=scan.row_groups,
        row_groups_possible=scan.searched,
        row_groups_read=len(scan.searched),
        pages_read=scan.pages,
        rows=scan.rows,
        bytes_read=scan.bytes_read,
        scan_bytes=scan.scan_bytes,
    )


def _filter_result(original: Source, values: Values | ValueParts, known: FilterResult | None) -> FilterResult | None:
    """The answer of a file's filters, if a file with the same schema was searched before; else None.

    `known`: the answer of an earlier lookup.
    """
    # Read once: other threads may set it.
    filter_lookup = values.filter_lookup if isinstance(values, Values) else None
    if known is not None and known.answer.stamp != (original.fingerprint.size, original.fingerprint.mtime_ns):
        known = None  # the file was replaced since
    if filter_lookup is None or (known is not None and known.lookup is filter_lookup):
        return known
    answer = filter_lookup.look_up(original)
    if answer is None or known is None:
        return None if answer is None else FilterResult(filter_lookup, answer)
    return FilterResult(filter_lookup, answer._replace(bytes_read=answer.bytes_read + known.answer.bytes_read))


def _remaining(values: Values | ValueParts, answer: FilterAnswer) -> Values | ValueParts:
    """The values that filters don't rule out; all values if the answer doesn't name them."""
    if answer.texts is None or not isinstance(values, Values):
        return values
    return Values(values.texts.take(answer.texts))


def _without_rows(
    original: Source,
    values: Values | ValueParts,
    row_groups: Collection[int] | None,
    options: FindOptions,
    filters: FilterResult | None,
) -> FileFound | None:
    """The result of a file without rows, if compiled code can determine that without opening it; else None.

    `row_groups`: the row groups that may have values, by the filters or an index; None if not known.
    """
    known = values.filter_lookup if isinstance(values, Values) else None
    lookup = known if filters is None else filters.lookup
    if lookup is None or row_groups is None or (filters is None and not lookup.can_batch):
        return None
    # After a lookup in an index, the file's own filters, which may be larger, can rule out more.
    answer = lookup.look_up(original, row_groups) if filters is None else filters.answer
    if answer is None or answer.possible is None:
        return None
    remaining = [group for group in answer.possible if group in row_groups]
    reads = FalsePositives()
    if remaining:
        false_positives = None if options.maybe else lookup.false_positives(original, remaining)
        if false_positives is None:
            return None
        reads = false_positives
    return FileFound(
        path=original.path,
        format=lookup.format,
        row_groups=answer.row_groups,
        row_groups_possible=reads.searched,
        row_groups_read=len(reads.searched),
        pages_read=reads.pages,
        bytes_read=answer.bytes_read + reads.bytes_read,
        scan_bytes=answer.scan_bytes if options.rows else answer.chunk_bytes,
    )


def _counted(original: Source, values: Values | ValueParts) -> CountingSource:
    """Count the bytes that are read of a file."""
    if isinstance(values, Values) or not original.request_bytes:
        return CountingSource(original)
    from bloomcli.storage.caching_source import CachingSource

    return CachingSource(original)  # each part of the values is looked up in the filters
