"""index build and index update: the bytes that they read, errors, and that an index is complete at any time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.cli import Bloom
from support.indexed_lakes import parquet, same_rows
from support.stores import Place

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.errors import SourceChanged, UnknownColumn, UsageError, WriteError
from bloomcli.index.reader import Index
from bloomcli.model.dataset import FileRow
from bloomcli.model.index import IndexedFile
from bloomcli.storage.registry import open_source

pytestmark = pytest.mark.usefixtures("one_process")
"""Indexes that workers build are in test_places.py, and where `jobs` is given."""

FILES = 4


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Files of which two have filters."""
    folder = tmp_path / "lake"
    folder.mkdir()
    for at in range(FILES):
        (folder / f"{at}.parquet").write_bytes(parquet(range(at * 1000, at * 1000 + 300), blooms=at < 2))
    return folder


def files_of(index: Path | str) -> list[IndexedFile]:
    with open_source(index) as source:
        return list(Index(source).files)


def test_filters_are_taken_and_columns_without_them_are_read(lake: Path, tmp_path: Path) -> None:
    seen: list[FileRow] = []
    report = bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx", jobs=2, on_row=seen.append)
    assert (report.files, report.added, report.row_groups) == (FILES, FILES, 3 * FILES)
    assert (report.filters, report.columns_read) == (6, 6)
    assert report.bytes_decoded > 6 * 800
    assert report.bytes == (tmp_path / "x.idx").stat().st_size
    assert (report.written, report.exit_code, len(seen)) == (True, 0, FILES)
    assert {file.path for file in files_of(tmp_path / "x.idx")} == {str(path) for path in lake.iterdir()}


def test_a_dry_run_reads_footers_and_says_what_would_be_read(lake: Path, tmp_path: Path) -> None:
    report = bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx", dry_run=True)
    assert (report.files, report.filters, report.columns_read, report.dry_run) == (FILES, 6, 6, True)
    assert not (tmp_path / "x.idx").exists()
    bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx")
    before = (tmp_path / "x.idx").read_bytes()
    (lake / "9.parquet").write_bytes(parquet(range(5)))
    dry = bloomcli.index_update(lake, tmp_path / "x.idx", dry_run=True)
    assert (dry.added, dry.kept, dry.written) == (1, FILES, False)
    assert (tmp_path / "x.idx").read_bytes() == before


def test_a_file_that_fails_is_named_and_not_indexed(lake: Path, tmp_path: Path) -> None:
    (lake / "1.parquet").write_bytes((lake / "1.parquet").read_bytes()[:-5])
    report = bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx")
    assert (report.files, report.failed, report.exit_code, report.written) == (FILES - 1, 1, 3, True)
    assert [row.path for row in report.errors] == [str(lake / "1.parquet")]
    assert "cut off" in (report.errors[0].error or "")
    assert len(files_of(tmp_path / "x.idx")) == FILES - 1


def test_with_fail_fast_nothing_is_written_when_a_file_fails(lake: Path, tmp_path: Path) -> None:
    (lake / "1.parquet").write_bytes(b"PAR1")
    report = bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx", fail_fast=True, jobs=1)
    assert (report.failed, report.written) == (1, False)
    assert not (tmp_path / "x.idx").exists()


