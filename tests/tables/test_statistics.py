"""Sound tables have no finding about their metadata; wrong entries in manifests and logs lose rows, and are found."""

from __future__ import annotations

import json
import shlex
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deltalake
import pyarrow as pa
import pytest
from support.without_spark import warehouse_folder
from support.wrong_tables import Edit, change_manifest, set_value, with_log

from bloomcli import spark as bloom_spark
from bloomcli.commands.options import ValidateOptions
from bloomcli.datasets.engine import LocalEngine, plan_files, run_tasks
from bloomcli.tables.java import without_log
from bloomcli.tables.reading import TableEngine
from bloomcli.tables.without_spark import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SELECT = """
    select id, concat('a name of more than sixteen characters ', id) name, cast(id * 1.25 as decimal(9, 2)) price,
    if(id % 9 = 0, double('NaN'), id / 8) ratio, cast(if(id % 9 = 1, null, id) as int) small,
    timestamp_micros(1764590400000000 + id * 1000001) at, date_add(date'2026-11-01', int(id % 3)) day,
    cast(id % 2 = 0 as boolean) flag, cast(concat('b', id) as binary) raw, float(id / 10) single,
    timestamp_ntz'2026-11-01 12:00:00.123456' local,
    if(id % 9 = 3, null, named_struct('mail', concat('m', id), 'age', id)) user, array('x', null) tags, p
"""
COLUMNS = """
    id bigint, name string, price decimal(9, 2), ratio double, small int, at timestamp, day date, flag boolean,
    raw binary, single float, local timestamp_ntz, user struct<mail: string, age: bigint>, tags array<string>, p int
"""


def rows(start: int, end: int, p: int = 1) -> str:
    return f"{SELECT} from (select id, {p} p from range({start}, {end}, 1, 1))"


def findings(spark: SparkSession, name: str, **options: Any) -> list[tuple[str, str | None]]:
    """The rules and columns of findings about the table's metadata, without Spark. Notes are left out: Iceberg gives
    imported ORC columns with NaN infinite bounds, from which Spark answers MIN and MAX."""
    path = str(warehouse_folder(spark, name)) if name.startswith("ice.") else name
    engine = TableEngine(open_snapshot(path), LocalEngine(jobs=1))
    return _of_metadata(run_tasks(engine, plan_files(engine, (), ValidateOptions(**options))).rows)


def validated(spark: SparkSession, name: str, *expected: tuple[str, str | None]) -> Sequence[Any]:
    """The rows of `validate --table --deep`, which has these findings about the table's metadata on Spark and without
    it."""
    rows = bloom_spark.validate_table(spark, name, deep=True, columns=["*"]).collect()
    assert _of_metadata(rows) == findings(spark, name, deep=True, columns=["*"]) == list(expected)
    return rows


def _of_metadata(rows: Sequence[Any]) -> list[tuple[str, str | None]]:
    assert all(row.error is None for row in rows)
    chosen = (one for row in rows for one in row.findings if one.severity != "note")
    return sorted(((one.id, one.column) for one in chosen if one.id.startswith("table-")), key=str)


def mended(spark: SparkSession, name: str, *left: tuple[str, str | None]) -> list[str]:
    """The statuses of the files after `bloom repair --table`; the metadata then have the findings `left`."""
    rows = bloom_spark.repair_table(spark, name).collect()
    assert [row.error for row in rows if row.error] == []
    assert findings(spark, name, deep=True, columns=["*"]) == list(left)
    return [row.status for row in rows]


PARTITIONS = "bucket(4, id), truncate(8, name), days(at), p"


