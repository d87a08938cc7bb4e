"""What `advise` says of page indexes is what `find` reads before and after `repair` adds them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom

import bloomcli
from bloomcli.model.advice import AdviseReport, ColumnAdvice

ROWS: Final = 60_000
GROUP: Final = 30_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two row groups of pages of 1,000 rows: ids in order, texts in clusters, and ids that are in no order."""
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "id": pa.array(range(ROWS)),
            "city": [f"city {n // 500:05}" for n in range(ROWS)],
            "other": random.permutation(ROWS),
        }
    )
    written = tmp_path / "f.parquet"
    pq.write_table(
        table,
        written,
        row_group_size=GROUP,
        data_page_size=1,
        write_batch_size=1000,
        use_dictionary=False,
        compression="none",
    )
    return written


def advised(path: Path) -> tuple[AdviseReport, dict[str, ColumnAdvice]]:
    report = bloomcli.advise(path)
    return report, {column.column: column for column in report.columns}


def bytes_read(path: Path, column: str, value: str) -> int:
    """The bytes that `find` reads of the looked-up column alone."""
    found = bloomcli.find(path, [value], column=column, select=[column])
    assert sum(batch.num_rows for batch in found) > 0
    return found.report.bytes_read


@pytest.mark.slow
@pytest.mark.parametrize(("column", "value"), [("id", "31234"), ("city", "city 00077")])
def test_the_bytes_that_a_page_index_saves_are_those_that_find_saves(path: Path, column: str, value: str) -> None:
    gain = advised(path)[1][column].page_index
    assert gain is not None
    assert gain.pays
    before = bytes_read(path, column, value)
    bloomcli.repair(path, in_place=True, add=["page-index"], columns=[column])
    after = bytes_read(path, column, value)
    # the index itself is read, too: a few bytes for each page
    assert before - after == pytest.approx(gain.bytes - gain.with_index, rel=0.05)


@pytest.mark.slow
def test_the_command_that_advise_gives_adds_the_page_indexes(path: Path, bloom: Bloom) -> None:
    report, columns = advised(path)
    assert report.page_index_command == f"bloom repair {path} --add page-index --columns id,city --in-place"
    assert columns["other"].page_index is not None
    assert not columns["other"].page_index.pays, "every page may have every value"
    shown = bloom("advise", path).out
    assert "a page index pays for 2 columns" in shown
    assert "--add page-index" in shown
    done = bloom(*shlex.split(report.page_index_command)[1:])
    assert done.code == 0, done.err
    report, columns = advised(path)
    assert report.page_index_command is None
    assert {name for name, column in columns.items() if column.page_index is not None} == {"other"}
