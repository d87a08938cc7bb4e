"""The engines do with wrong structures what docs/wrong-structures.md says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import skipping_engines
from support.golden import RULE_PAIRS
from support.skipping_engines import FIRST, IN_PROCESS, Question
from support.wrong_structures import cells, recorded

import bloomcli
from bloomcli.rules.readers import reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_an_engine_does_what_the_table_says(engine: str, tmp_path: Path) -> None:
    pytest.importorskip("chdb" if engine == "ClickHouse" else engine.lower())
    with skipping_engines.running(engine) as ask:
        assert cells(ask, tmp_path) == recorded()[engine]


@pytest.mark.slow
def test_spark_does_what_the_table_says(spark: SparkSession, tmp_path: Path) -> None:
    assert cells(skipping_engines.Spark(spark), tmp_path) == recorded()["Spark"]


def test_datafusion_takes_rows_for_sorted_whose_row_groups_are_sorted_and_in_another_order(tmp_path: Path) -> None:
    names = sorted(pq.read_table(RULE_PAIRS / "sorting-columns" / "sound.parquet")["name"].to_pylist())
    path = tmp_path / "sorted.parquet"
    table = pa.table({"name": [*names[40:], *names[:40]]})
    pq.write_table(table, path, row_group_size=40, sorting_columns=[pq.SortingColumn(0)])
    assert bloomcli.validate(path, deep=True, columns=["*"]).findings == ()
    question = Question("name", "order")
    with skipping_engines.running("DataFusion") as ask:
        assert sorted(ask(path, question, True)) != names[:FIRST]
        assert ask(path, question, False) == names[:FIRST]
    assert "sorting_columns" in reader("datafusion").known.text
