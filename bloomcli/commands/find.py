"""find: the rows of one file that have one of some values.

filters, statistics, dictionaries, an index: row groups that may have a value -> pages -> rows -> records

The columns of the records are those that the user selects, or all, under their names in the file or the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from bloomcli.commands.columns import only_column, select
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.commands.partitions import Partition, check_column, check_values, is_chosen
from bloomcli.concurrency.threads import Stop
from bloomcli.engine_filters.registry import excludes_all
from bloomcli.errors import CorruptFile, SourceChanged, UnsupportedError
from bloomcli.formats.arrays import binaries, int64s, repeated, shifted
from bloomcli.formats.base import FilterFile
from bloomcli.formats.column_search import Candidates, ColumnSearch, FoundRows, Matches, Scope, numbered
from bloomcli.formats.filter_lookup import FilterAnswer
from bloomcli.formats.registry import open_file
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.index.ends import unpacked_end
from bloomcli.model.file import Column
from bloomcli.model.find import FileFound
from bloomcli.model.paths import shown
from bloomcli.storage.base import Fingerprint, Source
from bloomcli.storage.registry import open_source, store_of
from bloomcli.storage.sources import CountingSource, check_not_written
from bloomcli.values.literals import how_looked_up


def selected(file: FilterFile, options: FindOptions) -> list[str] | None:
    """The paths of the columns of a record; None for all. Raises UnknownColumn."""
    if not options.select:
        return None
    leaves = file.columns
    partition = Partition(file.source.path, options)
    tops = {name for name in options.select if any(c.path.startswith(f"{name}.") for c in leaves)}
    named = [name for name in options.select if name not in tops and name not in file.missing_columns]
    named = [n for n in named if not partition.has_all([n]) or any(is_chosen(c.path, [n]) for c in leaves)]
    ordinals = {c.index for c in select(leaves, named, path=file.source.path)} if named else set()
    ordinals |= {c.index for c in leaves if any(c.path.startswith(f"{top}.") for top in tops)}
    return [c.path for c in leaves if c.index in ordinals] or [options.column]


def distinct(names: Sequence[str]) -> list[str]:
    """The names, made unique: repetitions of a name become ``NAME_1``, ``NAME_2``, ..."""
    new_names: dict[str, None] = {}
    for name in names:
        number, new = 0, name
        while new in new_names or (number and new in names):
            number += 1
            new = f"{name}_{number}"
        new_names[new] = None
    return list(new_names)


def distinct_fields(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """A record's fields with unique names, because a struct with two fields of one name can't be read by name."""
    fields = list(fields)
    names = distinct([field.name for field in fields])
    return [field if field.name == name else field.with_name(name) for field, name in zip(fields, names, strict=True)]


COLUMNS: Final = ("path", "stripe", "row_group", "row", "value", "record")
"""The columns of rows, before `ALSO`: the file, the stripe (null in formats without stripes), the row group (ORC: its
number in the stripe), the row's number in the file from 0, the value as given (UTF-8 in binary; see `with_texts`),
and the record, a struct of the selected columns."""

ALSO: Final = "also"
"""The last column of rows until `with_texts`: the other values that the row has, because it has a list, or because
they are written differently and are equal in the column. A list of UTF-8 in binary; null for none."""

_ROWS_TOGETHER: Final = 8192
"""Rows whose records are read together, and those of the row group in which they end."""

Emit = Callable[[pa.RecordBatch], None]
"""A function that takes rows with `COLUMNS`."""


class IndexedRowGroups(NamedTuple):
    """The row groups of a file that may have a value, by an index."""

    row_groups: frozenset[int]
    """Numbers of the row groups (ORC: stripes)."""
    fingerprint: Fingerprint
    """Fingerprint of the file when it was indexed."""
    total: int
    """Number of all row groups (ORC: stripes) of the file."""
    end: bytes | None = None
    """The packed end of the file (`bloomcli.index.ends`), which saves the request that opens it."""

    def possible(self, source: Source) -> frozenset[int] | None:
        """The row groups; None if the open file isn't the one that was indexed."""
        return self.row_groups if source.fingerprint.has_content_of(self.fingerprint) else None


