"""Changes a table's data files: new files on executors, and commits that put them in place.

    Table.files -> check -> a batch: new files -> Table.refresh -> Table.commit -> the next batch

A new file depends only on the bytes of the old one. Before each commit the table is refreshed, and files that it
still has are committed with their current metadata, such as new deletes. If files are missing, a new plan is made.

New files that weren't committed are removed; those that may have been committed are kept and named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar
from uuid import uuid4

from bloomcli.commands.options import RepairOptions, TableOptions, WriteOptions, policy_path
from bloomcli.concurrency.signals import SignalExit, deferred, plain_interrupts
from bloomcli.concurrency.threads import Progress
from bloomcli.datasets.engine import Engine
from bloomcli.datasets.spark_session import LAST_WRITERS_SECONDS, reconnect
from bloomcli.datasets.task import Task, failed_row
from bloomcli.errors import BloomError, UnsupportedError, UsageError, WriteError
from bloomcli.model.dataset import CorrectedRow, DatasetReport, FileRow, Status, TableCommit
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.tables.base import CommitInfo, Conflict, DataFile, Replacement, Table, WrongCommit
from bloomcli.tables.columns import choose
from bloomcli.tables.reading import session_of, table_facts, task_of, with_keys, with_statistics
from bloomcli.words import plural

T = TypeVar("T")

BATCH_BYTES: Final = 64 << 30
BATCH_FILES: Final = 1_000
"""The most bytes and files of a commit, unless the options set a number of files."""
_NAMED: Final = 20
"""The most new files that a remark names."""


def batches(items: Iterable[T], size: Callable[[T], int], every: int | None) -> Iterator[list[T]]:
    """Yield the items of each commit: `every` items, or as many as `BATCH_FILES` and `BATCH_BYTES` allow."""
    batch: list[T] = []
    total = 0
    for item in items:
        full = len(batch) >= (every or BATCH_FILES) or (every is None and total + size(item) > BATCH_BYTES)
        if batch and full:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


def unknown_outcome_remark(new: Sequence[str]) -> str:
    """The remark on new files that may be part of the table."""
    more = len(new) - _NAMED
    names = ", ".join(new[:_NAMED]) + (f" and {more:,} more, which are the output of their rows" if more > 0 else "")
    return f"it isn't known whether a commit has taken place, so that new files stay: {names}"


def remove_new_files(table: Table, new: Collection[str]) -> list[str]:
    """Remove new files that weren't committed, and return those that remain. Signals wait until the end."""
    with deferred():
        try:
            return table.remove_files(new)
        except BloomError:
            return sorted(new)


_PLANS: Final = 4
"""The most plans of a run, and commits of a batch, if others replace files. A table repeats a commit by itself."""

_OTHERS_NAMED: Final = 10
"""The most commits of others that a remark names."""

_FILE_REPLACED: Final = "another commit has replaced or removed the file"
_RESTART: Final = "start it again: files that have the filters are skipped"


@dataclass(frozen=True, slots=True)
class _PlannedFile:
    """A data file that the command has to change."""

    file: DataFile
    task: Task
    version: int | None = None
    """The table's version in which `file` was listed."""
    new: str = ""
    """The path of the new file, from `Table.new_path`."""
    size: int = 0
    """Bytes of the new file, once it is written."""
    right: FileStatistics | None = None
    """What the metadata have to say about the new file, as in `Replacement`."""


def change_table(
    table: Table,
    engine: Engine,
    options: WriteOptions,
    which: TableOptions,
    *,
    fail_fast: bool = False,
    progress: Progress | None = None,
) -> DatasetReport:
    """Run add, remove, fold or repair on a table's newest snapshot.

    Args:
        table: the table, open at its newest snapshot.
        engine: the engine that runs the tasks.
        options: the command's options, without a target.
        which: the part of the table, and how its files are replaced.
        fail_fast: commit nothing if the check refuses a file, and stop at the first file that fails later.
        progress: called with ("commit", bytes done, total bytes) after each batch.

    Raises:
        UsageError: options contradict each other, columns are unknown, or the table can't resolve the condition.
        UnsupportedError: the table's files can't be replaced without loss.
        KeyboardInterrupt, SignalExit: Ctrl-C; SIGTERM. The text reports the progress. Finished commits stay.
    """
    if which.snapshot is not None or which.as_of is not None:
        raise UsageError("only the newest snapshot can be changed", path=table.name, hint="leave out the snapshot")
    named, columns, remarks = choose(table, options, from_properties=which.from_properties)
    table.check_changes(new_row_ids=which.new_row_ids)
    run = _Run(
        table=table,
        engine=engine,
        options=named,
        user_options=options,
        which=which,
        columns=columns,
        fail_fast=fail_fast,
        progress=progress,
        remarks=[*table.cautions(), *remarks],
    )
    try:
        with plain_interrupts():
            return run.report()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(run.progress_text()) from None
    except SystemExit as stop:
        raise SignalExit(stop.code, run.progress_text()) from None