@pytest.mark.parametrize(("kind", "version"), [("orc", 2), ("parquet", 3)])
def test_sound_iceberg_tables_have_no_finding(spark: SparkSession, kind: str, version: int) -> None:
    name = f"ice.db.sound_{kind}_{version}"
    spark.sql(
        f"create table {name} ({COLUMNS}) using iceberg partitioned by ({PARTITIONS}) tblproperties ("
        f"'format-version'='{version}', 'write.format.default'='{kind}', 'write.delete.mode'='merge-on-read',"
        " 'write.metadata.metrics.column.name'='full', 'write.metadata.metrics.column.day'='counts')"
    )
    spark.sql(f"insert into {name} {rows(0, 60)}")
    spark.sql(f"delete from {name} where id in (0, 7, 59)")
    for change in (
        "rename column name to label",
        "alter column small type bigint",
        "alter column single type double",
        "alter column price type decimal(12, 2)",
        "add column extra string",
        "drop column raw",
        "drop partition field p",
        "add partition field hours(at)",
        "add partition field truncate(10, id)",
    ):
        spark.sql(f"alter table {name} {change}")
    new = rows(60, 90, 2).replace("cast(concat('b', id) as binary) raw,", "")
    spark.sql(f"insert into {name} select *, null from ({new})")
    assert findings(spark, name) == []
    validated(spark, name)


def test_sound_delta_tables_have_no_finding(spark: SparkSession, folder: Path) -> None:
    name = f"delta.`{folder}`"
    spark.sql(
        f"create table {name} ({COLUMNS}) using delta partitioned by (p, day) tblproperties ("
        "'delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='name',"
        " 'delta.enableTypeWidening'='true', 'delta.checkpointInterval'='3')"
    )
    spark.sql(f"insert into {name} {rows(0, 60)}")
    spark.sql(f"delete from {name} where id in (0, 7, 59)")
    for change in (
        "alter column small type bigint",
        "add column extra string",
        "rename column name to label",
        "drop column raw",
    ):
        spark.sql(f"alter table {name} {change}")
    new = rows(60, 90, 2).replace("cast(concat('b', id) as binary) raw,", "")
    spark.sql(f"insert into {name} select *, null from ({new})")
    spark.sql(f"update {name} set small = 5 where id = 70")
    assert findings(spark, name) == []
    validated(spark, name)


def test_files_that_iceberg_imports_have_no_finding(spark: SparkSession, tmp_path: Path) -> None:
    for kind in ("parquet", "orc"):
        name, source = f"ice.db.imported_{kind}", tmp_path / kind
        written = spark.sql(rows(0, 60)).drop("local", "p")
        written.coalesce(1).write.partitionBy("flag").format(kind).save(str(source))
        columns = COLUMNS.replace("local timestamp_ntz, ", "").replace(", p int", "")
        spark.sql(f"create table {name} ({columns}) using iceberg partitioned by (flag)")
        spark.sql(f"call ice.system.add_files(table => '{name[4:]}', source_table => '{kind}.`{source}`')")
        assert findings(spark, name, columns=["*"]) == []
        validated(spark, name)


def bound(key: str, field: int, value: bytes) -> Edit:
    return lambda entry: set_value(entry, key, field, value.hex())


def count(key: str, field: int, value: int) -> Edit:
    return lambda entry: set_value(entry, key, field, value)


def set_key(key: str, value: Any) -> Edit:
    return lambda entry: entry.update({key: value})


LONG = struct.Struct("<q")


class Wrong(NamedTuple):
    """A wrong entry, the rule and the column of the finding, and a condition whose rows are lost."""

    edit: Edit
    rule: str
    column: str | None
    where: str
    needs_values: bool = False
    """It is found only by --deep."""

    @property
    def finding(self) -> tuple[str, str | None]:
        return self.rule, self.column


