"""Tables that can be opened, their versions, and the files that a condition selects."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from support import work
from support.delta_tables import Lake, info, made

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.spark_session import activate
from bloomcli.errors import UsageError
from bloomcli.model.schema import ColumnName
from bloomcli.tables import opening
from bloomcli.tables.base import FilterRequest
from bloomcli.tables.delta import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_names_of_catalogs_and_paths_open_and_others_give_none(spark: SparkSession, lake: Lake) -> None:
    lake.create("id bigint").insert("id from range(3)")
    spark.sql(f"create table default.by_name using delta location '{lake.folder}'")
    spark.sql("create view default.seen as select * from default.by_name")
    spark.sql("create table ice.db.other (id bigint) using iceberg")
    spark.sql("create table default.plain (id bigint) using parquet")
    try:
        for name in (lake.name, "by_name", "default.by_name", "spark_catalog.default.by_name", "DEFAULT.BY_NAME"):
            table = open_table(spark, name)
            assert table is not None
            assert (table.version, len(table.files())) == (1, 1)
        for name in (
            "default.seen",
            "ice.db.other",
            "default.plain",
            "default.no",
            "no.table",
            "ice.no.no",
            "delta.`/no`",
        ):
            assert open_table(spark, name) is None
        named = open_table(spark, "default.by_name")
        assert named is not None
        assert named.commit(made(named, named.files()), info()) == 2
        assert spark.table("default.by_name").count() == 3
    finally:
        spark.sql("drop view default.seen")
        for name in ("default.by_name", "ice.db.other", "default.plain"):
            spark.sql(f"drop table {name}")
    with pytest.raises(UsageError, match="not a table's name"):
        open_table(spark, "a b")


def test_a_table_opens_in_a_thread_and_in_a_session_without_delta_s_catalog(spark: SparkSession, lake: Lake) -> None:
    lake.create("id bigint").insert("id from range(3)")
    with ThreadPoolExecutor(1) as threads:  # its connection to Java has no active session
        found = threads.submit(bloom_spark.inspect_table, spark, lake.name).result()
    assert found.count() == 1
    other = spark.newSession()
    other.conf.unset("spark.sql.catalog.spark_catalog")
    try:
        table = opening.open_table(other, lake.name)
        assert (table.version, len(table.files("id = 1"))) == (1, 1)
    finally:
        activate(spark)


def test_versions_and_times_open_what_was_then(lake: Lake) -> None:
    lake.create("id bigint").insert("id from range(3)").insert("id from range(3)")
    lake.replace()
    assert [len(lake.open(snapshot=v).files()) for v in (0, 1, 2, 3)] == [0, 1, 2, 2]
    at = [h["timestamp"].astimezone(UTC) for h in reversed(lake.history())]
    assert [lake.open(as_of=t).version for t in at] == [0, 1, 2, 3]
    assert lake.open(as_of=at[1] + timedelta(milliseconds=1)).version == 1
    assert lake.open(as_of=datetime(2999, 1, 1, tzinfo=UTC)).version == 3
    for wrong in (
        {"snapshot": 4},
        {"snapshot": -1},
        {"as_of": at[0] - timedelta(days=1)},
        {"snapshot": 1, "as_of": at[1]},
    ):
        with pytest.raises(UsageError):
            lake.open(**wrong)
    with pytest.raises(UsageError, match="only the newest version"):
        lake.open(snapshot=2).check_changes()


def test_a_partition_s_path_is_no_table_s_name(lake: Lake) -> None:
    lake.create("id bigint, p int", more="partitioned by (p)").insert("id, 1 from range(3)")
    with pytest.raises(UsageError, match="a partition"):
        open_table(lake.spark, f"delta.`{lake.folder}/p=1`")


def test_a_condition_leaves_what_partitions_and_statistics_leave(lake: Lake) -> None:
    lake.create("id bigint, day date, s struct<a: int>", more="partitioned by (day)")
    for i in range(4):
        lake.insert(f"id + {100 * i}, date'2026-11-0{1 + i % 2}', struct(cast(id as int)) from range(100)")
    table = lake.open()

    def left(where: str) -> int:
        return len(table.files(where))

    assert [left(w) for w in ("day >= '2026-11-02'", "day = date'2026-11-01' and id < 50", "id = 5 or id = 350")] == [
        2,
        1,
        2,
    ]
    assert [left(w) for w in ("s.a > 1000", "1 = 0", "1 = 1", "rand() < 2", "id % 7 = 3", "ID = 7")] == [
        0,
        0,
        4,
        4,
        4,
        1,
    ]
    lake.sql("delete from {t} where day = '2026-11-02'")
    assert left("day >= '2026-11-02'") == 2  # of the version that is open
    for wrong in ("no = 1", "day >=", "", "sum(id) > 3", "id = 1; drop table x"):
        with pytest.raises(UsageError, match="--where"):
            table.files(wrong)


def test_columns_without_a_mapping_have_their_names(lake: Lake) -> None:
    lake.create("id bigint, `a.b` int, l array<array<int>>, m map<struct<k: int>, array<string>>")
    assert lake.open().names().columns == tuple(
        ColumnName(path=p, physical=(p,)) for p in ("id", "a.b", "l.element.element", "m.key.k", "m.value.element")
    )


def test_table_properties_ask_parquet_s_writer_for_filters(lake: Lake) -> None:
    lake.create("id bigint, l array<int>, b boolean, p int", more="partitioned by (p)")
    properties = {"enabled#id": "true", "fpp#id": "0.001", "enabled#l.list.element": "TRUE", "max.bytes": "4096",
                  "enabled#old": "true", "expected.ndv#id": "50"}  # fmt: skip
    listed = ", ".join(f"'parquet.bloom.filter.{key}' = '{value}'" for key, value in properties.items())
    lake.sql(f"alter table {{t}} set tblproperties ({listed})")
    lake.insert("id, array(cast(id as int)), true, 1 from range(1000)")
    (file,) = lake.open().files()
    written = {c.column for c in bloomcli.inspect(portable(file.path)).by_column if c.filters}
    assert written == {"id", "l.list.element"}  # Delta's own writer uses them
    assert lake.open().filter_requests() == [
        FilterRequest(column="id", fpp=0.001, max_bytes=4096),
        FilterRequest(column="l.element", max_bytes=4096),
        FilterRequest(column="old", max_bytes=4096),
    ]
    lake.sql("alter table {t} set tblproperties ('parquet.bloom.filter.enabled' = 'true')")
    assert [w.column for w in lake.open().filter_requests()] == ["id", "l.element", "old"]  # no filters of two values
    lake.sql("alter table {t} set tblproperties ('parquet.bloom.filter.fpp#id' = '2')")
    with pytest.raises(UsageError, match="fpp#id is '2'"):
        lake.open().filter_requests()
    assert Lake(lake.spark, lake.folder.with_name("none")).create("id int").open().filter_requests() == []


def test_ten_thousand_files_are_listed_and_replaced_with_few_calls_of_java(lake: Lake, tmp_path: Path) -> None:
    lake.create("id bigint, p int", more="partitioned by (p)").insert("id, 1 from range(10)")
    (entry,) = lake.log(1)["add"]
    stats = json.loads(entry["stats"])
    lines = []
    for i in range(10_000):
        low = {"minValues": {"id": i}, "maxValues": {"id": i}}
        path = f"p={i % 50}/part-{i:05}-{uuid4()}.c000.snappy.parquet"
        file = {**entry, "path": path, "partitionValues": {"p": str(i % 50)}, "stats": json.dumps({**stats, **low})}
        lines.append(json.dumps({"add": file}))
    (lake.folder / "_delta_log" / f"{2:020}.json").write_text("\n".join(lines) + "\n")
    lake.open().files("id = 1")  # loads the state, which Delta keeps
    with work.java_calls(lake.spark) as sent:
        table = lake.open()
        files = table.files()
        assert (len(files), len(table.files("id = 777")), len(table.files("p = 7"))) == (10_001, 1, 200)
        new = {table.new_path(file) for file in files}
    assert len(new) == len(files)
    assert len(sent) < 3000, "300 are usual, and a call for each field of each file would be 100,000"