@dataclass(slots=True, kw_only=True)
class _Run:
    """The state of one run."""

    table: Table
    engine: Engine
    options: Mapping[str, WriteOptions]
    """Checked options for files of each format, with the table's names at the start of the run."""
    user_options: WriteOptions
    """The options that the user gave, of which only the command and its dry run matter here."""
    which: TableOptions
    columns: tuple[str, ...]
    fail_fast: bool
    progress: Progress | None
    remarks: list[str]
    id: str = field(default_factory=lambda: str(uuid4()))
    started: float = field(default_factory=time.perf_counter)
    rows: dict[str, FileRow | None] = field(default_factory=dict)
    """The row of each planned file, by its path in the table's metadata; None until it is known."""
    committed: set[str] = field(default_factory=set)
    """The paths of new files that were committed."""
    uncommitted: set[str] = field(default_factory=set)
    """The paths of new files that may exist and aren't committed."""
    commits: list[TableCommit] = field(default_factory=list)
    jobs: int = 1
    replan: bool = False
    """Another commit has replaced a file of this run: its rows may be in files that aren't planned yet."""
    stopped: bool = False

    def report(self) -> DatasetReport:
        """Change the table, or plan that in a dry run, and return the report."""
        before = self.table.version
        if self.user_options.dry_run:
            self.dry()
        else:
            self.commit_all()
            self._name_other_commits(before)
        rows = tuple(row for row in self.rows.values() if row is not None)
        meter = getattr(self.engine, "meter", None)
        return DatasetReport(
            command=self.user_options.command,
            engine="spark",
            jobs=self.jobs,
            seconds=time.perf_counter() - self.started,
            rows=rows,
            remarks=tuple(dict.fromkeys(self.remarks)),
            not_started=len(self.rows) - len(rows),
            dry_run=self.user_options.dry_run,
            besides=None if meter is None else meter.total or None,
            table=table_facts(self.table),
            version_before=before,
            commits=tuple(self.commits),
            policy=policy_path(next(iter(self.options.values()))),
        )

    def _name_other_commits(self, before: int | None) -> None:
        """Remark on the commits that others made during the run."""
        try:
            self.table.refresh()
            others = [change for change in self.table.changes(before) if change.run != self.id]
        except BloomError as error:
            self.remarks.append(f"the commits of others during the run can't be listed: {error.reason}")
            return
        if others:
            named = ", ".join(f"{change.operation} {change.version}" for change in others[:_OTHERS_NAMED])
            more = f" and {len(others) - _OTHERS_NAMED:,} more" if len(others) > _OTHERS_NAMED else ""
            self.remarks.append(f"{plural(len(others), 'commit')} of others during the run: {named}{more}")

    def progress_text(self) -> str:
        """The progress of a stopped run, and how to continue."""
        done = f"{sum(commit.files for commit in self.commits):,} of {plural(len(self.rows), 'file')}"
        commits = plural(len(self.commits), "commit")
        far = f"{done} replaced in {commits}" if self.commits else "nothing was committed"
        return "; ".join((far, *dict.fromkeys(self.remarks), _RESTART))

    def dry(self) -> None:
        """Plan every file and every commit. Nothing is written."""
        if not (waiting := self._plan()):
            return
        report = self._run(waiting)
        would = [p for p, row in zip(waiting, report.rows, strict=True) if row.status is Status.PLANNED]
        for batch in self._batches(would):
            rows = [row for p in batch if (row := self.rows[p.file.path]) is not None]
            snapshots = self.table.snapshots([planned.file for planned in batch])
            self._record(None, batch, sum(row.bytes_after or 0 for row in rows), snapshots)

    def commit_all(self) -> None:
        """Replace all files that need the change, batch by batch."""
        waiting = self._plan()
        if self.fail_fast and self._has_failed(self.rows):
            return
        for _ in range(_PLANS):
            done, total = 0, sum(planned.file.size for planned in waiting)
            for batch in self._batches(waiting):
                if self.stopped:
                    break
                self._make_batch(batch)
                done += sum(planned.file.size for planned in batch)
                if self.progress is not None:
                    self.progress("commit", done, total)
            if self.stopped or not self.replan:
                return
            self.replan = False
            self.table.refresh()
            waiting = self._plan()
        for planned in waiting:
            why = f"other commits keep replacing files of the table: {_PLANS} plans were not enough"
            self._fail(planned, Conflict(why, path=planned.task.path))

    def _plan(self) -> list[_PlannedFile]:
        """Check the files that aren't known yet, and return those that need the change."""
        files = [file for file in self._files() if file.path not in self.rows and file.path not in self.committed]
        version = self.table.version
        self.options = {kind: with_keys(options, files) for kind, options in self.options.items()}
        tasks = self._with_statistics([task_of(file, self.options, changing=True) for file in files], files)
        self.rows |= dict.fromkeys(file.path for file in files)
        waiting = []
        for file, task in zip(files, self.engine.check(tasks), strict=True):
            if task.row is None:
                waiting.append(_PlannedFile(file, task, version))
            else:
                self.rows[file.path] = task.row
        self._find_removed([file.path for file in files])
        return waiting

    def _with_statistics(self, tasks: list[Task], files: Sequence[DataFile]) -> list[Task]:
        """The tasks of a repair with what the metadata say about their files: the commit corrects them."""
        if not any(isinstance(options, RepairOptions) and not options.add for options in self.options.values()):
            return tasks
        tasks, remarks = with_statistics(tasks, self.table, files)
        self.remarks += remarks
        return tasks

    def _find_removed(self, paths: Sequence[str]) -> None:
        """Plan again if files couldn't be read because others have replaced them, and expiry has removed them."""
        failed = [path for path in paths if self._has_failed([path])]
        if not failed or self.user_options.dry_run or self.fail_fast:
            return
        try:
            self.table.refresh()
            now = {file.path for file in self._files()}
        except BloomError:  # the files' own errors stay
            return
        for path in failed:
            if path not in now:
                self._set_replaced(path)

    def _has_failed(self, paths: Iterable[str]) -> bool:
        return any((row := self.rows[path]) is not None and row.status is Status.FAILED for path in paths)

    def _set_replaced(self, path: str) -> None:
        self.replan = True
        row = self.rows[path]
        name = path if row is None else row.path
        self.rows[path] = FileRow(path=name, status=Status.SKIPPED, reason=_FILE_REPLACED)

    def _files(self) -> list[DataFile]:
        """The data files that the condition selects. Its columns may have been dropped since the run began."""
        try:
            return self.table.files(self.which.where)
        except UsageError:
            if not self.rows:
                raise
            return [file for file in self.table.files() if file.path in self.rows]

    def _batches(self, waiting: Sequence[_PlannedFile]) -> Iterator[list[_PlannedFile]]:
        return batches(waiting, lambda planned: planned.file.size, self.which.commit_every)

    def _run(self, batch: Sequence[_PlannedFile]) -> DatasetReport:
        report = self.engine.run([planned.task for planned in batch])
        self.jobs = max(self.jobs, report.jobs)
        self.remarks += report.remarks
        for planned, row in zip(batch, report.rows, strict=True):
            self.rows[planned.file.path] = row.reported()
        return report

    def _make_batch(self, batch: Sequence[_PlannedFile]) -> None:
        """Make the new files of a batch and commit them. Remove those that aren't committed in the end."""
        batch = [target for planned in batch if (target := self._with_new_file(planned)) is not None]
        if not batch:
            return
        self.uncommitted = {planned.new for planned in batch}
        running = True
        try:
            try:
                report = self._run(batch)
                running = False
            except BloomError as error:  # the job itself failed
                for planned in batch:
                    self._fail(planned, error)
                self.stopped = True
                return
            self._find_removed([planned.file.path for planned in batch])
            new_files = []
            for planned, row in zip(batch, report.rows, strict=True):
                if row.status is Status.DONE and row.bytes_after is not None:
                    right = row.right if isinstance(row, CorrectedRow) else None
                    new_files.append(replace(planned, size=row.bytes_after, right=right))
                elif row.status is Status.SKIPPED:
                    self.uncommitted.discard(planned.new)
            if self.fail_fast and any(row.status is Status.FAILED for row in report.rows):
                self.rows |= dict.fromkeys(planned.file.path for planned in new_files)
                self.stopped = True
            elif new_files:
                self._commit(new_files)
        except (KeyboardInterrupt, SystemExit):
            with suppress(UsageError):  # local processes have no session
                reconnect(session_of(self.engine))
            raise
        finally:
            self._remove_uncommitted(twice=running)

    def _with_new_file(self, planned: _PlannedFile) -> _PlannedFile | None:
        """Set the path of the new file; None if that isn't possible, and the row has the reason."""
        try:
            new = self.table.new_path(planned.file)
        except BloomError as error:
            self._fail(planned, error)
            return None
        task = task_of(planned.file, self.options, new, changing=True)
        if task.row is not None:
            self.rows[planned.file.path] = task.row
            return None
        return replace(planned, new=new, task=replace(task, statistics=planned.task.statistics))

    def _commit(self, new_files: Sequence[_PlannedFile]) -> None:
        """Commit a batch. Try again without the files that others have replaced."""
        conflict: BloomError | None = None
        for _ in range(_PLANS):
            try:
                new_files = self._present_files(new_files, relist=conflict is not None)
            except BloomError as error:
                conflict = error  # the table can no longer be read or changed
                self.stopped = True
                break
            if not new_files:
                return
            conflict = self._try_commit(new_files)
            if not isinstance(conflict, Conflict) or not conflict.paths:
                break
        if conflict is not None:
            for planned in new_files:
                self._fail(planned, conflict)

    def _present_files(self, new_files: Sequence[_PlannedFile], *, relist: bool) -> list[_PlannedFile]:
        """Move to the table's newest snapshot, and return the files that it still has, with their current metadata.

        Args:
            new_files: the files of a batch.
            relist: list the files again even if the version hasn't changed since they were listed.
        """
        self.table.refresh()
        self.table.check_changes(new_row_ids=self.which.new_row_ids)
        if not relist and all(planned.version == self.table.version for planned in new_files):
            return list(new_files)
        now = {file.path: file for file in self._files()}
        version = self.table.version
        kept = []
        for planned in new_files:
            path = planned.file.path
            if path in now and now[path].lineage != planned.task.lineage:
                self.replan = True  # its rows got ids since it was planned: plan it again
                del self.rows[path]
            elif path in now:
                kept.append(replace(planned, file=now[path], version=version))
            else:
                self._set_replaced(path)
        return kept

    def _try_commit(self, new_files: Sequence[_PlannedFile]) -> BloomError | None:
        """Commit. Returns an error if nothing was committed or the outcome is unknown. A signal to stop waits for the
        answer."""
        replacements = [Replacement(planned.file, planned.new, planned.size, planned.right) for planned in new_files]
        info = CommitInfo(
            run=self.id, batch=len(self.commits) + 1, command=self.user_options.command, columns=self.columns
        )
        new = {planned.new for planned in new_files}
        snapshots = self.table.snapshots([planned.file for planned in new_files])
        with deferred():
            try:
                version = self.table.commit(replacements, info)
            except Conflict as error:
                return error
            except (WriteError, UnsupportedError) as error:
                self.stopped = True
                return error
            except WrongCommit as error:
                self.uncommitted -= new
                self.stopped = True
                return error
            except BaseException as error:
                self.uncommitted -= new
                self.stopped = True
                self.remarks.append(unknown_outcome_remark(sorted(new)))
                if isinstance(error, BloomError):
                    return error
                raise
            self.uncommitted -= new
            self.committed |= new
            self._record(version, new_files, sum(planned.size for planned in new_files), snapshots)
        return None

    def _record(self, version: int | None, batch: Sequence[_PlannedFile], size: int, snapshots: int) -> None:
        before = sum(planned.file.size for planned in batch)
        self.commits.append(
            TableCommit(version=version, files=len(batch), bytes_before=before, bytes_after=size, snapshots=snapshots)
        )

    def _fail(self, planned: _PlannedFile, error: BloomError) -> None:
        row = failed_row(planned.task.path, error)
        stays = planned.new and planned.new not in self.uncommitted
        self.rows[planned.file.path] = replace(row, hint=row.hint or _RESTART, output=planned.new if stays else None)

    def _remove_uncommitted(self, *, twice: bool) -> None:
        """Remove the new files that weren't committed, and report those that can't be removed. With `twice`, remove
        them again later: workers of a failed or stopped job may go on writing for a while."""
        uncommitted, self.uncommitted = self.uncommitted, set()
        if not uncommitted:
            return
        left = remove_new_files(self.table, uncommitted)
        if twice:
            time.sleep(LAST_WRITERS_SECONDS)
            left = remove_new_files(self.table, uncommitted)
        self.remarks += [f"the new file {p} couldn't be removed" for p in left]
