"""A deep check finds nothing in files with filters that the engines wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from support.sparkfiles import LEAVES, filters, timestamps_as, types_frame, write
from support.tables import CASES
from support.tables import write as write_arrow

import bloomcli
from bloomcli.model.validate import ValidateReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

DUCK = """
SELECT i % 50 AS n, (i % 50)::INTEGER AS w, 'text ' || (i % 50) AS s, (i % 50 / 8)::DOUBLE AS d, (i % 50)::FLOAT AS f,
       (i % 50 / 8)::DECIMAL(9, 2) AS cents, DATE '2024-01-01' + (i % 50)::INTEGER AS day,
       TIMESTAMP '2024-01-01' + INTERVAL (i % 50) MINUTE AS moment, [i % 50, NULL, i % 3] AS items,
       {'left': i % 50, 'right': 'r' || (i % 9)} AS pair, ('b' || (i % 50))::BLOB AS b, (i % 50)::UTINYINT AS u
FROM range(5000) t(i)
"""


def checked(path: Path) -> ValidateReport:
    """A deep check that read values."""
    report = bloomcli.validate(path, deep=True)
    assert report.deep
    assert report.filters_checked > 0
    return report


@pytest.mark.spark
@pytest.mark.parametrize("version", ["PARQUET_1_0", "PARQUET_2_0"])
@pytest.mark.parametrize("stamps", ["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"])
def test_only_the_boolean_of_a_file_by_parquet_java_is_found_fault_with(
    spark: SparkSession, tmp_path: Path, version: str, stamps: str
) -> None:
    timestamps_as(spark, stamps)
    limit = {"parquet__block__row__count__limit": 200}
    path = write(
        types_frame(spark, range(500)),
        tmp_path / "java.parquet",
        **filters(2048, parquet__writer__version=version),
        **limit,
    )
    report = checked(path)
    assert {(f.id, f.column) for f in report.findings} == {("filter-boolean", "flag")}
    assert [f.row_group for f in report.findings] == [0, 1, 2]
    assert report.filters_checked == (len(LEAVES) + 1) * 3
    assert report.values_checked > 500 * 10


def test_a_file_by_duckdb_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "duck.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({DUCK}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    report = checked(path)
    assert report.findings == ()
    assert report.filters_checked == 3 * 13


@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_file_by_arrow_is_clean(tmp_path: Path, page_version: int, dictionary: bool) -> None:
    for name in CASES:
        leaf = {
            "list": "c.list.element",
            "list_of_lists": "c.list.element.list.element",
            "struct": "c.inner.leaf",
            "list_of_structs": "c.list.element.leaf",
        }.get(name, "c")
        path = write_arrow(
            tmp_path / f"{name}.parquet",
            {"c": CASES[name].array(20)},
            rows=30,
            page_version=page_version,
            dictionary=dictionary,
            blooms={leaf: {"ndv": 30, "fpp": 0.01}},
        )
        assert checked(path).findings == (), name
