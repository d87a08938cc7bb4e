"""find: the rows of one file that have values, or whether there are any."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.commands.one_column import only_column
from bloomcli.commands.record_columns import distinct_fields, selected
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Column
from bloomcli.model.find import FileFound
from bloomcli.model.paths import shown
from bloomcli.storage.counted import CountedSource
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.value_parts import PartedSearch, ValueParts
    from bloomcli.formats.filter_answer import FileRows, FilterAnswer, LikeFiles
    from bloomcli.formats.finding import Candidates, ColumnSearch, Wanted
    from bloomcli.storage.base import Fingerprint, Source

COLUMNS: Final = ("path", "stripe", "row_group", "row", "value", "record")
"""The columns of what is found: the file, the stripe (null in formats without stripes), the row group (in a stripe
counted within it), the row's number in the file from 0 on, the value as it was given (binary), and the row, a struct
of the selected columns."""

Emit = Callable[["pa.RecordBatch"], None]
"""Takes rows that were found, with `COLUMNS`."""


class Asked(NamedTuple):
    """What was asked of a file's filters before it is searched."""

    like_files: LikeFiles
    answer: FilterAnswer


class Indexed(NamedTuple):
    """What an index says of a file before it is opened."""

    row_groups: frozenset[int]
    """The numbers of the row groups (in ORC of the stripes) that may have a value."""
    seen: Fingerprint
    """Of the file that was indexed."""

    def possible(self, source: Source) -> frozenset[int] | None:
        """The row groups of the file that was opened; None if it isn't the one that was indexed."""
        return self.row_groups if source.fingerprint.has_content_of(self.seen) else None


def run(
    path: str,
    options: FindOptions,
    values: Values | ValueParts,
    emit: Emit,
    stop: Stop | None = None,
    indexed: Indexed | None = None,
    asked: Asked | None = None,
) -> FileFound:
    """Find the rows of one file.

    Args:
        path: a file or a URI.
        options: checked.
        values: what is looked for.
        emit: called with the rows in order, at most `options.limit`. With `maybe` and `files_only`
            it isn't called.
        stop: ends the search early.
        indexed: the row groups that may have a value, by an index; None: all. All of a file that changed since, too.
        asked: what the file's filters have told already.

    Raises:
        UsageError, LiteralError: no such column, a text that isn't a value of it.
        UnreadableError, UnsupportedError, CorruptFile: as `bloomcli.inspect`, and for the column's pages.
    """
    with open_source(path) as original:
        row_groups: Container[int] | None = None if indexed is None else indexed.possible(original)
        by_index = row_groups is not None  # it has told as much as filters do
        source = _counted(original, values)
        if not by_index and (scanned := _scanned(original, values, options, emit)) is not None:
            return scanned
        filters = None if by_index else _asked(original, values, asked)
        if filters is not None and filters.answer.ruled_out:
            return _without_rows(path, filters, options)
        answer = None if filters is None else filters.answer
        if answer is not None:
            row_groups, values = answer.possible, _left(values, answer)
        file = open_file(source, options.names)
        if by_index and (found := _plain(file, source, values, row_groups, options, emit, stop)) is not None:
            return found
        if not file.searched:  # refuses whatever the file's columns are
            file.search(Column(path=options.column, index=0, physical=""))
        column = only_column(file, options.column, purpose="find")
        search = file.search(column)
        search.pages_follow, search.row_groups = not options.maybe, row_groups
        search.values_told = answer is not None and answer.texts is not None
        work = _work(values, file, column, search, options, emit)
        told = by_index or (answer is not None and answer.possible is not None)
        if isinstance(values, Values) and work.wanted is not None and not told:
            values.like_files = search.like_files(work.wanted, work.columns)
        groups = list(_placed(work.candidates()))
        left = [
            place
            for place in groups
            if place.candidates.possible and (row_groups is None or place.candidates.indexed_unit in row_groups)
        ]
        if not options.maybe:
            for place in left:
                if stop is not None:
                    stop.check()
                work.row_group(place)
                if work.enough:
                    break
        return FileFound(
            path=path,
            format=file.format,
            row_groups=len(groups),
            row_groups_possible=tuple(place.candidates.row_group for place in left),
            stripes_possible=tuple(p.candidates.stripe for p in left if p.candidates.stripe is not None),
            row_groups_read=work.row_groups,
            pages_read=search.pages_read,
            pages_left_out=search.pages_left_out,
            rows=work.rows,
            bytes_read=source.bytes_read + (0 if answer is None else answer.bytes_read),
            scan_bytes=work.scan_bytes(groups),
        )