MANIFESTS = [
    [  # of several columns
        Wrong(bound("upper-bounds", 1, LONG.pack(50)), "table-bounds", "id", "id = 77"),
        Wrong(bound("upper-bounds", 2, b"n5"), "table-bounds", "name", "name = 'n77'"),
        Wrong(bound("upper-bounds", 3, b"\1"), "table-bounds", "price", "price = 77.00"),
        Wrong(bound("lower-bounds", 8, b"n9"), "table-bounds", "user.mail", "user.mail = 'n77'"),
        Wrong(count("nan-value-counts", 5, 0), "table-counts", "ratio", "ratio is nan", needs_values=True),
        Wrong(count("null-value-counts", 4, 0), "table-counts", "small", "small is null"),
    ],
    [  # lower bound, and as many values as nulls
        Wrong(bound("lower-bounds", 1, LONG.pack(50)), "table-bounds", "id", "id = 7"),
        Wrong(count("value-counts", 4, 1), "table-counts", "small", "small = 77"),
    ],
    [Wrong(count("null-value-counts", 1, 100), "table-counts", "id", "id = 77")],
    [
        Wrong(
            lambda entry: entry.update({"split-offsets": [entry["file-size-in-bytes"] - 1]}),
            "table-splits", None, "id = 77",
        )
    ],
    [Wrong(set_key("record-count", 0), "table-counts", None, "id = 77")],
    [Wrong(set_key("partition", [9]), "table-partition", "p", "true")],
]  # fmt: skip
"""What is wrong about the file of each partition."""
UNMENDED = 2
"""The last ones, which `repair --table` leaves: Iceberg doesn't replace files by those with more rows."""


def by_part(wrong: Sequence[Sequence[Wrong]], part: Callable[[dict[str, Any]], int]) -> Edit:
    """Make all entries wrong: `part` is the partition of an entry."""

    def edit(entry: dict[str, Any]) -> None:
        for one in wrong[part(entry)]:
            one.edit(entry)

    return edit


def test_wrong_entries_in_a_manifest_lose_rows_and_are_found_and_mended(spark: SparkSession) -> None:
    name = "ice.db.wrong"
    spark.sql(
        f"create table {name} (id bigint, name string, price decimal(9, 2), small int, ratio double,"
        " user struct<mail: string>, p int) using iceberg partitioned by (p)"
        " tblproperties ('read.split.target-size'='1')"
    )
    spark.sql(
        f"insert into {name} select id, concat('n', id), id, if(id = 5, null, id), if(id = 6, double('NaN'), id),"
        " named_struct('mail', concat('n', id)), p"
        f" from (select id % 100 id, int(id div 100) p from range(0, {100 * len(MANIFESTS)}, 1, 1))"
    )
    assert findings(spark, name, columns=["*"]) == []
    where = [[f"{one.where} and p = {p}" for one in wrong] for p, wrong in enumerate(MANIFESTS)]
    right = [[_count(spark, name, each) for each in of_part] for of_part in where]
    assert all(map(all, right))
    change_manifest(spark, name, by_part(MANIFESTS, lambda entry: entry["partition"][0]))
    for of_part, before in zip(where, right, strict=True):
        for each, rows in zip(of_part, before, strict=True):
            assert _count(spark, name, each) < rows, each
    every = [one for wrong in MANIFESTS for one in wrong]
    checked = validated(spark, name, *sorted((one.finding for one in every), key=str))
    assert findings(spark, name) == sorted((one.finding for one in every if not one.needs_values), key=str)
    mendable = len(MANIFESTS) - UNMENDED
    for row in checked:
        part = int(row.path.partition("/p=")[2].partition("/")[0])
        hints = {one.hint for one in row.findings if one.id.startswith("table-")}
        assert all((f"`bloom repair --table {name}" in hint) is (part < mendable) for hint in hints), hints
    left = [one.finding for wrong in MANIFESTS[mendable:] for one in wrong]
    assert sorted(mended(spark, name, *left)) == ["done"] * mendable + ["skipped"] * UNMENDED
    assert [[_count(spark, name, each) for each in of_part] for of_part in where[:mendable]] == right[:mendable]


def _count(spark: SparkSession, name: str, where: str) -> int:
    """The number of a table's rows by a condition."""
    return _by_pyiceberg(spark, name, where) if "is nan" in where else spark.table(name).where(where).count()


def _by_pyiceberg(spark: SparkSession, name: str, where: str) -> int:
    """The rows that PyIceberg finds: Spark doesn't skip files when it looks for NaN."""
    from pyiceberg.table import StaticTable

    warehouse = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "")
    metadata = warehouse.joinpath(*name.split(".")[1:], "metadata").glob("v*.metadata.json")
    newest = max(metadata, key=lambda path: int(path.name.partition(".")[0][1:]))
    return len(StaticTable.from_metadata(str(newest)).scan(row_filter=where).to_arrow())