def run(
    path: str,
    options: FindOptions,
    values: Values,
    emit: Emit,
    stop: Stop | None = None,
    indexed: IndexedRowGroups | None = None,
    answer: FilterAnswer | None = None,
) -> FileFound:
    """Find the rows of one file.

    Args:
        path: a file or a URI.
        options: checked options.
        values: the values to find.
        emit: called with the rows in order, at most `options.limit`. Not called with `maybe` and `files_only`.
        stop: cancels the search.
        indexed: the row groups to search, from an index; all if None. Ignored if the file changed since.
        answer: the answer of the file's filters, if it is known already. Ignored if the file changed since.

    Raises:
        UsageError, LiteralError: no such column, a text that isn't a value of the column.
        UnreadableError, UnsupportedError, CorruptFile: as `bloomcli.inspect`, and for the column's pages.
    """

    def attempt(emit: Emit, indexed: IndexedRowGroups | None) -> FileFound:
        with opened(path, indexed) as original:
            try:
                result = _search(original, options, values, emit, stop, indexed, answer)
            except (CorruptFile, UnsupportedError):
                check_not_written(original)  # raises another error if something writes to the file
                raise
            check_not_written(original)
            return result

    if indexed is None or indexed.end is None:
        return attempt(emit, indexed)
    emitted = False

    def note(batch: pa.RecordBatch) -> None:
        nonlocal emitted
        emitted = True
        emit(batch)

    try:
        return attempt(note, indexed)
    except SourceChanged:  # since the end was indexed
        if emitted:  # these rows are from the file that was indexed
            raise
    return attempt(emit, indexed._replace(end=None))


def opened(path: str, indexed: IndexedRowGroups | None) -> Source:
    """Open a file. Raises as `open_source`.

    If an index has the file's end, this sends no request, and reads raise SourceChanged if the file isn't the one
    that was indexed.
    """
    if indexed is None or indexed.end is None:
        return open_source(path)
    end = unpacked_end(indexed.end, indexed.fingerprint.size)
    return store_of(path).open_from_parts(path, indexed.fingerprint, end) or open_source(path)


def record_type(path: str, options: FindOptions) -> tuple[pa.StructType, int]:
    """The type of a file's records, and the number of bytes read. Raises as `run`."""
    with open_source(path) as original:
        source = CountingSource(original)
        file = open_file(source, options.names, options.keys)
        search = file.search(only_column(file, options.column, purpose="find"))
        record = Partition(path, options).join(search.no_records(selected(file, options)))
        return pa.struct(distinct_fields(record.schema)), source.bytes_read


def with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with the columns `COLUMNS` and the values as text: bytes that aren't UTF-8 become U+FFFD."""
    at = COLUMNS.index("value")
    values = batch.column(at)
    try:
        texts = values.cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = pa.array([value.decode("utf-8", "replace") for value in values.to_pylist()], pa.large_string())
    return batch.select(COLUMNS).set_column(at, "value", texts)


def lookup_remarks(path: str, options: FindOptions, texts: Sequence[str]) -> list[str]:
    """What was looked up for values that may mean several things in a file's column. Raises as `run`."""
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        column = file.literal_column(only_column(file, options.column, purpose="find"))
        return [remark for text in texts if (remark := how_looked_up(text, column)) is not None]


