"""Datasets on Spark: the local engine's rows and bytes, library functions, and failures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from support import datasets
from support.processes import wait_until
from support.tasks import plan_tasks, run_on_spark

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.commands.options import InspectOptions
from bloomcli.datasets import local, spark
from bloomcli.datasets.spark_session import session as start_session
from bloomcli.errors import UsageError, install
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.listing import expand

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ID: dict[str, Any] = {"columns": ("id",)}


@pytest.fixture(scope="module", name="session")
def _session(request: pytest.FixtureRequest) -> Any:
    """The suite's session, under a name that isn't the engine's."""
    return request.getfixturevalue("spark")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dozens of files of all kinds; a larger one among them."""
    root = datasets.mixed(tmp_path_factory.mktemp("spark") / "lake")
    datasets.plain(root / "plain", 30)
    datasets.write(root / "large.parquet", 100_000, 99)
    return root


def locally(command: str, root: Path, options: dict[str, Any], **where: Any) -> DatasetReport:
    """The same by the local engine."""
    return local.run(plan_tasks(command, expand([str(root)]), options, **where), jobs=2)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("inspect", {"columns": ("nowhere",)}),
        ("validate", {"deep": True, "require": ("id",)}),
        ("probe", {"values": ("3", "-1"), "column": "id"}),
    ],
)
def test_both_engines_read_the_same_rows(
    session: SparkSession, lake: Path, command: str, options: dict[str, Any]
) -> None:
    report = run_on_spark(command, [str(lake)], options, session=session)
    assert datasets.brief(report) == datasets.brief(locally(command, lake, options))
    assert (report.command, report.engine, report.jobs, report.exit_code) == (command, "spark", 2, 3)
    assert report.seconds > 0


CHANGES: dict[str, dict[str, Any]] = {
    "add": {**ID, "fpp": 0.001},
    "fold": {"max_bytes": 32},
    "remove": {},
    "repair": {"add": ("page-index",)},
}


@pytest.mark.parametrize(("in_place", "commands"), [(True, [*CHANGES]), (False, ["add"])])
def test_both_engines_write_the_same_rows_and_bytes(
    session: SparkSession, lake: Path, tmp_path: Path, in_place: bool, commands: list[str]
) -> None:
    mine, other = (shutil.copytree(lake, tmp_path / name / "lake") for name in ("spark", "local"))
    for command in commands:
        options = CHANGES[command]
        made = [folder.parent / command for folder in (mine, other)]
        where = [{"in_place": True} if in_place else {"output": m} for m in made]
        report = run_on_spark(command, [str(mine)], options, session=session, **where[0])
        expected = locally(command, other, options, **where[1])
        assert datasets.brief(report, mine, made[0]) == datasets.brief(expected, other, made[1]), command
        assert datasets.digests(mine.parent) == datasets.digests(other.parent), command
        assert report.done + report.skipped + report.failed == report.files > 40
        again = run_on_spark(command, [str(mine)], options, session=session, **where[0])
        assert (again.done, again.failed) == (0, report.failed)
        assert datasets.temporary(tmp_path) == []


def test_ctrl_c_cancels_the_job_and_the_session_goes_on(session: SparkSession, tmp_path: Path) -> None:
    context = session.sparkContext
    done = tmp_path / "done"
    done.mkdir()

    def slowly(number: int) -> None:
        time.sleep(0.3)
        (done / str(number)).touch()

    def interrupt() -> None:
        wait_until(lambda: any(done.iterdir()))
        os.kill(os.getpid(), signal.SIGINT)

    described = context.getLocalProperty("spark.job.description")
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt), spark.job(session, "slow"):
        context.parallelize(range(2000), 1000).foreach(slowly)
    thread.join()
    assert wait_until(lambda: not context.statusTracker().getActiveJobsIds())
    assert len(list(done.iterdir())) < 500
    assert context.getLocalProperty("spark.job.description") == described
    datasets.write(tmp_path / "a.parquet")
    assert run_on_spark("inspect", [str(tmp_path / "a.parquet")], {}, session=session).done == 1


def test_one_name_or_value_is_meant_as_one(session: SparkSession, tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "a.parquet")
    added = bloom_spark.add(session, path, "id", in_place=True).first()
    assert added is not None
    assert (added.status, added.columns) == ("done", 1)
    assert bloom_spark.validate(session, path, columns="id", require="id").first().status == "done"  # type: ignore[union-attr]
    for values in (5, "5", [5], [b"5"]):
        (total,) = bloom_spark.probe(session, path, values, column="id").selectExpr("inline(totals)").collect()
        assert total.value == "5"


def test_a_file_that_takes_its_worker_down_is_a_row(session: SparkSession, tmp_path: Path) -> None:
    files = [datasets.write(tmp_path / f"{i}.parquet", seed=i) for i in range(4)]
    tasks = plan_tasks("inspect", expand([str(f) for f in files]), {})
    killing = InspectOptions()
    object.__setattr__(killing, "columns", map(os._exit, (9,)))  # when it is used, as the kernel does without memory
    tasks[1] = replace(tasks[1], options=killing)
    packs = [spark.Pack(((0, tasks[0]), (1, tasks[1]))), spark.Pack(((2, tasks[2]), (3, tasks[3])))]
    rows = spark._collect(session.sparkContext, packs, None)
    assert [rows[i].status for i in range(4)] == [Status.DONE, Status.FAILED, Status.DONE, Status.DONE]
    assert "the process that worked on it was killed, twice" in (rows[1].error or "")


def test_relative_paths_are_the_drivers(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets.write(tmp_path / "a" / "p=1" / "f.parquet")
    monkeypatch.chdir(tmp_path)
    report = run_on_spark("add", ["a"], ID, output="b", session=session)
    assert [(r.path, r.output) for r in report.rows] == [
        (str(tmp_path / "a/p=1/f.parquet"), str(tmp_path / "b/p=1/f.parquet"))
    ]
    report = run_on_spark("inspect", ["file:b/p=1/f.parquet", (tmp_path / "b").as_uri()], {}, session=session)
    assert {r.path for r in report.rows} == {str(tmp_path / "b/p=1/f.parquet")}
    assert report.rows[0].filters == 2


def test_the_session_that_exists_is_used(session: SparkSession) -> None:
    assert start_session("local[7]", {"spark.app.name": "other"}) is session


def test_library_functions_give_frames_of_rows_that_exist(session: SparkSession, tmp_path: Path) -> None:
    root = datasets.mixed(tmp_path / "lake")
    frame = bloom_spark.add(session, root, ["id"], fpp=0.001, in_place=True)
    assert frame.columns == list(FileRow.__dataclass_fields__)
    assert frame.groupBy("status").count().orderBy("status").collect() == [
        ("done", len(datasets.GOOD)),
        ("failed", len(datasets.BROKEN) + 1),
        ("skipped", len(datasets.FILTERED) + len(datasets.OTHER) - 1),
    ]
    (missed,) = frame.where("path like '%done.parquet'").select("error", "hint").collect()
    assert "its false-positive rate is" in missed.error
    assert "--replace" in missed.hint
    assert frame.where("status = 'done'").count() == len(datasets.GOOD), "it is done once, not at each use"
    worst = frame.selectExpr("max(max_fpp)").first()
    assert worst is not None
    assert 0 < worst[0] <= 0.001
    (bad,) = frame.where("path like '%cut.parquet'").select("error", "exit_code", "findings").collect()
    assert (bad.exit_code, bad.findings) == (3, [])
    assert "was cut off" in bad.error

    found = bloom_spark.validate(session, [root / "done.orc", str(root / "_p=1")], require=["name"])
    rows = found.selectExpr("path", "explode(findings) as f").select("path", "f.id", "f.severity", "f.column")
    assert {tuple(r)[1:] for r in rows.collect()} == {("filter-required", "error", "name")}

    assert bloom_spark.inspect(session, root / "done.parquet").first().filters == 2  # type: ignore[union-attr]
    probed = bloom_spark.probe(session, root / "done.parquet", ["1"], column="id")
    (total,) = probed.selectExpr("inline(totals)").collect()
    assert (total.presence, total.row_groups) == ("absent", 2)
    folded = bloom_spark.fold(session, root / "done.parquet", max_bytes=32, dry_run=True)
    assert folded.first().status == "planned"  # type: ignore[union-attr]
    removed = bloom_spark.remove(session, root / "_p=1", columns="id", output=tmp_path / "out")
    assert removed.first().output == str(tmp_path / "out" / "_p=1" / "part-0.parquet")  # type: ignore[union-attr]
    assert datasets.digests(tmp_path / "out").keys() == {"_p=1/part-0.parquet"}
    with pytest.raises(UsageError, match="exclude each other"):
        bloom_spark.add(session, root, ["id"], output=tmp_path, in_place=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bloom_spark.nothing  # noqa: B018  the access is the test


def test_library_functions_are_described() -> None:
    for name in bloom_spark.__all__:
        text = getattr(bloom_spark, name).__doc__ or ""
        files = "\n        table" if name.endswith(("_table", "_reachable")) else "\n        paths"
        assert name == "BloomFilters" or all(part in text for part in ("Args:", "spark:", files, "Raises:")), name


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--engine", "spark", "--jobs", "2"], "--jobs is for the local engine"),
        (["--engine", "spark", "--fail-fast"], "--fail-fast on Spark is for commands that change files"),
        (["--master", "local[2]"], "--master and --conf are for Spark"),
        (["--conf", "a=b"], "--master and --conf are for Spark"),
    ],
)
def test_options_of_the_other_engine_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    datasets.plain(tmp_path, 2)
    assert cli(["inspect", str(tmp_path), *args]) == 2
    assert message in capfd.readouterr().err


NO_PYSPARK = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
from bloomcli.cli import run
code = run(["inspect", sys.argv[1], "--engine", "spark"])
try:
    from bloomcli.spark import BloomFilters
except Exception as error:
    print(type(error).__name__, error.hint)
sys.exit(code)
"""


