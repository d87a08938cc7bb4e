"""remove and fold in place don't write a file that they wouldn't change."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.model.change import ChangeReport


def state(path: Path) -> tuple[int, int, bytes]:
    """The identity of a file, which a copy that replaces it doesn't have."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, path.read_bytes()


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file without filters."""
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": list(range(1000))}), path)
    return path


@pytest.fixture
def filtered(plain: Path, tmp_path: Path) -> Path:
    """A file with a filter that can't be smaller."""
    path = tmp_path / "filtered.parquet"
    bloomcli.add(plain, ["id"], output=path)
    return path


def nothing_was_written(report: ChangeReport, remark: str) -> bool:
    """Whether the report says so."""
    said = (report.output, report.bytes_before - report.bytes_after, report.bytes_copied, report.remarks)
    return said == (None, 0, 0, (remark,))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_file_without_filters_stays_the_same_file(plain: Path, dry_run: bool) -> None:
    before = state(plain)
    for change in (bloomcli.remove, bloomcli.fold):
        assert nothing_was_written(change(plain, in_place=True, dry_run=dry_run), "there are no filters")
    assert state(plain) == before


def test_columns_without_filters_are_not_a_file_without_filters(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": range(100), "other": range(100)}), path)
    bloomcli.add(path, ["id"], in_place=True)
    for change in (bloomcli.remove, bloomcli.fold):
        assert nothing_was_written(change(path, columns=["other"], in_place=True), "the columns have no filters")


def test_a_file_whose_filters_are_the_smallest_stays_the_same_file(filtered: Path) -> None:
    before = state(filtered)
    report = bloomcli.fold(filtered, in_place=True)
    assert nothing_was_written(report, "no filter can be smaller")
    assert [change.action for change in report.changes] == ["keep"]
    assert state(filtered) == before


def test_an_output_is_written_all_the_same(plain: Path, filtered: Path, tmp_path: Path) -> None:
    for number, (change, path) in enumerate([(bloomcli.remove, plain), (bloomcli.fold, filtered)]):
        output = tmp_path / f"{number}.parquet"
        assert change(path, output=output).output == str(output)
        assert output.read_bytes() == path.read_bytes()


def test_what_there_is_to_change_is_changed_in_place(filtered: Path) -> None:
    before = state(filtered)
    assert bloomcli.remove(filtered, in_place=True).output == str(filtered)
    assert state(filtered) != before
