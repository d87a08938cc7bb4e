"""The Spark engine: packs tasks by size, and runs them in the executors' Python workers.

    driver      find -> plan -> pack          collect rows -> report
    executors                        run tasks

Spark may run a task again (after losing an executor) or twice at the same time (speculation). Both are safe: each
attempt writes to its own temporary file, and checks right before the rename that the file hasn't changed. A second
attempt finds the work done and reports that (`attempt`). Temporary files of killed attempts are removed at the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from bloomcli import version
from bloomcli.commands.options import Options, WriteOptions
from bloomcli.concurrency.signals import plain_interrupts
from bloomcli.concurrency.threads import cores
from bloomcli.datasets import local
from bloomcli.datasets import task as work
from bloomcli.datasets.hadoop_paths import absolute, portable
from bloomcli.datasets.packing import pack, parts_for
from bloomcli.datasets.planning import PathEngine
from bloomcli.datasets.spark_session import (
    LAST_WRITERS_SECONDS,
    first_line,
    has_ended,
    is_connect,
    reconnect,
    with_session_keys,
)
from bloomcli.datasets.task import OTHER_KIND, OnRow, Task
from bloomcli.errors import BloomError, UnreadableError, UnsupportedError
from bloomcli.formats.keys import SEAL_PROPERTY, seal
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.base import FileEntry, Fingerprint
from bloomcli.storage.lookups import shared
from bloomcli.storage.registry import store_of, sweep_for
from bloomcli.words import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_TRIES: Final = 3

_CRASH_SIGNS: Final = ("Python worker exited unexpectedly", "ExecutorLostFailure", "ExecutorExitCode")
_SAFE_PATH: Final = "PYTHONSAFEPATH"
"""If set, Python doesn't look for modules in the directory in which it starts."""

Numbered = tuple[int, Task]


@dataclass(frozen=True, slots=True)
class Pack:
    """The tasks of one Spark task, with their positions in the report."""

    tasks: tuple[Numbered, ...]
    isolated: bool = False
    """Run each task in a separate process, because one of them kills its worker."""


@dataclass(frozen=True, slots=True)
class SparkEngine(PathEngine):
    """Runs tasks on the executors of a Spark session. Rows have absolute paths."""

    session: SparkSession
    """A classic session: Spark Connect can't run our tasks on executors."""

    def find(self, paths: Sequence[str], options: Options) -> Sequence[FileEntry]:
        """List the files that paths name: paths that all machines can open, or URIs."""
        options = with_session_keys(options, self.session)
        changing = isinstance(options, WriteOptions) and options.in_place
        return PathEngine.find(self, [portable(p, changing=changing) for p in paths], options)

    def plan(self, listed: Sequence[FileEntry], options: Options) -> Sequence[Task]:
        """Make a task for each file."""
        options = with_session_keys(options, self.session)
        if isinstance(options, WriteOptions) and options.output is not None:
            options = replace(options, output=portable(os.fspath(options.output), changing=True))
        return [
            replace(t, path=absolute(t.path), output=None if t.output is None else absolute(t.output))
            for t in PathEngine.plan(self, listed, options)
        ]

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> Sequence[Task]:
        """Check every file to change, in a separate job. `on_row` isn't called."""
        del on_row
        return PathEngine.check(self, tasks)

    def _run(self, tasks: Sequence[Task], *, fail_fast: bool, on_row: OnRow | None) -> DatasetReport:
        """Run the tasks on the executors. `on_row` is called only for heavy rows; other rows arrive together."""
        heavy = bool(tasks) and tasks[0].options.heavy
        try:
            return _run(tasks, self.session, fail_fast=fail_fast, on_row=on_row if heavy else None)
        except (java_error(), OSError) as error:
            if not has_ended(error):
                raise
            raise job_error(error) from None


