"""The state of a table after a run is killed or stopped, or a commit fails or its answer is lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JNetworkError
from support import spark_tables
from support.lake_tables import FILES, Delta, Iceberg, LakeTable, Rows
from support.processes import wait_until, working_in
from support.table_stages import stages

from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Make = Callable[[], LakeTable]
TESTS = Path(__file__).parents[1]
_SETTINGS = (
    *spark_tables.CLASS_PATHS,
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.catalog.ice",
)
_MORE = ("type", "warehouse", "cache-enabled")


@pytest.fixture(params=["iceberg", "delta"])
def make(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Make:
    """Makes tables of a format."""
    return maker(spark, tmp_path, request.param)


def maker(spark: SparkSession, folder: Path, kind: str) -> Make:
    if kind == "iceberg":
        return lambda: Iceberg(spark)
    return lambda: Delta(spark, folder / f"delta-{time.monotonic_ns()}")


def add(table: LakeTable, **options: Any) -> list[Row]:
    """Run add on the column id, with two files in each commit; returns the rows of the report."""
    options = {"columns": ["id"], "commit_every": 2, **options}
    return bloom_spark.add_to_table(table.spark, table.name, **options).collect()


def sound(table: LakeTable, rows: Rows, version: int | None = None) -> None:
    """Check that the table has these rows and, if a version is named, that version too."""
    assert table.rows() == rows
    assert version is None or table.rows(version) == rows
    assert all(path.exists() for path in table.live())


def finished(table: LakeTable, rows: Rows, version: int) -> list[str]:
    """Check that a second run completes the work; returns the statuses of the files."""
    found = table.add()
    assert set(found) <= {"done", "skipped"}
    assert len(found) == FILES
    assert not table.lacking()
    sound(table, rows, version)
    key = min(rows)
    assert table.point(key) == [rows[key][1]]
    return found


def settings(spark: SparkSession, folder: Path) -> list[str]:
    """The session's catalogs, in the form of ``--conf``."""
    names = [*_SETTINGS, *(f"spark.sql.catalog.ice.{name}" for name in _MORE)]
    return [
        *(f"{name}={spark.conf.get(name)}" for name in names),
        *(f"{name}={value}" for name, value in spark_tables.SMALL.items()),
        "spark.ui.enabled=false",
        f"spark.local.dir={folder}",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.driver.memory=1g",
        f"spark.driver.extraJavaOptions={spark_tables.QUICK_JAVA}",
    ]


def in_process(
    spark: SparkSession, folder: Path, how: str, runs: list[dict[str, Any]], master: str = "local[2]"
) -> tuple[int, str, Any]:
    """Run a plan of `support.killed_runs`; returns the process's exit code, its errors and the answers."""
    folder.mkdir(exist_ok=True)
    plan, answers = folder / "plan.json", folder / "answers.json"
    said = {"conf": settings(spark, folder), "answers": os.fspath(answers), "master": master}
    plan.write_text(json.dumps({"how": how, "runs": runs, **said}))
    path = os.pathsep.join(map(str, (spark_tables.home() / "site", TESTS.parent, TESTS)))
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_runs", plan],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,  # only for one that hangs
        check=False,
    )
    return done.returncode, done.stderr, json.loads(answers.read_text()) if answers.exists() else []


_KILLED = {
    ("iceberg", "made"): (1, 0, 2),
    ("iceberg", "renaming"): (1, 0, 2),
    ("iceberg", "committing"): (2, 2, 2),
    ("delta", "committing"): (2, 2, 2),
    ("iceberg", "landed"): (1, 2, 0),
    ("delta", "landed"): (1, 2, 0),
    ("iceberg", "worker"): (1, 0, 2),
}
"""How often a run has come to a stage, how many files have their filters, and how many new data files no version has,
when all is killed there. Stages between which nothing is written are one. Until files are committed both formats'
runs are the same. Delta writes no deletes for a commit."""


def has_deletes(path: Path) -> bool:
    """Whether a file is one of position deletes: a killed commit leaves new ones."""
    return path.suffix == ".parquet" and pq.read_schema(path).names[:2] == ["file_path", "pos"]


