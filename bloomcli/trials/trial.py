"""The trial: files -> values and copies -> each reader's lookups -> report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from bloomcli.commands.option import taken_paths
from bloomcli.commands.options import TrialOptions
from bloomcli.errors import BloomError, UnsupportedError, install
from bloomcli.formats.base import FilterFile
from bloomcli.model.advice import QueryLog
from bloomcli.model.paths import shown
from bloomcli.model.trial import ReaderTrial, TrialReport
from bloomcli.rules.readers import Encoded
from bloomcli.storage.listing import expand, is_dataset
from bloomcli.trials.files import (
    VALUES,
    Opened,
    PreparedFile,
    check_columns,
    one_open_file,
    sampled_files,
    temporary_folder,
)
from bloomcli.trials.process import Completion, Job
from bloomcli.trials.process import run as run_reader
from bloomcli.trials.readers import Entry, named
from bloomcli.trials.summary import Tried, reader_row, reader_row_not_run
from bloomcli.words import plural

OnStep = Callable[[str], None]
"""Called with a sentence about what the trial does next."""

_WITHIN: Final = 50.0
"""The seconds of a trial, if the user doesn't say how many values are looked up."""
_LEAST: Final = 5.0
"""The fewest seconds of a reader."""


def run(
    paths: Sequence[str],
    options: TrialOptions,
    *,
    on_plan: OnStep = lambda _: None,
    on_step: OnStep = lambda _: None,
) -> TrialReport:
    """Try readers on one file, or on a sample of many. `on_plan` is called once there is a file with the columns,
    with what the trial will do and how long it takes. Raises: as `bloomcli.trial`."""
    started = time.perf_counter()
    options = options.checked()
    entries = named(options.readers)
    installed = [entry for entry in entries if entry.version is not None]
    if not installed:
        raise _none_installed(entries)
    within = _WITHIN if options.values is None else None
    single = not is_dataset(paths)
    listed = expand(paths)
    chosen = [listed[0].path] if single else [item.path for item in sampled_files(listed, options)]
    problems = [(shown(item.path), str(item.problem)) for item in listed if item.problem is not None]
    with one_open_file() as opened, temporary_folder() as folder:
        log = _queries(opened, options, chosen)
        check_columns(opened, chosen, options, log)
        on_plan(_plan(installed, within, options))
        files, failed = _prepare_files(opened, chosen, folder, options, log, on_step, single=single)
        end = None if within is None else started + within
        readers = _try_readers(entries, files, options, end, on_step)
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
        values=options.values or VALUES,
        within=within,
        queries=taken_paths("queries", options.queries),
        seed=options.seed,
        fpp=options.fpp,
        runs=options.runs,
        sample=None if single else options.sample or "of up to 4 files and 256 MiB",
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
        hint=install("trial") if len(commands) > 1 else next(iter(commands)),
    )


def _queries(opened: Opened, options: TrialOptions, paths: Sequence[str]) -> QueryLog | None:
    """The lookups of the queries that the options name, resolved with the columns of the first file that can be
    opened. Raises the last file's error if none can."""
    if not options.queries:
        return None
    from bloomcli.advice.queries import read_queries  # needs the extra for queries

    file = _first(opened, paths)
    columns = [file.literal_column(column) for column in file.leaves]
    return read_queries(
        taken_paths("queries", options.queries),
        dialect=options.dialect,
        tables=options.table_name,
        columns=columns,
        seed=options.seed,
    )


def _first(opened: Opened, paths: Sequence[str]) -> FilterFile:
    for path in paths[:-1]:
        with suppress(BloomError):
            return opened(path)
    return opened(paths[-1])


