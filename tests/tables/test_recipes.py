"""The recipes of docs/recipes.md do what the page says, on tables of both formats."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SECTIONS = dict(
    re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "recipes.md").read_text(), re.MULTILINE | re.DOTALL)
)


def blocks(section: str, language: str) -> list[str]:
    """The blocks of a section of the page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", _SECTIONS[section], re.MULTILINE | re.DOTALL)


def filters(spark: SparkSession, table: str) -> list[int]:
    """The number of filters of each file."""
    rows = bloom_spark.inspect_table(spark, table).collect()
    return [len(row.filters) if isinstance(row.filters, list) else row.filters for row in rows]


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Path:
    """A Delta table of two files."""
    lake = tmp_path / "orders"
    spark.sql(f"create table delta.`{lake}` (id bigint, day date) using delta")
    for day in (1, 2):
        spark.sql(f"insert into delta.`{lake}` select id, date'2026-11-0{day}' from range({day}, 200, 2)")
    return lake


@pytest.fixture
def iceberg(spark: SparkSession) -> str:
    """An Iceberg table of two files, with the name that the page uses."""
    spark.sql("drop table if exists ice.db.orders purge")
    spark.sql("create table ice.db.orders (id bigint, day date) using iceberg tblproperties ('format-version'='2')")
    for day in (1, 2):
        spark.sql(f"insert into ice.db.orders select id, date'2026-11-0{day}' from range({day}, 200, 2)")
    return "ice.db.orders"


def test_filters_survive_the_compaction_of_a_delta_table_whose_properties_name_them(
    spark: SparkSession, delta: Path
) -> None:
    title = "Filters that survive compaction"
    table, own = f"delta.`{delta}`", "delta.`/mnt/lake/orders`"
    bloom_spark.add_to_table(spark, table, ["id"])
    assert set(filters(spark, table)) == {1}
    spark.sql(f"optimize {table}").collect()
    assert filters(spark, table) == [0], "without the properties, they are gone"
    spark.sql(blocks(title, "sql")[1].replace(own, table).rstrip().rstrip(";"))
    spark.sql(f"insert into {table} select id, date'2026-11-03' from range(200, 300)")
    assert set(filters(spark, table)) == {0, 1}, "Delta's writer takes the properties"
    ((add, validate),) = (text.replace(own, table).splitlines() for text in blocks(title, "sh"))
    assert cli(shlex.split(validate)[1:]) == 1
    assert cli(shlex.split(add)[1:]) == 0
    assert cli(shlex.split(validate)[1:]) == 0
    spark.sql(f"optimize {table}").collect()
    assert filters(spark, table) == [1]
    (program,) = blocks(title, "python")
    ran: dict[str, Any] = {"spark": spark}
    exec(program.replace(own, table), ran)
    assert [row.status for row in ran["rows"].collect()] == ["skipped"]


def test_filters_survive_the_compaction_of_an_iceberg_table_whose_properties_name_them(
    spark: SparkSession, iceberg: str
) -> None:
    assert set(filters(spark, iceberg)) == {0}
    spark.sql(blocks("Filters that survive compaction", "sql")[0].rstrip().rstrip(";"))
    bloom_spark.add_to_table(spark, iceberg, from_properties=True)
    assert set(filters(spark, iceberg)) == {1}
    compact = "call ice.system.rewrite_data_files(table => 'db.orders', options => map('rewrite-all', 'true'))"
    spark.sql(compact).collect()
    assert filters(spark, iceberg) == [1]


def upsert(spark: SparkSession, changes: Any) -> None:
    """Run the recipe."""
    (program,) = blocks("Upserts", "python")
    exec(program, {"spark": spark, "changes": changes})


def test_an_upsert_appends_new_keys_and_merges_the_others(spark: SparkSession, iceberg: str) -> None:
    bloom_spark.add_to_table(spark, iceberg, ["id"])
    upsert(spark, spark.sql("select id, date'2026-12-01' as day from range(195, 205)"))
    rows = spark.sql(f"select count(*), count(distinct id), count_if(day = date'2026-12-01') from {iceberg}")
    assert rows.first() == (204, 204, 10)
    files = {row[0] for row in spark.sql(f"select file_path from {iceberg}.files").collect()}
    upsert(spark, spark.sql("select id, date'2026-12-02' as day from range(1000, 1010)"))
    assert spark.sql(f"select count(*) from {iceberg}").first() == (214,)
    assert files <= {row[0] for row in spark.sql(f"select file_path from {iceberg}.files").collect()}, "all stay"
    assert spark.sql(f"select name from {iceberg}.refs").collect() == [("main",)]


def test_an_upsert_fails_if_another_job_has_committed_meanwhile(spark: SparkSession, iceberg: str) -> None:
    class Meanwhile:
        """A session in which another job adds the same key before the branch becomes the table."""

        def __getattr__(self, name: str) -> Any:
            return getattr(spark, name)

        def sql(self, text: str) -> Any:
            if text.startswith("CALL"):
                spark.sql(f"insert into {iceberg} values (500, date'2026-12-03')")
            return spark.sql(text)

    (program,) = blocks("Upserts", "python")
    program = program.replace("find_table(spark", "find_table(session")
    changes = spark.sql("select 500L as id, date'2026-12-01' as day")
    with pytest.raises(Exception, match="is not an ancestor"):
        exec(program, {"spark": Meanwhile(), "session": spark, "changes": changes})
    assert spark.sql(f"select count(*) from {iceberg} where id = 500").first() == (1,)


def test_deleted_values_are_found_in_the_files_until_maintenance_removes_them(
    spark: SparkSession, delta: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spark.sql(f"alter table delta.`{delta}` set tblproperties ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"delete from delta.`{delta}` where id = 42")
    (tmp_path / "ids.txt").write_text("42\n")
    (line,) = blocks("Erasure", "sh")
    words = shlex.split(line.replace("/mnt/lake/orders", str(delta)).replace("ids.txt", str(tmp_path / "ids.txt")))[
        1:
    ]
    assert bloom_spark.find_table(spark, f"delta.`{delta}`", [42], column="id").count() == 0
    capfd.readouterr()
    assert cli(words) == 0
    assert capfd.readouterr().out.startswith(str(delta))
    spark.sql(f"reorg table delta.`{delta}` apply (purge)").collect()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"vacuum delta.`{delta}` retain 0 hours")
    assert cli(words) == 1, "no file has it"
