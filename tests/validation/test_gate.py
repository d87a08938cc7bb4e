"""The gate over many files: policy, baseline, samples, both engines; what wasn't checked never passes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets

import bloomcli
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.model.dataset import Status
from bloomcli.model.file import Severity

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_process")]

POLICY = """
require = ["id"]
max-fpp = 0.05
exclude = ["lake/bad/**"]

[severity]
filter-fpp = "warning"

[[files]]
paths = ["lake/part=1/**"]
require = ["name"]
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Twelve sound Parquet files with filters on id, in three partitions."""
    root = datasets.plain(tmp_path / "lake", 12)
    for path in root.rglob("*.parquet"):
        bloomcli.add(path, ["id"], in_place=True)
    return root


def clear_a_bit(path: Path, row_group: int = 0) -> None:
    """Take a bit out of a filter: some value is missing from it then."""
    (facts,) = [f for f in bloomcli.inspect(path).filters if f.row_group == row_group]
    assert facts.header_bytes is not None
    data = bytearray(path.read_bytes())
    at = next(i for i in range(facts.offset + facts.header_bytes, len(data)) if data[i])
    data[at] &= data[at] - 1
    path.write_bytes(data)


def test_a_sound_lake_passes_and_all_of_it_was_checked(lake: Path) -> None:
    report = bloomcli.gate(lake, require=["id"], deep=True)
    assert (report.ok, report.complete, report.exit_code, report.findings) == (True, True, 0, ())
    assert (report.files, report.files_found, report.failed) == (12, 12, 0)
    assert report.row_groups == report.row_groups_read == 24
    assert report.filters_checked == 24
    assert report.values_checked == 12 * 400
    assert report.policy is None


def test_findings_of_many_files_come_with_their_paths_the_most_severe_first(lake: Path) -> None:
    clear_a_bit(lake / "part=2" / "002.parquet")
    (lake.parent / "bloom.toml").write_text(POLICY)
    report = bloomcli.gate(lake, policy=lake.parent / "bloom.toml", deep=True)
    counting = [f for f in report.findings if f.counts]
    assert [(f.id, Path(f.path or "").name) for f in counting[-1:]] == [("value-missing", "002.parquet")]
    required = [f for f in counting if f.id == "filter-required"]
    assert {Path(f.path or "").parent.name for f in required} == {"part=1"}
    assert len(required) == 4
    assert (report.exit_code, report.errors, report.ok) == (1, 5, False)
    severities = [f.severity for f in report.findings]
    assert severities == sorted(severities, key=list(Severity).index)
    assert all(row.findings == () for row in report.rows), "they are not said twice"


def test_named_files_that_the_policy_excludes_pass_and_what_a_pattern_finds_doesnt(lake: Path) -> None:
    (lake / "bad").mkdir()
    cut = lake / "bad" / "cut.parquet"
    cut.write_bytes(b"PAR1 cut")
    (lake.parent / "bloom.toml").write_text(POLICY)
    policy = lake.parent / "bloom.toml"
    report = bloomcli.gate(cut, policy=policy)
    assert (report.ok, report.exit_code, report.excluded, report.files, report.rows) == (True, 0, 1, 0, ())
    with pytest.raises(UsageError, match="excludes every file"):
        bloomcli.gate(lake / "bad" / "*.parquet", policy=policy)
    with pytest.raises(UsageError, match="excludes every file"):
        bloomcli.gate([lake / "bad", cut], policy=policy)
    both = bloomcli.gate([cut, lake / "part=0" / "000.parquet"], policy=policy)
    assert (both.ok, both.excluded, both.files) == (True, 1, 1)


def other_kinds(folder: Path, number: int = 9) -> Path:
    """A folder with text files."""
    folder.mkdir()
    for n in range(number):
        (folder / f"{n}.csv").write_text("id\n1\n")
    return folder


def test_a_look_at_nothing_but_other_kinds_of_files_never_passes(lake: Path) -> None:
    texts = other_kinds(lake.parent / "texts")
    for asked in ({}, {"deep": True, "require": ["id"]}, {"sample": "2"}, {"sample": "10%"}):
        with pytest.raises(UsageError, match=r"none of \d files is of a known format") as caught:
            bloomcli.gate(texts, **asked)  # type: ignore[arg-type]
        assert caught.value.exit_code == 2
    known = lake.parent / "known.json"
    with pytest.raises(UsageError):
        bloomcli.gate(texts, baseline=known, update_baseline=True)
    assert not known.exists()
    report = bloomcli.gate([texts, lake])
    assert (report.files, report.files_found, report.ok, report.complete) == (12, 21, True, True)


# --- samples


def test_a_sample_of_files_looks_at_that_many_and_isnt_complete(lake: Path) -> None:
    report = bloomcli.gate(lake, sample="25%", seed=5)
    assert (report.files, report.files_found, report.complete, report.ok) == (3, 12, False, True)
    assert report.sample is not None
    assert (report.sample.files, report.sample.seed) == ("25%", 5)
    again = bloomcli.gate(lake, sample="25%", seed=5)
    assert [r.path for r in again.rows] == [r.path for r in report.rows]
    assert bloomcli.gate(lake, sample="100%").complete


def test_a_sample_is_of_files_and_unreadable_folders_are_reported_in_addition(lake: Path) -> None:
    (lake / "up").symlink_to(lake)
    for seed in range(4):
        report = bloomcli.gate([lake, lake / "nothing*"], sample="2", seed=seed)
        statuses = [row.status for row in report.rows]
        assert sorted(statuses) == sorted([Status.DONE, Status.DONE, Status.SKIPPED, Status.FAILED])
        assert (report.exit_code, report.files) == (3, 3)


def test_every_bad_file_is_in_some_sample_and_then_found(lake: Path) -> None:
    clear_a_bit(lake / "part=0" / "003.parquet")
    codes = {bloomcli.gate(lake, sample="3", seed=seed, deep=True, jobs=1).exit_code for seed in range(12)}
    assert codes == {0, 1}


@pytest.mark.parametrize("name", ["unfiltered.parquet", "unfiltered"])
@pytest.mark.parametrize("sample", ["1", "5%"])
def test_files_of_other_kinds_are_no_part_of_a_sample(tmp_path: Path, name: str, sample: str) -> None:
    texts = other_kinds(tmp_path / "mixed")
    datasets.write(tmp_path / "a.parquet").rename(texts / name)
    for seed in range(6):
        report = bloomcli.gate(texts, require=["id"], sample=sample, seed=seed)
        assert (report.files, report.exit_code) == (1, 1), seed
    whole = bloomcli.gate(texts, sample="100%")
    assert (whole.files, whole.files_found, whole.complete) == (1, 10, True)


def test_a_sample_of_row_groups_reads_that_part_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": list(range(1000))}), path, row_group_size=100)
    bloomcli.add(path, ["id"], in_place=True)
    report = bloomcli.gate(path, deep=True, sample_row_groups="30%")
    assert (report.row_groups, report.row_groups_read, report.values_checked) == (10, 3, 300)
    assert (report.complete, report.ok) == (False, True)
    clear_a_bit(path, row_group=4)
    found = [bloomcli.validate(path, deep=True, sample_row_groups="1", seed=s) for s in range(40)]
    assert {f.row_group for r in found for f in r.findings} == {4}
    assert 0 < sum(not r.ok for r in found) < 40


def test_orc_is_sampled_by_stripes(tmp_path: Path) -> None:
    from pyarrow import orc

    path = tmp_path / "f.orc"
    with orc.ORCWriter(path, stripe_size=1, row_index_stride=1000) as writer:
        for first in range(0, 40_000, 10_000):
            writer.write(pa.table({"id": list(range(first, first + 10_000))}))
    bloomcli.add(path, ["id"], in_place=True)
    stripes = bloomcli.inspect(path).stripes
    assert stripes is not None
    assert stripes > 1
    report = bloomcli.validate(path, deep=True, sample_row_groups="1")
    assert 0 < report.row_groups_read < report.row_groups
    assert 0 < report.values_checked < 40_000
    whole = bloomcli.validate(path, deep=True)
    assert (whole.row_groups_read, whole.values_checked) == (whole.row_groups, 40_000)


# --- baselines


def test_entries_that_are_gone_are_reported_and_dropped_when_the_baseline_is_updated(lake: Path) -> None:
    known = lake.parent / "known.json"
    bloomcli.gate(lake, require=["name"], baseline=known, update_baseline=True)
    bloomcli.add(lake / "part=0" / "000.parquet", ["name"], in_place=True)
    report = bloomcli.gate(lake, require=["name"], baseline=known)
    assert (report.exit_code, report.known, report.gone) == (0, 11, 1)
    part = bloomcli.gate(lake, require=["name"], baseline=known, sample="1", update_baseline=True)
    assert part.gone == 0
    assert len(json.loads(known.read_text())["findings"]) in {11, 12}, "files that weren't looked at keep theirs"
    bloomcli.gate(lake, require=["name"], baseline=known, update_baseline=True)
    assert len(json.loads(known.read_text())["findings"]) == 11


def some_filters(path: Path, there: list[bool]) -> Path:
    """A file whose row groups have a filter or not: DuckDB writes them for dictionary-encoded chunks only."""
    import duckdb

    few = " ".join(f"WHEN i // 2048 = {group} THEN i % 10" for group, it in enumerate(there) if it)
    value = f"CASE {few} ELSE i END" if few else "i"
    rows = 2048 * len(there)
    duckdb.sql(
        f"COPY (SELECT {value} AS k FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
    )
    found = {f.row_group for f in bloomcli.inspect(path).filters}
    assert found == {group for group, it in enumerate(there) if it}
    return path


@pytest.mark.parametrize(
    ("now", "code", "gone"),
    [
        ([True, True, False], 0, 0),
        ([True, False, True], 1, 0),
        ([True, True, True], 0, 1),
    ],
)
def test_a_baseline_holds_new_losses_of_a_column_against_it_and_no_improvement(
    tmp_path: Path, now: list[bool], code: int, gone: int
) -> None:
    path = some_filters(tmp_path / "f.parquet", [False, True, False])
    asked: dict[str, Any] = {"require": ["k"], "baseline": tmp_path / "known.json"}
    bloomcli.gate(path, update_baseline=True, **asked)
    some_filters(path, now)
    report = bloomcli.gate(path, **asked)
    assert (report.exit_code, report.gone) == (code, gone)


@pytest.mark.parametrize(
    "narrowed", [{}, {"columns": ["id"]}, {"require": ["id"]}, {"columns": ["id"], "deep": True}]
)
def test_entries_that_a_run_didnt_look_for_are_not_gone_and_stay(lake: Path, narrowed: dict[str, Any]) -> None:
    known = lake.parent / "known.json"
    wide: dict[str, Any] = {"require": ["name"], "max_fpp": 1e-9, "baseline": known}
    assert bloomcli.gate(lake, update_baseline=True, **wide).known == 12 + 24
    before = known.read_bytes()
    report = bloomcli.gate(lake, baseline=known, **narrowed)
    assert (report.exit_code, report.gone) == (0, 0)
    bloomcli.gate(lake, baseline=known, update_baseline=True, **narrowed)
    assert known.read_bytes() == before
    assert bloomcli.gate(lake, **wide).exit_code == 0


def test_a_failed_run_leaves_the_baseline_alone(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = lake.parent / "known.json"
    bloomcli.gate(lake, require=["name"], baseline=known, update_baseline=True)
    before = known.read_bytes()
    with pytest.raises(UnreadableError):
        bloomcli.gate(lake / "nothing*", require=["name"], baseline=known, update_baseline=True)
    assert known.read_bytes() == before
    with pytest.raises(UsageError, match="no baseline to update"):
        bloomcli.gate(lake, update_baseline=True)


def test_fail_fast_leaves_the_look_incomplete(lake: Path) -> None:
    (lake / "a-cut.parquet").write_bytes(b"PAR1 cut" * 100_000)  # the largest is looked at first
    report = bloomcli.gate(lake, fail_fast=True, jobs=1)
    assert (report.exit_code, report.complete, len(report.rows)) == (3, False, 1)


# --- Spark


@pytest.mark.spark
def test_on_spark_the_gate_says_the_same(lake: Path, spark: Any) -> None:
    clear_a_bit(lake / "part=2" / "002.parquet")
    (lake / "cut.parquet").write_bytes(b"PAR1 cut")
    (lake.parent / "bloom.toml").write_text(POLICY)
    asked: dict[str, Any] = {
        "policy": lake.parent / "bloom.toml",
        "deep": True,
        "sample": "80%",
        "sample_row_groups": "50%",
        "seed": 3,
        "readers": ["spark", "trino"],
    }
    here = bloomcli.gate(lake, **asked)
    there = bloomcli.gate(lake, session=spark, **asked)
    assert there.engine == "spark"
    assert there.findings == here.findings
    assert [replace(r, seconds=0.0) for r in there.rows] == [replace(r, seconds=0.0) for r in here.rows]
    assert (there.exit_code, there.complete, there.sample) == (here.exit_code, here.complete, here.sample)
    assert any(r.status is Status.FOUND for r in there.rows)


@pytest.mark.spark
def test_on_spark_a_baseline_is_the_same_file(lake: Path, spark: Any) -> None:
    known = lake.parent / "known.json"
    bloomcli.gate(lake, require=["name"], baseline=known, update_baseline=True, session=spark)
    assert bloomcli.gate(lake, require=["name"], baseline=known).exit_code == 0
    assert bloomcli.gate(lake, require=["name"], baseline=known, session=spark).known == 12


@pytest.mark.spark
def test_on_spark_a_look_at_nothing_is_reported_and_never_passes(lake: Path, spark: Any) -> None:
    (lake.parent / "bloom.toml").write_text('exclude = ["lake/part=0/**"]')
    policy = lake.parent / "bloom.toml"
    report = bloomcli.gate(lake / "part=0" / "000.parquet", policy=policy, session=spark)
    assert (report.engine, report.exit_code, report.excluded, report.files) == ("spark", 0, 1, 0)
    with pytest.raises(UsageError, match="excludes every file"):
        bloomcli.gate(lake / "part=0", policy=policy, session=spark)
    assert bloomcli.gate(lake, policy=policy, session=spark).excluded == 4
    with pytest.raises(UsageError, match="known format"):
        bloomcli.gate(other_kinds(lake.parent / "texts"), session=spark)
    (lake.parent / "empty").mkdir()
    with pytest.raises(UsageError, match="empty: the directory holds no files"):
        bloomcli.gate(lake.parent / "empty", session=spark)


@pytest.mark.spark
def test_the_librarys_frame_takes_a_policy(lake: Path, spark: Any) -> None:
    from bloomcli import spark as bloom_spark

    (lake.parent / "bloom.toml").write_text(POLICY)
    rows = bloom_spark.validate(spark, str(lake), policy=lake.parent / "bloom.toml").collect()
    found = [f for row in rows for f in row.findings if f.id == "filter-required"]
    assert len(found) == 4
    assert {row.status for row in rows} == {"done", "found"}
