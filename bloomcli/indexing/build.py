"""Builds or updates an index of many files. Each file is a task of an engine, whose result is added to the index.

list files -> new and changed files -> tasks -> rows with bits, one at a time -> the index's writer
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from bloomcli.commands.columns import select
from bloomcli.commands.options import IndexOptions, IndexTarget
from bloomcli.datasets.engine import Engine, run_tasks
from bloomcli.datasets.task import OnRow, Task
from bloomcli.errors import BloomError, UnknownColumn, UsageError
from bloomcli.formats.keys import Keys
from bloomcli.formats.registry import open_file
from bloomcli.hints import quoted
from bloomcli.index.puffin import MAGIC
from bloomcli.index.reader import FreshnessCheck, Index, NoAnswer
from bloomcli.index.writer import IndexWriter
from bloomcli.model.dataset import DatasetReport, FileRow, Status, gravest
from bloomcli.model.index import IndexedRow, IndexReport
from bloomcli.model.paths import shown
from bloomcli.model.traffic import Traffic, traffic_of
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import no_files, spelling
from bloomcli.storage.names import has_wildcard
from bloomcli.storage.registry import open_source, path_exists, store_of, sweep_for
from bloomcli.storage.traffic import measured, with_traffic
from bloomcli.words import plural

_PARTS: Final = re.compile(r"\[(!?[^]]+)\]|.", re.DOTALL)
_SINGLE: Final = {"*": "[^/]*", "?": "[^/]"}
OnTasks = Callable[[Sequence[Task]], OnRow]
"""Called with the tasks before the first one starts; returns the callback for rows."""


def build(
    engine: Engine,
    paths: Sequence[str],
    options: IndexOptions,
    target: IndexTarget,
    *,
    on_tasks: OnTasks | None = None,
) -> IndexReport:
    """Build an index of the files that paths name.

    Args:
        engine: the engine that reads the files.
        paths: files, directories, patterns, URIs.
        options: the options of `index build`.
        target: the index to write.
        on_tasks: a callback for progress.

    Raises: as `bloomcli.index_build`.
    """
    options = options.checked()
    path = _checked_target(target, dry_run=options.dry_run)
    with measured() as meter:
        listed = _listed(engine, paths, options)
        run = _Run(paths, options, replace(target, output=path))
        report = run.execute(engine, listed, on_tasks)
        return _with_index_traffic(report, meter.total)


def update(
    engine: Engine,
    paths: Sequence[str],
    target: IndexTarget,
    *,
    fpp: float | None = None,
    dry_run: bool = False,
    keys: Keys | None = None,
    allow_plaintext_index: bool = False,
    on_tasks: OnTasks | None = None,
) -> IndexReport:
    """Bring an index up to date with the files that paths name: only new and changed files are read.

    Raises: as `bloomcli.index_update`.
    """
    with measured() as meter, open_source(target.path) as source:
        old = Index(source)
        options = IndexOptions(
            columns=old.paths,
            fpp=old.fpp if fpp is None else fpp,
            dry_run=dry_run,
            keys=keys,
            allow_plaintext_index=allow_plaintext_index,
        ).checked()
        path = _checked_target(replace(target, overwrite=True), dry_run=dry_run)
        listed = _listed(engine, paths, options)
        run = _Run(paths, options, replace(target, output=path, overwrite=True), old)
        report = run.execute(engine, listed, on_tasks)
        return _with_index_traffic(report, meter.total)


def _checked_target(target: IndexTarget, *, dry_run: bool) -> str:
    """The path to write. Raises the errors of writing there before any file is read."""
    store = store_of(target.path)
    path = store.normal(target.path) if target.path else ""
    if not dry_run:
        store.check_output(path, overwrite=target.overwrite, force=target.force)
        if target.overwrite:
            _refuse_other_file(path)
    return path


def _refuse_other_file(path: str) -> None:
    """Raise UsageError if the file to replace isn't an index: it may be somebody's data."""
    if not path_exists(path):
        return
    with open_source(path) as source:
        if source.size and source.read_at(0, min(source.size, len(MAGIC))) != MAGIC:
            raise UsageError("the output exists already, and isn't an index", path=path, hint="name another file")


def _with_index_traffic(report: IndexReport, traffic: Traffic) -> IndexReport:
    """Add the requests for the index itself to a report."""
    if not traffic:
        return report
    total = traffic + (traffic_of(report) or Traffic())
    return with_traffic(replace(report, requests=None), total)


def _listed(engine: Engine, paths: Sequence[str], options: IndexOptions) -> Sequence[FileEntry]:
    listed = engine.find(paths, options)
    if not listed:
        raise no_files(paths)
    return listed


class MissingFiles(NamedTuple):
    """Files of an old index that are neither kept nor read again: their numbers, by reason."""

    gone: int = 0
    unnamed: int = 0
    failed: int = 0
    retained: tuple[int, ...] = ()
    """Positions of files that stay in the index, because they may still exist."""
    paths: tuple[str, ...] = ()
    """The named paths without files, or that can't be listed: their files may still exist."""


