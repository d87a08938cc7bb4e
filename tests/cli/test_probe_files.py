"""`bloom probe` of many files says which of them may have a value."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from support import datasets
from support.cli import Bloom


@pytest.fixture
def many(bloom: Bloom, tmp_path: Path) -> Path:
    """60 files with filters and ids that no other file has."""
    lake = datasets.plain(tmp_path / "lake", 60)
    assert bloom("add", lake, "-c", "id", "--in-place", "-j", 1).code == 0
    return lake


def test_the_file_that_may_have_a_value_is_named_whatever_the_number_of_files(bloom: Bloom, many: Path) -> None:
    result = bloom("probe", many, "-c", "id", "-v", "31000003", "-j", 1)
    assert result.code == 0
    assert "31000003: absent in 59 of 60 files" in result.out
    assert [line for line in result.out.splitlines() if ".parquet" in line] == [f"  maybe: {many}/part=1/031.parquet"]
    assert result.out.endswith("60 files not shown: --all or --format csv\n")
    complete = bloom("probe", many, "-c", "id", "-v", "31000003", "-j", 1, "--all").out
    assert complete.count(".parquet") == 60
    assert "not shown" not in complete
    rows = list(csv.DictReader(io.StringIO(bloom("probe", many, "-c", "id", "-v", "31000003", "-f", "csv").out)))
    assert [row["path"] for row in rows if row["answer"] == "maybe"] == [f"{many}/part=1/031.parquet"]
    assert len(rows) == 60


def test_files_with_matches_prints_paths_alone_and_exits_like_grep(bloom: Bloom, many: Path) -> None:
    found = bloom("probe", many, "-c", "id", "-v", "31000003", "-v", "2000000", "-l")
    assert (found.code, found.err) == (0, "")
    assert sorted(found.out.splitlines()) == [f"{many}/part=1/031.parquet", f"{many}/part=2/002.parquet"]
    nothing = bloom("probe", many, "-c", "id", "-v", "-5", "--files-with-matches")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "")


def test_files_with_matches_names_files_that_nothing_rules_out_and_prints_errors(
    bloom: Bloom, tmp_path: Path
) -> None:
    unfiltered = datasets.write(tmp_path / "lake" / "unfiltered.parquet")
    (tmp_path / "lake" / "torn.parquet").write_bytes(b"PAR1")
    result = bloom("probe", tmp_path / "lake", "-c", "id", "-v", "3", "-l")
    assert (result.code, result.out) == (3, f"{unfiltered}\n")
    assert result.err.startswith(f"bloom: {tmp_path}/lake/torn.parquet: ")


def test_files_with_matches_of_one_file(bloom: Bloom, tmp_path: Path) -> None:
    one = datasets.write(tmp_path / "one.parquet")
    found = bloom("probe", one, "-c", "id", "3", "-l")
    assert (found.code, found.out) == (0, f"{one}\n")
    nothing = bloom("probe", one, "-c", "id", "-5", "-l")
    assert (nothing.code, nothing.out) == (1, "")


def test_csv_of_one_file_has_a_row_a_row_group_and_value(bloom: Bloom, tmp_path: Path) -> None:
    one = datasets.write(tmp_path / "one.parquet")
    result = bloom("probe", one, "-c", "id", "-5", "3", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [(row["value"], row["row_group"], row["answer"]) for row in rows] == [
        ("-5", "0", "absent"),
        ("-5", "1", "absent"),
        ("3", "0", "no filter"),
        ("3", "1", "absent"),
    ]
