"""The answers of an index for files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.found_lake import made

import bloomcli
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.finding.pruning import Pruning
from bloomcli.finding.search_files import FileWork, Job, SearchFiles
from bloomcli.storage.listing import expand


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "lake").mkdir()
    bloomcli.index_build(made(folder / "lake"), ["id"], output=folder / "index", jobs=1)
    return folder


def ruled(lake: Path, pruning: Pruning, *, maybe: bool = False) -> list[FileWork]:
    listed = [item for item in expand([str(lake / "lake")]) if item.path.endswith(".parquet")]
    job = Job(FindOptions(column="id", maybe=maybe))
    return list(SearchFiles(job, [FileWork(item.path) for item in listed], listed).pruned(pruning))


def test_files_that_may_have_a_value_are_not_opened_for_maybe(lake: Path) -> None:
    found = ruled(lake, Pruning(str(lake / "index"), "id", Values(["5"])), maybe=True)
    assert [bool(one.found and one.found.row_groups_possible) for one in found].count(True) == 1
    assert all(one.found for one in found)
