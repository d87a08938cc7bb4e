"""`repair --table`: wrong files of Iceberg and Delta tables are replaced, and what manifests and logs say of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from support import patches as at
from support.iceberg_runs import delete_equal, local_path, opened

from bloomcli import spark as bloom_spark
from bloomcli.commands.options import RepairOptions, TableOptions
from bloomcli.datasets.spark import SparkEngine
from bloomcli.tables.change import change_table
from bloomcli.tables.iceberg import statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

COLUMNS = "id bigint, name string, ratio double, user struct<mail: string>, p int"
ROWS = """select id, concat('n', id) name, if(id = 6, double('NaN'), id / 4) ratio,
    named_struct('mail', concat('a text of more than sixteen characters ', id)) user, p"""


def damaged(paths: Iterable[str]) -> int:
    """Say in the footers of the data files with the id 77 that no id is above 50. The files keep their
    sizes. Returns their number."""
    chosen = 0
    for path in paths:
        file = local_path(path)
        table = pq.read_table(file)
        if 77 in table[0].to_pylist():
            before = file.read_bytes()
            after = at.stats(table.column_names[0], MAX_VALUE=at.int64(50), MAX=at.int64(50))(before)
            assert len(after) == len(before)
            assert after != before
            file.write_bytes(after)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            chosen += 1
    return chosen


def filled(spark: SparkSession, name: str) -> None:
    """The ids 0 to 99 and 100 to 199, each in a file of its own for each of two partitions, or of one."""
    for start in (0, 100):
        spark.sql(
            f"insert into {name} {ROWS} from (select id, int(id % 2) p from range({start}, {start + 100}, 1, 1))"
        )


def iceberg(spark: SparkSession, version: int, label: str) -> str:
    """A table with deletes: one of version 2 has no partitions, and equality deletes."""
    name = f"ice.db.{label}_{version}"
    spark.sql(
        f"create table {name} ({COLUMNS}) using iceberg {'partitioned by (p)' if version > 2 else ''} tblproperties ("
        f"'format-version'='{version}', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )
    filled(spark, name)
    spark.sql(f"delete from {name} where id in (3, 8, 150)")
    if version == 2:
        delete_equal(spark, name, "name", ["n5", "n9"])
    spark.sql(f"update {name} set name = 'new' where id = 12")
    return name


def delta(spark: SparkSession, folder: Path, **properties: str) -> str:
    name = f"delta.`{folder}`"
    more = "".join(f", 'delta.{key}' = '{value}'" for key, value in properties.items())
    spark.sql(
        f"create table {name} ({COLUMNS}) using delta partitioned by (p)"
        f" tblproperties ('delta.enableDeletionVectors' = 'true'{more})"
    )
    filled(spark, name)
    return name


def contents(spark: SparkSession, name: str, *more: str) -> list[str]:
    return sorted(map(str, spark.table(name).select("*", *more).collect()))


def found(spark: SparkSession, name: str) -> list[tuple[str, str | None]]:
    """The findings of `validate --table --deep` about all columns."""
    rows = bloom_spark.validate_table(spark, name, deep=True, columns=["*"]).collect()
    assert all(row.error is None for row in rows)
    return sorted((one.id, one.column) for row in rows for one in row.findings)


def repaired(spark: SparkSession, name: str, **options: Any) -> list[str]:
    """The statuses of the files after `bloom repair --table`."""
    rows = bloom_spark.repair_table(spark, name, **options).collect()
    assert [row.error for row in rows if row.error] == []
    return sorted(row.status for row in rows)


def count(spark: SparkSession, name: str, where: str) -> int:
    return spark.table(name).where(where).count()


@pytest.mark.parametrize("version", [2, 3])
def test_wrong_files_of_an_iceberg_table_are_mended_and_deletes_stay(spark: SparkSession, version: int) -> None:
    name = iceberg(spark, version, "mended_files")
    lineage = ("_row_id", "_last_updated_sequence_number") if version == 3 else ()
    assert damaged(file.path for file in opened(spark, name).files()) == 1
    before = contents(spark, name, *lineage)
    assert count(spark, name, "id = 77") == 0
    assert repaired(spark, name, dry_run=True).count("planned") == 1
    assert count(spark, name, "id = 77") == 0
    assert repaired(spark, name).count("done") == 1
    assert count(spark, name, "id = 77") == 1
    assert contents(spark, name, *lineage) == before
    assert found(spark, name) == []
    assert set(repaired(spark, name)) == {"skipped"}
    repaired(spark, name, add=["page-index", "statistics"])
    assert contents(spark, name, *lineage) == before
    assert found(spark, name) == []


def test_wrong_files_of_a_delta_table_are_mended_and_deletes_and_row_ids_stay(
    spark: SparkSession, folder: Path
) -> None:
    name = delta(spark, folder, **{"enableRowTracking": "true", "columnMapping.mode": "name"})
    spark.sql(f"delete from {name} where id in (3, 8, 150)")
    spark.sql(f"update {name} set name = 'new' where id = 12")
    rows = ("_metadata.row_id", "_metadata.row_commit_version")
    assert damaged(file for file in spark.table(name).inputFiles()) == 1
    before = contents(spark, name, *rows)
    assert count(spark, name, "id = 77") == 0
    assert repaired(spark, name).count("done") == 1
    assert count(spark, name, "id = 77") == 1
    assert contents(spark, name, *rows) == before
    assert count(spark, name, "id in (3, 8, 150)") == 0
    repaired(spark, name, add=["page-index", "statistics"])
    assert contents(spark, name, *rows) == before
    assert found(spark, name) == []


def test_an_iceberg_without_access_to_manifests_is_named_and_files_are_still_checked_and_mended(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ice.db.old_library"
    spark.sql(f"create table {name} ({COLUMNS}) using iceberg")
    filled(spark, name)
    assert damaged(file.path for file in opened(spark, name).files()) == 1
    monkeypatch.setattr(statistics, "_PARSER", "org.apache.iceberg.NoSuchParser")
    rows = bloom_spark.validate_table(spark, name, deep=True).collect()
    assert [row.error for row in rows if row.error] == []
    options = RepairOptions()
    report = change_table(opened(spark, name), SparkEngine(spark), options, TableOptions(table=name))
    assert "Iceberg 1.12" in " ".join(report.remarks)
    assert sorted(row.status for row in report.rows) == ["done", "skipped"]
    assert count(spark, name, "id = 77") == 1
    assert found(spark, name) == []