def _similar(name: str, path: str, keys: Keys | None) -> str:
    """The hint for a column that no file has: similar names in a file, or how to list its columns."""
    with suppress(BloomError), open_source(path) as source:
        try:
            first, *_ = select(open_file(source, keys=keys).columns, [name], path=path)
        except UnknownColumn as error:
            if "did you mean" in (error.hint or ""):
                return str(error.hint)
        else:
            return f"an index takes columns by their leaf paths: {first.name}"
    return f"`bloom inspect {quoted(path)}` lists a file's columns"


class NamedPath(NamedTuple):
    """A path that a user named, and the files that it means."""

    path: str
    files: re.Pattern[str]
    """Matches the spelled paths of these files: the path itself, files below it, or files of a pattern."""


class Scope:
    """The files that paths mean. It tells why files of an old index aren't listed: they don't exist any more, or the
    paths don't name them.

    Args:
        paths: as the user named them.
        spell: `bloomcli.storage.listing.spelling`.
    """

    def __init__(self, paths: Sequence[str], spell: Callable[[str], str]) -> None:
        self._spell = spell
        self._named = [NamedPath(path, _pattern_of(path, spell)) for path in paths]

    def names(self, path: str) -> bool:
        """Whether one of the paths means the file with this spelled path. If the file existed, it would be listed."""
        return any(named.files.fullmatch(path) for named in self._named)

    def unseen(self, listed: Iterable[FileEntry], failed: frozenset[str]) -> tuple[str, ...]:
        """The named paths that may have files which aren't listed: they don't exist, can't be listed or are empty.

        Args:
            listed: the listing of all paths.
            failed: the paths of files that failed.
        """
        unmatched = self._named if len(self._named) > 1 else []  # a single path without files is an error
        unseen: dict[str, None] = {}
        for item in listed:
            missing = item.size < 0 and not item.walked and (item.skipped or shown(item.path) in failed)
            if item.problem is not None or missing:
                unseen[item.path] = None
            elif unmatched:
                spelled = self._spell(item.path)
                unmatched = [named for named in unmatched if not named.files.fullmatch(spelled)]
        unseen_paths = list(map(self._spell, unseen))
        for named in unmatched:
            if not any(map(named.files.fullmatch, unseen_paths)):
                unseen[named.path] = None
        return tuple(unseen)


def _pattern_of(path: str, spell: Callable[[str], str]) -> re.Pattern[str]:
    """A pattern of the spelled paths of the files that a path means."""
    steps = path.rstrip("/").split("/") if path.strip("/") else [""]
    first = next((at for at, step in enumerate(steps) if has_wildcard(step)), len(steps))
    if first == len(steps):
        directory = spell("/".join([*steps, "x"]))[:-2]
        itself = spell(path) if not path.endswith("/") else directory
        return re.compile(f"{re.escape(itself)}|{re.escape(directory)}/.*", re.DOTALL)
    base = spell("/".join([*steps[:first], "x"]))[:-1]
    pattern = "/".join(_step(step) for step in steps[first:])
    try:
        return re.compile(f"{re.escape(base)}{pattern}(/.*)?", re.DOTALL)
    except re.error:  # a character range that ends before its start
        return re.compile(f"{re.escape(base)}.*", re.DOTALL)


def _step(step: str) -> str:
    """A step of a pattern as a regular expression. It matches a directory whose name has wildcards, too."""
    return ".*" if step == "**" else _PARTS.sub(_part, step)


def _part(match: re.Match[str]) -> str:
    text = match[0]
    if text in _SINGLE:
        return _SINGLE[text]
    if match[1] is None:
        return re.escape(text)
    inside = match[1].replace("\\", "\\\\").replace("[", "\\[")
    return f"(?:{re.escape(text)}|[{'^' + inside[1:] if inside[0] == '!' else inside}])"