def stats(*path: str, value: Any) -> Edit:
    def edit(entry: dict[str, Any]) -> None:
        found = entry["stats"]
        for name in path[:-1]:
            found = found[name]
        found[path[-1]] = value

    return edit


LOGS = [
    [  # of several columns
        Wrong(stats("maxValues", "at", value="2025-12-01T12:00:50.000Z"), "table-bounds", "at",
              "at > timestamp'2025-12-01 12:01:00Z'", needs_values=True),
        Wrong(stats("maxValues", "id", value=50), "table-bounds", "id", "id = 77"),
        Wrong(stats("maxValues", "name", value="n5"), "table-bounds", "name", "name = 'n77'"),
        Wrong(stats("maxValues", "ratio", value=99.0), "table-bounds", "ratio", "ratio > 100", needs_values=True),
        Wrong(stats("minValues", "user", "mail", value="n9"), "table-bounds", "user.mail", "user.mail = 'n77'"),
        Wrong(stats("nullCount", "small", value=0), "table-counts", "small", "small is null"),
    ],
    [Wrong(stats("minValues", "id", value=50), "table-bounds", "id", "id = 7")],
    [Wrong(stats("nullCount", "id", value=100), "table-counts", "id", "id is not null")],
]  # fmt: skip
"""What is wrong about the file of each partition."""
ID_ALONE = [[Wrong(stats("maxValues", "id", value=50), "table-bounds", "id", "id = 77")], [], []]


def part_of(entry: dict[str, Any]) -> int:
    return int(entry["partitionValues"]["p"])


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of a file of 100 rows in each partition, in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("delta") / "table"
    spark.sql(
        f"create table delta.`{folder}` (id bigint, name string, small int, ratio double, user struct<mail: string>,"
        " at timestamp, p int) using delta partitioned by (p)"
    )
    spark.sql(
        f"insert into delta.`{folder}` select id, concat('n', id), if(id = 5, null, id),"
        " if(id = 6, double('NaN'), id), named_struct('mail', concat('n', id)),"
        " timestamp_micros(1764590400000000 + id * 1000001), p"
        f" from (select id % 100 id, int(id div 100) p from range(0, {100 * len(LOGS)}, 1, 1))"
    )
    assert findings(spark, f"delta.`{folder}`", columns=["*"]) == []
    return folder


def test_wrong_entries_in_a_log_lose_rows_and_are_found_and_mended(
    spark: SparkSession, log: Path, folder: Path
) -> None:
    where = [f"{one.where} and p = {p}" for p, wrong in enumerate(LOGS) for one in wrong]
    right = [spark.read.format("delta").load(str(log)).where(each).count() for each in where]
    assert all(right)
    name = with_log(log, folder, by_part(LOGS, part_of))
    for each, before in zip(where, right, strict=True):
        assert spark.table(name).where(each).count() < before, each
    every = [one for wrong in LOGS for one in wrong]
    validated(spark, name, *sorted((one.finding for one in every), key=str))
    assert findings(spark, name) == sorted((one.finding for one in every if not one.needs_values), key=str)
    assert mended(spark, name) == ["done"] * len(LOGS)
    assert [spark.table(name).where(each).count() for each in where] == right


def test_a_partition_value_of_another_type_in_a_log_fails_queries_and_is_found(
    spark: SparkSession, log: Path, folder: Path
) -> None:
    name = with_log(log, folder, lambda entry: part_of(entry) == 1 and entry["partitionValues"].update(p="x"))
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"), without_log():
        spark.sql(f"select * from {name} where p = 1").collect()
    validated(spark, name, ("table-partition", "p"))
    assert mended(spark, name, ("table-partition", "p")) == ["skipped"] * len(LOGS)


