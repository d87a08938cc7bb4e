"""Replacing the data files of Iceberg tables: rows, deletes, metrics, partitions and history before and after."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.iceberg_runs import (
    append,
    delete_equal,
    facts,
    files_below,
    ids,
    info,
    local_path,
    make,
    opened,
    prepared,
    read_by_pyiceberg,
    retrofitted,
    rows,
    summaries,
)

import bloomcli
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.tables.base import DataFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark 4.1's, of each collect()
]

KINDS = [("1", "orc"), ("2", "parquet"), ("3", "parquet")]


def filtered(files: list[DataFile]) -> list[tuple[str, ...]]:
    """The columns that have filters, of each file."""
    return [tuple(sorted({f.column for f in bloomcli.inspect(file.path).filters})) for file in files]


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_rows_metrics_and_history_are_equal_before_and_after(spark: SparkSession, version: str, kind: str) -> None:
    name = make(
        spark, f"kept_{version}_{kind}", version=version, partitioned="days(day)", **{"write.format.default": kind}
    )
    if version != "1":
        spark.sql(f"delete from {name} where id % 50 = 3")
    before, metrics = rows(spark, name), facts(opened(spark, name))
    old = opened(spark, name)
    table, replacements = prepared(spark, name, ("id", "name"), new_row_ids=version == "3")
    snapshot = table.commit(replacements, info(("id", "name"), run="a-run", batch=7))

    assert rows(spark, name) == before
    moved = ["split-offsets"] if kind == "orc" else []
    assert facts(table, but=moved) == {k: {a: b for a, b in v.items() if a not in moved} for k, v in metrics.items()}
    assert all("id" in columns and "name" in columns for columns in filtered(table.files()))
    assert table.version == snapshot != old.version
    last = summaries(spark, name)[-1]
    assert last.operation == "replace"
    said = {key: value for key, value in last.summary.items() if key.startswith("bloom.")}
    assert said == {
        "bloom.run-id": "a-run",
        "bloom.batch": "7",
        "bloom.command": "add",
        "bloom.columns": "id,name",
        "bloom.version": bloomcli.__version__,
    }
    for file in table.files():
        assert file.size == local_path(file.path).stat().st_size
    travelled = spark.sql(f"select * from {name} version as of {old.version}").collect()
    assert sorted(travelled, key=repr) == before
    assert filtered(opened(spark, name, snapshot=old.version).files()) == [()] * len(metrics)
    assert spark.table(name).where("id = 42 and name = 'n42'").count() == 1
    if kind == "parquet":  # PyIceberg reads no ORC
        assert read_by_pyiceberg(table) == sorted((row.asDict(recursive=True) for row in before), key=repr)


def test_the_new_files_of_orc_tables_have_the_offsets_of_their_own_stripes(spark: SparkSession) -> None:
    name = make(
        spark, "stripes", appends=0, **{"write.format.default": "orc", "write.orc.stripe-size-bytes": "20000"}
    )
    spark.sql(
        f"insert into {name} select cast(id as int), date'2026-01-01', sha2(cast(id as string), 512), null "
        "from range(0, 30000, 1, 1)"
    )
    table, replacements = prepared(spark, name)
    old = facts(table)
    table.commit(replacements, info())
    new = facts(table)
    ((key, of),) = new.items()
    report = bloomcli.inspect(replacements[0].path)
    assert len(of["split-offsets"]) == report.stripes == len(old[key]["split-offsets"]) > 1
    assert of["split-offsets"][1:] != old[key]["split-offsets"][1:]
    assert of["split-offsets"][0] == 3
    assert ids(spark, name) == list(range(30000))
    assert spark.conf.get("spark.sql.files.maxPartitionBytes")
    small = spark.read.option("split-size", "30000").table(name)
    assert small.count() == 30000


@pytest.mark.parametrize(
    ("by", "where", "files"),
    [
        ("", "id = 5", 1),
        ("bucket(4, id), days(day)", "id = 7 and day > date'2026-01-01'", 1),
        ("truncate(10, id)", "id between 30 and 49", 2),
    ],
)
def test_conditions_leave_out_files_by_partitions_and_by_statistics(
    spark: SparkSession, by: str, where: str, files: int
) -> None:
    name = f"ice.db.pruned_{by.partition('(')[0]}"
    by = by and f"partitioned by ({by})"
    spark.sql(
        f"create table {name} (id int, day date) using iceberg {by} tblproperties ('write.distribution-mode'='hash')"
    )
    for start in (0, 50):
        spark.sql(
            f"insert into {name} select cast(id as int), date_add(date'2026-01-01', cast(id % 2 as int)) "
            f"from range({start}, {start + 50}, 1, 1)"
        )
    table, replacements = prepared(spark, name, where=where)
    assert len(replacements) == files < len(table.files())
    before = rows(spark, name)
    table.commit(replacements, info())
    assert rows(spark, name) == before
    table.refresh()
    assert [file.path for file in table.files(where)] == sorted(one.path for one in replacements)
    if by:
        assert all(one.path.rpartition("/")[0] == one.old.path.rpartition("/")[0] for one in replacements)
        assert all(one.old.partition in one.path for one in replacements)
    assert table.files("1 = 0") == []


def test_conditions_that_the_table_cannot_resolve_are_refused(spark: SparkSession) -> None:
    table = opened(spark, make(spark, "conditions", appends=1))
    for where in ("nothing = 1", "id % 2 = 0", "id ="):
        with pytest.raises(UsageError, match="--where can't be used for this table"):
            table.files(where)
    assert len(table.files("parts.a = 3")) == 1


def test_evolved_schemas_and_specs_are_kept_with_the_files(spark: SparkSession) -> None:
    name = make(spark, "evolved", version="1", partitioned="day", appends=1)
    spark.sql(f"alter table {name} rename column name to title")
    spark.sql(f"alter table {name} drop column parts")
    spark.sql(f"alter table {name} add column parts string")
    spark.sql(f"alter table {name} alter column id type bigint")
    spark.sql(f"alter table {name} add partition field bucket(2, id)")
    spark.sql(f"insert into {name} values (500, date'2026-01-01', 't', 'p')")
    spark.sql(f"alter table {name} drop partition field day")
    spark.sql(f"insert into {name} values (501, date'2026-01-01', 't', 'p')")
    before = rows(spark, name)
    table = opened(spark, name)
    metrics = facts(table)
    assert {of["spec-id"] for of in metrics.values()} == {0, 1, 2}
    found = {column.path: column.field_id for column in table.names().columns}
    assert list(found) == ["id", "day", "title", "parts"]
    assert found["parts"] not in (1, 2, 3, 4)
    first = table.version
    assert first is not None
    table = retrofitted(spark, name)
    assert rows(spark, name) == before
    assert facts(table) == metrics
    spark.sql(f"alter table {name} rename column title to heading")
    assert [column.path for column in opened(spark, name).names().columns][2] == "heading"
    oldest = spark.table(f"{name}.snapshots").orderBy("committed_at").first()
    assert oldest is not None
    past = opened(spark, name, snapshot=oldest.snapshot_id)
    assert [column.path for column in past.names().columns][2:4] == ["name", "parts.a"]
    assert (len(past.files("name = 'n4'")), past.files("name = 'zz'")) == (2, [])


def test_new_files_lie_where_the_table_s_writers_put_theirs(spark: SparkSession, tmp_path: Path) -> None:
    name = make(
        spark,
        "placed",
        partitioned="day",
        **{"write.object-storage.enabled": "true", "write.data.path": f"file:{tmp_path}/elsewhere"},
    )
    table, replacements = prepared(spark, name)
    for one in replacements:
        assert one.path.startswith(f"file:{tmp_path}/elsewhere/")
        below = one.path.removeprefix(f"file:{tmp_path}/elsewhere/").split("/")
        assert [set(part) <= {"0", "1"} for part in below[:4]] == [True] * 4
        assert one.old.partition in one.path
    assert len({table.new_path(replacements[0].old) for _ in range(10)}) == 10


def test_a_file_s_name_does_not_grow_with_each_run(spark: SparkSession) -> None:
    name = make(spark, "named", appends=1)
    (first,) = opened(spark, name).files()
    retrofitted(spark, name)
    retrofitted(spark, name, ("name",))
    (last,) = opened(spark, name).files()
    assert len(Path(last.path).name) == len(Path(first.path).name) + len("-bloom-") + 32


def test_position_deletes_that_several_groups_share_are_kept_in_each_snapshot(spark: SparkSession) -> None:
    name = make(spark, "shared", appends=0, **{"write.delete.granularity": "partition"})
    for _ in range(3):
        append(spark, name, 0)
        delete_equal(spark, name, "id", [7])
    spark.sql(f"delete from {name} where id in (40, 41, 42)")
    positions = spark.table(f"{name}.delete_files").where("content = 1").collect()
    assert [row.record_count for row in positions] == [9]
    before, snapshots = ids(spark, name), len(summaries(spark, name))
    table, replacements = prepared(spark, name)
    table.commit(replacements, info())
    assert ids(spark, name) == before
    for snapshot in spark.table(f"{name}.snapshots").orderBy("committed_at").collect()[snapshots:]:
        past = spark.sql(f"select id from {name} version as of {snapshot.snapshot_id}").collect()
        assert sorted(row.id for row in past) == before
    assert sum(row.record_count for row in spark.table(f"{name}.delete_files").where("content = 1").collect()) == 9


def test_batches_of_files_that_share_position_deletes_are_committed_one_after_another(spark: SparkSession) -> None:
    name = make(spark, "batches", appends=3, **{"write.delete.granularity": "partition"})
    spark.sql(f"delete from {name} where id % 100 = 5")
    before = rows(spark, name)
    table, replacements = prepared(spark, name)
    for number, one in enumerate(replacements, 1):
        table.commit([one], info(batch=number))
        assert rows(spark, name) == before
    assert all(filtered(table.files()))


def test_branches_are_changed_by_name_and_tags_and_snapshots_are_only_read(spark: SparkSession) -> None:
    name = make(spark, "branches", appends=1)
    spark.sql(f"alter table {name} create branch side")
    spark.sql(f"alter table {name} create tag old")
    append(spark, f"{name}.branch_side", 100)
    main = opened(spark, name)
    on_side = retrofitted(spark, f"{name}.branch_side")
    assert len(on_side.files()) == 2
    assert all(filtered(on_side.files()))
    assert len(on_side.files("id = 150")) == 1
    assert (len(ids(spark, name)), len(ids(spark, f"{name}.branch_side"))) == (100, 200)
    assert opened(spark, name).version == main.version
    assert opened(spark, f"{name}.branch_main").version == main.version
    for selected in (f"{name}.tag_old", f"{name}.snapshot_id_{main.version}"):
        table = opened(spark, selected)
        assert filtered(table.files("id = 5")) == [()]
        with pytest.raises(UsageError, match="an older snapshot or a tag can't be changed"):
            table.check_changes()
    with pytest.raises(UsageError, match="no such branch"):
        opened(spark, f"{name}.branch_other")


def test_time_travel_lists_the_files_of_the_snapshot(spark: SparkSession) -> None:
    name = make(spark, "travelled", appends=2)
    first, second = spark.table(f"{name}.snapshots").orderBy("committed_at").collect()
    utc = dt.UTC
    at = (first.committed_at.timestamp() + second.committed_at.timestamp()) / 2
    past = opened(spark, name, as_of=dt.datetime.fromtimestamp(at, utc))
    assert past.version == first.snapshot_id
    assert len(past.files()) == 1
    past.refresh()
    assert past.version == first.snapshot_id
    with pytest.raises(UsageError, match="no snapshot 5"):
        opened(spark, name, snapshot=5)
    with pytest.raises(UsageError, match="older than"):
        opened(spark, name, as_of=dt.datetime(2001, 1, 1, tzinfo=utc))
    with pytest.raises(UsageError, match="several are named"):
        opened(spark, f"{name}.snapshot_id_{first.snapshot_id}", snapshot=first.snapshot_id)


def test_names_of_other_things_are_refused_or_not_ours(spark: SparkSession) -> None:
    from bloomcli.tables.iceberg import open_table

    name = make(spark, "others", appends=0)
    for other in ("files", "snapshots", "changes"):
        with pytest.raises(UsageError, match="metadata table"):
            open_table(spark, f"{name}.{other}")
    for other in ("ice.db.none", "ice.none.none", "none.none.none", "delta.`/none`", "not a name"):
        assert open_table(spark, other) is None
    empty = opened(spark, name)
    assert (empty.version, empty.files()) == (None, [])


def test_an_encrypted_table_of_a_catalog_that_does_not_encrypt_is_refused(spark: SparkSession) -> None:
    name = make(spark, "refused", version="3", appends=0, **{"encryption.key-id": "k"})
    with pytest.raises(UnsupportedError, match="encrypted"):
        opened(spark, name).check_changes(new_row_ids=True)


def test_a_session_that_stages_writes_is_refused(spark: SparkSession) -> None:
    name = make(spark, "staged", appends=1, **{"write.wap.enabled": "true"})
    for setting, error in (("spark.wap.branch", UsageError), ("spark.wap.id", UnsupportedError)):
        spark.conf.set(setting, "x")
        try:
            with pytest.raises(error, match=setting):
                opened(spark, name)
        finally:
            spark.conf.unset(setting)
    assert len(opened(spark, name).files()) == 1


def test_wanted_filters_come_from_the_table_s_properties(spark: SparkSession) -> None:
    name = make(spark, "asking", appends=0, **{"write.parquet.bloom-filter-enabled.column.parts.a": "true"})
    assert [(one.column, one.format) for one in opened(spark, name).filter_requests()] == [("parts.a", "parquet")]


def test_imported_files_have_their_names_by_the_table_s_mapping(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(50).selectExpr("id", "cast(id as string) name").repartition(1).write.parquet(str(tmp_path / "plain"))
    name = "ice.db.imported"
    spark.sql(f"create table {name} (id bigint, name string) using iceberg")
    spark.sql(f"call ice.system.add_files(table => 'db.imported', source_table => '`parquet`.`{tmp_path}/plain`')")
    spark.sql(f"alter table {name} rename column name to title")
    found = {column.path: column.physical for column in opened(spark, name).names().columns}
    assert found["id"] == ("id",)
    assert "name" in found["title"]
    before = rows(spark, name)
    retrofitted(spark, name, ("id", "name"))
    assert rows(spark, name) == before
    assert spark.table(name).where("title = '7'").count() == 1


def test_maintenance_runs_afterwards(spark: SparkSession) -> None:
    name = make(spark, "maintained", appends=3)
    spark.sql(f"delete from {name} where id % 100 = 5")
    before, snapshots = rows(spark, name), len(summaries(spark, name))
    table, replacements = prepared(spark, name)
    assert {one.old.record.sequence for one in replacements} == {1, 2, 3}
    assert table.snapshots([one.old for one in replacements]) == 1
    table.commit(replacements, info())
    assert len(summaries(spark, name)) == snapshots + 1, "no equality delete is between them"
    call = "call ice.system"
    spark.sql(
        f"{call}.rewrite_position_delete_files(table => 'db.maintained', options => map('rewrite-all', 'true'))"
    )
    assert rows(spark, name) == before
    spark.sql(
        f"{call}.expire_snapshots(table => 'db.maintained', older_than => timestamp '2100-01-01', retain_last => 1)"
    )
    assert rows(spark, name) == before
    table.refresh()
    left = {Path(file.path).name for file in table.files()}
    assert all("-bloom-" in path for path in left)
    assert {path for path in files_below(table) if "deletes" not in path} == left
    spark.sql(f"{call}.rewrite_data_files(table => 'db.maintained', options => map('rewrite-all', 'true'))")
    assert rows(spark, name) == before


def metadata(spark: SparkSession, name: str) -> dict[str, Any]:
    """A table's metadata, without what each commit changes."""
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


def test_the_cached_table_of_a_session_sees_the_change(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.catalog.caching", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.caching.type", "hadoop")
    spark.conf.set("spark.sql.catalog.caching.warehouse", str(tmp_path))
    spark.sql("create table caching.db.t (id int) using iceberg")
    spark.sql("insert into caching.db.t select cast(id as int) from range(100)")
    table = retrofitted(spark, "caching.db.t")
    assert ids(spark, "caching.db.t") == list(range(100))
    files = {row.file_path for row in spark.table("caching.db.t.files").collect()}
    assert files == {file.path for file in table.files()}


def test_uncommitted_files_are_removed(spark: SparkSession) -> None:
    name = make(spark, "left", appends=1)
    table, replacements = prepared(spark, name)
    paths = [one.path for one in replacements]
    assert table.remove_files([*paths, f"{paths[0]}.missing"]) == []
    assert not any(Path(path).exists() for path in paths)
    assert table.remove_files(["nowhere://host/file"]) == ["nowhere://host/file"]