def test_without_pyspark_it_says_how_to_install_it(tmp_path: Path) -> None:
    datasets.plain(tmp_path, 1)
    done = subprocess.run([sys.executable, "-c", NO_PYSPARK, tmp_path], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 4
    assert done.stderr.count(install("spark")) == 1
    assert done.stdout.split(maxsplit=1) == ["UnsupportedError", f"{install('spark')}\n"]


def test_a_spark_that_does_not_start_is_reported(session: SparkSession, tmp_path: Path) -> None:
    datasets.plain(tmp_path, 1)
    command = ["inspect", tmp_path, "--engine", "spark", "--master", "local[1]", "--conf", "spark.testing.memory=1"]
    done = subprocess.run([sys.executable, "-m", "bloomcli", *command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 4, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("bloom: Spark doesn't start: "))
    assert "System memory 1 must be at least" in line
    assert done.stdout == ""


def test_columns_that_a_reader_would_lose_rows_by_get_no_filter_unless_others_read(
    session: SparkSession, tmp_path: Path
) -> None:
    """The policy with its readers, and the table's schema, are sent to the executors with the tasks."""
    root = tmp_path / "lake"
    root.mkdir()
    half = pa.array(np.arange(20, dtype="float16"))
    at = pa.array(range(20), pa.timestamp("ms"))
    pq.write_table(pa.table({"id": range(20), "half": half, "at": at}), root / "f.parquet")
    (named,) = bloom_spark.add(session, root, "half", in_place=True).collect()
    assert (named.status, named.exit_code) == ("failed", 2)
    assert "column half gets no filter: values are hashed at 2 bytes and DuckDB looks 4 up" in named.error
    schema = tmp_path / "table.sql"
    schema.write_text("id bigint, half float, at timestamp")
    (every,) = bloom_spark.add(session, root, "*", in_place=True, table_schema=schema).collect()
    assert (every.status, every.columns) == ("done", 1)
    assert "left out: half, " in every.reason
    assert "left out: at, values are hashed as milliseconds and Iceberg looks microseconds up" in every.reason
    (asked,) = bloom_spark.add(session, root, ["half"], in_place=True, readers="spark").collect()
    assert (asked.status, asked.columns) == ("done", 1)
    policy = tmp_path / "bloom.toml"
    policy.write_text('readers = ["trino"]\n')
    (by_policy,) = bloom_spark.add(
        session, root, ["at", "half"], in_place=True, replace=True, policy=policy
    ).collect()
    assert (by_policy.status, by_policy.columns) == ("done", 2)


def test_excluded_columns_stay_out_on_executors(session: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("a", "b"):
        table = pa.table({"id": range(50), "name": [f"n{i}" for i in range(50)], "secret": ["s"] * 50})
        pq.write_table(table, lake / f"{name}.parquet")

    def filtered() -> list[set[str]]:
        return [{f.column for f in bloomcli.inspect(path).filters} for path in sorted(lake.iterdir())]

    rows = bloom_spark.add(session, lake, ["*"], exclude="secret", in_place=True).collect()
    assert [(row.status, row.columns) for row in rows] == [("done", 2)] * 2
    assert filtered() == [{"id", "name"}] * 2
    assert [row.filters for row in bloom_spark.inspect(session, lake, exclude=["n*"]).collect()] == [1, 1]
    checked = bloom_spark.validate(session, lake, exclude=["id", "secret"], require=["*"], deep=True).collect()
    assert [(row.status, row.filters, row.values_checked) for row in checked] == [("done", 1, 50)] * 2
    assert [row.status for row in bloom_spark.probe(session, lake, 3, exclude="name").collect()] == ["done"] * 2
    report = bloomcli.gate(lake, session=session, exclude=["id"], require=["*"])
    assert {f.column for f in report.findings} == {"secret"}
    session.dataSource.register(bloom_spark.BloomFilters)
    frame = session.read.format("bloom").option("exclude", "id, secret").load(str(lake))
    assert {row.column for row in frame.select("column").collect()} == {"name"}
    bloom_spark.fold(session, lake, exclude=["id", "name", "secret"], in_place=True).collect()
    bloom_spark.remove(session, lake, exclude=["id"], in_place=True).collect()
    assert filtered() == [{"id"}] * 2