def _search(
    original: Source,
    options: FindOptions,
    values: Values,
    emit: Emit,
    stop: Stop | None,
    indexed: IndexedRowGroups | None,
    answer: FilterAnswer | None,
) -> FileFound:
    """Find the rows of an open file."""
    row_groups: Collection[int] | None = None if indexed is None else indexed.possible(original)
    by_index = row_groups is not None  # the index has the filters' answers
    answer = _filters_answer(original, values, answer, row_groups)
    if answer is not None and answer.possible is not None:
        if not options.maybe:
            answer = answer.decoded(original)
        if answer.ruled_out:
            return without_rows(original.path, answer, options)
        row_groups = answer.possible
    source = CountingSource(original)
    file = open_file(source, options.names, options.keys)
    column, directory, search = _column_search(file, options)
    wanted = values.of(file, column, search, stop)
    if row_groups is None and wanted.nan is None and excludes_all(file, column, wanted.forms):
        row_groups = ()
    scope = Scope(
        row_groups,
        bounds_checked=by_index and indexed is not None and indexed.end is not None,
        filtered=None if answer is None else answer.forms,
        sound_pages={} if answer is None else dict(zip(answer.possible or (), answer.pages, strict=False)),
        pages_follow=not options.maybe,
    )
    rows = _FileRows(file, search, wanted, options, emit, column, directory)
    if options.keys is None and (answer is None or answer.possible is None):  # else footers are verified first
        values.filter_lookup = search.filter_lookup(wanted, rows.columns) or values.filter_lookup
    every = list(numbered(search.candidates(wanted, scope)))
    possible = [
        candidates
        for candidates in every
        if candidates.possible and (row_groups is None or candidates.indexed_unit in row_groups)
    ]
    if not options.maybe:
        rows.find(possible, stop)
    return FileFound(
        path=original.path,
        format=file.format,
        other_types=len(file.other_types(column)),
        unverified=int(file.unverified),
        row_groups=len(every),
        row_groups_possible=tuple(candidates.row_group for candidates in possible),
        stripes_possible=tuple(candidates.stripe for candidates in possible if candidates.stripe is not None),
        row_groups_read=rows.row_groups,
        pages_read=search.pages_read,
        pages_left_out=search.pages_left_out,
        rows=rows.count,
        bytes_read=source.bytes_read + (0 if answer is None else answer.bytes_read),
        scan_bytes=search.scanned_bytes(rows.columns)
        if options.rows
        else sum(candidates.chunk_bytes for candidates in every),
    )


def without_rows(path: str, answer: FilterAnswer, options: FindOptions) -> FileFound:
    """The result of a file that its filters rule out, or whose column was decoded and has none of the values; of
    several files, their sums."""
    possible = answer.possible or ()
    return FileFound(
        path=path,
        format=answer.format,
        row_groups=answer.row_groups,
        row_groups_possible=possible,
        row_groups_read=len(possible),
        pages_read=sum(answer.pages),
        bytes_read=answer.bytes_read,
        scan_bytes=answer.scan_bytes if options.rows else answer.chunk_bytes,
    )


def _filters_answer(
    original: Source, values: Values, old_answer: FilterAnswer | None, row_groups: Collection[int] | None
) -> FilterAnswer | None:
    """The answer of a file's filters, if a file with the same schema was searched before; else None.

    `old_answer`: the answer of an earlier lookup. `row_groups`: as `FilterLookup.look_up`.
    """
    if old_answer is not None and old_answer.stamp == (original.fingerprint.size, original.fingerprint.mtime_ns):
        return old_answer
    lookup = values.filter_lookup
    return None if lookup is None else lookup.look_up(original, row_groups)


def _column_search(file: FilterFile, options: FindOptions) -> tuple[Column, str | None, ColumnSearch]:
    """The column, its value in the file's directories (None if they don't have it), and its search."""
    if not file.searched:  # raises UnsupportedError, whatever the file's columns are
        file.search(Column(path=options.column, index=0, physical=""))
    directory = check_column(file, options)
    column = only_column(file, options.column, purpose="find")
    return column, directory, file.search(column)


