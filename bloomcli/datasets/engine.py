"""The engines that work on datasets, and the one place that decides which of them does.

    find files -> plan a task a file -> check all files that are to be changed -> run the tasks -> report

Callers take the steps and don't know which engine takes them with them. Both engines run the same tasks
(`bloomcli.datasets.task`) and give the same rows; they differ in how paths are spelled and in where tasks run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bloomcli.commands.options_base import Options
from bloomcli.datasets import planning
from bloomcli.datasets.task import OnRow, Task
from bloomcli.model.dataset import DatasetReport
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import expand, no_files
from bloomcli.storage.traffic import Meter, counted_by


class Engine(Protocol):
    """What works on the files of a dataset."""

    def find(self, paths: Sequence[str], options: Options) -> Sequence[FileEntry]:
        """The files that paths (files, directories, globs, URIs) name.

        Raises:
            UnreadableError: a directory can't be listed, or a pattern matches no file.
            UnsupportedError: a path that the engine can't open or, for options that change files, can't write to.
        """

    def plan(self, listed: Sequence[FileEntry], options: Options) -> Sequence[Task]:
        """Tasks for files. Raises: as `planning.plan`."""

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> Sequence[Task]:
        """The tasks, with the rows of the files that may not be changed or need no change: see
        `bloomcli.datasets.check`. Nothing is written. Raises: as `run`."""

    def run(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> DatasetReport:
        """Run the tasks. The engine of this machine calls `on_row` with each row as the file is done; Spark's only
        where rows hold more than reports keep (`Options.heavy`), once the job has ended.

        Raises:
            UnsupportedError: a session that can't run tasks, no bloomcli on executors.
            UnreadableError: the Spark job failed, not one of its files.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Worker processes of this machine."""

    jobs: int | None = None
    """Files at a time; if None as many as there are cores, and more for files in stores."""
    fail_fast: bool = False
    """Stop at the first file that fails. Change nothing where the check refuses a file."""
    meter: Meter = field(default_factory=Meter, init=False, repr=False, compare=False)
    """The requests to stores that belong to no file's row."""

    def find(self, paths: Sequence[str], options: Options) -> Sequence[FileEntry]:
        """The files that paths name."""
        del options
        with counted_by(self.meter):
            return expand(paths)

    def plan(self, listed: Sequence[FileEntry], options: Options) -> Sequence[Task]:
        """Tasks for files."""
        with counted_by(self.meter):
            return planning.plan(listed, options)

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> Sequence[Task]:
        """Look at every file that is to be changed."""
        from bloomcli.datasets import local
        from bloomcli.datasets.check import check

        with counted_by(self.meter):
            return check(tasks, lambda dry: local.run(dry, jobs=self.jobs, on_row=on_row))

    def run(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> DatasetReport:
        """Run the tasks."""
        from bloomcli.datasets import local

        with counted_by(self.meter):
            report = local.run(tasks, jobs=self.jobs, fail_fast=self.fail_fast, on_row=on_row)
        return replace(report, besides=self.meter.total or None)


def choose_engine(
    name: str = "local",
    *,
    jobs: int | None = None,
    fail_fast: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    session: Any = None,
) -> Engine:
    """The engine that options or arguments name: Spark if there is a session or the name is ``spark``.

    Args:
        name: ``local`` or ``spark``.
        jobs: files at a time, of the local engine.
        fail_fast: stop at the first file that fails; on Spark, start no change where a file is refused.
        master, conf: of a Spark session that is started, where there is none yet.
        session: the Spark session to use.

    Raises:
        UnsupportedError: PySpark isn't installed, or Spark doesn't start.
    """
    if session is None and name != "spark":
        return LocalEngine(jobs=jobs, fail_fast=fail_fast)
    from bloomcli.datasets import spark
    from bloomcli.datasets.spark_session import session as start

    return spark.SparkEngine(start(master, conf) if session is None else session, fail_fast)


def run_tasks(
    engine: Engine, tasks: Sequence[Task], *, on_row: OnRow | None = None, on_checked: OnRow | None = None
) -> DatasetReport:
    """Check the tasks that change files, run them, and give the report.

    Args:
        engine: what works on them.
        tasks: as `plan_files` gives them.
        on_row: called with each row of the report as the file is done; not on Spark.
        on_checked: called with each file that was looked at before the first change; not on Spark.

    Raises: as `Engine.run`.
    """
    started = time.perf_counter()
    report = engine.run(engine.check(tasks, on_row=on_checked), on_row=on_row)
    return replace(report, seconds=time.perf_counter() - started)


def plan_files(engine: Engine, paths: Sequence[str], options: Options) -> Sequence[Task]:
    """Tasks for all files that paths name. The engine of a table needs no paths.

    Raises:
        UsageError: contradicting options, or no files.
        UnreadableError, UnsupportedError: as `Engine.find`.
    """
    tasks = engine.plan(engine.find(paths, options), options)
    if paths and not tasks:
        raise no_files(paths)
    return tasks
