"""Splitting a dataset into Spark tasks, the accepted paths, and two attempts on one file."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import need
from hypothesis import given
from hypothesis import strategies as st
from support import datasets
from support.tasks import attempt, plan_tasks

from bloomcli.datasets import hadoop_paths, spark, task
from bloomcli.datasets.packing import pack, parts_for
from bloomcli.errors import UnsupportedError
from bloomcli.model.dataset import FileRow, Status
from bloomcli.storage.listing import expand

MIB = 1 << 20


@given(st.lists(st.integers(-1, 400 * MIB), max_size=60), st.integers(1, 12))
def test_every_item_is_packed_once_and_no_part_weighs_more_than_the_mean_and_an_item(
    sizes: list[int], parts: int
) -> None:
    items = list(enumerate(sizes))
    packed = pack(items, lambda item: item[1], parts)
    assert sorted(item for part in packed for item in part) == items
    assert len(packed) == min(parts, len(items))
    assert all(packed)
    known = [size for size in sizes if size >= 0]
    average = sum(known) // len(known) if known else 0
    weights = [[(size if size >= 0 else average) + MIB for _, size in part] for part in packed]
    loads = [sum(part) for part in weights]
    assert loads == sorted(loads, reverse=True)
    assert all(part == sorted(part, reverse=True) for part in weights)
    if items:
        assert loads[0] <= sum(loads) / len(packed) + max(map(max, weights))


def test_a_straggler_gets_a_part_of_its_own_and_the_first_one() -> None:
    sizes = [5 * MIB] * 20 + [400 * MIB]
    packed = pack(sizes, lambda size: size, 4)
    assert packed[0] == [400 * MIB]
    assert [len(part) for part in packed[1:]] == [7, 7, 6]


@pytest.mark.parametrize(
    ("files", "mebibytes", "cores", "parts"),
    [
        (0, 0, 4, 0),
        (3, 400, 4, 3),
        (60, 6, 2, 4),
        (200, 5, 1, 4),
        (200, 50, 2, 16),
        (200, 4000, 2, 16),
        (10_000, 0, 2, 40),
        (10_000, 400, 500, 4000),
    ],
)
def test_parts_are_worth_a_task_several_to_a_core_and_never_huge(
    files: int, mebibytes: int, cores: int, parts: int
) -> None:
    assert parts_for([mebibytes * MIB] * files, lambda size: size, cores) == parts


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/data/x.parquet", "/data/x.parquet"),
        ("data/x=1", "data/x=1"),
        ("file:/data/x", "/data/x"),
        ("file:///data/p=a%3Ab", "/data/p=a%3Ab"),
        ("file:/data/x#1?2", "/data/x#1?2"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("s3a://bucket/x", "s3://bucket/x"),
        ("S3N://bucket/x", "s3://bucket/x"),
        ("hdfs://node:9000/x", "hdfs://node:9000/x"),
        ("hdfs:/x/y", "hdfs:///x/y"),
        ("hdfs:///x/y", "hdfs:///x/y"),
        ("gs://bucket/x", "gs://bucket/x"),
        ("az://container/x", "az://container/x"),
        ("abfss://c@account.dfs.core.windows.net/x", "abfss://c@account.dfs.core.windows.net/x"),
        ("https://host/x.parquet", "https://host/x.parquet"),
    ],
)
def test_hadoop_paths_are_understood(path: str, meant: str) -> None:
    assert hadoop_paths.portable(path) == meant


@pytest.mark.parametrize(
    ("path", "changing", "message"),
    [
        ("dbfs:/lake/x", False, "/nowhere isn't mounted here"),
        ("file://other/x", False, "a file: URI of another machine"),
        ("wasbs://c@account/x", False, "nothing here can read wasbs: URIs"),
        ("hdfs:/x", True, "files at hdfs: URIs can be read, but not changed"),
        ("viewfs://cluster/x", True, "files at viewfs: URIs can be read, but not changed"),
    ],
)
def test_paths_that_cannot_be_opened_are_refused_clearly(
    path: str, changing: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop_paths, "DBFS", "/nowhere")
    with pytest.raises(UnsupportedError, match=message) as caught:
        hadoop_paths.portable(path, changing=changing)
    assert caught.value.hint or "another machine" in message


def test_dbfs_is_its_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop_paths, "DBFS", str(tmp_path))
    for path in ("dbfs:/lake/x", "dbfs:///lake/x"):
        assert hadoop_paths.portable(path, changing=True) == f"{tmp_path}/lake/x"


def test_a_file_that_is_named_like_a_uri_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hdfs:").mkdir()
    Path("hdfs:/x").touch()
    assert hadoop_paths.portable("hdfs:/x") == "hdfs:/x"
    assert hadoop_paths.absolute("hdfs:/x") == str(tmp_path / "hdfs:/x")
    assert hadoop_paths.absolute("hdfs:///x") == "hdfs:///x"


def overtaken(first: task.Task, kind: str) -> tuple[FileRow, list[FileRow]]:
    """The row of an attempt during which another attempt of the same task starts and ends, and the other's rows."""
    others: list[FileRow] = []

    def other(phase: str, done: int, total: int) -> None:
        if phase == kind and not others:
            others.append(FileRow(path="", status=Status.FAILED))  # only once, also from within
            others[0] = attempt(first)

    return attempt(first, other), others