def test_a_run_that_is_killed_leaves_the_table_sound_and_can_be_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    places = list(_KILLED)
    tables = [maker(spark, tmp_path, kind)() for kind, _ in places]
    before = [(table.rows(), table.version()) for table in tables]
    runs = [
        {"table": table.name, "stage": stage, "count": count}
        for table, ((_, stage), (count, _, _)) in zip(tables, _KILLED.items(), strict=True)
    ]
    code, errors, _ = in_process(spark, tmp_path, "kill", runs)
    assert code == -signal.SIGKILL, errors
    assert wait_until(lambda: not working_in(tmp_path.resolve())), "the workers outlive Java"
    for table, (rows, version), (kind, stage) in zip(tables, before, places, strict=True):
        _, done, loose = _KILLED[kind, stage]
        where = f"{kind}, {stage}"
        sound(table, rows)
        assert len(table.lacking()) == FILES - done, where
        orphans = [path for path in table.orphans() if not has_deletes(path)]
        assert len(orphans) <= loose if stage == "worker" else len(orphans) == loose, where
        statuses = finished(table, rows, version)
        assert statuses.count("skipped") == done, where
        assert not any(path.suffix == ".tmp" for path in table.orphans()), where


def test_a_killed_worker_s_files_are_written_by_another(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from bloomcli.datasets import spark as engine

    mark = os.fspath(tmp_path / "died")

    def work(pack: Any) -> Iterator[Any]:
        from bloomcli.datasets.spark import run_pack  # the worker's own

        for row in run_pack(pack):
            if pack.tasks[0][1].output is not None and not os.path.exists(mark):  # noqa: PTH110
                open(mark, "x").close()  # noqa: PTH123
                os.kill(os.getpid(), signal.SIGKILL)
            yield row

    table = Iceberg(spark)
    rows, version = table.rows(), table.version()
    monkeypatch.setattr(engine, "run_pack", work)
    found = add(table)
    assert Path(mark).exists()
    assert [row.status for row in found] == ["done"] * FILES
    sound(table, rows, version)
    assert not table.lacking()
    assert not table.orphans()


@contextmanager
def java_may_not_write(spark: SparkSession) -> Iterator[None]:
    """Java can't write any byte, as on a full disk."""
    context: Any = spark.sparkContext
    java = context._gateway.proc.pid
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    resource.prlimit(java, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(java, resource.RLIMIT_FSIZE, before)


def test_a_commit_that_can_t_be_written_leaves_the_table_as_it_was(make: Make, spark: SparkSession) -> None:
    table = make()
    rows, version = table.rows(), table.version()

    def at(stage: str, count: int, paths: Any) -> None:
        del paths
        if (stage, count) == ("committing", 2):
            assert run.pending is not None
            with java_may_not_write(spark):
                run.pending()

    with stages(at) as run:
        found = add(table)
    assert [row.status for row in found].count("done") == 2, "what is committed stays"
    failed = [row for row in found if row.status == "failed"]
    assert len(failed) == 2
    assert all(row.error and "Traceback" not in row.error and row.hint for row in failed)
    sound(table, rows)
    assert not table.orphans()
    assert finished(table, rows, version).count("skipped") == 2


def test_a_commit_whose_answer_is_lost_is_found_and_the_run_goes_on(spark: SparkSession) -> None:
    table = Iceberg(spark)
    rows, version = table.rows(), table.version()

    def at(stage: str, count: int, paths: Any) -> None:
        del paths
        if (stage, count) == ("landed", 2):
            raise Py4JNetworkError("Answer from Java side is empty")

    with stages(at):
        found = add(table)
    assert [row.status for row in found] == ["done"] * FILES
    sound(table, rows, version)
    assert not table.lacking()
    assert not table.orphans()


def test_a_request_that_is_lost_before_the_commit_leaves_the_table_as_it_was(spark: SparkSession) -> None:
    table = Iceberg(spark)
    rows, version = table.rows(), table.version()

    def at(stage: str, count: int, paths: Any) -> None:
        del paths
        if (stage, count) == ("committing", 1):
            raise Py4JNetworkError("Error while sending")

    with stages(at):
        found = add(table)
    failed = [row for row in found if row.status == "failed"]
    assert len(failed) == 2
    sound(table, rows)
    assert len([path for path in table.orphans() if not has_deletes(path)]) == 2, "the request may still arrive"
    said = " ".join(f"{row.error} {row.output}" for row in failed)
    assert all(path.name in said for path in table.orphans()), "the rows name the files that stay"
    assert finished(table, rows, version) == ["done"] * FILES


_STOPPED = [
    ("iceberg", "made", 2, "SIGTERM", 143, 2),
    ("iceberg", "worker", 1, "SIGINT", 130, 0),
    ("iceberg", "committing", 2, "SIGTERM", 143, 4),
    ("delta", "committing", 2, "SIGTERM", 143, 4),
    ("iceberg", "committed", 1, "SIGINT", 130, 2),
]
"""Format, stage, how often the run has come to it, signal, exit code, and files that are committed then. All runs are
in one process: where one can't open its table after another was stopped, it fails."""


def test_a_run_that_is_stopped_removes_its_batch_and_says_how_far_it_came(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs, expected = [], []
    for kind, stage, count, name, code, files in _STOPPED:
        table = maker(spark, tmp_path, kind)()
        runs.append({"table": table.name, "stage": stage, "count": count, "signal": name})
        expected.append((table, table.rows(), table.version(), code, files))
    exit_code, errors, answers = in_process(spark, tmp_path, "signals", runs)
    assert exit_code == 0, errors
    for run, answer, (table, rows, version, code, files) in zip(runs, answers, expected, strict=True):
        assert answer["code"] == code, (run, answer)
        assert "Traceback" not in answer["err"], run
        sound(table, rows)
        assert FILES - len(table.lacking()) == files, run
        far = f"{files} of {FILES} files replaced" if files else "nothing was committed"
        assert f"bloom: stopped: {far}" in answer["err"], (run, answer)
        assert not table.orphans(), run
        assert finished(table, rows, version).count("skipped") == files


def test_a_java_process_that_is_killed_leaves_the_table_sound_and_the_run_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    """First an executor's on a cluster with two, and then the driver's; in another process the driver's right after
    its commit. The two processes run in parallel."""
    tables = [maker(spark, tmp_path, kind)() for kind in ("iceberg", "delta", "delta")]
    before = [(table.rows(), table.version()) for table in tables]
    plans = [
        ("local-cluster[2,1,1024]", [("worker", "executor"), ("worker", "driver")]),
        ("local[1]", [("landed", "driver")]),
    ]
    waiting = iter(tables)
    with ThreadPoolExecutor() as threads:
        started = []
        for number, (master, kills) in enumerate(plans):
            runs = [{"table": next(waiting).name, "stage": stage, "kills": who} for stage, who in kills]
            started.append(threads.submit(in_process, spark, tmp_path / f"p{number}", "signals", runs, master))
        answers = [answer for one in started for answer in one.result()[2]]
    lost_executor, lost_driver, lost_answer = answers
    for (rows, _), table in zip(before, tables, strict=True):
        sound(table, rows)
    assert lost_executor["code"] == 0, lost_executor
    assert [row["status"] for row in json.loads(lost_executor["out"])["rows"]] == ["done"] * FILES
    assert lost_driver["code"] == 3
    found = json.loads(lost_driver["out"])
    assert (found["failed"], found["not_started"], found["commits"]) == (2, FILES - 2, [])
    assert all("Spark's Java process has ended" in row["error"] for row in found["rows"])
    assert ["couldn't be removed" in text for text in found["remarks"]] == [True, True, False]
    assert "the commits of others during the run can't be listed" in found["remarks"][-1]
    assert lost_answer["code"] == 3
    found = json.loads(lost_answer["out"])
    assert "it isn't known whether a commit has taken place" in " ".join(found["remarks"])
    assert all(answer["err"] == "" for answer in answers), answers
    assert [FILES - len(table.lacking()) for table in tables] == [FILES, 0, 2]
    assert [finished(t, *b).count("skipped") for t, b in zip(tables, before, strict=True)] == [FILES, 0, 2]