def test_nothing_is_written_where_no_file_can_be_indexed(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    report = bloomcli.index_build(tmp_path / "a.parquet", ["id"], output=tmp_path / "x.idx")
    assert (report.written, report.exit_code) == (False, 3)
    assert not (tmp_path / "x.idx").exists()


def test_a_column_that_no_file_has_is_an_error(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownColumn, match="no file has a column 'idd'"):
        bloomcli.index_build(lake, ["id", "idd"], output=tmp_path / "x.idx")
    assert not (tmp_path / "x.idx").exists()
    for name, hint in (("ID", "did you mean id?"), ("idd", "did you mean id?"), ("zzz", "lists a file's columns")):
        with pytest.raises(UnknownColumn) as error:
            bloomcli.index_build(lake, [name], output=tmp_path / "x.idx")
        assert hint in str(error.value.hint)


def test_a_column_that_no_readable_file_has_is_an_error_that_says_which_file_failed(
    lake: Path, tmp_path: Path
) -> None:
    (lake / "z.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnknownColumn, match=r"no file has a column 'idd'; 1 file failed, first .*z\.parquet: "):
        bloomcli.index_build(lake, ["id", "idd"], output=tmp_path / "x.idx")


def test_only_an_index_is_overwritten(lake: Path, tmp_path: Path) -> None:
    bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx")
    with pytest.raises(UsageError, match="exists already"):
        bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx")
    assert bloomcli.index_build(lake, ["other"], output=tmp_path / "x.idx", overwrite=True).written
    data = (lake / "0.parquet").read_bytes()
    with pytest.raises(UsageError, match="isn't an index"):
        bloomcli.index_build(lake, ["id"], output=lake / "0.parquet", overwrite=True)
    assert (lake / "0.parquet").read_bytes() == data


def test_an_update_reads_only_what_is_new_or_changed(place: Place) -> None:
    for at in range(FILES):
        place.put(f"lake/{at}.parquet", parquet(range(at * 1000, at * 1000 + 300)))
    index = place.path("lake.idx")
    bloomcli.index_build(place.path("lake"), ["id"], output=index)
    same = bloomcli.index_update(place.path("lake"), index)
    assert (same.kept, same.added, same.dropped, same.written) == (FILES, 0, 0, False)
    place.remove("lake/0.parquet")
    place.put("lake/1.parquet", parquet(range(7000, 7300)))
    place.put("lake/8.parquet", parquet(range(8000, 8300)))
    seen: list[str] = []
    report = bloomcli.index_update(
        place.path("lake"), index, on_row=lambda row: seen.append(row.path.rpartition("/")[2])
    )
    assert sorted(seen) == ["1.parquet", "8.parquet"]
    assert (report.kept, report.added, report.dropped, report.files) == (FILES - 2, 2, 1, FILES)
    found = same_rows(place.path("lake"), [7100, 8100, 2100, 1100], index)
    assert (found.rows, found.files_changed, found.files_not_indexed) == (3, 0, 0)


def test_of_two_updates_at_once_one_is_refused_and_nothing_is_lost(place: Place) -> None:
    for at in range(2):
        place.put(f"lake/{at}.parquet", parquet(range(at * 1000, at * 1000 + 300)))
    index = place.path("lake.idx")
    bloomcli.index_build(place.path("lake"), ["id"], output=index)
    place.put("lake/7.parquet", parquet(range(7000, 7300)))
    inner: list[bool] = []

    def meanwhile(_: FileRow) -> None:
        if not inner:
            place.put("lake/8.parquet", parquet(range(8000, 8300)))
            inner.append(bloomcli.index_update(place.path("lake"), index).written)

    with pytest.raises((SourceChanged, WriteError)):
        bloomcli.index_update(place.path("lake"), index, on_row=meanwhile, jobs=1)
    assert inner == [True]
    assert len(files_of(index)) == 4
    report = same_rows(place.path("lake"), [7100, 8100], index)
    assert (report.rows, report.files_not_indexed) == (2, 0)


@pytest.mark.slow
def test_a_killed_update_leaves_the_old_index(lake: Path, tmp_path: Path) -> None:
    index = tmp_path / "x.idx"
    bloomcli.index_build(lake, ["id"], output=index)
    before = index.read_bytes()
    (lake / "7.parquet").write_bytes(parquet(range(7000, 7300)))
    script = (
        "import os, signal, sys, bloomcli\n"
        "stage, lake, index = sys.argv[1:]\n"
        "left = [int(stage)]\n"
        "def hook(event, args):\n"
        "    if event in ('open', 'os.rename', 'os.link', 'os.remove', 'os.truncate') and index in str(args[:2]) or"
        " event in ('os.rename', 'os.link'):\n"
        "        left[0] -= 1\n"
        "        if left[0] < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(hook)\n"
        "bloomcli.index_update(lake, index, jobs=1)\n"
    )
    ended = 0
    for stage in range(40):
        done = subprocess.run(
            [sys.executable, "-c", script, str(stage), str(lake), str(index)], check=False, capture_output=True
        )
        if done.returncode == 0:
            break
        ended += 1
        assert done.returncode == -signal.SIGKILL, done.stderr
        if index.read_bytes() != before:
            break
        assert len(files_of(index)) == FILES
    assert ended >= 2, "a stage before the rename"
    assert bloomcli.index_update(lake, index).files == FILES + 1
    assert len(files_of(index)) == FILES + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "x.idx"]
    same_rows(str(lake), [7100, 100], str(index))


def test_a_file_that_changes_within_a_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for round_ in range(10):
        path.write_bytes(parquet(range(round_ * 1000, round_ * 1000 + 100)))
        bloomcli.index_build(path, ["id"], output=tmp_path / "x.idx", overwrite=True)
        path.write_bytes(parquet(range(round_ * 1000 + 500, round_ * 1000 + 600)))
        assert same_rows([str(path)], [round_ * 1000 + 550], str(tmp_path / "x.idx")).rows == 1


def test_the_command_line_builds_updates_and_shows_an_index(lake: Path, tmp_path: Path, bloom: Bloom) -> None:
    index = str(tmp_path / "x.idx")
    built = bloom("index", "build", str(lake), "-c", "id,other", "-o", index, "--format", "json")
    assert (built.code, built.json["schema"], built.json["files"]) == (0, "bloom/index/1", FILES)
    shown = bloom("index", "inspect", index, "--format", "json")
    assert shown.json["schema"] == "bloom/index-inspect/1"
    assert {column["column"] for column in shown.json["columns"]} == {"id", "other"}
    assert "up to date" in bloom("index", "update", str(lake), "-i", index).out
    found = bloom("find", "1100", str(lake), "-c", "id", "--index", index, "--maybe", "--format", "paths")
    assert (found.out, found.code) == (f"{lake / '1.parquet'}\n", 0)
    assert f"index: {FILES} of {FILES} files not opened" in found.err
    os.utime(lake / "2.parquet")
    changed = bloom("find", "-1", str(lake), "-c", "id", "--index", index, "--maybe")
    assert changed.code == 1
    assert "1 file searched without it (1 changed since)" in changed.err
    nowhere = bloom("index", "build", str(lake), "-c", "id")
    assert (nowhere.code, "give -o INDEX" in nowhere.err) == (2, True)


@pytest.mark.slow
def test_executors_of_spark_build_the_same_index(lake: Path, tmp_path: Path, spark: SparkSession) -> None:
    (lake / "5.parquet").write_bytes(b"PAR1")
    here = bloomcli.index_build(lake, ["id"], output=tmp_path / "here.idx")
    there = bloom_spark.index_build(spark, lake, ["id"], output=tmp_path / "there.idx")
    assert (there.engine, there.files, there.failed) == ("spark", here.files, here.failed)
    assert sorted(files_of(tmp_path / "here.idx"), key=str) == sorted(files_of(tmp_path / "there.idx"), key=str)
    for value in (1100, 2100, 5):
        found = same_rows(str(lake), [value], str(tmp_path / "there.idx"))
        assert found.files_not_indexed == 1  # the one that fails
    (lake / "6.parquet").write_bytes(parquet(range(6000, 6100), kind=pa.int64()))
    updated = bloom_spark.index_update(spark, lake, tmp_path / "there.idx")
    assert (updated.added, updated.kept) == (1, FILES)
    shutil.copy(tmp_path / "there.idx", tmp_path / "here.idx")
    (lake / "1.parquet").unlink()
    (lake / "7.parquet").write_bytes(parquet(range(7000, 7100), kind=pa.int64()))
    paths = [str(lake / "[01].parquet"), str(lake / "7.parquet")]
    here = bloomcli.index_update(paths, tmp_path / "here.idx")
    there = bloom_spark.index_update(spark, paths, tmp_path / "there.idx")
    found = [(r.added, r.kept, r.dropped_gone, r.dropped_unnamed, r.written) for r in (here, there)]
    assert found[0] == found[1] == (1, 1, 1, FILES - 1, True)
    assert sorted(files_of(tmp_path / "here.idx"), key=str) == sorted(files_of(tmp_path / "there.idx"), key=str)
