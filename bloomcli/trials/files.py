"""Chooses the files of a trial, their columns and values, and the two files that each reader compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Final

import pyarrow as pa

from bloomcli.commands.columns import select
from bloomcli.commands.option import taken_paths
from bloomcli.commands.options import TrialOptions
from bloomcli.commands.sampling import chosen_files, share
from bloomcli.errors import BloomError, KeyMissing, UnsupportedError, UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import format_named, known_suffix, of_known_format, open_file
from bloomcli.hints import quoted
from bloomcli.model.file import Column
from bloomcli.model.paths import shown
from bloomcli.model.queries import QueryLog
from bloomcli.rules.readers import Encoded
from bloomcli.storage.base import FileEntry, Source
from bloomcli.storage.registry import open_source
from bloomcli.trials.columns import ColumnFile, Leaf
from bloomcli.trials.copies import Copies
from bloomcli.trials.process import TrialColumn, TrialFile
from bloomcli.trials.readers import ENTRIES, Entry
from bloomcli.trials.texts import from_text
from bloomcli.trials.values import counted_values, sampled_values
from bloomcli.values.literals import kind_of

VALUES: Final = 20
"""The most values of each kind that are looked up in a column, if the user doesn't say how many."""
_FILES: Final = "4"
_BYTES: Final = 256 << 20
"""The bytes of the files that are tried together, if the user doesn't say how many."""


def sampled_files(listed: Sequence[FileEntry], options: TrialOptions) -> list[FileEntry]:
    """The sample of a dataset's files to try. Raises UsageError if no file has a known format."""
    files = [item for item in listed if item.problem is None and not item.skipped]
    taken = chosen_files(
        [item.relative for item in files],
        share(_FILES if options.sample is None else options.sample),
        options.seed,
        sure=[not item.walked or known_suffix(item.path) for item in files],
        known=lambda position: of_known_format(files[position].path),
    )
    found = [files[position] for position in sorted(taken)]
    found = [item for item in found if not item.walked or known_suffix(item.path) or of_known_format(item.path)]
    if not found:
        raise UsageError("there are no files of a known format", hint="name Parquet or ORC files")
    if options.sample is None:
        sizes = accumulate(item.size for item in found)
        found = [item for item, total in zip(found, sizes, strict=True) if item is found[0] or total <= _BYTES]
    return found


_NO_KEYS: Final = (
    "readers get no keys from bloom: try the same rows in a plain file, whose filters have the same bits"
)


def _opened(source: Source) -> FilterFile:
    """A file to try. Raises KeyMissing for an encrypted footer."""
    try:
        return open_file(source)
    except KeyMissing as error:
        error.hint = _NO_KEYS
        raise


@contextmanager
def _naming_original(path: str, folder: Path) -> Iterator[None]:
    """Make errors about a file's copies in `folder` name the original file."""
    try:
        yield
    except BloomError as error:
        if error.path is not None and error.path.startswith(str(folder)):
            error.path = shown(path)
        raise


Opened = Callable[[str], FilterFile]
"""Opens a file. Raises UnreadableError, UnsupportedError."""


@contextmanager
def one_open_file() -> Iterator[Opened]:
    """Opens one file at a time, and one that is open already not again."""
    last: dict[str, FilterFile] = {}
    with ExitStack() as stack:

        def opened(path: str) -> FilterFile:
            if path not in last:
                last.clear()
                stack.close()
                last[path] = _opened(stack.enter_context(open_source(path)))
            return last[path]

        yield opened


def check_columns(opened: Opened, paths: Sequence[str], options: TrialOptions, log: QueryLog | None) -> None:
    """Raise the last file's error if no file can be opened and has the columns to try."""
    failed: BloomError | None = None
    for path in paths:
        try:
            file = opened(path)
            _chosen(file, file.filtered_columns(), options, log)
        except BloomError as error:
            failed = error
        else:
            return
    if failed is not None:
        raise failed