class _Run:
    """One build or update of an index."""

    def __init__(
        self, paths: Sequence[str], options: IndexOptions, target: IndexTarget, old: Index | None = None
    ) -> None:
        self._paths, self._options, self._target, self._old = paths, options, target, old
        self._spell = spelling()
        self._has: set[str] = set()
        self._added: set[str] = set()
        self._errors: list[FileRow] = []
        self._skipped = 0
        self._reasons: Counter[str] = Counter()
        self._sums = dict.fromkeys(("row_groups", "filters", "columns_read", "bytes_decoded"), 0)

    def execute(self, engine: Engine, listed: Sequence[FileEntry], on_tasks: OnTasks | None) -> IndexReport:
        """Read the files that have to be read, and write the index."""
        started, options, old = time.perf_counter(), self._options, self._old
        kept, changed = self._changed_files(listed)
        with IndexWriter(options.columns, fpp=options.fpp, old=old) as writer:
            if kept:
                writer.keep(kept)
            dataset = self._read(engine, changed, writer, on_tasks)
            missing = self._missing_files(listed, changed, kept)
            if missing.retained:
                writer.keep(missing.retained)
            report = self._report(dataset, kept, missing)
            unchanged = old is not None and len(kept) + len(missing.retained) == len(old.files) and not self._added
            aborted = bool(self._errors) and getattr(engine, "fail_fast", False)
            if options.dry_run:
                pass
            elif unchanged or aborted or not report.files:
                report = replace(report, dropped=0, dropped_gone=0, dropped_unnamed=0, dropped_failed=0)
            else:
                report = replace(report, remarks=(*report.remarks, *sweep_for([self._target.path]).remarks))
                size = writer.write(self._target.path, overwrite=self._target.overwrite, force=self._target.force)
                report = replace(report, written=True, bytes=size)
        return replace(report, seconds=time.perf_counter() - started)

    def _changed_files(self, listed: Sequence[FileEntry]) -> tuple[list[int], Sequence[FileEntry]]:
        """Compare the listing with the old index: positions of unchanged files, and the files to read."""
        if self._old is None:
            return [], listed
        check = FreshnessCheck(self._old)
        kept: list[int] = []
        changed: list[FileEntry] = []
        for item in listed:
            entry = check.found(item)
            if isinstance(entry, NoAnswer):
                changed.append(item)
            else:
                kept.append(entry[0])
        return kept, changed

    def _read(
        self, engine: Engine, changed: Sequence[FileEntry], writer: IndexWriter, on_tasks: OnTasks | None
    ) -> DatasetReport:
        """Run a task for each file, and add each result to the writer at once. Raises UnknownColumn."""
        tasks = engine.plan(changed, self._options)
        progress = None if on_tasks is None else on_tasks(tasks)

        def take(row: FileRow) -> None:
            self._count(row)
            if isinstance(row, IndexedRow):
                path = self._spell(row.path if row.indexed is None else row.indexed.path)
                if row.indexed is not None:
                    writer.add(row.indexed._replace(path=path), row.chunks, row.end)
                self._added.add(path)
            if progress is not None:
                progress(row)

        dataset = run_tasks(engine, tasks, on_row=take)
        missing = [name for name in self._options.columns if name not in self._has]
        if missing and self._added and self._old is None:
            failed = (
                f"; {plural(len(self._errors), 'file')} failed, first {self._errors[0].error}" if self._errors else ""
            )
            raise UnknownColumn(
                f"no file has a column {missing[0]!r}{failed}",
                hint=_similar(missing[0], min(self._added), self._options.keys),
            )
        return dataset

    def _missing_files(
        self, listed: Sequence[FileEntry], changed: Sequence[FileEntry], kept: Sequence[int]
    ) -> MissingFiles:
        """The files of the old index that are neither kept nor read again."""
        if self._old is None:
            return MissingFiles()
        files, rest = self._old.files, set(range(len(self._old.files))).difference(kept)
        rest = {at for at in rest if files[at].path not in self._added}
        if not rest:
            return MissingFiles()
        read = {self._spell(item.path) for item in changed}
        failed = {at for at in rest if files[at].path in read}
        scope = Scope(self._paths, self._spell)
        unseen = scope.unseen(listed, frozenset(row.path for row in self._errors))
        if unseen:
            return MissingFiles(
                failed=len(failed), retained=tuple(sorted(rest - failed)), paths=tuple(map(shown, unseen))
            )
        gone = sum(scope.names(files[at].path) for at in rest - failed)
        return MissingFiles(gone=gone, unnamed=len(rest) - len(failed) - gone, failed=len(failed))

    def _count(self, row: FileRow) -> None:
        if row.status is Status.FAILED:
            self._errors.append(row)
        elif row.status is Status.SKIPPED:
            self._skipped += 1
        elif isinstance(row, IndexedRow):
            self._reasons.update([row.reason] if row.reason else ())
            self._has.update(row.has)
            counted = (row.row_groups, row.filters, row.row_groups_read, row.bytes_decoded)
            for name, number in zip(self._sums, counted, strict=True):
                self._sums[name] += number or 0

    def _report(self, dataset: DatasetReport, kept: Sequence[int], missing: MissingFiles) -> IndexReport:
        old = self._old
        report = IndexReport(
            path=shown(self._target.path),
            columns=tuple(self._options.columns),
            fpp=self._options.fpp,
            update=old is not None,
            dry_run=self._options.dry_run,
            files=len(kept) + len(self._added) + len(missing.retained),
            added=len(self._added),
            kept=len(kept),
            dropped=missing.gone + missing.unnamed + missing.failed,
            dropped_gone=missing.gone,
            dropped_unnamed=missing.unnamed,
            dropped_failed=missing.failed,
            kept_unseen=len(missing.retained),
            paths_unseen=missing.paths,
            skipped=self._skipped,
            failed=len(self._errors),
            bytes_before=None if old is None else old.source.size,
            errors=tuple(self._errors),
            exit_code=gravest({row.exit_code for row in self._errors}),
            engine=dataset.engine,
            jobs=dataset.jobs,
            remarks=(*dataset.remarks, *(f"{plural(n, 'file')}: {why}" for why, n in self._reasons.items())),
            row_groups=self._sums["row_groups"],
            filters=self._sums["filters"],
            columns_read=self._sums["columns_read"],
            bytes_decoded=self._sums["bytes_decoded"],
        )
        return with_traffic(report, traffic_of(dataset))
