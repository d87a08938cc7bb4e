"""The engines lose rows by wrong statistics and page indexes as the rules' pages say, and find them otherwise.

Each pair of ``fixtures/rules`` holds the same 80 rows. An engine looks names up in the broken file and in its sound
neighbour; it loses rows in the broken one if the rule's page reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support.golden import RULE_PAIRS

from bloomcli.rules import page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

Query = Callable[[Path, str], int]
"""The number of rows of a file with a name."""
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


def duckdb() -> Query:
    import duckdb

    connection = duckdb.connect()
    return lambda path, name: len(connection.execute(f"SELECT id FROM '{path}' WHERE name = '{name}'").fetchall())


def datafusion() -> Query:
    from datafusion import SessionConfig, SessionContext

    def query(path: Path, name: str) -> int:
        context = SessionContext(SessionConfig().set("datafusion.execution.parquet.pushdown_filters", "true"))
        context.register_parquet("t", str(path))
        return int(context.sql(f"SELECT id, name FROM t WHERE name = '{name}'").to_arrow_table().num_rows)

    return query


def polars() -> Query:
    import polars as pl

    return lambda path, name: pl.scan_parquet(path).filter(pl.col("name") == name).collect().height


def pyarrow() -> Query:
    return lambda path, name: ds.dataset(path).to_table(filter=ds.field("name") == name).num_rows


def clickhouse() -> Query:
    import chdb

    def query(path: Path, name: str) -> int:
        found = chdb.query(f"SELECT count() FROM (SELECT id FROM file('{path}', Parquet) WHERE name = '{name}')")
        return int(str(found))

    return query


IN_PROCESS: Final[dict[str, Callable[[], Query]]] = {
    "DuckDB": duckdb,
    "DataFusion": datafusion,
    "Polars": polars,
    "PyArrow": pyarrow,
    "ClickHouse": clickhouse,
}


def names() -> list[str]:
    """The 80 names."""
    found: list[str] = pq.read_table(RULE_PAIRS / "size-statistics/sound.parquet")["name"].to_pylist()
    return sorted(found)


def lost(query: Query, path: Path, sought: list[str]) -> int:
    """How many of the names the engine doesn't find."""
    return sum(query(path, name) != 1 for name in sought)


def check(engine: str, query: Query, rule: str) -> None:
    """Look some names up in the files of a rule."""
    sought = [*names()[::6], "name 79"]  # a query takes some engines long
    assert lost(query, RULE_PAIRS / rule / "sound.parquet", sought[:2]) == 0
    broken = RULE_PAIRS / rule / "broken.parquet"
    if (rule, engine) in FAILS:
        with pytest.raises(Exception, match=r"(?i)parquet|statistics|FAILED_READ_FILE"):  # each engine has its own
            lost(query, broken, sought)
    else:
        assert bool(lost(query, broken, sought)) == (engine in LOSES[rule])
    assert engine in page(rule)


@pytest.mark.parametrize("rule", LOSES)
@pytest.mark.parametrize("engine", IN_PROCESS)
def test_an_engine_loses_the_rows_that_the_page_reports(engine: str, rule: str) -> None:
    pytest.importorskip("chdb" if engine == "ClickHouse" else engine.lower())
    check(engine, IN_PROCESS[engine](), rule)


@pytest.mark.slow
@pytest.mark.parametrize("rule", LOSES)
def test_spark_loses_the_rows_that_the_page_reports(spark: SparkSession, rule: str) -> None:
    def query(path: Path, name: str) -> int:
        return len(spark.read.parquet(str(path)).where(f"name = '{name}'").select("id", "name").collect())

    check("Spark", query, rule)


def test_datafusion_takes_rows_for_sorted_that_are_said_to_be() -> None:
    from datafusion import SessionContext

    first: dict[str, list[str]] = {}
    for name in ("sound", "broken"):
        context = SessionContext()
        context.register_parquet("t", str(RULE_PAIRS / "sorting-columns" / f"{name}.parquet"))
        first[name] = context.sql("SELECT name FROM t ORDER BY name LIMIT 60").to_pydict()["name"]
    assert first["sound"] == sorted(names())[:60]
    assert sorted(first["broken"]) != first["sound"]
