"""Every fixture has a golden report, and the report of `inspect` equals it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import golden

import bloomcli

FIXTURES = golden.files()
PARQUET = [path for path in FIXTURES if path.suffix == ".parquet"]
READABLE = [path for path in PARQUET if path.stem != "pyarrow_encrypted_footer"]
BARE = ("orders", "pyarrow_empty", "pyarrow_empty_row_group")


def test_there_are_fixtures_and_each_has_its_golden_file_and_none_is_left_over() -> None:
    assert FIXTURES
    assert sorted(golden.DATA.iterdir()) == sorted(golden.golden(path) for path in FIXTURES)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_inspect_reports_what_the_golden_file_says(path: Path) -> None:
    assert golden.produce(path) == json.loads(golden.golden(path).read_text())


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_a_deep_check_finds_fault_with_nothing_but_parquet_javas_boolean_and_the_drafts(path: Path) -> None:
    expected = [("filter-boolean", "flag", 0), ("filter-boolean", "flag", 1)] if path.stem == "spark_types" else []
    if path.stem.startswith("draft_"):
        expected = [("filter-draft", column, group) for group in range(4) for column in ("id", "user.email")]
    if path.stem in {"pyarrow_signed", "pyarrow_encrypted_columns"}:
        expected = [("footer-unverified", None, None)]
    report = bloomcli.validate(path, deep=True)
    assert [(f.id, f.column, f.row_group) for f in report.findings] == expected


@pytest.mark.parametrize("name", BARE)
def test_filters_that_were_added_and_removed_leave_the_very_same_bytes(name: str, tmp_path: Path) -> None:
    path = golden.FIXTURES / f"{name}.parquet"
    added, removed = tmp_path / "added.parquet", tmp_path / "removed.parquet"
    report = bloomcli.add(path, ["*"], output=added)
    assert bool(report.changes) == (name != "pyarrow_empty")
    bloomcli.remove(added, output=removed)
    assert removed.read_bytes() == path.read_bytes()
