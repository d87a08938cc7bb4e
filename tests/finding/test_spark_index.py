"""The answers of an index for files, looked up in one place or in several."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.found_lake import FILES, made

import bloomcli
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.datasets.value_blocks import packed
from bloomcli.finding.on_spark import pruning_of
from bloomcli.finding.pruning import Pruning
from bloomcli.finding.search_files import FileWork, Job, SearchFiles
from bloomcli.index.reader import NoAnswer
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


def in_parts(values: Sequence[int], count: int, before: Callable[[int], None] = lambda _: None) -> Any:
    """Look up `count` values at a time."""

    def map_blocks(function: Callable[[Iterator[bytes]], Iterator[Any]]) -> list[Any]:
        found = []
        for number, at in enumerate(range(0, len(values), count)):
            before(number)
            found += function(iter([packed(pa.array(values[at : at + count]))]))
        return found

    return map_blocks


@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("values", [[5], [5, 4000, 10**7], list(range(0, 8000, 900)), [10**7]])
def test_an_index_says_the_same_of_values_in_parts(lake: Path, values: list[int], count: int) -> None:
    index = str(lake / "index")
    whole = ruled(lake, Pruning(index, "id", Values([str(value) for value in values])))
    parts = ruled(lake, pruning_of(index, "id", in_parts(values, count)))
    assert parts == whole
    assert len(parts) == FILES
    assert any(one.found is not None for one in parts) or len(values) > 3


def test_an_index_that_is_replaced_between_parts_says_nothing(lake: Path, tmp_path: Path) -> None:
    index = shutil.copy(lake / "index", tmp_path)

    def replace(number: int) -> None:
        if number == 1:
            bloomcli.index_build(lake / "lake/day=3", ["id"], output=index, overwrite=True)

    found = ruled(lake, pruning_of(str(index), "id", in_parts([10**7, 10**7 + 1], 1, replace)))
    assert {(one.found, one.indexed, one.no_answer) for one in found} == {(None, None, NoAnswer.UNKNOWN)}


def test_files_that_may_have_a_value_are_not_opened_for_maybe(lake: Path) -> None:
    found = ruled(lake, Pruning(str(lake / "index"), "id", Values(["5"])), maybe=True)
    assert [bool(one.found and one.found.row_groups_possible) for one in found].count(True) == 1
    assert all(one.found for one in found)