class PreparedFile:
    """A file, the values to look up in it, and the copies that readers compare it with."""

    def __init__(self, opened: Opened, path: str, folder: Path, options: TrialOptions, log: QueryLog | None) -> None:
        """Choose the values, and make the copy with filters, if one is needed.

        Raises:
            UsageError: no such column, or one that can't be looked up, can't have a filter, or has no values.
            UnsupportedError: no reader reads files of this format.
            UnreadableError, WriteError: as `bloomcli.add`.
        """
        self.path = path
        with _naming_original(path, folder):
            file = opened(path)
            self.format = file.format
            filtered = file.filtered_columns()
            chosen = _chosen(file, filtered, options, log)
            self._copies = Copies(folder, path, file.format)
            self.rows, self.row_groups = file.rows, len(file.units())
            self.left_out: tuple[str, ...] = ()
            """For each column that only a glob names and that isn't tried: why not."""
            self.columns = tuple(self._values(file, chosen, options, log))
            self.encoded = tuple(_encoded(file, one.column) for one in self.columns)
            self._had_filters = any(one.column.index in filtered for one in self.columns)
            bare = tuple(one.column.path for one in self.columns if one.column.index not in filtered)
            original = self._copies.original
            self._with_filters = self._copies.with_filters(bare, options.fpp) if bare else original

    def _values(
        self, file: FilterFile, chosen: Sequence[Column], options: TrialOptions, log: QueryLog | None
    ) -> list[TrialColumn]:
        arrow = ColumnFile(self._copies.original, self.format)
        found: list[TrialColumn] = []
        problems: list[BloomError] = []
        for column in chosen:
            try:
                found.append(self._column(file, arrow, column, options, log))
            except (UsageError, UnsupportedError) as error:
                if column.path in options.columns:
                    raise
                problems.append(error)  # the column was chosen by a glob or by its filters: try the others
        if problems and not found:
            raise problems[0]
        self.left_out = tuple(error.reason for error in problems)
        return found

    def _column(
        self, file: FilterFile, arrow: ColumnFile, column: Column, options: TrialOptions, log: QueryLog | None
    ) -> TrialColumn:
        """A column and its values. Raises UsageError or UnsupportedError if it can't be tried."""
        if file.needs_key(column):
            raise KeyMissing(f"column {column.path} can't be tried: it is encrypted", path=self.path, hint=_NO_KEYS)
        if (unreadable := file.why_unreadable(column)) is not None:
            raise UnsupportedError(f"column {column.path} can't be tried: {unreadable}", path=self.path)
        leaf = arrow.leaf(column)
        if log is not None:
            values = counted_values(arrow, leaf, _literals(file, leaf, log, options.values or VALUES))
        else:
            values = sampled_values(arrow, leaf, file.rows, options.values or VALUES, options.seed)
        if not values:
            what = "the queries name no value of it" if log is not None else "it has no values"
            raise UsageError(f"column {column.path} can't be tried: {what}", path=self.path)
        return TrialColumn(column=column, names=leaf.names, values=values, in_variant=leaf.in_variant)

    @cached_property
    def _without_filters(self) -> str:
        return self._copies.without_filters(self._with_filters)

    def for_reader(self, entry: Entry) -> TrialFile:
        """The file with and without filters, for one reader. Raises: as `bloomcli.remove`, and WriteError."""
        if not self._had_filters:
            without, comparison = self._copies.original, "added"
        elif self.format in entry.switches:
            without, comparison = self._with_filters, "switch"
        else:
            without, comparison = self._without_filters, "removed"
        return TrialFile(
            path=self.path,
            format=self.format,
            row_groups=self.row_groups,
            with_filters=self._with_filters,
            without_filters=without,
            comparison=comparison,
            columns=self.columns,
        )


def _encoded(file: FilterFile, column: Column) -> Encoded:
    extents = [extent for extent in file.extents(column) if not extent.empty]
    dictionaries = sum(extent.only_dictionary for extent in extents)
    return Encoded(column.path, kind_of(column), len(extents), dictionaries, file.properties(column))


def _chosen(file: FilterFile, filtered: set[int], options: TrialOptions, log: QueryLog | None) -> list[Column]:
    """The columns to try: the named ones, else those that queries look up, else those with filters.

    Raises UsageError if there are none, and UnsupportedError if no reader reads files of this format."""
    path = file.source.path
    if not any(file.format in entry.formats for entry in ENTRIES):
        raise UnsupportedError(f"no reader that trial runs reads {format_named(file.format).title} files", path=path)
    names: Sequence[str] = options.columns
    if not names and log is not None:
        known = {column.path for column in file.leaves}
        names = [queried.column for queried in log.columns if queried.column in known and queried.literals]
        if not names:
            logs = " ".join(f"--queries {quoted(one)}" for one in taken_paths("queries", options.queries))
            raise UsageError(
                "the queries look up no column of the file",
                path=path,
                hint=f"`bloom advise {quoted(path)} {logs}` lists the predicates that filters can't serve",
            )
    if not names:
        found = [column for column in file.leaves if column.index in filtered]
        if not found:
            raise UsageError(
                "no column has a filter", path=path, hint="--columns names those to try with filters in a copy"
            )
        return found
    return list(select(file.leaves, names, path=path, exclude=options.exclude, why_not=file.why_unfilterable))


def _literals(file: FilterFile, leaf: Leaf, log: QueryLog, most: int) -> list[pa.Scalar]:
    """The most frequent literals of a column in the queries, as Arrow scalars."""
    column = file.literal_column(leaf.column)
    found: list[pa.Scalar] = []
    for queried in log.columns:
        if queried.column == leaf.column.path:
            for text, _ in queried.literals[:most]:
                value = from_text(text, column, leaf.type)
                if value is not None:
                    found.append(value)
    return found
