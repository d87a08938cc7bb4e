"""The trial: files -> values and copies -> each reader's lookups -> report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bloomcli.advice.queries import read_queries
from bloomcli.commands.option import taken_paths
from bloomcli.commands.options import TrialOptions
from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.registry import open_file
from bloomcli.model.paths import shown
from bloomcli.model.trial import ReaderTrial, TrialReport
from bloomcli.storage.listing import expand, is_dataset
from bloomcli.storage.registry import open_source
from bloomcli.trials.copies import temporary_folder
from bloomcli.trials.files import PreparedFile, sampled_files
from bloomcli.trials.process import Completion, Job, Outcome
from bloomcli.trials.process import run as run_reader
from bloomcli.trials.readers import Entry, named
from bloomcli.trials.summary import reader_row, reader_row_not_run
from bloomcli.words import plural

if TYPE_CHECKING:
    from pathlib import Path

    from bloomcli.model.queries import QueryLog

OnLookup = Callable[[str, int, int], None]
"""Called with the reader's title, the number of its finished lookups, and the number of all its lookups."""


def run(paths: Sequence[str], options: TrialOptions, *, on_lookup: OnLookup | None = None) -> TrialReport:
    """Try readers on one file, or on a sample of many. Raises: as `bloomcli.trial`."""
    started = time.perf_counter()
    options = options.checked()
    entries = named(options.readers)
    installed = [entry for entry in entries if entry.version is not None]
    if not installed:
        raise _none_installed(entries)
    single = not is_dataset(paths)
    listed = expand(paths)
    chosen = [listed[0].path] if single else [item.path for item in sampled_files(listed, options)]
    problems = [(shown(item.path), str(item.problem)) for item in listed if item.problem is not None]
    log = _queries(options, chosen[0])
    with temporary_folder() as folder:
        files, failed = _prepare_files(chosen, folder, options, log, single=single)
        readers = tuple(_try_reader(entry, files, options, on_lookup) for entry in entries)
    if not any(reader.status in {"equal", "unequal", "failed"} for reader in readers):
        raise UnsupportedError(
            "no named reader that is installed reads these files",
            path=files[0].path,
            hint="name others with --readers",
        )
    return TrialReport(
        paths=tuple(map(shown, paths)),
        files=len(listed),
        tried=tuple(shown(file.path) for file in files),
        rows=sum(file.rows for file in files),
        row_groups=sum(file.row_groups for file in files),
        columns=tuple(dict.fromkeys(column.column.path for file in files for column in file.columns)),
        values=options.values,
        queries=taken_paths("queries", options.queries),
        seed=options.seed,
        fpp=options.fpp,
        runs=options.runs,
        sample=None if single else options.sample,
        readers=readers,
        failed=(*problems, *failed),
        remarks=tuple(_remarks(files)),
        seconds=time.perf_counter() - started,
    )


def _none_installed(entries: Sequence[Entry]) -> UnsupportedError:
    titles = ", ".join(entry.title for entry in entries)
    commands = dict.fromkeys(entry.install for entry in entries)
    return UnsupportedError(
        f"none of the readers is installed: {titles}",
        hint="pip install 'bloomcli[trial]'" if len(commands) > 1 else next(iter(commands)),
    )


def _queries(options: TrialOptions, path: str) -> QueryLog | None:
    """The lookups of the queries that the options name, resolved with the columns of the first file."""
    if not options.queries:
        return None

    with open_source(path) as source:
        file = open_file(source)
        columns = [file.literal_column(column) for column in file.leaves]
    return read_queries(
        taken_paths("queries", options.queries),
        dialect=options.dialect,
        tables=options.table_name,
        columns=columns,
        seed=options.seed,
    )


def _prepare_files(
    chosen: Sequence[str], folder: Path, options: TrialOptions, log: QueryLog | None, *, single: bool
) -> tuple[list[PreparedFile], list[tuple[str, str]]]:
    """The files that can be tried, and the (path, reason) of those that can't. Raises BloomError if none can."""
    files: list[PreparedFile] = []
    failed: list[tuple[str, str]] = []
    for number, path in enumerate(chosen):
        try:
            files.append(PreparedFile(path, folder / str(number), options, log))
        except BloomError as error:
            if single or (number == len(chosen) - 1 and not files):
                raise
            failed.append((shown(path), error.reason))
    return files, failed


def _try_reader(
    entry: Entry, files: Sequence[PreparedFile], options: TrialOptions, on_lookup: OnLookup | None
) -> ReaderTrial:
    started = time.perf_counter()
    formats = {file.format for file in files}
    mine = [file for file in files if file.format in entry.formats]
    if entry.version is None or not mine:
        return reader_row_not_run(entry, entry.version, formats)
    job = Job(reader=entry.name, files=tuple(file.for_reader(entry) for file in mine), runs=options.runs)
    total = sum(len(column.values) for file in job.files for column in file.columns)
    outcomes: list[Outcome] = []
    end = Completion("it ended early")
    for message in run_reader(job, options.timeout):
        if isinstance(message, Completion):
            end = message
            continue
        outcomes.append(message)
        if on_lookup is not None:
            on_lookup(entry.title, len(outcomes), total)
    return reader_row(entry, job, outcomes, end, time.perf_counter() - started)


def _remarks(files: Sequence[PreparedFile]) -> list[str]:
    found = list(dict.fromkeys(reason for file in files for reason in file.left_out))
    if len({file.format for file in files}) > 1:
        found.append(
            f"{plural(len(files), 'file')} of several formats: a reader that doesn't read one leaves its files out"
        )
    return found
