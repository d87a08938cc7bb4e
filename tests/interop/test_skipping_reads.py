"""The engines lose rows by wrong statistics and page indexes as the rules' pages say, and find them otherwise.

Each pair of ``fixtures/rules`` holds the same 80 rows. An engine looks names up in the broken file and in its sound
neighbour; it loses rows in the broken one if the rule's page reports it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import skipping_engines
from support.golden import RULE_PAIRS
from support.skipping_engines import FIRST, IN_PROCESS, Ask, Question, running

import bloomcli
from bloomcli.rules import page
from bloomcli.rules.readers import reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

LOSES: Final = {
    "statistics-bounds": {"DuckDB", "DataFusion", "Polars", "PyArrow", "Spark"},
    "statistics-counts": {"DuckDB", "DataFusion", "Polars", "PyArrow", "ClickHouse", "Spark"},
    "statistics-encodings": {"ClickHouse", "Spark"},
    "page-index-bounds": {"DuckDB", "DataFusion", "ClickHouse", "Spark"},
    "page-index-counts": {"DuckDB", "ClickHouse", "Spark"},
    "page-index-locations": set[str](),
    "sorting-columns": set[str](),
    "size-statistics": set[str](),
}
"""By rule: the engines that lose rows."""
FAILS: Final = {
    ("statistics-bounds", "ClickHouse"),
    ("page-index-locations", "DataFusion"),
    ("page-index-locations", "ClickHouse"),
    ("page-index-locations", "Spark"),
}
"""Engines that can't read the file."""


def names() -> list[str]:
    """The 80 names."""
    found: list[str] = pq.read_table(RULE_PAIRS / "size-statistics/sound.parquet")["name"].to_pylist()
    return sorted(found)


def lost(ask: Ask, path: Path, sought: list[str]) -> int:
    """How many of the names the engine doesn't find."""
    return sum(len(ask(path, Question("name", "=", name, key="id"), True)) != 1 for name in sought)


def check(engine: str, ask: Ask, rule: str) -> None:
    """Look some names up in the files of a rule."""
    sought = [*names()[::6], "name 79"]  # a query takes some engines long
    assert lost(ask, RULE_PAIRS / rule / "sound.parquet", sought[:2]) == 0
    broken = RULE_PAIRS / rule / "broken.parquet"
    if (rule, engine) in FAILS:
        with pytest.raises(Exception, match=r"(?i)parquet|statistics|FAILED_READ_FILE"):  # each engine has its own
            lost(ask, broken, sought)
    else:
        assert bool(lost(ask, broken, sought)) == (engine in LOSES[rule])
    assert engine in page(rule)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_an_engine_loses_the_rows_that_the_page_reports(engine: str) -> None:
    pytest.importorskip("chdb" if engine == "ClickHouse" else engine.lower())
    with running(engine) as ask:
        for rule in LOSES:
            check(engine, ask, rule)


@pytest.mark.slow
@pytest.mark.parametrize("rule", LOSES)
def test_spark_loses_the_rows_that_the_page_reports(spark: SparkSession, rule: str) -> None:
    check("Spark", skipping_engines.Spark(spark), rule)


def test_datafusion_takes_rows_for_sorted_that_are_said_to_be(tmp_path: Path) -> None:
    """Also where each row group is sorted as its metadata say, and the row groups aren't in this order."""
    sorted_groups = tmp_path / "sorted.parquet"
    table = pa.table({"name": [*names()[40:], *names()[:40]]})
    pq.write_table(table, sorted_groups, row_group_size=40, sorting_columns=[pq.SortingColumn(0)])
    assert bloomcli.validate(sorted_groups, deep=True, columns=["*"]).findings == ()
    pair = RULE_PAIRS / "sorting-columns"
    question = Question("name", "order")
    with running("DataFusion") as ask:
        assert ask(pair / "sound.parquet", question, True) == names()[:FIRST]
        for wrong in (pair / "broken.parquet", sorted_groups):
            assert sorted(ask(wrong, question, True)) != names()[:FIRST]
            assert ask(wrong, question, False) == names()[:FIRST]
    assert "sorting_columns" in reader("datafusion").known.text