def test_a_wrong_row_count_in_a_log_is_counted_and_found(spark: SparkSession, log: Path, folder: Path) -> None:
    name = with_log(log, folder, lambda entry: part_of(entry) == 1 and stats("numRecords", value=99)(entry))
    assert spark.sql(f"select count(*) from {name}").first()[0] == 299
    assert _of_metadata(bloom_spark.validate_table(spark, name).collect()) == [("table-counts", None)]
    assert findings(spark, name) == [("table-counts", None)]
    assert sorted(mended(spark, name)) == ["done", "skipped", "skipped"]
    assert spark.sql(f"select count(*) from {name}").first()[0] == 300


def test_bounds_of_floats_that_became_doubles_lose_rows_in_spark_and_are_found(
    spark: SparkSession, folder: Path
) -> None:
    name = f"delta.`{folder}`"
    spark.sql(f"create table {name} (f float) using delta tblproperties ('delta.enableTypeWidening'='true')")
    spark.sql(f"insert into {name} select /*+ coalesce(1) */ float(x) from values ('0.1'), ('1.1') as t(x)")
    assert findings(spark, name, deep=True, columns=["*"]) == []
    spark.sql(f"alter table {name} alter column f type double")
    where = f"select * from {name} where f = double(float('1.1'))"  # the log keeps 1.1, which is below it
    assert _with_and_without_skipping(spark, where) == (0, 1)
    assert findings(spark, name, deep=True, columns=["*"]) == findings(spark, name) == [("table-bounds", "f")]
    assert mended(spark, name) == ["done"]
    assert _with_and_without_skipping(spark, where) == (1, 1)


def test_the_bounds_of_delta_rs_lose_nan_in_spark_and_are_found(spark: SparkSession, folder: Path) -> None:
    name = f"delta.`{folder}`"
    deltalake.write_deltalake(str(folder), pa.table({"ratio": [1.5, float("nan"), 2.0]}))
    where = f"select * from {name} where ratio > 100"  # of NaN that is true in Spark
    assert _with_and_without_skipping(spark, where) == (0, 1)
    assert findings(spark, name, deep=True, columns=["*"]) == [("table-bounds", "ratio")]
    assert mended(spark, name) == ["done"]
    assert _with_and_without_skipping(spark, where) == (1, 1)


def _with_and_without_skipping(spark: SparkSession, query: str) -> tuple[int, int]:
    """The numbers of rows that Spark returns if it skips files by the log's statistics, and if it doesn't. The
    statistics in the files, where Parquet leaves NaN out, too, aren't used."""
    skipping, pushdown = "spark.databricks.delta.stats.skipping", "spark.sql.parquet.filterPushdown"
    found = []
    spark.conf.set(pushdown, "false")
    for skips in ("true", "false"):
        spark.conf.set(skipping, skips)
        found.append(len(spark.sql(query).collect()))
    spark.conf.unset(skipping)
    spark.conf.unset(pushdown)
    return found[0], found[1]


def test_a_checkpoint_s_statistics_are_compared_as_those_of_the_log_and_the_command_of_a_hint_mends_them(
    spark: SparkSession, log: Path, folder: Path
) -> None:
    name = with_log(log, folder, by_part(ID_ALONE, part_of))
    spark.sql(f"alter table {name} set tblproperties ('delta.checkpointInterval' = '1')")
    spark.sql(f"insert into {name} select * from {name} where id < 10")
    last = json.loads((folder / "_delta_log" / "_last_checkpoint").read_text())["version"]
    for old in (folder / "_delta_log").glob("*.json"):
        if int(old.stem) < last:
            old.unlink()
    (wrong,) = (one for row in bloom_spark.validate_table(spark, name).collect() for one in row.findings)
    assert (wrong.id, wrong.column) == ("table-bounds", "id")
    assert wrong.hint == f"`bloom repair --table {shlex.quote(name)} --columns id` mends it"
    assert findings(spark, name) == [("table-bounds", "id")]
    rows = bloom_spark.repair_table(spark, name, columns=["id"]).collect()
    assert [one.status for one in rows].count("done") == 1
    assert findings(spark, name, deep=True, columns=["*"]) == []
    assert spark.table(name).where("id = 77").count() == 3
