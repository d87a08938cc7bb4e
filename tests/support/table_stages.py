"""Calls a function at each stage of a bloom run on a table, in the process that runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

STAGES: Final = ("planned", "writing", "made", "refreshed", "committing", "landed", "committed")
"""planned     the files are checked, and none is written
writing     a batch's new files are about to be written by executors
made        they are written
refreshed   the table has been read again, and the batch is about to be committed
committing  the Java method that commits is about to be called
landed      it has returned, and its answer is about to be read
committed   the batch is committed
"""

OnStage = Callable[[str, int, Sequence[str]], None]
"""Called with a stage, the number of times that the run has reached it, and the paths of the batch's files."""


class Run:
    """The stage of a run."""

    def __init__(self, call: OnStage) -> None:
        self.call = call
        self.counts: Counter[str] = Counter()
        self.paths: list[str] = []
        self.method = ""
        """The Java method that commits, within a commit."""
        self.pending: Callable[[], Any] | None = None
        """At `committing`: the call that commits."""
        self._busy = False

    def at(self, stage: str) -> None:
        """Call the function. A run that it starts itself has no stages here."""
        if self._busy:
            return
        self._busy = True
        try:
            self.counts[stage] += 1
            self.call(stage, self.counts[stage], self.paths)
        finally:
            self._busy = False


@contextmanager
def stages(call: OnStage) -> Iterator[Run]:
    """Call a function at each stage of the run on a table within the block."""
    from py4j.java_gateway import JavaMember

    from bloomcli.datasets.spark import SparkEngine
    from bloomcli.tables.delta.table import DeltaTable
    from bloomcli.tables.iceberg import IcebergTable

    run = Run(call)
    check, work, member = SparkEngine.check, SparkEngine.run, JavaMember.__call__

    def checked(engine: Any, tasks: Any, **more: Any) -> Any:
        run.paths = [task.path for task in tasks]
        found = check(engine, tasks, **more)
        run.at("planned")
        return found

    def worked(engine: Any, tasks: Any, **more: Any) -> Any:
        run.paths = [task.path for task in tasks]
        run.at("writing")
        report = work(engine, tasks, **more)
        run.at("made")
        return report

    def called(java: Any, *arguments: Any) -> Any:
        if not run.method or java.name != run.method:
            return member(java, *arguments)
        run.pending = lambda: member(java, *arguments)
        run.at("committing")
        version = member(java, *arguments)
        run.at("landed")
        return version

    def committer(commit: Any, method: str) -> Any:
        def committed(table: Any, *arguments: Any) -> Any:
            run.at("refreshed")
            before, run.method = run.method, method
            try:
                version = commit(table, *arguments)
            finally:
                run.method = before
            run.at("committed")
            return version

        return committed

    with ExitStack() as stack:
        stack.enter_context(patch.object(SparkEngine, "check", checked))
        stack.enter_context(patch.object(SparkEngine, "run", worked))
        stack.enter_context(patch.object(JavaMember, "__call__", called))
        for kind, method in ((IcebergTable, "commitTransaction"), (DeltaTable, "commit")):
            stack.enter_context(patch.object(kind, "commit", committer(kind.commit, method)))
        yield run
