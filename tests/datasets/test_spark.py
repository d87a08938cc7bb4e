"""Datasets on Spark: the local engine's rows and bytes, library functions, and failures."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
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
from support.spark_scan import scan
from support.tasks import plan_tasks, run_on_spark

from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.commands.options import InspectOptions
from bloomcli.datasets import local, spark
from bloomcli.datasets.spark_session import session as start_session
from bloomcli.errors import UnreadableError, UnsupportedError, UsageError, install
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
        ("inspect", {}),
        ("inspect", {"columns": ("nowhere",)}),
        ("validate", {"deep": True, "require": ("id",)}),
        ("survey", {}),
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


@pytest.mark.parametrize("in_place", [True, False])
def test_both_engines_write_the_same_rows_and_bytes(
    session: SparkSession, lake: Path, tmp_path: Path, in_place: bool
) -> None:
    mine, other = (shutil.copytree(lake, tmp_path / name / "lake") for name in ("spark", "local"))
    for command, options in (
        ("add", {**ID, "fpp": 0.001}),
        ("fold", {"max_bytes": 32}),
        ("remove", {}),
        ("repair", {"add": ("page-index",)}),
    ):
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


def test_hundreds_of_files_of_all_kinds_give_both_engines_the_same_rows_and_bytes(
    session: SparkSession, tmp_path: Path
) -> None:
    root = datasets.hundreds(tmp_path / "lake")
    made = [tmp_path / name for name in ("spark", "local")]
    report = run_on_spark("add", [str(root)], ID, output=made[0], session=session)
    expected = locally("add", root, ID, output=made[1])
    counts = datasets.HUNDREDS
    assert (report.done, report.skipped, report.failed) == (counts["new"], counts["done"], counts["broken"])
    assert report.files >= 300
    assert datasets.brief(report, made[0]) == datasets.brief(expected, made[1])
    assert datasets.digests(made[0]) == datasets.digests(made[1])
    assert len(datasets.digests(made[0])) == counts["new"] + counts["done"]
    again = run_on_spark("add", [str(root)], ID, output=made[0], session=session)
    assert (again.done, again.skipped, again.failed) == (0, counts["new"] + counts["done"], counts["broken"])
    assert datasets.digests(made[0]) == datasets.digests(made[1])
    assert datasets.temporary(tmp_path) == []


def test_temporary_files_of_runs_that_were_killed_are_removed(session: SparkSession, tmp_path: Path) -> None:
    root = datasets.plain(tmp_path, 3)
    left = root / "part=0" / ".000.parquet.bloom-0123456789ab.tmp"
    left.write_bytes(b"half")
    report = run_on_spark("add", [str(root)], ID, in_place=True, session=session)
    assert report.done == report.files == 3
    assert not left.exists()


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


@pytest.mark.parametrize(
    ("paths", "where", "kind", "message"),
    [
        (["empty"], {"in_place": True}, UsageError, "the directory holds no files"),
        (["empty"], {}, UsageError, "nowhere to write to"),
        (["nothing/*.parquet"], {"in_place": True}, UnreadableError, "the pattern matches no file"),
        (["hdfs://n/x"], {"in_place": True}, UnsupportedError, "URIs can be read, but not changed"),
        (["empty"], {"output": "hdfs://n/x"}, UnsupportedError, "URIs can be read, but not changed"),
    ],
)
def test_what_is_invalid_is_refused_before_anything_runs(
    session: SparkSession,
    tmp_path: Path,
    paths: Sequence[str],
    where: dict[str, Any],
    kind: type[Exception],
    message: str,
) -> None:
    (tmp_path / "empty").mkdir()
    named = [p if ":" in p else str(tmp_path / p) for p in paths]
    with pytest.raises(kind, match=message):
        run_on_spark("add", named, ID, session=session, **where)


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


def test_the_command_line_has_both_engines(
    session: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = datasets.mixed(tmp_path / "lake")
    reports = []
    for engine in ("spark", "local"):
        out = tmp_path / engine
        assert cli(["add", str(root), "-c", "id", "-o", str(out), "--engine", engine, "-f", "json"]) == 3
        report = json.loads(capfd.readouterr().out)
        for row in report["rows"]:
            row["seconds"] = 0
            row["output"] = (row["output"] or "").replace(str(out), "")
        reports.append(report)
    assert reports[0]["engine"] == "spark"
    assert reports[0]["rows"] == reports[1]["rows"]
    assert datasets.digests(tmp_path / "spark") == datasets.digests(tmp_path / "local")
    assert cli(["inspect", str(tmp_path / "spark"), "--engine", "spark"]) == 0
    assert "(" in capfd.readouterr().out


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


@pytest.mark.parametrize(
    ("setting", "java", "said"),
    [
        ("spark.ui.enabled=false", "/nowhere", "JAVA_HOME (/nowhere) has no bin/java"),
        ("spark.testing.memory=1", None, "System memory 1 must be at least"),
    ],
)
def test_a_spark_that_does_not_start_is_reported(
    session: SparkSession, tmp_path: Path, setting: str, java: str | None, said: str
) -> None:
    datasets.plain(tmp_path, 1)
    command = ["inspect", tmp_path, "--engine", "spark", "--master", "local[1]", "--conf", setting]
    done = subprocess.run(
        [sys.executable, "-m", "bloomcli", *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | ({} if java is None else {"JAVA_HOME": java}),
    )
    assert done.returncode == 4, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("bloom: Spark doesn't start: "))
    assert said in line
    assert done.stdout == ""


@pytest.mark.interop
@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_spark_reads_the_retrofitted_dataset_with_the_same_answers_and_fewer_rows(
    session: SparkSession, tmp_path: Path, form: str
) -> None:
    lake, out = tmp_path / "lake", tmp_path / "out"
    for seed in range(6):
        path = lake / f"day={seed % 2}" / f"{seed}.{form}"
        if form == "orc":
            datasets.write(path, 3000, seed)
        else:  # a dictionary would do what a filter does
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(datasets.table(3000, seed), path, row_group_size=1000, use_dictionary=False)
    assert run_on_spark("add", [str(lake)], {**ID, "fpp": 0.0001}, output=out, session=session).done == 6
    before, after = (session.read.format(form).load(str(root)) for root in (lake, out))
    assert before.count() == after.count() == 18_000
    read = [0, 0]
    for value in (0, 3, 1_004_500, 4_001_500, 1, 1_004_501, 5_000_002, 9_000_000):
        for condition in (f"id = {value}", f"id in ({value}, {value} + 1) and day = 1"):
            (found, rows), (same, fewer) = scan(before, condition), scan(after, condition)
            assert same == found
            assert fewer <= rows
            read[0] += rows
            read[1] += fewer
    assert read[1] < read[0]
    assert scan(after, "id = 1004501") == ([], 0)
    assert scan(before, "id = 1004501")[1] > 0


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