def record_type(path: str, options: FindOptions) -> tuple[pa.StructType, int]:
    """The type of a file's records, and the bytes that were read of the file. Raises as `run`."""
    import pyarrow as pa

    with open_source(path) as original:
        source = CountedSource(original)
        file = open_file(source, options.names)
        search = file.search(only_column(file, options.column, purpose="find"))
        return pa.struct(distinct_fields(search.no_records(selected(file, options)).schema)), source.bytes_read


def _plain(
    file: FilterFile,
    source: CountedSource,
    values: Values | ValueParts,
    row_groups: Container[int] | None,
    options: FindOptions,
    emit: Emit,
    stop: Stop | None,
) -> FileFound | None:
    """Find the rows of a file without Arrow; None where Arrow has to."""
    if not isinstance(values, Values) or values.plain == "nothing" or not isinstance(row_groups, frozenset):
        return None
    if not options.rows or values.few is None:
        return None
    from bloomcli.commands import find_plain

    rows = emit if values.plain == "rows" else None
    return values.searched_plainly(find_plain.found(file, source, options, values.few, row_groups, rows, stop))


def _scanned(original: Source, values: Values | ValueParts, options: FindOptions, emit: Emit) -> FileFound | None:
    """Find the rows of a file like one that was searched before, without its filters being asked; None where they are
    to be asked."""
    like_files = values.like_files if isinstance(values, Values) else None
    if like_files is None or not options.rows or options.limit is not None:
        return None
    found = like_files.rows(original)
    if found is None or not isinstance(values, Values):
        return None
    if len(found.rows):
        emit(_batch_of(original.path, found, values))
    return FileFound(
        path=original.path,
        format=like_files.format,
        row_groups=found.row_groups,
        row_groups_possible=found.searched,
        row_groups_read=len(found.searched),
        pages_read=found.pages,
        rows=len(found.rows),
        bytes_read=found.bytes_read,
        scan_bytes=found.scan_bytes,
    )


