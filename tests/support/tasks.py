"""Tasks of a command by its name, from the keyword arguments of its function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bloomcli.commands.options import (
    AddOptions,
    FoldOptions,
    InspectOptions,
    Options,
    ProbeOptions,
    RemoveOptions,
    RepairOptions,
    SurveyOptions,
    ValidateOptions,
)
from bloomcli.concurrency.threads import Progress
from bloomcli.datasets import planning, spark, task
from bloomcli.datasets.engine import choose_engine, plan_files
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import DatasetReport, FileRow
from bloomcli.storage.base import FileEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: Final = {
    kind.command: kind
    for kind in (
        AddOptions,
        FoldOptions,
        InspectOptions,
        ProbeOptions,
        RemoveOptions,
        RepairOptions,
        SurveyOptions,
        ValidateOptions,
    )
}
CHANGING: Final = ("add", "remove", "fold", "repair")
"""Commands that write."""


def options_of(command: str, given: Mapping[str, Any], **target: Any) -> Options:
    """The options of a command."""
    kind = KINDS[command]
    return kind.of(**given, **target) if kind is AddOptions else kind(**given, **target)


def plan_tasks(command: str, listed: Sequence[FileEntry], given: Mapping[str, Any], **target: Any) -> list[Task]:
    """Tasks for files."""
    return planning.plan(listed, options_of(command, given, **target))


def run_on_spark(
    command: str, paths: Sequence[str], given: Mapping[str, Any], *, session: SparkSession, **target: Any
) -> DatasetReport:
    """The report of a command over files, on a session's executors."""
    engine = choose_engine(session=session)
    return engine.run(plan_files(engine, paths, options_of(command, given, **target)))


def attempt(one: Task, progress: Progress | None = None) -> FileRow:
    """The row of an attempt on Spark, which another attempt may overtake."""
    before = spark._target_fingerprint(one)
    return spark.settled(one, before, task.run(one, progress))
