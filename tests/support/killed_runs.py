"""``python -m support.killed_runs PLAN``: runs ``bloom add --table`` on tables, and ends the runs by a plan.

The plan is JSON: `conf`, the ``--conf`` pairs; `runs`, each with `table` and `stage` (of `support.table_stages`, or
`worker`: while an executor writes), and `how`:

- ``kill``: each run except the last waits at its stage while the next one runs, all of them in this process; at the
  stage of the last run, Java, this process and its executor are killed at once.
- ``signals``: each run gets its `signal` at its stage, or the Java that `kills` names (``executor``, ``driver``)
  is killed there; the exit codes and the messages are written to `answers`.

`master` is Spark's, by default ``local[2]``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from support.processes import wait_until
from support.table_stages import Run, stages


def arguments(plan: dict[str, Any], table: str) -> list[str]:
    """The command line."""
    settings = [part for pair in plan["conf"] for part in ("--conf", pair)]
    master = plan.get("master", "local[2]")
    return ["add", "--table", table, "-c", "id", "--commit-every", "2", "--master", master, *settings]


def java() -> int:
    """The process id of Java."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    return int(context._gateway.proc.pid)


def executor() -> int:
    """The process id of an executor's Java, in its Python."""
    pid = os.getppid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def kill() -> NoReturn:
    """Kill Java and this process, as the failure of a machine does."""
    os.kill(java(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def hold_rename(run: Run, table: str) -> None:
    """Have Iceberg's commit write all its files and wait before the last step, the rename of the metadata file."""
    from bloomcli.datasets.spark_session import session

    spark: Any = session()
    loaded = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    folder = Path(loaded.location().removeprefix("file:")) / "metadata"
    newest = max(int(path.name.split(".")[0][1:]) for path in folder.glob("v*.metadata.json"))
    target = f"{loaded.location()}/metadata/v{newest + 1}.metadata.json"
    manager = spark._jvm.org.apache.iceberg.util.LockManagers.defaultLockManager()
    assert manager.acquire(target, "a test")
    assert run.pending is not None
    threading.Thread(target=run.pending, daemon=True).start()

    def written() -> bool:
        return any(not path.name.startswith("v") for path in folder.glob("*.metadata.json"))

    assert wait_until(written), "no new metadata file"


def leave(plan: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Begin each run, let it wait at its stage for the next, and kill all processes at the stage of the last run."""
    if not runs:
        kill()
    first, *rest = runs
    if first["stage"] == "worker":
        victims = java(), os.getpid()
        in_worker(lambda: (*victims, os.getpid()), signal.SIGKILL)

    def at(stage: str, count: int, paths: Any) -> None:
        del paths
        if stage == "committing" and first["stage"] == "renaming":
            hold_rename(run, first["table"])
            leave(plan, rest)
        if (stage, count) == (first["stage"], first.get("count", 1)):
            leave(plan, rest)

    from bloomcli.cli import run as command

    with stages(at) as run:
        code = command(arguments(plan, first["table"]))
    sys.exit(f"{first} wasn't reached: the exit code is {code}")


def in_worker(victims: Callable[[], Sequence[int]], number: int, seconds: float = 0.0) -> None:
    """Have an executor's Python, once it has written a new file, find processes and send them a signal."""
    from bloomcli.datasets import spark as engine

    real, mark = engine.run_pack, tempfile.mkdtemp()

    def work(pack: Any) -> Any:
        for row in real(pack):
            yield row
            if pack.tasks[0][1].output is not None and os.path.exists(mark):  # noqa: PTH110
                os.rmdir(mark)  # noqa: PTH106
                for victim in victims():
                    os.kill(victim, number)
                time.sleep(seconds)

    engine.run_pack = work


def interrupted(plan: dict[str, Any]) -> None:
    """Stop each run, or kill Java under it."""
    from bloomcli.cli import run as command

    answers = []
    for one in plan["runs"]:
        number = getattr(signal, one.get("signal", "SIGKILL"))
        found = {"executor": executor, "driver": java}.get(one.get("kills", ""), os.getpid)
        if one["stage"] == "worker":
            here = found() if found is not executor else None
            in_worker(lambda pid=here: [pid or executor()], number, 2.0)  # type: ignore[misc]

        def at(stage: str, count: int, paths: Any, one: dict[str, Any] = one) -> None:
            del paths
            if (stage, count) == (one["stage"], one.get("count", 1)):
                os.kill(found(), number)  # noqa: B023  called in this turn

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), stages(at):
            try:
                code: Any = command([*arguments(plan, one["table"]), "-f", "json"])
            except SystemExit as error:
                code = error.code
        answers.append({"code": code, "out": out.getvalue(), "err": err.getvalue()})
        Path(plan["answers"]).write_text(json.dumps(answers))
    os._exit(0)


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    if given["how"] == "kill":
        leave(given, given["runs"])
    else:
        interrupted(given)
