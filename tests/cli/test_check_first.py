"""All files are looked at before the first one is changed: by every command that changes files, and both engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets
from support.cli import Bloom
from support.tasks import options_of

import bloomcli
from bloomcli.datasets import local
from bloomcli.datasets.engine import choose_engine, plan_files, run_tasks
from bloomcli.model.dataset import FileRow, Status

COMMANDS = {"add": ["-c", "name"], "remove": [], "fold": [], "repair": ["--add", "page-index"]}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Seven files with oversized filters on id; the smallest, which comes last, is cut off."""
    root = datasets.plain(tmp_path / "lake", 7)
    for path in root.rglob("*.parquet"):
        bloomcli.add(path, ["id"], in_place=True, ndv=50_000)
    cut = datasets.write(root / "cut.parquet", 4, 99)
    cut.write_bytes(cut.read_bytes()[:-50])
    return root


@pytest.mark.parametrize(("command", "jobs"), [*((command, 1) for command in COMMANDS), ("add", 2)])
def test_with_fail_fast_nothing_is_changed_where_a_file_is_refused(
    bloom: Bloom, lake: Path, command: str, jobs: int
) -> None:
    before = datasets.digests(lake)
    text = bloom(command, *COMMANDS[command], lake, "--in-place", "--fail-fast", "--jobs", jobs)
    assert text.code == 3
    assert "7 files not started: --fail-fast ended the run, and no file was changed" in text.out
    assert "cut.parquet" in text.out
    assert datasets.digests(lake) == before
    assert datasets.temporary(lake) == []


@pytest.mark.parametrize("command", ["add", "repair"])
def test_without_fail_fast_the_refused_file_is_reported_and_the_others_are_changed(
    bloom: Bloom, lake: Path, command: str
) -> None:
    before = datasets.digests(lake)
    done = bloom(command, *COMMANDS[command], lake, "--in-place", "-f", "json")
    assert done.code == 3
    assert (done.json["failed"], done.json["done"], done.json["not_started"]) == (1, 7, 0)
    assert sum(digest != before[name] for name, digest in datasets.digests(lake).items()) == 7


@pytest.mark.parametrize("make", ["output", "column", "table"])
def test_every_kind_of_refusal_is_known_before_the_first_change(bloom: Bloom, tmp_path: Path, make: str) -> None:
    lake, out = datasets.plain(tmp_path / "lake", 4), tmp_path / "out"
    target = ["-o", out] if make == "output" else ["--in-place"]
    if make == "output":
        out.mkdir()
        (out / "part=0").mkdir()
        (out / "part=0" / "003.parquet").write_text("of no format")
    elif make == "column":
        pq.write_table(pa.table({"other": [1]}), lake / "other.parquet")
    else:
        (lake / "part=1" / "_delta_log").mkdir()
        (lake / "part=1" / "_delta_log" / f"{0:020}.json").write_text("{}\n")
    before = datasets.digests(tmp_path)
    report = bloom("add", lake, "-c", "id", *target, "--fail-fast", "-f", "json")
    assert report.code == 2
    assert report.json["failed"] == 1
    assert report.json["done"] == 0
    assert datasets.digests(tmp_path) == before


def test_each_file_is_reported_once_and_a_settled_one_is_not_opened_again(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[str]] = []
    real = local.run

    def counting(tasks: list[object], **how: object) -> object:
        runs.append(sorted(Path(t.path).name for t in tasks if t.row is None))  # type: ignore[attr-defined]
        return real(tasks, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(local, "run", counting)
    bloomcli.add(lake / "part=0" / "000.parquet", ["name"], in_place=True)
    engine = choose_engine(jobs=1)
    tasks = plan_files(engine, [str(lake)], options_of("add", {"columns": ("name",)}, in_place=True))
    rows: list[FileRow] = []
    report = run_tasks(engine, tasks, on_row=rows.append)
    assert [len(names) for names in runs] == [8, 6]
    assert {"cut.parquet", "000.parquet"}.isdisjoint(runs[1])
    assert sorted(r.path for r in rows) == sorted(r.path for r in report.rows)
    assert len(report.rows) == 8


def test_a_file_of_booleans_alone_is_skipped_with_the_reason(bloom: Bloom, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 2)
    pq.write_table(pa.table({"yes": [True, False]}), lake / "flags.parquet")
    for target in (["-o", tmp_path / "out"], ["--in-place"]):
        report = bloom("add", lake, "-c", "*", *target, "--fail-fast", "-f", "json")
        assert report.code == 0, report.out
        (row,) = (row for row in report.json["rows"] if row["path"].endswith("flags.parquet"))
        assert row["status"] == Status.SKIPPED
        assert row["reason"].startswith("no column can have a filter (yes: BOOLEAN")
    assert (tmp_path / "out" / "flags.parquet").read_bytes() == (lake / "flags.parquet").read_bytes()
    again = bloom("add", lake, "-c", "*", "-o", tmp_path / "out", "-f", "json")
    assert again.code == 0
    named = bloom("add", lake, "-c", "yes", "--in-place", "-f", "json")
    assert named.json["failed"] == 3, "a named column is an error"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_looks_at_every_file_in_a_job_of_its_own(bloom: Bloom, lake: Path) -> None:
    before = datasets.digests(lake)
    spark = ("--engine", "spark")
    stopped = bloom("add", "-c", "name", lake, "--in-place", "--fail-fast", *spark, "-f", "json")
    assert stopped.code == 3
    assert (stopped.json["failed"], stopped.json["not_started"]) == (1, 7)
    assert datasets.digests(lake) == before
    done = bloom("add", "-c", "name", lake, "--in-place", *spark, "-f", "json")
    assert (done.code, done.json["done"], done.json["failed"]) == (3, 7, 1)
