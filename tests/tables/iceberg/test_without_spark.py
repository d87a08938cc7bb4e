"""Iceberg tables read from their metadata files, without Spark: the same answers as with Iceberg's own library."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import rest_catalog
from support.iceberg_runs import delete_equal, make
from support.without_spark import all_commands, answer, both, found_by_both, warehouse_folder

from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.tables.without_spark import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark 4.1's, of each collect()
]

WANTED = ("2", "5", "6", "7", "105", "106", "150", "9999")


@pytest.mark.parametrize(("version", "partitioned"), [("1", "day"), ("2", ""), ("3", "day")])
def test_deletes_of_each_kind_and_changed_columns_are_read_as_by_iceberg(
    spark: SparkSession, version: str, partitioned: str, capfd: pytest.CaptureFixture[str]
) -> None:
    name = make(spark, f"free_{version}_{len(partitioned)}", version=version, partitioned=partitioned)
    path = str(warehouse_folder(spark, name))
    if version != "1":
        spark.sql(f"delete from {name} where id in (5, 105) or id between 140 and 151")
        delete_equal(spark, name, "name", ["n6"], day=date(2026, 1, 1) if partitioned else None)
        spark.sql(f"insert into {name} select 6, date'2026-01-01', 'n6', null")
    spark.sql(f"alter table {name} alter column id type bigint")
    spark.sql(f"alter table {name} rename column name to label")
    spark.sql(f"alter table {name} add column extra string")
    spark.sql(f"alter table {name} add partition field truncate(1, label)")
    spark.sql(f"alter table {name} add partition field bucket(2, id)")
    spark.sql(f"insert into {name} select 7, date'2026-01-02', 'a/b c~ü', null, 'x'")
    read = found_by_both if version == "1" else all_commands
    rows = read(capfd, name, "id", WANTED, path=path)
    there = spark.sql(f"select id from {name} where id in ({', '.join(WANTED)})").collect()
    assert sorted(row["record"]["id"] for row in rows) == sorted(row.id for row in there)
    labels = ["-v", "n2", "-v", "n6", "-v", "a/b c~ü", "-c", "label", "--select", "id"]
    both(capfd, name, "find", *labels, "-f", "jsonl", path=path)


def test_orc_files_and_names_of_a_migrated_table_are_read(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spark.sql("create table ice.db.free_orc (id bigint, name string, p string) using iceberg partitioned by (p)"
              " tblproperties ('write.format.default'='orc', 'write.delete.mode'='merge-on-read')")  # fmt: skip
    spark.sql("insert into ice.db.free_orc select id, concat('n', id), 'own' from range(0, 100, 1, 1)")
    spark.sql("delete from ice.db.free_orc where id = 5")
    frame = spark.sql("select id, concat('n', id) as name, 'a b' as p from range(100, 200, 1, 1)")
    frame.write.partitionBy("p").orc(str(tmp_path / "old"))
    spark.sql(f"call ice.system.add_files(table => 'db.free_orc', source_table => 'orc.`{tmp_path / 'old'}`')")
    spark.sql("alter table ice.db.free_orc rename column name to label")
    path = str(warehouse_folder(spark, "ice.db.free_orc"))
    rows = found_by_both(capfd, "ice.db.free_orc", "label", ["n4", "n5", "n105"], path=path)
    assert sorted((row["record"]["id"], row["record"]["p"]) for row in rows) == [(4, "own"), (105, "a b")]


def test_snapshots_branches_tags_and_times_choose_what_iceberg_chooses(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    name = make(spark, "free_refs", partitioned="day")
    path = str(warehouse_folder(spark, name))
    spark.sql(f"alter table {name} create tag before")
    spark.sql(f"alter table {name} create branch audit")
    spark.sql(f"insert into {name}.branch_audit select 500, date'2026-01-05', 'audit', null")
    spark.sql(f"alter table {name} rename column name to label")
    spark.sql(f"insert into {name} select 600, date'2026-01-06', 'main', null")
    for selector in ("", ".tag_before", ".branch_audit"):
        _, (report,) = both(capfd, name + selector, "inspect", "-f", "json", path=path + selector)
        assert report["files"] == {"": 5, ".tag_before": 4, ".branch_audit": 5}[selector]
    made = spark.sql(f"select snapshot_id, committed_at from {name}.snapshots order by committed_at").collect()
    both(capfd, name, "find", "n3", "-c", "name", "--snapshot", str(made[0].snapshot_id), "-f", "jsonl", path=path)
    moment = (made[1].committed_at.astimezone(UTC) + timedelta(milliseconds=1)).isoformat()
    both(capfd, name, "inspect", "--as-of", moment, "-f", "json", path=path)
    with pytest.raises(UsageError, match="no branch or tag nowhere; it has "):
        open_snapshot(f"{path}.branch_nowhere")
    with pytest.raises(UsageError, match="has no snapshot 17"):
        open_snapshot(path, snapshot=17)
    with pytest.raises(UsageError, match="has no snapshot of 2001-01-01 00:00:00 or before"):
        open_snapshot(path, as_of=made[0].committed_at.replace(year=2001, month=1, day=1, hour=0, minute=0, second=0,
                                                               microsecond=0, tzinfo=UTC))  # fmt: skip


def test_the_metadata_file_is_the_hint_s_or_a_later_one_or_the_one_with_the_greatest_number(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    name = make(spark, "free_hint", appends=3)
    metadata = warehouse_folder(spark, name) / "metadata"
    newest = max(metadata.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    for hint in ("1", "3", None):
        (metadata / "version-hint.text").unlink()
        if hint is not None:
            (metadata / "version-hint.text").write_text(hint)
        assert open_snapshot(str(warehouse_folder(spark, name))).origin == f"the Iceberg metadata file {newest}"
        (metadata / "version-hint.text").write_text("4")
    (metadata / "version-hint.text").write_text("v2.metadata.json")
    assert (
        open_snapshot(str(warehouse_folder(spark, name))).origin
        == f"the Iceberg metadata file {metadata / 'v2.metadata.json'}"
    )
    (metadata / "version-hint.text").unlink()
    packed = metadata / "00009-1b0a3f4e-0000-4000-8000-000000000000.gz.metadata.json"
    packed.write_bytes(gzip.compress(newest.read_bytes()))
    code, error = answer(
        capfd, "inspect", "--table", str(warehouse_folder(spark, name)), "--engine", "local", "-f", "json"
    )
    assert code == 0
    assert len(open_snapshot(str(packed)).files()) == 3
    packed.with_name(packed.name.replace("1b0a", "2b0a")).write_bytes(packed.read_bytes())
    code, error = answer(capfd, "inspect", "--table", str(warehouse_folder(spark, name)), "--engine", "local")
    assert (code, "several metadata files are the newest" in str(error)) == (2, True)


def test_a_table_of_a_catalog_that_pyiceberg_knows_is_read_by_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with rest_catalog.served(tmp_path) as (_, uri):
        spark.conf.set("spark.sql.catalog.free", "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set("spark.sql.catalog.free.type", "rest")
        spark.conf.set("spark.sql.catalog.free.uri", uri)
        spark.conf.set("spark.sql.catalog.free.io-impl", "org.apache.iceberg.hadoop.HadoopFileIO")
        monkeypatch.setenv("PYICEBERG_CATALOG__FREE__URI", uri)
        monkeypatch.setenv("PYICEBERG_CATALOG__FREE__TYPE", "rest")
        spark.sql("create table free.db.t (id bigint) using iceberg")
        spark.sql("insert into free.db.t select id from range(0, 10, 1, 1)")
        rows = both(capfd, "free.db.t", "find", "4", "-c", "id", "-f", "jsonl")
        assert (rows[0], len(rows[1])) == (0, 1)
        code, error = answer(capfd, "inspect", "--table", "free.db.nowhere", "--engine", "local")
        assert (code, "the catalog has no such table" in error) == (2, True)
    code, error = answer(capfd, "inspect", "--table", "other.db.t", "--engine", "local")
    assert (code, "by a catalog of PyIceberg's configuration" in error) == (2, True)


def test_what_can_not_be_read_is_refused_by_name(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    name = make(spark, "free_refused")
    path = warehouse_folder(spark, name)
    newest = max((path / "metadata").glob("v*.metadata.json"))
    known = json.loads(newest.read_text())
    for changed, said in (
        ({**known, "format-version": 4}, "Iceberg format version 4: bloom knows versions 1 to 3"),
        ({**known, "properties": {"encryption.key-id": "k"}}, "the table is encrypted"),
    ):
        newest.write_text(json.dumps(changed))
        with pytest.raises(UnsupportedError, match=said):
            open_snapshot(str(path))
    newest.write_text("{")
    code, error = answer(capfd, "inspect", "--table", str(path), "--engine", "local")
    assert (code, newest.name in str(error)) == (3, True)
    newest.write_text(json.dumps(known))
    manifest = next((path / "metadata").glob("*-m0.avro"))
    manifest.write_bytes(manifest.read_bytes()[:-40])
    code, error = answer(capfd, "inspect", "--table", str(path), "--engine", "local")
    assert (code, manifest.name in str(error)) == (3, True)
    code, error = answer(capfd, "repair", "--table", str(path))
    assert (code, "hint: bloom repair --table CATALOG.DATABASE.TABLE\n" in error) == (2, True)