@pytest.mark.parametrize(
    ("command", "suffix", "target"),
    [
        *(("add", "parquet", to) for to in ("in place", "in place, sidecar", "output", "output, overwrite")),
        ("add", "orc", "in place"),
        ("remove", "orc", "output"),
        ("remove", "parquet", "in place"),
    ],
)
def test_an_attempt_that_is_overtaken_says_that_the_work_is_done(
    tmp_path: Path, suffix: str, target: str, command: str
) -> None:
    lake, out = tmp_path / "lake", tmp_path / "out"
    file = datasets.write(lake / f"f.{suffix}")
    if command == "remove":
        task.run(plan_tasks("add", expand([str(file)]), {"columns": ("id",)}, in_place=True)[0])
    options: dict[str, object] = {"columns": ("id",)} if command == "add" else {}
    if "overwrite" in target:
        options["overwrite"] = True
    alone = task.run(plan_tasks(command, expand([str(lake)]), options, output=tmp_path / "alone")[0])
    assert alone.status is Status.DONE
    if "sidecar" in target:
        (lake / f".f.{suffix}.crc").write_bytes(b"crc\0" + bytes(8))
    in_place = "in place" in target
    (one,) = plan_tasks(command, expand([str(lake)]), options, output=None if in_place else out, in_place=in_place)
    row, others = overtaken(one, "copy")
    assert [other.status for other in others] == [Status.DONE]
    assert row.status is (Status.DONE if "overwrite" in target else Status.SKIPPED), row.error
    made = file if in_place else out / file.name
    assert made.read_bytes() == (tmp_path / "alone" / file.name).read_bytes()
    assert datasets.temporary(tmp_path) == []
    assert {p.name for p in made.parent.iterdir()} <= {made.name, f".{made.name}.crc"}


@pytest.mark.parametrize(("changes", "count"), [(False, 1), (True, 3)], ids=["fails for good", "keeps changing"])
def test_a_file_that_fails_is_tried_again_only_if_it_changed_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: bool, count: int
) -> None:
    file = datasets.write(tmp_path / "f.parquet")
    (one,) = plan_tasks("add", expand([str(file)]), {"columns": ("id",)}, in_place=True)
    tries = []

    def run(of: task.Task, progress: object = None) -> FileRow:
        tries.append(of)
        if changes:
            os.utime(file, ns=(0, len(tries)))
        return FileRow(path=of.path, status=Status.FAILED, error="failed", exit_code=3)

    monkeypatch.setattr(task, "run", run)
    assert attempt(one).error == "failed"
    assert len(tries) == count


@pytest.mark.slow
@pytest.mark.parametrize("isolated", [False, True])
def test_a_spark_task_gives_each_files_row_with_its_position(tmp_path: Path, isolated: bool) -> None:
    need(find_spec("pyspark") is not None, "pyspark")
    lake = datasets.mixed(tmp_path / "lake")
    tasks = plan_tasks("add", expand([str(lake)]), {"columns": ("id",)}, in_place=True)
    (part,) = pack(list(enumerate(tasks)), lambda item: item[1].size, 1)
    rows = dict(spark.run_pack(spark.Pack(tuple(part), isolated=isolated)))
    assert [rows[i].path for i in range(len(tasks))] == [t.path for t in tasks]
    assert sum(row.status is Status.DONE for row in rows.values()) == len(datasets.GOOD)
    skipped = [row.reason or "" for row in rows.values() if row.status is Status.SKIPPED]
    assert len(skipped) == len(datasets.FILTERED) + len(datasets.OTHER)
    assert sum("an earlier attempt" in reason for reason in skipped) == (len(datasets.FILTERED) if isolated else 0)
    assert datasets.temporary(tmp_path) == []
