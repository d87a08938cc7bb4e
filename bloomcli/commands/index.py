"""index: reads the bits of one file for an index. `bloomcli.indexing` builds the index of all files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bloomcli.commands.columns import is_exactly
from bloomcli.commands.options import IndexOptions
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import UNVERIFIED, Column
from bloomcli.model.index import ChunkState, ColumnType, IndexedChunk, IndexedColumn, IndexedFile, IndexedRow
from bloomcli.model.paths import shown
from bloomcli.storage.base import Source
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source, store_of

_TICK_NS: Final = 20_000_000
"""Files that change within a tick of the kernel's clock, 1 to 10 ms, have the same modification time."""
_COARSE_NS: Final = 2_000_000_000
"""The same for modification times in whole seconds; FAT has steps of 2 s."""

NO_IDENTITY: Final = (
    "a change of the file can't be noticed: it has neither a tag nor a time, or its URI has a signature"
)


@convert_os_errors_of_file
def run(path: str, options: IndexOptions) -> FileRow:
    """Read a file's filters, and the columns without a filter that an index can take.

    Raises:
        UsageError: two columns have one path.
        UnreadableError, UnsupportedError, CorruptFile: as `bloomcli.inspect`, and for the columns' pages.
        SourceChanged: the file changed meanwhile.
    """
    _wait_for_clock(path)
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        identity = _identity(path, source, file) if file.indexable else None
        reason = NO_IDENTITY if identity is None else None
        if not file.indexable:
            reason = f"files of the format {file.format} aren't indexed"
        if reason is not None:
            return FileRow(
                path=path,
                status=Status.SKIPPED,
                format=file.format,
                reason=f"{reason}; `find` searches them without an index",
            )
        named = _columns(file, options.columns)
        columns = list(named.values())
        if not options.allow_plaintext_index:
            _refuse_encrypted(file, columns)
        row = IndexedRow(
            path=path,
            status=Status.PLANNED if options.dry_run else Status.DONE,
            format=file.format,
            row_groups=len(file.row_group_rows()),
            columns=len(columns),
            bytes_before=source.size,
            has=tuple(named),
            reason=UNVERIFIED if file.unverified else None,
        )
        return _estimated(row, file, columns) if options.dry_run else _read(row, file, named, identity, options.fpp)


_NEVER_RULED_OUT: Final = (
    "the index never rules out some of its column chunks, because their values can't be looked up"
)


def _wait_for_clock(path: str) -> None:
    """Wait until a further change of a file that has just changed would also change its modification time."""
    store = store_of(path)
    fingerprint = None if store.remote else store.fingerprint(path)
    if fingerprint is None:
        return
    step = _TICK_NS if fingerprint.mtime_ns % 1_000_000_000 else _COARSE_NS
    wait_ns = fingerprint.mtime_ns + step - time.time_ns()
    if 0 < wait_ns <= step:
        time.sleep(wait_ns / 1e9)


def _identity(path: str, source: Source, file: FilterFile) -> IndexedFile | None:
    """The identity of a file in an index: path, size, time, tag; None if a change can't be noticed."""
    fingerprint = source.fingerprint
    if (not fingerprint.tag and not fingerprint.mtime_ns) or shown(path) != path:
        return None
    rows = tuple(file.row_group_rows())
    return IndexedFile(
        path=path,
        size=fingerprint.size,
        mtime_ns=0 if fingerprint.tag else fingerprint.mtime_ns,
        tag=fingerprint.tag,
        rows=rows,
    )


def _columns(file: FilterFile, names: Sequence[str]) -> dict[str, Column]:
    """The file's leaf columns that are to be indexed, by the names that the index has for them. Raises UsageError if
    two have the same name."""
    by_name: dict[str, Column] = {}
    for name in names:
        columns = [column for column in file.leaves if is_exactly(name, column) and not column.not_in_table]
        columns = [column for column in columns if column.path == name] or columns
        if len(columns) > 1:
            raise UsageError(
                f"{len(columns)} columns are called {name!r}; an index can't tell which of them is meant",
                path=file.source.path,
                hint="leave the column out",
            )
        by_name.update((name, column) for column in columns)
    return by_name


def _refuse_encrypted(file: FilterFile, columns: Sequence[Column]) -> None:
    """Raise UsageError if a column is encrypted: in an index, its filters lie in the clear."""
    for column in columns:
        if file.is_encrypted(column):
            raise UsageError(
                f"column {column.path} is encrypted, and an index has filters in the clear: anybody who reads it "
                "can test whether the column has a value",
                path=file.source.path,
                hint="leave the column out, or give --allow-plaintext-index",
            )


def _estimated(row: IndexedRow, file: FilterFile, columns: Sequence[Column]) -> IndexedRow:
    """Estimate the reads from the metadata."""
    filters = read = decoded = 0
    for column in columns:
        for source in file.bits_sources(column):
            filters += source.filter
            read += source.reads > 0
            decoded += source.reads
    return replace(row, filters=filters, row_groups_read=read, bytes_decoded=decoded)


def _read(
    row: IndexedRow, file: FilterFile, columns: Mapping[str, Column], identity: IndexedFile | None, fpp: float
) -> IndexedRow:
    filters = read = decoded = 0
    contradicted = False

    def chunks() -> Iterator[IndexedChunk]:
        nonlocal filters, read, decoded, contradicted
        stop = Stop()
        for name, column in columns.items():
            named = IndexedColumn(path=name, type=ColumnType.of(file.indexed_column(column)))
            others = file.other_types(column)
            for row_group in file.row_group_bits(column, fpp, stop):
                if row_group.row_group in others:  # a search has to say that it doesn't look these up
                    row_group = row_group._replace(bits=None, possible=True)
                filters += row_group.bits is not None and not row_group.decoded
                read += row_group.decoded > 0
                decoded += row_group.decoded
                contradicted = contradicted or row_group.contradicted
                state = ChunkState.ALWAYS if row_group.possible else ChunkState.NEVER
                yield IndexedChunk(
                    row_group=row_group.row_group,
                    column=named,
                    state=state if row_group.bits is None else ChunkState.FILTER,
                    bitset=row_group.bits,
                )

    indexed_chunks = tuple(chunks())
    if any(chunk.state is ChunkState.ALWAYS for chunk in indexed_chunks):
        row = replace(row, reason="; ".join(filter(None, (row.reason, _NEVER_RULED_OUT))))
    end = b"" if contradicted or identity is None or not identity.tag else _end(file, list(columns.values()))
    file.source.check_unchanged()
    return replace(
        row,
        filters=filters,
        row_groups_read=read,
        bytes_decoded=decoded,
        indexed=identity,
        chunks=indexed_chunks,
        end=end,
    )


def _end(file: FilterFile, columns: Sequence[Column]) -> bytes:
    """The packed end of a file, which saves a search the request that opens it; empty if the index keeps none.

    The caller keeps it only if no filter and no value contradicts the statistics: a search that uses it trusts them.
    """
    ranges = file.end_ranges(columns)
    if not ranges:
        return b""
    from bloomcli.index.ends import packed_end

    file.source.will_read(ranges)
    return packed_end([(offset, file.source.read_at(offset, length)) for offset, length in ranges])
