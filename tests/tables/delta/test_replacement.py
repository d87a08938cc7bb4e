"""Replacing data files of a Delta table keeps rows, row ids, statistics and the log's entries."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from support.delta_tables import Lake, carried, info, made

from bloomcli.commands.options import AddOptions, RemoveOptions, TableOptions, WriteOptions
from bloomcli.datasets.engine import LocalEngine
from bloomcli.model.dataset import Status
from bloomcli.tables import opening
from bloomcli.tables.change import change_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ODD = ("'a b'", "'x/y'", "'50%'", "'%25'", "'ü=1'", "'c:d'", "'[e]*?'", "'{f}#'", "null", "''")


def ids_by_delta_rs(lake: Lake) -> list[int]:
    """The ids that delta-rs reads from a copy: it treats a percent sign in a table's path as an escape."""
    copy = shutil.copytree(lake.folder, lake.folder.with_name("copy"), dirs_exist_ok=True)
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(copy)))
    return sorted(pa.table(query.execute("select id from t"))["id"].to_pylist())


def test_rows_entries_and_pruning_stay_and_the_history_says_who_it_was(lake: Lake) -> None:
    lake.create("id bigint, name string").insert("id, 'n' || id from range(100)")
    lake.insert("id, null from range(100, 200)")
    rows, before = lake.rows(), {json.dumps(carried(e)) for v in (1, 2) for e in lake.log(v)["add"]}
    table = lake.open()
    assert [f.format for f in table.files()] == ["parquet"] * 2
    commit = info(("id", "name"))
    assert table.commit(made(table, table.files(), ["id", "name"]), commit) == lake.version == 3
    log = lake.log(3)
    assert {json.dumps(carried(e)) for e in log["add"]} == before
    assert not any(action["dataChange"] for kind in ("add", "remove") for action in log[kind])
    for added in log["add"]:
        file = lake.folder / added["path"]
        assert (added["size"], added["modificationTime"]) == (file.stat().st_size, file.stat().st_mtime_ns // 10**6)
    assert (lake.rows(), lake.rows(version=2), lake.read_files("id = 150")) == (rows, rows, 1)
    assert (lake.filters("id"), lake.filters("name")) == ([1, 1], [1, 1])
    said = json.loads(lake.history()[0]["userMetadata"])
    assert (said["tool"], said["command"], said["columns"], said["batch"]) == ("bloom", "add", ["id", "name"], 1)
    assert (said["run"], lake.history()[0]["isolationLevel"]) == (commit.run, "SnapshotIsolation")
    sizes = [sum(entry["size"] for entry in log[kind]) for kind in ("remove", "add")]
    assert (said["files"], said["bytes_before"], said["bytes_after"]) == (2, *sizes)
    assert lake.history()[0]["operation"] == "BLOOM ADD"
    shown = json.loads(lake.history()[0]["operationParameters"]["columns"])
    assert [(one["name"], one["type"]) for one in shown] == [("id", "long"), ("name", "string")]
    assert ids_by_delta_rs(lake) == list(range(200))


def test_odd_and_absent_partition_values_stay_where_they_are(lake: Lake) -> None:
    lake.create("id bigint, p string, d date", more="partitioned by (p, d)")
    values = ", ".join(f"({i}, {p}, date'2026-11-0{1 + i % 2}')" for i, p in enumerate(ODD))
    lake.sql(f"insert into {{t}} values {values}")
    rows, before = lake.rows(), lake.log(1)["add"]
    conditions = ["p is null", "p = '50%'", "p = 'x/y'", "d >= '2026-11-02'", "p = '[e]*?'"]
    read = [lake.read_files(c) for c in conditions]
    files = lake.open().files()
    assert len({f.partition for f in files}) == len(files) == len(before) == 10
    assert "p=x%2Fy/d=2026-11-02" in {f.partition for f in files}
    assert "p=__HIVE_DEFAULT_PARTITION__/d=2026-11-01" in {f.partition for f in files}
    lake.replace()
    assert (lake.rows(), [lake.read_files(c) for c in conditions]) == (rows, read)
    directories = [sorted(a["path"].rpartition("/")[0] for a in actions) for actions in (before, lake.log(2)["add"])]
    assert directories[0] == directories[1]
    assert ids_by_delta_rs(lake) == list(range(10))


def test_deleted_rows_stay_deleted_and_rows_keep_their_ids(lake: Lake) -> None:
    lake.create(
        "id bigint, n bigint", enableDeletionVectors="true", enableRowTracking="true", columnMapping_mode="name"
    )
    lake.sql("insert into {t} select id, id from range(0, 200, 1, 2)")
    lake.sql("delete from {t} where id % 10 = 3")
    lake.sql("update {t} set n = -1 where id = 17")
    columns = ("id", "n", "_metadata.row_id", "_metadata.row_commit_version")
    rows = lake.rows(*columns)
    entries = {
        json.dumps(carried(e))
        for e in lake.open()._snapshot.entries([f.record.path for f in lake.open().files()]).values()
    }
    assert len(rows) == 180
    assert any("deletionVector" in json.loads(e) for e in entries)
    names = {c.path: c.physical[0] for c in lake.open().names().columns}
    version = lake.replace([names["id"]])
    log = lake.log(version)
    assert lake.rows(*columns) == rows
    assert ids_by_delta_rs(lake) == [i for i in range(200) if i % 10 != 3]
    assert {json.dumps(carried(e)) for e in log["add"]} == entries
    assert all(
        r.get("deletionVector") == a.get("deletionVector")
        for r, a in zip(
            sorted(log["remove"], key=lambda e: e["baseRowId"]),
            sorted(log["add"], key=lambda e: e["baseRowId"]),
            strict=True,
        )
    )
    assert "domainMetadata" not in log  # no new row ids were given out
    assert log["commitInfo"][0]["tags"] == {"delta.rowTracking.preserved": "true"}
    lake.sql("delete from {t} where id = 50")
    lake.sql("optimize {t}")
    assert lake.rows(*columns) == [row for row in rows if json.loads(row)["id"] != 50]


def test_a_point_query_reads_fewer_row_groups(lake: Lake) -> None:
    lake.create("id bigint, k string").insert("id, uuid() from range(20000)")
    key = lake.sql("select k from {t} where id = 777").first()[0]
    before = lake.sql(f"select id from {{t}} where k = '{key}'").collect()
    lake.replace(["k"])
    assert lake.sql(f"select id from {{t}} where k = '{key}'").collect() == before
    absent = lake.sql("select * from {t} where k = '7fffffff-ffff-4fff-bfff-ffffffffffff'")
    scan = absent._jdf.queryExecution().executedPlan()
    assert absent.collect() == []
    assert rows_of_scan(scan) == 0


def rows_of_scan(plan: object) -> int:
    """The rows that the scan of a plan read."""
    leaf = plan.collectLeaves().head()  # type: ignore[attr-defined]
    return int(leaf.metrics().apply("numOutputRows").value())


def test_a_change_feed_and_a_stream_see_nothing(lake: Lake, tmp_path: Path) -> None:
    lake.create("id bigint", enableChangeDataFeed="true").insert("id from range(10)")
    lake.sql("delete from {t} where id = 3")
    feed = "select id, _change_type, _commit_version from table_changes('%s', 0)" % lake.name  # noqa: UP031
    read = lake.spark.readStream.format("delta").load(str(lake.folder))

    def drained() -> int:
        query = (
            read.writeStream.format("delta")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        query.awaitTermination(60)
        return lake.spark.read.format("delta").load(str(tmp_path / "sink")).count()

    changes, streamed = sorted(lake.spark.sql(feed).collect()), drained()
    lake.replace()
    assert sorted(lake.spark.sql(feed).collect()) == changes
    assert len(changes) == 11
    assert drained() == streamed == 9
    lake.insert("id from range(10, 12)")
    assert drained() == 11


def test_clustering_goes_on(lake: Lake) -> None:
    lake.create("id bigint, k int", more="cluster by (k)").insert("id, id % 7 from range(1000)")
    lake.sql("optimize {t}")
    rows = lake.rows()
    (entry,) = lake.open()._snapshot.entries([f.record.path for f in lake.open().files()]).values()
    assert entry["clusteringProvider"] == "liquid"
    version = lake.replace()
    assert [carried(e) for e in lake.log(version)["add"]] == [carried({**entry, "dataChange": False})]
    lake.insert("id, id % 7 from range(1000, 1100)")
    lake.sql("optimize {t}")
    assert [r for r in lake.rows() if json.loads(r)["id"] < 1000] == rows


def test_checkpoints_keep_what_the_entries_say(lake: Lake) -> None:
    struct = {"checkpoint_writeStatsAsJson": "false", "checkpoint_writeStatsAsStruct": "true"}
    more = {"checkpointInterval": "2", "enableInCommitTimestamps": "true", **struct}
    lake.create("id bigint, p int", more="partitioned by (p)", **more)
    lake.insert("id, id % 2 from range(100)").insert("id, 2 from range(100, 200)")
    rows = lake.rows()
    version = lake.replace()
    assert {json.loads(e["stats"])["numRecords"] for e in lake.log(version)["add"]} == {50, 100}
    lake.insert("id, 3 from range(200, 201)")
    assert list((lake.folder / "_delta_log").glob(f"{version + 1:020}.checkpoint*"))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert [r for r in lake.rows() if json.loads(r)["p"] < 3] == rows
    assert (lake.read_files("id = 150"), lake.read_files("p = 0")) == (1, 1)
    assert sorted(lake.filters("id")) == [0, 1, 1, 1]
    assert ids_by_delta_rs(lake) == list(range(201))


def test_constraints_defaults_widened_nested_and_variant_columns_stay(lake: Lake) -> None:
    from pyspark.errors import PySparkException

    lake.create(
        "id bigint, half bigint generated always as (id div 2), nr bigint generated always as identity,"
        " d int default 7, ts timestamp_ntz, w int, v variant, s struct<a: int, l: array<string>>,"
        " m map<string, int>",
        appendOnly="true",
        enableTypeWidening="true",
        feature_allowColumnDefaults="supported",
    )
    lake.sql("alter table {t} add constraint small check (id < 1000)")
    lake.sql(
        "insert into {t} (id, ts, w, v, s, m) select id, timestamp_ntz'2026-11-01 00:00:00', int(id),"
        " parse_json('{\"a\": ' || id || '}'), struct(1, array('x', 'y')), map('k', 1) from range(10)"
    )
    lake.sql("alter table {t} alter column w type bigint")
    lake.sql("insert into {t} (id, w) select id + 20, id + 5000000000 from range(10)")
    rows = lake.rows()
    lake.replace(["id", "w", "s.l.list.element", "m.key_value.key"])
    assert lake.rows() == rows
    assert len(lake.rows(where="w = 4")) == len(lake.rows(where="w = 5000000004")) == 1, "in files of both widths"
    assert [c.path for c in lake.open().names().columns][6:] == ["s.a", "s.l.element", "m.key", "m.value"]
    lake.sql("insert into {t} (id) values (100)")
    (row,) = lake.sql("select half, nr, d from {t} where id = 100").collect()
    assert (row.half, row.d) == (50, 7)
    assert row.nr not in {json.loads(r)["nr"] for r in rows}
    for refused in ("insert into {t} (id) values (1000)", "delete from {t} where id = 1"):
        with pytest.raises((PySparkException, Exception), match=r"(?i)constraint|append"):
            lake.sql(refused)


def test_iceberg_compatibility_and_a_session_s_own_metadata_of_commits_stay(lake: Lake) -> None:
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    lake.create("id bigint, l array<int>", enableIcebergCompatV2="true", columnMapping_mode="name")
    lake.insert("id, array(1) from range(20)")
    rows, names = lake.rows(), lake.open().names().columns
    assert [c.path for c in names] == ["id", "l.element"]
    lake.spark.conf.set(setting, "nightly")
    try:
        version = lake.replace([names[0].physical[0]])
        assert lake.spark.conf.get(setting) == "nightly"
    finally:
        lake.spark.conf.unset(setting)
    assert json.loads(lake.history()[0]["userMetadata"])["userMetadata"] == "nightly"
    assert lake.rows() == rows
    assert all(e["tags"]["ICEBERG_COMPAT_VERSION"] == "2" for e in lake.log(version)["add"])
    assert ids_by_delta_rs(lake) == list(range(20))


def test_a_shallow_clone_gets_files_of_its_own(lake: Lake, tmp_path: Path) -> None:
    lake.create("id bigint, p string", more="partitioned by (p)", enableDeletionVectors="true")
    lake.insert("id, 'a b' from range(20)")
    lake.sql("delete from {t} where id = 1")
    clone = Lake(lake.spark, tmp_path / "clone")
    lake.spark.sql(f"create table {clone.name} shallow clone {lake.name}")
    before, source = clone.rows(), sorted(lake.folder.rglob("*"))
    version = clone.replace()
    (added,) = clone.log(version)["add"]
    assert (clone.folder / added["path"]).is_file()
    assert clone.rows() == before == lake.rows()
    assert sorted(lake.folder.rglob("*")) == source


def test_maintenance_and_roll_back_work_afterwards(lake: Lake) -> None:
    lake.create("id bigint", enableDeletionVectors="true")
    lake.sql("insert into {t} select id from range(0, 200, 1, 2)")
    lake.sql("delete from {t} where id = 7")
    rows, before = lake.rows(), lake.version
    assert len(rows) == 199
    old = {file.path for file in lake.open().files()}
    lake.replace()
    lake.sql(f"restore table {{t}} to version as of {before}")
    assert (lake.rows(), {file.path for file in lake.open().files()}) == (rows, old), "as before the replacement"
    lake.replace()
    kept = {Path(file.path.removeprefix("file:")) for file in lake.open().files()}
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        lake.sql("vacuum {t} retain 0 hours")
    finally:
        lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert set(lake.folder.rglob("*.parquet")) - set((lake.folder / "_delta_log").rglob("*")) == kept
    assert lake.rows() == rows
    lake.sql("alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'false')")
    lake.replace()
    assert lake.rows() == rows, "where no new deletion vector may be made, the old one stays"


def test_the_run_loop_finds_renamed_columns_and_takes_its_filters_off_again(lake: Lake) -> None:
    lake.create(
        "id bigint, s struct<a: string>, p string",
        more="partitioned by (p)",
        columnMapping_mode="id",
        enableDeletionVectors="true",
        enableRowTracking="true",
    )
    lake.insert("id, struct('a' || id), if(id < 50, 'x/y z', null) from range(100)")
    lake.sql("delete from {t} where id = 3")
    lake.sql("alter table {t} rename column id to nr")
    lake.sql("alter table {t} add columns (id int)")
    columns = ("nr", "s", "p", "id", "_metadata.row_id", "_metadata.row_commit_version")
    rows = lake.rows(*columns)
    originals = sorted(Path(f.path.removeprefix("file:")).read_bytes() for f in lake.open().files())
    which = TableOptions(table=lake.name, commit_every=1)

    def run(options: WriteOptions) -> list[Status]:
        report = change_table(opening.open_table(lake.spark, lake.name), LocalEngine(jobs=1), options, which)
        return [row.status for row in report.rows]

    assert run(AddOptions(columns=("nr", "s.a"))) == [Status.DONE] * 2
    assert run(AddOptions(columns=("nr", "s.a"))) == [Status.SKIPPED] * 2
    nr = {c.path: c for c in lake.open().names().columns}["nr"].physical[0]
    assert lake.filters(nr) == [1, 1]
    assert (lake.rows(*columns), lake.version) == (rows, 6)
    assert run(RemoveOptions(columns=("*",))) == [Status.DONE] * 2
    assert lake.rows(*columns) == rows
    assert sorted(Path(f.path.removeprefix("file:")).read_bytes() for f in lake.open().files()) == originals
