"""The engines that work on datasets, and the choice between them.

    find files -> plan one task for each file -> check all files to change -> run the tasks -> report

Callers take these steps and don't know which engine runs them. Both engines run the same tasks
(`bloomcli.datasets.task`) and return the same rows; they differ in how paths are spelled and in where tasks run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bloomcli.commands.options import Options, policy_path
from bloomcli.datasets.planning import OnTables, PathEngine
from bloomcli.datasets.task import OnRow, Task
from bloomcli.model.dataset import DatasetReport
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import no_files


class Engine(Protocol):
    """Finds, plans, checks and runs the files of a dataset."""

    def find(self, paths: Sequence[str], options: Options) -> Sequence[FileEntry]:
        """List the files that paths (files, directories, globs, URIs) name.

        Raises:
            UnreadableError: a directory can't be listed, or a pattern matches no file.
            UnsupportedError: a path that the engine can't open or, for options that change files, can't write to.
        """

    def plan(self, listed: Sequence[FileEntry], options: Options) -> Sequence[Task]:
        """Make a task for each file. Raises: as `planning.plan`."""

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> Sequence[Task]:
        """Check the tasks, and set the rows of files that can't be changed or need no change: see
        `planning.check`. Nothing is written. Raises: as `run`."""

    def run(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> DatasetReport:
        """Run the tasks. The local engine calls `on_row` with each row as its file finishes. The Spark engine calls
        it only if rows hold more than reports keep (`Options.heavy`), after the job has ended.

        Raises:
            UnsupportedError: the session can't run tasks, or executors have no bloomcli.
            UnreadableError: the Spark job itself failed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine(PathEngine):
    """Runs tasks in worker processes of this machine."""

    jobs: int | None = None
    """Files at a time; if None, as many as cores, and more for files in stores."""

    def _run(self, tasks: Sequence[Task], *, fail_fast: bool, on_row: OnRow | None) -> DatasetReport:
        from bloomcli.datasets import local

        return local.run(tasks, jobs=self.jobs, fail_fast=fail_fast, on_row=on_row)


def choose_engine(
    name: str = "local",
    *,
    jobs: int | None = None,
    fail_fast: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    session: Any = None,
    on_tables: OnTables | None = None,
) -> Engine:
    """Return the Spark engine if `session` is given or `name` is ``spark``, else the local engine.

    Args:
        name: ``local`` or ``spark``.
        jobs: files at a time, for the local engine.
        fail_fast: stop at the first file that fails; on Spark, start no change if the check refuses a file.
        master, conf: of the Spark session to start if none is active.
        session: the Spark session to use.
        on_tables: called with the tables that listed files belong to.

    Raises:
        UsageError: the session isn't one, or is stopped.
        UnsupportedError: PySpark isn't installed, or Spark doesn't start.
    """
    if session is None and name != "spark":
        return LocalEngine(jobs=jobs, fail_fast=fail_fast, on_tables=on_tables)
    if session is None:
        from bloomcli.datasets.spark_session import session as start

        session = start(master, conf)
    return spark_engine(session, fail_fast=fail_fast, on_tables=on_tables)


def spark_engine(session: Any, *, fail_fast: bool = False, on_tables: OnTables | None = None) -> Engine:
    """The engine of a Spark session. Raises UsageError if the session isn't one, or is stopped."""
    from bloomcli.datasets.spark import SparkEngine
    from bloomcli.datasets.spark_session import checked_session

    return SparkEngine(checked_session(session), fail_fast=fail_fast, on_tables=on_tables)


def run_tasks(
    engine: Engine, tasks: Sequence[Task], *, on_row: OnRow | None = None, on_checked: OnRow | None = None
) -> DatasetReport:
    """Check the tasks that change files, run them, and return the report.

    Args:
        engine: the engine that runs them.
        tasks: as `plan_files` returns them.
        on_row: called with each row of the report as its file finishes; not on Spark.
        on_checked: called with each row of the check before the first change; not on Spark.

    Raises: as `Engine.run`.
    """
    started = time.perf_counter()
    report = engine.run(engine.check(tasks, on_row=on_checked), on_row=on_row)
    policy = policy_path(tasks[0].options) if tasks else None
    return replace(report, seconds=time.perf_counter() - started, policy=policy)


def plan_files(engine: Engine, paths: Sequence[str], options: Options) -> Sequence[Task]:
    """Make a task for each file that paths name. The engine of a table needs no paths.

    Raises:
        UsageError: contradicting options, or no files.
        UnreadableError, UnsupportedError: as `Engine.find`.
    """
    tasks = engine.plan(engine.find(paths, options), options)
    if paths and not tasks:
        raise no_files(paths)
    return tasks
