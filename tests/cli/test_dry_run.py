"""`--dry-run` of add, remove and fold: what it says of one file and of a dataset, and its look at outputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets
from support.cli import Bloom

import bloomcli


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files without filters, and one with oversized filters on id."""
    root = datasets.plain(tmp_path / "lake", 3)
    bloomcli.add(datasets.write(root / "large.parquet", seed=9), ["id"], ndv=100_000, in_place=True)
    return root


@pytest.mark.parametrize(("command", "planned"), [(["add", "-c", "id"], 3), (["remove"], 1), (["fold"], 1)], ids=str)
def test_a_dry_run_of_a_dataset_says_what_it_would_do_and_that_nothing_was_written(
    bloom: Bloom, lake: Path, command: list[str], planned: int
) -> None:
    before = datasets.digests(lake)
    text = bloom(*command, lake, "--in-place", "--dry-run")
    report = bloom(*command, lake, "--in-place", "--dry-run", "-f", "json").json
    assert datasets.digests(lake) == before
    assert text.out.count(f"would {command[0]}") == planned + 1
    assert f"{command[0]}: dry run, nothing was written: 4 files: {planned} would {command[0]}" in text.out
    assert " done" not in text.out
    assert "at most" in text.out
    assert (report["dry_run"], report["done"], report["planned"]) == (True, 0, planned)
    assert [row["status"] for row in report["rows"]].count("planned") == planned
    rows = bloom(*command, lake, "--in-place", "-f", "json").json
    assert (rows["dry_run"], rows["done"], rows["planned"]) == (False, planned, 0)


def test_a_dry_run_distinguishes_files_that_would_be_copied_from_changed_ones(bloom: Bloom, lake: Path) -> None:
    out = lake.parent / "out"
    dry = bloom("add", lake, "-c", "id", "-o", out, "--dry-run", "-f", "json").json
    reasons = [row["reason"] for row in dry["rows"] if row["status"] == "skipped"]
    assert reasons == ["the columns have filters already; would be copied"]
    assert not out.exists()
    real = bloom("add", lake, "-c", "id", "-o", out, "-f", "json").json
    assert (dry["planned"], dry["skipped"]) == (real["done"], real["skipped"])


@pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "ZSTD"])
def test_the_size_of_a_dictionary_columns_filter_is_that_of_its_entries(
    bloom: Bloom, tmp_path: Path, codec: str
) -> None:
    path = tmp_path / "status.parquet"
    pq.write_table(pa.table({"status": ["open", "shut", "lost"] * 10_000}), path, compression=codec)
    order = ("add", path, "-c", "status", "-o", tmp_path / "out.parquet", "-f", "json")
    dry, made = bloom(*order, "--dry-run").json, bloom(*order).json
    assert (dry["output"], made["output"]) == (None, str(tmp_path / "out.parquet"))
    assert made["changes"][0]["bitset_bytes"] == 64
    assert dry["changes"][0]["bitset_bytes"] == 64
    assert made["bytes_after"] <= dry["bytes_after"] < made["bytes_after"] + 1024


def test_a_dictionary_page_that_cannot_be_read_leaves_the_bound_of_the_rows(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "status.parquet"
    pq.write_table(pa.table({"status": ["open", "shut", "lost"] * 10_000}), path)
    data = bytearray(path.read_bytes())
    data[4:20] = b"\xff" * 16
    path.write_bytes(data)
    dry = bloom("add", path, "-c", "status", "--dry-run", "-f", "json")
    assert dry.code == 0
    assert dry.json["changes"][0]["bitset_bytes"] == 64 * 1024


def _exists(folder: Path) -> str:
    (folder / "out.parquet").write_bytes(b"something")
    return "out.parquet"


def _below_a_file(folder: Path) -> str:
    (folder / "file").write_bytes(b"something")
    return "file/out.parquet"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return "pipe"


def _circle(folder: Path) -> str:
    (folder / "circle").symlink_to("circle")
    return "circle"


@pytest.mark.parametrize(
    ("make", "code"),
    [(_exists, 2), (_below_a_file, 3), (_pipe, 2), (_circle, 3), (lambda _: "no/such/out.parquet", 3), (str, 2)],
)
def test_a_dry_run_fails_as_the_run_would_where_the_output_cannot_be_written(
    bloom: Bloom, tmp_path: Path, make: object, code: int
) -> None:
    path = datasets.write(tmp_path / "a.parquet")
    output = tmp_path / make(tmp_path)  # type: ignore[operator]
    dry = bloom("add", path, "-c", "id", "-o", output, "--dry-run")
    real = bloom("add", path, "-c", "id", "-o", output)
    assert dry.code == real.code == code
    assert dry.err == real.err


def test_a_dry_run_with_overwrite_takes_an_output_that_exists(bloom: Bloom, tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "a.parquet")
    _exists(tmp_path)
    assert bloom("add", path, "-c", "id", "-o", tmp_path / "out.parquet", "--dry-run", "--overwrite").code == 0
    assert (tmp_path / "out.parquet").read_bytes() == b"something"


def test_a_dry_run_of_a_dataset_looks_at_the_output_directory(bloom: Bloom, lake: Path) -> None:
    (lake.parent / "file").write_bytes(b"something")
    (lake.parent / "out").mkdir()
    (lake.parent / "out" / "large.parquet").write_bytes(b"of no format")
    for output, failed in (("file/out", 4), ("out", 1), ("new/deeper", 0)):
        shutil.copytree(lake.parent, before := lake.parent.with_name("before"), dirs_exist_ok=True)
        dry = bloom("add", lake, "-c", "id", "-o", lake.parent / output, "--dry-run", "-f", "json")
        assert datasets.digests(lake.parent) == datasets.digests(before)
        real = bloom("add", lake, "-c", "id", "-o", lake.parent / output, "-f", "json")
        assert (dry.code, dry.json["failed"]) == (real.code, failed)
        assert real.json["failed"] == failed


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize("command", [["add", "-c", "id"], ["remove"], ["fold"]])
def test_standard_output_is_refused_as_an_output(
    bloom: Bloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    datasets.write(tmp_path / "a.parquet")
    done = bloom(*command, "a.parquet", "-o", "-", *more)
    assert done.code == 2
    assert "can't go to standard output" in done.err
    assert not Path("-").exists()
    assert bloom("add", "a.parquet", "-c", "id", "-o", "./-").code == 0
    assert bloomcli.inspect("-").filters
