"""Chooses the files of a trial, their columns and values, and makes the two files that each reader compares.

Temporary copies, with filters, without filters, and of files in stores, are in a folder that is removed at the end,
also when Ctrl-C or SIGTERM stops the trial. A local file that needs no copy has a link there: otherwise readers would
derive partitions, patterns or checksums from its name and folder. A trial holds a lock on its folder, so that the
next trial can remove the folders of killed ones.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Final

import pyarrow as pa

from bloomcli import limits
from bloomcli.commands import change
from bloomcli.commands.columns import select
from bloomcli.commands.option import taken_paths
from bloomcli.commands.options import AddOptions, RemoveOptions, TrialOptions
from bloomcli.commands.sampling import chosen_files, share
from bloomcli.concurrency.signals import deferred, terminable
from bloomcli.errors import BloomError, KeyMissing, UnsupportedError, UsageError, WriteError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import format_named, known_suffix, of_known_format, open_file
from bloomcli.hints import quoted
from bloomcli.model.advice import QueryLog
from bloomcli.model.file import Column
from bloomcli.model.paths import shown
from bloomcli.rules.readers import Encoded
from bloomcli.storage.base import FileEntry, Source
from bloomcli.storage.local.locks import lock
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import open_source, store_of
from bloomcli.trials.columns import ColumnFile, Leaf
from bloomcli.trials.process import TrialColumn, TrialFile
from bloomcli.trials.readers import ENTRIES, Entry
from bloomcli.trials.texts import from_text
from bloomcli.trials.values import counted_values, sampled_values
from bloomcli.values.literals import kind_of
from bloomcli.words import size

VALUES: Final = 20
"""The most values of each kind that are looked up in a column, if the user doesn't say how many."""
_FILES: Final = "4"
_BYTES: Final = 256 << 20
"""The bytes of the files that are tried together, if the user doesn't say how many."""
_PREFIX: Final = "bloom-trial-"
_MADE_SECONDS: Final = 60.0
"""The trial of a younger folder may not have locked it yet."""
_PIECE_BYTES: Final = 8 << 20
_ANY_READER: Final = ("arrow-rs",)
"""A reader that loses no rows by filters. With it, `add` leaves no column out: the trial shows which readers lose
rows."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end of the block, also after an error or a signal.

    Raises:
        WriteError: the folder can't be made.
    """
    with terminable():
        _remove_left_folders()
        with convert_os_errors(tempfile.gettempdir()):
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        descriptor = -1
        try:
            with convert_os_errors(str(folder)):
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                lock(descriptor)
            yield folder
        finally:
            with deferred():
                shutil.rmtree(folder, ignore_errors=True)
                if descriptor >= 0:
                    os.close(descriptor)


