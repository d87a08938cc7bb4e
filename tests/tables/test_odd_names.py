"""Command lines and statements that bloom prints run as they are printed, whatever the table and its columns are
called."""

from __future__ import annotations

import os
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.tables.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ODD = ("my-table", "it's a `table`.ü")
COLUMN = "größe in `mm`, it's"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture(params=[*(f"{kind} {name}" for name in ODD for kind in ("iceberg", "delta")), "iceberg, two parts"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A table of one file, and a catalog that is the current one in the session."""
    kind, _, name = request.param.partition(" ")
    spark.sql("use ice" if kind == "iceberg," else "use spark_catalog")
    in_sql = {"iceberg": f"ice.db.{quoted(name)}", "iceberg,": "db.`two-parts`", "delta": ""}[kind]
    in_sql = in_sql or f"delta.{quoted(str(tmp_path / name))}"
    column = COLUMN if kind != "delta" else "größe"  # Delta without column mapping refuses some characters
    spark.sql(f"create table {in_sql} (id bigint, {quoted(column)} string) using {kind.rstrip(',')}")
    spark.sql(f"insert into {in_sql} select id, concat('n', id) from range(0, 50, 1, 1)")

    def remove() -> None:
        if kind != "delta":
            spark.sql(f"drop table {in_sql} purge")
        spark.sql("use spark_catalog")

    request.addfinalizer(remove)
    return in_sql


def test_a_hint_of_validate_adds_the_filters_and_the_statement_for_statistics_writes_the_files_again(
    spark: SparkSession, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["validate", "--table", table, "--require", "id"]) == 1
    (command,) = re.findall(r"hint: `(bloom .*)`", capsys.readouterr().out)
    assert cli(shlex.split(command)[1:]) == 0
    assert cli(["validate", "--table", table, "--require", "id"]) == 0
    opened = open_table(spark, table)
    (statistics,) = opened.statistics(opened.files())
    before = opened.version
    spark.sql(statistics.rewriting)
    opened.refresh()
    assert opened.version != before
    assert spark.table(table).count() == 50


def test_the_statements_of_find_reachable_end_what_they_are_printed_for(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    column = spark.table(table).columns[1]
    report = bloom_spark.find_reachable(spark, table, "n7", column=column)
    assert report.statements[0].startswith("DELETE")
    for _ in range(3):
        for statement in report.statements:
            spark.sql(statement)
        for file in tmp_path.glob("*/_delta_log/*"):
            os.utime(file, (time.time() - 4 * 86400,) * 2)
        report = bloom_spark.find_reachable(spark, table, "n7", column=column)
        if not report.places:
            break
    assert report.certificate
    assert spark.table(table).count() == 49


def test_an_iceberg_table_s_full_name_names_its_branches_in_statements(spark: SparkSession, table: str) -> None:
    if table.startswith("delta"):
        assert not hasattr(open_table(spark, table), "full_name")
        return
    spark.sql(f"alter table {table} create branch other")
    opened = open_table(spark, f"{table}.branch_other")
    name = getattr(opened, "full_name", "")
    assert name == getattr(open_table(spark, table), "full_name", None)
    spark.sql(f"alter table {name} replace branch `other` as of version {opened.version}")