class _FileRows:
    """Finds the rows of one file, row group by row group.

    Attributes:
        columns: the paths of the columns of records; None for all.
        count: number of rows so far, at most the limit.
        row_groups: number of row groups that were read.
    """

    def __init__(
        self,
        file: FilterFile,
        search: ColumnSearch,
        wanted: WantedValues,
        options: FindOptions,
        emit: Emit,
        column: Column,
        directory: str | None,
    ) -> None:
        self._file, self._search, self._wanted, self._options, self._emit = file, search, wanted, options, emit
        self._partition = Partition(file.source.path, options)
        self._column, self._directory = column, directory
        self.columns = selected(file, options)
        self.count = self.row_groups = 0

    def find(self, row_groups: Sequence[Candidates], stop: Stop | None) -> None:
        """Find the rows of row groups, and give them to `emit`, until the search has enough rows. Raises Stopped.

        With a limit, and with `files_only`, row groups are searched one by one: the first ones may have enough rows.
        """
        early = self._options.files_only or self._options.limit is not None
        for some in ([candidates] for candidates in row_groups) if early else self._search.together(row_groups):
            if stop is not None:
                stop.check()
            self._search_together(some)
            if self._is_enough():
                break

    def _search_together(self, row_groups: Sequence[Candidates]) -> None:
        """Find the rows of row groups. The search ends early if it has enough rows."""
        self.row_groups += len(row_groups)
        for candidates in row_groups:
            self._search.prepare(self._wanted, candidates, self.columns, rows=self._options.rows)
        waiting: list[tuple[Candidates, Matches]] = []
        rows = 0
        for candidates, all_matches in self._search.matches(self._wanted, row_groups):
            if rows >= _ROWS_TOGETHER and candidates is not waiting[-1][0]:
                self._emit_records(waiting)
                waiting, rows = [], 0
            limit = self._options.limit
            matches = all_matches if limit is None else all_matches.first(limit - self.count)
            if self._directory is not None:
                owners = self._wanted.owner_of(matches.forms)
                texts = [text.decode("utf-8", "replace") for text in self._wanted.texts.take(owners).to_pylist()]
                check_values(self._column, self._directory, dict.fromkeys(texts), self._file.source.path)
            waiting.append((candidates, matches))
            rows += len(matches.rows)
            self.count += len(matches.rows)
            if self._is_enough():
                break
        self._emit_records(waiting)

    def _is_enough(self) -> bool:
        """Whether the search has all the rows that it needs."""
        limit = self._options.limit
        return (self._options.files_only and self.count > 0) or (limit is not None and self.count >= limit)

    def _emit_records(self, matches: Sequence[tuple[Candidates, Matches]]) -> None:
        """Read the records of rows of row groups, and give them to `emit`."""
        if not self._options.rows or not matches:
            return
        found_rows = [
            FoundRows(some[0][0], pa.concat_arrays([m.rows for _, m in some]))
            for _, group in groupby(matches, lambda match: id(match[0]))
            if (some := list(group))
        ]
        row_groups = pa.concat_arrays([repeated(part.candidates.row_group, len(part.rows)) for part in found_rows])
        numbers = pa.concat_arrays([shifted(part.rows, part.candidates.first_row) for part in found_rows])
        texts = self._wanted.texts.take(self._wanted.owner_of(pa.concat_arrays([m.forms for _, m in matches])))
        also = pa.concat_arrays([self._also(m) for _, m in matches])
        stripes = pa.concat_arrays([_stripes(part) for part in found_rows])
        path = shown(self._file.source.path).encode("utf-8", "backslashreplace")
        at = 0
        for records in map(self._partition.join, self._search.records(found_rows, self.columns)):
            count = records.num_rows
            columns = [
                binaries([path] * count).cast(pa.string()),
                *(column.slice(at, count) for column in (stripes, row_groups, numbers, texts)),
                pa.StructArray.from_arrays(records.columns, fields=distinct_fields(records.schema)),
                also.slice(at, count),
            ]
            self._emit(pa.RecordBatch.from_arrays(columns, names=[*COLUMNS, ALSO]))
            at += count

    def _also(self, matches: Matches) -> pa.ListArray:
        """The column `ALSO` of rows."""
        wanted, kind = self._wanted, pa.list_(pa.large_binary())
        if not matches.others and not wanted.sharing:
            return pa.nulls(len(matches.rows), kind)
        texts: list[list[bytes] | None] = []
        for row, form in zip(matches.rows.to_pylist(), matches.forms.to_pylist(), strict=True):
            forms = (form, *matches.others.get(row, ()))
            owners = wanted.owner_of(int64s(forms)).to_pylist()
            every = [*owners, *(at for form in forms for at in wanted.sharing.get(form, ()))]
            _, *others = dict.fromkeys(wanted.texts[at].as_py() for at in every)
            texts.append(others or None)
        return pa.array(texts, kind)


def _stripes(part: FoundRows) -> pa.Int64Array:
    """The stripe of each row; nulls in formats without stripes."""
    stripe, count = part.candidates.stripe, len(part.rows)
    return pa.nulls(count, pa.int64()) if stripe is None else repeated(stripe, count)