def _batch_of(path: str, found: FileRows, values: Values) -> pa.RecordBatch:
    import pyarrow as pa

    from bloomcli.formats.arrays import binaries

    count = len(found.rows)
    named = shown(path).encode("utf-8", "backslashreplace")
    columns = [
        binaries([named] * count).cast(pa.string()),
        pa.nulls(count, pa.int64()),
        found.groups,
        found.rows,
        values.texts.take(found.texts),
        pa.StructArray.from_arrays(found.records.columns, fields=distinct_fields(found.records.schema)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


def _asked(original: Source, values: Values | ValueParts, asked: Asked | None) -> Asked | None:
    """What the filters of a file tell, where a file like it was searched before; None where nothing is known."""
    like_files = values.like_files if isinstance(values, Values) else None  # threads may put another one there
    if asked is not None and asked.answer.stamp != (original.fingerprint.size, original.fingerprint.mtime_ns):
        asked = None  # another file has the name since
    if like_files is None or (asked is not None and asked.like_files is like_files):
        return asked
    answer = like_files.ask(original)
    if answer is None or asked is None:
        return None if answer is None else Asked(like_files, answer)
    return Asked(like_files, answer._replace(bytes_read=answer.bytes_read + asked.answer.bytes_read))


def _left(values: Values | ValueParts, answer: FilterAnswer) -> Values | ValueParts:
    """The values that filters leave, where many are looked for."""
    if answer.texts is None or not isinstance(values, Values):
        return values
    return Values(values.texts.take(answer.texts))


def _without_rows(path: str, filters: Asked, options: FindOptions) -> FileFound:
    found = filters.answer
    return FileFound(
        path=path,
        format=filters.like_files.format,
        row_groups=found.row_groups,
        bytes_read=found.bytes_read,
        scan_bytes=found.scan_bytes if options.rows else found.chunk_bytes,
    )


def _counted(original: Source, values: Values | ValueParts) -> CountedSource:
    """A file whose bytes are counted."""
    if isinstance(values, Values) or not original.request_bytes:
        return CountedSource(original)
    from bloomcli.storage.remembered import RememberedSource

    return RememberedSource(original)  # the filters are read for each part


class _Place(NamedTuple):
    """A row group, and the number of its first row in the file."""

    candidates: Candidates
    first_row: int


def _placed(found: Iterable[Candidates]) -> Iterator[_Place]:
    first = 0
    for candidates in found:
        yield _Place(candidates, first)
        first += candidates.rows


class _Work:
    """The search of one file, row group by row group."""

    def __init__(
        self, file: FilterFile, search: ColumnSearch, wanted: Wanted | None, options: FindOptions, emit: Emit
    ) -> None:
        """`wanted`: the values; None where they are in parts."""
        self.file, self.search, self.wanted, self.options = file, search, wanted, options
        self.columns, self._emit = selected(file, options), emit
        self.rows = 0
        self.row_groups = 0

    def candidates(self) -> Iterable[Candidates]:
        """Of each row group the values that it may have."""
        assert self.wanted is not None  # noqa: S101  see `_PartedWork`
        return self.search.candidates(self.wanted)

    @property
    def enough(self) -> bool:
        """No further row is wanted."""
        return self.rows == self.options.limit or (self.options.files_only and self.rows > 0)

    def scan_bytes(self, groups: Iterable[_Place]) -> int:
        """What a scan of the file reads."""
        if self.options.rows:
            return self.search.scanned_bytes(self.columns)
        return sum(place.candidates.chunk_bytes for place in groups)

    def row_group(self, place: _Place) -> None:
        """Find the rows of a row group, and give them to `emit`."""
        assert self.wanted is not None  # noqa: S101  see `_PartedWork`
        self.row_groups += 1
        rows, texts = self.matches(self.wanted, place.candidates)
        self.show(place, rows, self.wanted.texts.take(texts))

    def show(self, place: _Place, rows: pa.Int64Array, texts: pa.LargeBinaryArray) -> None:
        """Count rows, up to the limit, and give them to `emit`."""
        count = len(rows) if self.options.limit is None else min(len(rows), self.options.limit - self.rows)
        self.rows += count
        if self.options.rows and count:
            self._records(place, rows[:count], texts[:count])

    def matches(self, wanted: Wanted, candidates: Candidates) -> tuple[pa.Int64Array, pa.Int64Array]:
        """Rows of a row group that have one of the candidates, as many as are shown or more, and the positions of
        their texts."""
        import pyarrow as pa

        from bloomcli.formats.arrays import int64s

        rows, texts = [int64s(())], [int64s(())]
        count = 0
        self.search.prepare(wanted, candidates, self.columns, rows=self.options.rows)
        for matches in self.search.matches(wanted, candidates):
            count += len(matches.rows)
            rows.append(matches.rows)
            texts.append(matches.texts)
            if self.options.files_only or (
                self.options.limit is not None and self.rows + count >= self.options.limit
            ):
                break
        return pa.concat_arrays(rows), pa.concat_arrays(texts)

    def _records(self, place: _Place, rows: pa.Int64Array, texts: pa.LargeBinaryArray) -> None:
        """Read rows of a row group, and give them to `emit`."""
        import pyarrow as pa

        from bloomcli.formats.arrays import binaries, repeated, shifted

        path, stripe = shown(self.file.source.path).encode("utf-8", "backslashreplace"), place.candidates.stripe
        at = 0
        for batch in self.search.records(place.candidates, rows, self.columns):
            count = batch.num_rows
            columns = [
                binaries([path] * count).cast(pa.string()),
                pa.nulls(count, pa.int64()) if stripe is None else repeated(stripe, count),
                repeated(place.candidates.row_group, count),
                shifted(rows[at : at + count], place.first_row),
                texts[at : at + count],
                pa.StructArray.from_arrays(batch.columns, fields=distinct_fields(batch.schema)),
            ]
            self._emit(pa.RecordBatch.from_arrays(columns, names=list(COLUMNS)))
            at += count


class _PartedWork(_Work):
    """The search of one file for values in parts."""

    parted: PartedSearch

    def candidates(self) -> Iterable[Candidates]:
        """Of each row group whether it may have values."""
        return self.parted.candidates()

    def row_group(self, place: _Place) -> None:
        """Find the rows of a row group, and give them to `emit`."""
        from bloomcli.commands.value_parts import first_of_each

        self.row_groups += 1
        found, owners, texts = [], [], []
        for wanted, positions in self.parted.rounds(place.candidates):
            forms = wanted.owners  # from 0 on
            rows, own = self.matches(wanted, place.candidates._replace(forms=forms, nan=wanted.nan is not None))
            found.append(rows)
            owners.append(positions.take(own))
            texts.append(wanted.texts.take(own))
            if self.options.files_only and len(rows):
                break
        if any(map(len, found)):
            self.show(place, *first_of_each(found, owners, texts))


def _work(
    values: Values | ValueParts,
    file: FilterFile,
    column: Column,
    search: ColumnSearch,
    options: FindOptions,
    emit: Emit,
) -> _Work:
    """The search of a file. Raises LiteralError."""
    if isinstance(values, Values):
        return _Work(file, search, values.of(file, column, search), options, emit)
    if column.physical == "BOOLEAN":  # millions of texts are two values
        return _Work(file, search, search.wanted(values.distinct()), options, emit)
    from bloomcli.commands.value_parts import PartedSearch

    work = _PartedWork(file, search, None, options, emit)
    work.parted = PartedSearch(search, values.of(file, column, search))
    return work