def _prepare_files(
    opened: Opened,
    chosen: Sequence[str],
    folder: Path,
    options: TrialOptions,
    log: QueryLog | None,
    on_step: OnStep,
    *,
    single: bool,
) -> tuple[list[PreparedFile], list[tuple[str, str]]]:
    """The files that can be tried, and the (path, reason) of those that can't. Raises BloomError if none can."""
    files: list[PreparedFile] = []
    failed: list[tuple[str, str]] = []
    for number, path in enumerate(chosen):
        on_step(f"chooses values of {shown(path)}, and makes a copy with filters if it has none")
        try:
            files.append(PreparedFile(opened, path, folder / str(number), options, log))
        except BloomError as error:
            if single or (number == len(chosen) - 1 and not files):
                raise
            failed.append((shown(path), error.reason))
    return files, failed


def _plan(entries: Sequence[Entry], within: float | None, options: TrialOptions) -> str:
    """What the trial is going to do, and how long it takes."""
    who = ", ".join(entry.title for entry in entries if options.readers or entry.probes)
    if within is None:
        return f"{who}: lookups of {options.values:,} present and {options.values:,} absent values of each column"
    return f"{who}: lookups for about {within:.0f} s in all; --values N looks up N, however long it takes"


def _encoded(files: Sequence[PreparedFile]) -> list[Encoded]:
    """How the columns' chunks are encoded in all files."""
    by_column: dict[str, Encoded] = {}
    for facts in (facts for file in files for facts in file.encoded):
        sums = by_column.get(facts.column, Encoded(facts.column, facts.kind, 0, 0))
        groups, encoded = sums.row_groups + facts.row_groups, sums.dictionary_row_groups + facts.dictionary_row_groups
        properties = frozenset(facts.properties) | frozenset(sums.properties)
        by_column[facts.column] = Encoded(facts.column, facts.kind, groups, encoded, properties)
    return list(by_column.values())


def _try_readers(
    entries: Sequence[Entry],
    files: Sequence[PreparedFile],
    options: TrialOptions,
    end: float | None,
    on_step: OnStep,
) -> tuple[ReaderTrial, ...]:
    """Try the readers, the one that takes longest to start last. The time until `end` is divided between them: what
    one leaves is the others'."""
    columns, formats = _encoded(files), {file.format for file in files}
    rows: dict[str, ReaderTrial] = {}
    running = []
    for entry in entries:
        mine = [file for file in files if file.format in entry.formats]
        never = not options.readers and not formats & entry.probes
        if entry.version is None or not mine or never:
            rows[entry.name] = reader_row_not_run(entry, formats, columns)
        else:
            running.append((entry, mine))
    running.sort(key=lambda item: item[0].extra == "spark")
    for left, (entry, mine) in zip(range(len(running), 0, -1), running, strict=True):
        seconds = None if end is None else max((end - time.perf_counter()) / left, _LEAST)
        rows[entry.name] = _try_reader(entry, mine, options, columns, seconds, on_step)
    return tuple(rows[entry.name] for entry in entries)


def _try_reader(
    entry: Entry,
    files: Sequence[PreparedFile],
    options: TrialOptions,
    columns: Sequence[Encoded],
    seconds: float | None,
    on_step: OnStep,
) -> ReaderTrial:
    started = time.perf_counter()
    job = Job(
        reader=entry.name,
        files=tuple(file.for_reader(entry) for file in files),
        runs=options.runs,
        seconds=seconds,
    )
    order = job.order()
    tried: list[Tried] = []
    end = Completion("it ended early")
    on_step(f"{entry.title} starts")
    for message in run_reader(job, options.timeout):
        if isinstance(message, Completion):
            end = message
            continue
        tried.append((order[message.trial], message))
        on_step(f"{entry.title}: {len(tried):,} of {len(order):,} lookups")
    return reader_row(entry, job, tried, end, columns, time.perf_counter() - started)


def _remarks(files: Sequence[PreparedFile]) -> list[str]:
    remarks = list(dict.fromkeys(reason for file in files for reason in file.left_out))
    if len({file.format for file in files}) > 1:
        remarks.append(
            f"{plural(len(files), 'file')} of several formats: a reader that doesn't read one leaves its files out"
        )
    return remarks
