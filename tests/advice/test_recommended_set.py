"""The recommended columns of generated lakes are those that an expert chooses; `test_intervals.py` compares their
figures with an exhaustive run."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.advised_lakes import LAKES, write

import bloomcli

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_process")]


@pytest.mark.parametrize(("name", "sample"), [*((name, None) for name in LAKES), ("general", "40%")])
def test_the_recommended_columns_are_those_of_an_expert_for_the_expert_s_reasons(
    name: str, sample: str | None, tmp_path: Path
) -> None:
    found = bloomcli.advise([write(LAKES[name], tmp_path / "lake")], sample=sample)
    assert {column.column: column.reason_id for column in found.columns} == LAKES[name].reasons
    assert {column.column for column in found.columns if column.recommended} == {
        column for column, reason in LAKES[name].reasons.items() if reason == "saves"
    }


def test_columns_that_named_readers_probe_rightly_are_no_longer_left_out(tmp_path: Path) -> None:
    lake = write(LAKES["general"], tmp_path / "lake")
    (half,) = bloomcli.advise([lake], columns="half").columns
    assert half.reason_id == "loses-rows"
    assert "DuckDB" in half.reason
    assert "reader-float16" in half.reason
    (half,) = bloomcli.advise([lake], columns="half", readers=["spark"]).columns
    assert half.reason_id != "loses-rows"


CLICKBENCH_QUERIES = (
    "SELECT UserID FROM hits WHERE UserID = {UserID}",
    "SELECT Title, COUNT(*) FROM hits WHERE CounterID = 62 AND IsRefresh = 0 AND Title <> '' GROUP BY Title",
    "SELECT URLHash, EventDate FROM hits WHERE CounterID = 62 AND IsRefresh = 0 AND TraficSourceID IN (-1, 6)"
    " AND RefererHash = {RefererHash} GROUP BY URLHash, EventDate",
    "SELECT COUNT(*) FROM hits WHERE CounterID = 62 AND IsRefresh = 0 AND URLHash = {URLHash}",
    "SELECT SearchPhrase FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> ''",
)
"""The predicates of ClickBench's queries 20, 38, 41, 42 and 23, with values of the generated data."""

TPCH_QUERIES = (
    "SELECT * FROM orders WHERE o_custkey = {o_custkey}",
    "SELECT * FROM orders WHERE o_orderkey = {o_orderkey}",
    "SELECT COUNT(*) FROM orders WHERE o_orderstatus = 'F' AND o_orderdate < DATE '1995-03-15'",
    "SELECT COUNT(*) FROM orders WHERE o_comment NOT LIKE '%special%requests%' AND o_totalprice > 400000",
)


@pytest.mark.parametrize(
    ("name", "queries", "wanted"),
    [
        ("clickbench", CLICKBENCH_QUERIES, {"UserID", "RefererHash", "URLHash"}),
        ("tpch-orders", TPCH_QUERIES, {"o_custkey"}),
    ],
)
def test_with_queries_only_the_columns_that_they_look_up_and_that_profit_get_filters(
    name: str, queries: tuple[str, ...], wanted: set[str], tmp_path: Path
) -> None:
    """An expert adds nothing for a price or a comment that nobody looks up, nor for the key that the files are
    sorted by."""
    lake = write(LAKES[name], tmp_path / "lake")
    table = pq.ParquetDataset(lake).read()
    values = {column: table[column].slice(7_654, 1000).to_pylist() for column in table.column_names}
    log = tmp_path / "log.sql"
    log.write_text(
        ";\n".join(
            query.format(**{column: some[number] for column, some in values.items()})
            for number in range(0, 1000, 20)
            for query in queries
        )
    )
    found = bloomcli.advise([lake], queries=log)
    assert {column.column for column in found.columns if column.recommended} == wanted
    assert found.queries is not None
    assert found.queries.about_table == found.queries.statements == 50 * len(queries)
    assert found.queries.unserved
