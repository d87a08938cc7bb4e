"""What else a commit that rewrites data files could drop: metadata of the files and of the table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.iceberg_runs import append, facts, make, opened, retrofitted, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def metadata(spark: SparkSession, name: str) -> dict[str, Any]:
    """The table's metadata, without what each commit changes."""
    table = opened(spark, name)
    parser = table.java.iceberg("TableMetadataParser")
    found: dict[str, Any] = json.loads(parser.toJson(table.table.operations().current()))
    for changed in (
        "last-sequence-number",
        "last-updated-ms",
        "current-snapshot-id",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "next-row-id",
    ):
        found.pop(changed, None)
    found["refs"].pop("main")
    return found


def test_a_table_keeps_its_tags_statistics_orders_and_properties(spark: SparkSession) -> None:
    name = make(spark, "stays", version="3", appends=0, partitioned="day")
    short = name.removeprefix("ice.")
    spark.sql(f"alter table {name} write ordered by name desc")
    append(spark, name, 0)
    spark.sql(f"alter table {name} create tag first")
    append(spark, name, 100)
    spark.sql(f"delete from {name} where id in (3, 104)")
    spark.sql(f"alter table {name} create branch side")
    spark.sql(f"call ice.system.compute_table_stats('{short}')").collect()
    spark.sql(f"call ice.system.compute_partition_stats('{short}')").collect()
    before, files, tagged = metadata(spark, name), facts(opened(spark, name)), rows(spark, f"{name}.tag_first")
    assert before["statistics"]
    assert before["partition-statistics"]
    assert set(before["refs"]) == {"first", "side"}
    assert {of["sort-order-id"] for of in files.values()} == {1}
    assert facts(retrofitted(spark, name, new_row_ids=True)) == files
    assert metadata(spark, name) == before
    assert rows(spark, f"{name}.tag_first") == tagged