def _run(tasks: Sequence[Task], session: SparkSession, *, fail_fast: bool, on_row: OnRow | None) -> DatasetReport:
    """Run tasks on a session's executors. With `fail_fast`, no task starts if a row that is already set is a failure.

    With `on_row`, executors keep the rows on disk until all tasks end; then the driver fetches them one by one.
    """
    started = time.perf_counter()
    if not tasks:
        return DatasetReport(command="", engine="spark", jobs=1, seconds=0.0, rows=())
    context = job_context(session)
    cores = max(context.defaultParallelism, 1)
    rows = {i: task.row for i, task in enumerate(tasks) if task.row is not None}
    ended = fail_fast and any(row.status is Status.FAILED for row in rows.values())
    open_ = [] if ended else [i for i in range(len(tasks)) if i not in rows]
    threads = max(cores // max(len(open_), 1), 1)
    numbered = [(i, replace(tasks[i], threads=threads)) for i in open_]
    parts = parts_for(numbered, _size, cores)
    packs = [Pack(tuple(p)) for p in pack(numbered, _size, parts)]
    command = tasks[0].command
    written = local.targets(tasks)
    remarks = sweep_for(written).remarks
    if packs:
        try:
            doing = f"{command} --dry-run" if tasks[0].dry_run else command
            with importable(context), job(session, f"bloom {doing}: {plural(len(numbered), 'file')}"):
                rows |= _collect(context, packs, on_row)
        finally:
            _sweep_after(written)
    return DatasetReport(
        command=command,
        engine="spark",
        jobs=min(cores, len(tasks)),
        seconds=time.perf_counter() - started,
        rows=tuple(rows[i] for i in sorted(rows)),
        remarks=tuple(remarks),
        dry_run=any(task.dry_run for task in tasks),
        not_started=len(tasks) - len(rows),
    )


def _size(numbered: Numbered) -> int:
    return numbered[1].size


def job_context(session: SparkSession) -> Any:
    """The context of a session. Raises UnsupportedError if the session can't run tasks."""
    if is_connect(session):
        raise UnsupportedError(
            "a Spark Connect session can't run tasks of its own",
            hint="use a classic session, as under spark-submit; the data source works with both",
        )
    context: Any = session.sparkContext
    context.setLocalProperty(SEAL_PROPERTY, seal().hex())
    return context


@contextmanager
def importable(context: Any) -> Iterator[None]:
    """Make workers of a local session import the same bloomcli as this process.

    Workers start in the driver's directory, where Python looks for modules first. In a checkout of bloom's sources it
    finds another bloomcli there, possibly without a compiled module. An environment variable prevents that.
    """
    if not (str(context.master).startswith("local") and _another_bloomcli_here()):
        yield
        return
    before = context.environment.get(_SAFE_PATH)
    context.environment[_SAFE_PATH] = "1"  # only for our workers: Spark separates workers by environment
    try:
        yield
    finally:
        if before is None:
            context.environment.pop(_SAFE_PATH, None)  # a run in another thread may have removed it
        else:
            context.environment[_SAFE_PATH] = before


def _another_bloomcli_here() -> bool:
    try:
        return not Path(version.__file__).samefile(Path("bloomcli", "version.py"))
    except OSError:  # it doesn't exist
        return False


@contextmanager
def job(session: SparkSession, description: str) -> Iterator[None]:
    """Describe the jobs that start within the block, and cancel them when an exception ends it.

    PySpark's own handling of Ctrl-C fails if the interrupted thread waits for Java, as it does here: PySpark sends
    the cancellation over the connection that the thread waits on. Spark kills the workers of cancelled tasks after
    at most about four seconds.
    """
    tag = f"bloom-{uuid4()}"
    context: Any = session.sparkContext
    described = context.getLocalProperty("spark.job.description")
    interrupting = context.getLocalProperty("spark.job.interruptOnCancel")
    context.addJobTag(tag)
    context.setJobDescription(description)
    context.setInterruptOnCancel(True)
    try:
        with plain_interrupts():
            yield
    except BaseException as error:
        if not isinstance(error, Exception):
            reconnect(session)
        with suppress(java_error(), OSError):  # Java may have ended
            context.cancelJobsWithTag(tag)
        raise
    finally:
        with suppress(java_error(), OSError):
            context.setLocalProperty("spark.job.description", described)  # None removes it
            context.setLocalProperty("spark.job.interruptOnCancel", interrupting)
            context.removeJobTag(tag)


def _collect(context: Any, packs: Sequence[Pack], on_row: OnRow | None) -> dict[int, FileRow]:
    """All rows by position. If a file kills its worker, the tasks run again, each in a separate process."""
    from pyspark.errors import PySparkException

    try:
        rdd = context.parallelize(packs, len(packs)).flatMap(run_pack)
        return dict(rdd.collect()) if on_row is None else _collect_in_turn(rdd, on_row)
    except (PySparkException, java_error()) as error:
        failure = job_error(error)
        if packs[0].isolated or not any(sign in str(error) for sign in _CRASH_SIGNS):
            raise failure from None
    return _collect(context, [replace(p, isolated=True) for p in packs], on_row)


def _collect_in_turn(rdd: Any, on_row: OnRow) -> dict[int, FileRow]:
    """The rows by position, as reports keep them. `on_row` is called with each complete row before.

    All tasks run first, in parallel; then the driver fetches the rows of one partition at a time.
    """
    from pyspark import StorageLevel

    kept = rdd.persist(StorageLevel.DISK_ONLY)
    try:
        kept.count()
        rows: dict[int, FileRow] = {}
        for position, row in kept.toLocalIterator():
            on_row(row)
            rows[position] = row.reported()
        return rows
    finally:
        kept.unpersist()


def job_error(error: Exception) -> UnreadableError | UnsupportedError:
    """The error that explains why a Spark job failed."""
    if "No module named 'bloomcli" in str(error):
        return UnsupportedError(
            "the executors' Python has no bloomcli", hint="ship a packed environment; see docs/spark.md"
        )
    return UnreadableError(
        f"the Spark job failed: {first_line(error)}", hint="files that were done stay done; start it again"
    )


def run_pack(pack: Pack) -> Iterator[tuple[int, FileRow]]:
    """The body of a Spark task: yields each file's position and row as the file finishes. Runs on an executor."""
    from pyspark import TaskContext

    context = TaskContext.get()
    again = pack.isolated or (context is not None and context.attemptNumber() > 0)
    limit = cores()
    tasks = {i: replace(task, threads=min(task.threads or 1, limit)) for i, task in pack.tasks}
    stamps = {i: _target_fingerprint(task) for i, task in tasks.items()}
    with shared():
        rows = local.run_isolated(tasks) if pack.isolated else ((i, work.run(task)) for i, task in tasks.items())
        for index, row in rows:
            task = tasks[index]
            row = settled(task, stamps[index], row)
            if again and not task.dry_run and row.status is Status.SKIPPED and row.reason != OTHER_KIND:
                row = replace(row, reason=f"{row.reason} (done by an earlier attempt, perhaps)")
            yield index, row


def settled(task: Task, before: Fingerprint | None, row: FileRow) -> FileRow:
    """The final row of a task that another attempt may run at the same time.

    If another attempt finishes first, this one fails, because its output file was replaced. It runs again, and finds
    the work done.

    Args:
        task: the task.
        before: the fingerprint of its target before it ran.
        row: the row of its first run.
    """
    for _ in range(_TRIES - 1):
        if row.status is not Status.FAILED or (now := _target_fingerprint(task)) == before:
            break
        before, row = now, work.run(task)
    return row


def _target_fingerprint(task: Task) -> Fingerprint | None:
    """The fingerprint of the file to write, to detect that it was replaced; None if no file is written."""
    try:
        return None if task.target is None else store_of(task.target).fingerprint(task.target)
    except BloomError:  # the task reports it
        return None


def _sweep_after(written: Iterable[str]) -> None:
    """Remove temporary files of killed attempts; in shared directories, wait until the attempts have ended."""
    deadline = time.monotonic() + LAST_WRITERS_SECONDS
    left = sweep_for(written).remaining
    here = [path for path in written if not store_of(path).remote]
    while here and left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = sweep_for(here).remaining


def java_error() -> type[Exception]:
    """The exception class that calls into Java raise."""
    from py4j.protocol import Py4JError

    kind: type[Exception] = Py4JError
    return kind