def _remove_left_folders() -> None:
    """Remove the folders of killed trials: those of this user that no process holds a lock on."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another trial removes it at the same time, or holds its lock
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                about = os.fstat(descriptor)
                old = time.time() - about.st_mtime > _MADE_SECONDS
                if about.st_uid == os.getuid() and old and lock(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def sampled_files(listed: Sequence[FileEntry], options: TrialOptions) -> list[FileEntry]:
    """The sample of a dataset's files to try. Raises UsageError if no file has a known format."""
    files = [item for item in listed if item.problem is None and not item.skipped]
    positions = chosen_files(
        [item.relative for item in files],
        share(_FILES if options.sample is None else options.sample),
        options.seed,
        sure=[not item.walked or known_suffix(item.path) for item in files],
        known=lambda position: of_known_format(files[position].path),
    )
    sample = [files[position] for position in sorted(positions)]
    sample = [item for item in sample if not item.walked or known_suffix(item.path) or of_known_format(item.path)]
    if not sample:
        raise UsageError("there are no files of a known format", hint="name Parquet or ORC files")
    if options.sample is None:
        sizes = accumulate(item.size for item in sample)
        sample = [item for item, total in zip(sample, sizes, strict=True) if item is sample[0] or total <= _BYTES]
    return sample


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
        """Choose the values, and make the copy with filters, if one is needed. Creates `folder`, which holds the
        copies of this file only.

        Raises:
            UsageError: no such column, or one that can't be looked up, can't have a filter, or has no values.
            UnsupportedError: no reader reads files of this format, or an object in a store is larger than
                `limits.TRIAL_DOWNLOAD_MAX_BYTES`.
            UnreadableError, WriteError: as `bloomcli.add`; there isn't enough space for a copy.
        """
        self.path, self._folder = path, folder
        with _naming_original(path, folder):
            file = opened(path)
            self.format = file.format
            filtered = file.filtered_columns()
            chosen = _chosen(file, filtered, options, log)
            with convert_os_errors(str(folder)):
                folder.mkdir()
            self._original = self._local(file.source)
            self.rows, self.row_groups = file.rows, len(file.units())
            self.left_out: tuple[str, ...] = ()
            """For each column that only a glob names and that isn't tried: why not."""
            self.columns = tuple(self._values(file, chosen, options, log))
            self.encoded = tuple(_encoded(file, column.column) for column in self.columns)
            self._had_filters = any(column.column.index in filtered for column in self.columns)
            bare = tuple(column.column.path for column in self.columns if column.column.index not in filtered)
            self._with_filters = self._with_new_filters(bare, options.fpp) if bare else self._original

    def _copy(self, name: str) -> Path:
        """The path of a copy."""
        return self._folder / f"{name}.{self.format}"

    def _local(self, source: Source) -> str:
        """The unchanged file on this machine: a link to it, or a copy of an object in a store."""
        link = self._copy("original")
        if not store_of(self.path).remote and Path(source.path).is_file():
            with convert_os_errors(str(link)):
                link.symlink_to(Path(source.path).resolve())
            return str(link)
        if source.size > limits.TRIAL_DOWNLOAD_MAX_BYTES:
            most = limits.TRIAL_DOWNLOAD_MAX_BYTES >> 20
            raise UnsupportedError(
                f"readers run on local files, and a file of {source.size >> 20:,} MiB isn't copied from a store:"
                f" {most:,} MiB is the most",
                path=self.path,
                hint="copy it to this machine, or try a smaller file of the dataset",
            )
        self._check_space(source.size)
        with convert_os_errors(str(link)), link.open("wb") as output:
            for at in range(0, source.size, _PIECE_BYTES):
                output.write(source.read_at(at, min(_PIECE_BYTES, source.size - at)))
        return str(link)

    def _with_new_filters(self, columns: tuple[str, ...], fpp: float) -> str:
        """Write a copy with the file's filters and new ones of these columns."""
        output = self._copy("with-filters")
        options = AddOptions(columns=columns, fpp=fpp, output=output, readers=_ANY_READER)
        self._check_space(change.run(self._original, replace(options, dry_run=True)).bytes_after)
        change.run(self._original, options)
        return str(output)

    def _check_space(self, needed: int) -> None:
        """Raise WriteError if a new file of `needed` bytes is larger than the free space."""
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise WriteError(
                f"a temporary copy needs {size(needed)} and {self._folder.parent.parent} has {size(free)} free",
                path=self.path,
                hint="TMPDIR=/a/folder/with/space bloom trial ...",
            )

    def _values(
        self, file: FilterFile, chosen: Sequence[Column], options: TrialOptions, log: QueryLog | None
    ) -> list[TrialColumn]:
        arrow = ColumnFile(self._original, self.format)
        columns: list[TrialColumn] = []
        problems: list[BloomError] = []
        for column in chosen:
            try:
                columns.append(self._column(file, arrow, column, options, log))
            except (UsageError, UnsupportedError) as error:
                if column.path in options.columns:
                    raise
                problems.append(error)  # the column was chosen by a glob or by its filters: try the others
        if problems and not columns:
            raise problems[0]
        self.left_out = tuple(error.reason for error in problems)
        return columns

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
        """A copy without any filter."""
        output = self._copy("without-filters")
        self._check_space(Path(self._with_filters).stat().st_size)
        change.run(self._with_filters, RemoveOptions(output=output))
        return str(output)

    def for_reader(self, entry: Entry) -> TrialFile:
        """The file with and without filters, for one reader. Raises: as `bloomcli.remove`, and WriteError."""
        if not self._had_filters:
            without, comparison = self._original, "added"
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
        paths = {column.path for column in file.leaves}
        names = [queried.column for queried in log.columns if queried.column in paths and queried.literals]
        if not names:
            logs = " ".join(f"--queries {quoted(log_path)}" for log_path in taken_paths("queries", options.queries))
            raise UsageError(
                "the queries look up no column of the file",
                path=path,
                hint=f"`bloom advise {quoted(path)} {logs}` lists the predicates that filters can't serve",
            )
    if not names:
        columns = [column for column in file.leaves if column.index in filtered]
        if not columns:
            raise UsageError(
                "no column has a filter", path=path, hint="--columns names those to try with filters in a copy"
            )
        return columns
    return list(select(file.leaves, names, path=path, exclude=options.exclude, why_not=file.why_unfilterable))


def _literals(file: FilterFile, leaf: Leaf, log: QueryLog, most: int) -> list[pa.Scalar]:
    """The most frequent literals of a column in the queries, as Arrow scalars."""
    column = file.literal_column(leaf.column)
    scalars: list[pa.Scalar] = []
    for queried in log.columns:
        if queried.column == leaf.column.path:
            for text, _ in queried.literals[:most]:
                value = from_text(text, column, leaf.type)
                if value is not None:
                    scalars.append(value)
    return scalars
