"""find --reachable: where values still are after a DELETE; the statements that end it are run as they are printed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.iceberg_runs import delete_equal

from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions, TableOptions
from bloomcli.errors import UnknownColumn, UnreadableError, UsageError
from bloomcli.finding.reachable import find_in_reachable
from bloomcli.model.find import ReachableReport
from bloomcli.report import render
from bloomcli.report.text_find import reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ERASED = "user-2026-0000-000000"
"""The least value of the first file, longer than the sixteen characters of Iceberg's bounds."""
USERS = "concat('user-2026-0000-', lpad(cast(id as string), 6, '0')) as user_id, cast(id as int) as n"
SHORT = "concat('u', cast(id as string)) as user_id, cast(id as int) as n"


def made(
    spark: SparkSession,
    name: str,
    using: str,
    users: str = USERS,
    columns: str = "user_id string, n int",
    **properties: str,
) -> str:
    """A table of two files, each with a hundred users."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"create table {name} ({columns}) using {using} tblproperties ({listed})")
    for start in (0, 100):
        spark.sql(f"insert into {name} select {users} from range({start}, {start + 100}, 1, 1)")
    return name


def iceberg(spark: SparkSession, name: str, version: int = 2, users: str = USERS, **properties: str) -> str:
    given = {"format-version": str(version), "write.delete.mode": "merge-on-read", **properties}
    return made(spark, f"ice.db.{name}", "iceberg", users, **given)


def look(spark: SparkSession, name: str, values: Any = ERASED, column: str = "user_id") -> ReachableReport:
    report = bloom_spark.find_reachable(spark, name, values, column=column)
    assert isinstance(report, ReachableReport)
    assert (report.certificate is None) == bool(report.places or report.errors) == bool(report.exit_code)
    return report


def kinds(report: ReachableReport) -> set[str]:
    return {place.kind for place in report.places}


def ended(spark: SparkSession, name: str, report: ReachableReport, log: Path | None = None, **more: Any) -> int:
    """Run the statements as the text has them until nothing is left. Returns how often it was looked again."""
    for times in range(1, 5):
        age(log)
        text = list(render.plain(reachable(report)))
        start = text.index("statements that end this, in this order; look again afterwards:")
        for statement in (one for one in text[start:] if one.startswith("  ")):
            spark.sql(statement.strip().removesuffix(";"))
        report = look(spark, name, **more)
        if not report.places:
            assert next(iter(render.plain(reachable(report)))).startswith("nothing left: ")
            return times
    raise AssertionError(list(render.plain(reachable(report))))


def age(log: Path | None) -> None:
    """Make the files of a Delta log, or an Iceberg table's metadata, four days old: younger ones aren't removed."""
    for file in () if log is None else log.iterdir():
        os.utime(file, (time.time() - 4 * 86400,) * 2)


def files_with(folder: Path, value: str = ERASED) -> list[str]:
    """The files below a folder that have a value, found without bloom."""
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        rows = pq.read_table(file).to_pylist() if file.suffix == ".parquet" else file.read_bytes()
        if value in str(rows) if file.suffix == ".parquet" else value.encode() in rows:
            found.append(file.name)
    return found


@pytest.mark.parametrize(("version", "mode"), [(2, "copy-on-write"), (3, "merge-on-read")])
def test_an_iceberg_table_has_nothing_left_after_the_printed_statements(
    spark: SparkSession, version: int, mode: str
) -> None:
    name = iceberg(spark, f"erased_{version}_{mode[0]}", version, **{"write.delete.mode": mode})
    folder = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "") / name.removeprefix("ice.").replace(
        ".", "/"
    )
    before = look(spark, name)
    (file,) = (place for place in before.places if place.kind == "data files")
    assert (file.rows, file.live_rows, before.exit_code) == (1, 1, 1)
    assert before.statements[0] == f"DELETE FROM {name} WHERE user_id IN ('{ERASED}')"
    spark.sql(before.statements[0])
    assert len(files_with(folder)) == 1
    after = look(spark, name, [ERASED, "nobody"])
    (file,) = (place for place in after.places if place.kind == "data files")
    assert (file.rows, file.live_rows) == (1, 0)
    assert (after.values, after.values_found) == (2, 1)
    assert any("rewrite_" in text for text in after.statements)
    assert not any("DELETE" in text for text in after.statements)
    assert kinds(after) == {"data files", "bounds in manifests"}
    assert all(place.part for place in after.places if place.kind == "bounds in manifests")
    assert ended(spark, name, after) <= 2
    assert files_with(folder) == []
    assert spark.table(name).count() == 199


def test_a_delta_table_has_nothing_left_after_the_printed_statements(spark: SparkSession, folder: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    name = made(spark, f"delta.`{folder}`", "delta", **properties)
    spark.sql(f"update {name} set n = -1 where user_id = '{ERASED}'")
    before = look(spark, name)
    assert sorted(place.live_rows for place in before.places if place.kind == "data files") == [0, 1]
    spark.sql(f"delete from {name} where user_id = '{ERASED}'")
    after = look(spark, name)
    assert not any(place.live_rows for place in after.places)
    assert kinds(after) == {"data files", "bounds in the log", "texts of commits", "change data"}
    logged = {Path(place.path).name for place in after.places if "log" in place.kind or "texts" in place.kind}
    assert {file for file in files_with(folder / "_delta_log") if file.endswith(("json", "crc"))} <= logged
    kept = [place for place in after.places if place.kind == "data files" and "VACUUM takes it" in place.kept_by[0]]
    assert len(kept) == 1  # the other one has a deletion vector
    assert ended(spark, name, after, folder / "_delta_log") <= 2
    assert files_with(folder) == []
    assert spark.table(name).count() == 199


def test_numbers_and_dates_are_ended_by_the_printed_statements_too(spark: SparkSession, folder: Path) -> None:
    name, log = f"delta.`{folder}`", folder / "_delta_log"
    struct = {
        "checkpoint.writeStatsAsJson": "false",
        "checkpoint.writeStatsAsStruct": "true",
        "checkpointInterval": "2",
    }
    columns = "cast(id as int) as n, date_add(date'2026-01-01', cast(id as int)) as d, cast(id as string) as t"
    properties = {f"delta.{key}": value for key, value in struct.items()}
    made(spark, name, "delta", columns, columns="n int, d date, t string", **properties)
    ends = {"n": "0", "d": "2026-07-19", "t": "199"}
    for column, value in ends.items():
        report = look(spark, name, value, column)
        assert {"data files", "bounds in the log"} <= kinds(report)
        assert any(".checkpoint." in place.path for place in report.places)
        assert any(place.live_rows for place in report.places) == (column != "t")  # the row of this date
        if column != "t":
            assert report.statements[0].startswith(f"DELETE FROM {name} WHERE {column} IN (")
            spark.sql(report.statements[0])
    for column, value in ends.items():
        if (left := look(spark, name, value, column)).places:
            assert ended(spark, name, left, log, values=value, column=column) <= 3
    assert spark.table(name).count() == 198


def test_the_printed_delete_runs_for_each_type_of_column_and_other_files_of_the_folder_are_named(
    spark: SparkSession, folder: Path
) -> None:
    name = f"delta.`{folder}`"
    spark.sql(
        f"create table {name} using delta tblproperties ('delta.columnMapping.mode' = 'name') as select"
        " 'it\\'s a \\\\ ü\\n' as `a b`, X'00FF' as bin,"
        " array('t') as tags, named_struct('d', date'2026-11-26', 'p', 4.50bd) as s,"
        " timestamp'2026-11-26 10:00:00.123456' as at"
    )
    (folder / "_symlink_format_manifest").mkdir()
    (folder / "_symlink_format_manifest" / "manifest").write_text("")
    values = {"a b": "it's a \\ ü\n", "s.d": "2026-11-26", "s.p": "4.50", "bin": "0x00ff",
              "at": "2026-11-26T10:00:00.123456Z"}  # fmt: skip
    for column, value in values.items():
        (delete,) = (text for text in look(spark, name, value, column).statements if "DELETE" in text)
        assert spark.sql(delete.replace("DELETE", "SELECT *")).count() == 1, delete
    report = look(spark, name, "t", "tags.element")
    assert f"DELETE FROM {name} WHERE tags.element IN (...)" in report.statements
    assert report.notes[0].startswith("DELETE ... IN (...) is a pattern")
    assert any(text.startswith("1 other file in the table's folders") for text in report.not_looked_at)
    spark.sql(delete)
    assert spark.table(name).count() == 0


def test_older_metadata_files_and_what_expired_snapshots_had_elsewhere_are_looked_at(
    spark: SparkSession, tmp_path: Path
) -> None:
    name, other = iceberg(spark, "older"), tmp_path / "other"
    spark.sql(f"alter table {name} set tblproperties ('write.data.path' = '{other}')")
    frame = spark.range(1).selectExpr("'elsewhere' as user_id", "cast(1 as int) as n")
    frame.writeTo(name).option("snapshot-property.job", "user_id = 'elsewhere'").append()
    spark.sql(f"alter table {name} unset tblproperties ('write.data.path')")
    spark.sql(f"delete from {name} where user_id = 'elsewhere'")
    own = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "") / "db" / "older" / "metadata"
    for folder in (other, own):
        shutil.copytree(folder, tmp_path / "kept" / folder.name)
    spark.sql("call ice.system.expire_snapshots(table => 'db.older', older_than => timestamp '2999-01-01 00:00:00')")
    assert not list(other.glob("*.parquet"))
    report = look(spark, name, "elsewhere")
    texts = [place for place in report.places if place.kind == "texts of commits"]
    assert texts
    assert {"".join(Path(place.path).suffixes) for place in texts} == {".metadata.json"}
    assert not any(place.rows for place in report.places)
    for folder in (other, own):  # as if the expiry had been stopped
        shutil.copytree(tmp_path / "kept" / folder.name, folder, dirs_exist_ok=True)
    report = look(spark, name, "elsewhere")
    assert kinds(report) == {"files outside the metadata", "bounds in manifests", "texts of commits"}
    (file,) = (place for place in report.places if place.rows)
    assert (Path(file.path).parent, file.ends, "no statement" in file.kept_by[0]) == (other, (), True)
    Path(file.path).unlink()
    assert ended(spark, name, report, own, values="elsewhere") <= 3


def test_partitions_of_iceberg_have_values_and_their_beginnings(spark: SparkSession) -> None:
    name = "ice.db.by_user"
    by = "user_id, days(d), truncate(4, code), truncate(10, n)"
    spark.sql(f"create table {name} (user_id string, d date, code string, n int) using iceberg partitioned by ({by})"
              " tblproperties ('write.metadata.metrics.default' = 'none')")  # fmt: skip
    for number in (1, 2):
        spark.sql(f"insert into {name} select 'user-{number}', date'2026-11-2{number}', 'c-{number}-long', {number}7")
    looked = {"user_id": "user-1", "d": "2026-11-21", "code": "c-1-long", "n": "17"}
    for column, value in looked.items():
        report = look(spark, name, value, column)
        assert kinds(report) == {"data files"} | ({"bounds in manifests"} if column != "n" else set())
        assert [place.part for place in report.places if not place.rows] == [column == "code"] * (column != "n")
        partial = "the truncate[10] of the column in manifests and paths, by which files are partitioned"
        assert (partial in report.not_looked_at) == (column == "n")
        (delete,) = (text for text in report.statements if "DELETE" in text)
    spark.sql(delete)
    for column, value in looked.items():
        if (left := look(spark, name, value, column)).places:
            assert ended(spark, name, left, values=value, column=column) <= 3
    assert spark.table(name).count() == 1


def test_a_file_that_vacuum_keeps_is_still_reachable_and_so_is_today_s_log(spark: SparkSession, folder: Path) -> None:
    name = made(spark, f"delta.`{folder}`", "delta", **{"delta.enableDeletionVectors": "false"})
    spark.sql(f"delete from {name} where user_id = '{ERASED}'")
    spark.sql(f"vacuum {name}")
    assert "data files" in kinds(look(spark, name))
    for statement in look(spark, name).statements:
        spark.sql(statement)
    left = look(spark, name)
    assert kinds(left) == {"bounds in the log", "texts of commits"}
    assert any("when their day (UTC) is over" in note for note in left.notes)
    pq.write_table(pa.table({"user_id": [ERASED], "n": [1]}), folder / "part-left.parquet")
    assert "files outside the metadata" in kinds(look(spark, name))


def test_branches_and_tags_keep_values_until_they_are_dropped(spark: SparkSession) -> None:
    name = iceberg(spark, "referenced")
    spark.sql(f"alter table {name} create branch audit retain 9 days with snapshot retention 5 snapshots")
    spark.sql(f"alter table {name} create tag `of-may`")
    spark.sql(f"insert into {name}.branch_audit select 'only-here', 1")
    spark.sql(f"delete from {name} where user_id = '{ERASED}'")
    report = look(spark, name, [ERASED, "only-here"])
    live = {place.live_rows for place in report.places if place.kind == "data files"}
    assert live == {1}  # in the branch
    deletes = {text for text in report.statements if "DELETE" in text}
    assert deletes == {f"DELETE FROM {name}.`branch_audit` WHERE user_id IN ('only-here', '{ERASED}')"}
    assert {f"ALTER TABLE {name} DROP BRANCH `audit`", f"ALTER TABLE {name} DROP TAG `of-may`"} <= {
        *report.statements
    }
    kept = "; ".join(text for place in report.places for text in place.kept_by)
    assert "branch audit (snapshot " in kept
    assert "tag of-may (snapshot " in kept
    for text in report.statements:  # the file stays as long as one of them is there
        if "DELETE" not in text and "TAG" not in text:
            spark.sql(text)
    left = look(spark, name, [ERASED, "only-here"])
    assert {*left.statements} >= {f"ALTER TABLE {name} DROP TAG `of-may`"}
    assert ended(spark, name, left, values=[ERASED, "only-here"]) <= 3


def test_a_branch_s_own_retention_does_not_keep_its_older_snapshots(spark: SparkSession) -> None:
    name = iceberg(spark, "retained")
    version = spark.sql(f"select snapshot_id from {name}.refs").first()
    assert version is not None
    spark.sql(
        f"alter table {name} replace branch main as of version {version[0]} with snapshot retention 9 snapshots"
        " 9 days"
    )
    spark.sql(f"delete from {name} where user_id = '{ERASED}'")
    assert ended(spark, name, look(spark, name)) <= 3


def test_the_bound_of_a_removed_file_stays_in_the_manifest(spark: SparkSession) -> None:
    """`rewrite_manifests` leaves the only manifest as it is, so that a rewrite of the data files is named instead."""
    name = "ice.db.bounds"
    spark.sql(f"create table {name} (user_id string, n int, p int) using iceberg partitioned by (p)")
    spark.sql(f"insert into {name} select {SHORT}, cast(id % 2 as int) from range(0, 100, 1, 1)")
    spark.sql(f"delete from {name} where p = 0")
    spark.sql("call ice.system.expire_snapshots('db.bounds', timestamp '2999-01-01 00:00:00', 1)")
    report = look(spark, name, ["u0", "u98", "u3"])
    (place,) = (place for place in report.places if not place.rows)
    assert (place.kind, place.values, place.part) == ("bounds in manifests", 2, False)
    again = look(spark, name, "u98")
    assert [place.kind for place in again.places] == ["bounds in manifests"]
    assert any("rewrite-all" in text for text in again.statements)
    assert ended(spark, name, again, values="u98") <= 2


def test_equality_deletes_have_the_values_themselves(spark: SparkSession) -> None:
    name = iceberg(spark, "equality", users=SHORT)
    delete_equal(spark, name, "user_id", ["u7", "u107"])
    report = look(spark, name, ["u7"])
    assert {"equality deletes", "data files"} <= kinds(report)
    assert not any(place.live_rows for place in report.places)
    assert ended(spark, name, report, values=["u7"]) <= 3


def test_a_column_is_found_under_its_earlier_names_and_so_is_one_that_had_its_name(
    spark: SparkSession, folder: Path
) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    for name in (iceberg(spark, "renamed"), made(spark, f"delta.`{folder}`", "delta", **mapped)):
        spark.sql(f"alter table {name} rename column user_id to person")
        spark.sql(f"alter table {name} add column user_id string")
        assert look(spark, name, column="person").places
        assert look(spark, name, column="user_id").places  # what had the name then
        assert not look(spark, name, "user-2026-0000-000500", column="user_id").places
        assert not look(spark, name, "7", column="n").certificate
        assert look(spark, name, "7000", column="n").certificate


def test_a_file_that_cannot_be_read_is_no_proof(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = iceberg(spark, "unreadable")
    path = Path(
        next(row[0] for row in spark.sql(f"select file_path from {name}.files").collect()).removeprefix("file:")
    )
    whole, proof = path.read_bytes(), tmp_path / "proof.json"
    path.write_bytes(whole[:-8] + b"12345678")
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    arguments = ["find", "-v", "nobody", "-c", "user_id", "--table", name, "--reachable", "-o", str(proof)]
    assert cli(arguments) == 3
    printed = capsys.readouterr()
    assert "there is no certificate" in printed.out
    assert path.name in printed.err
    assert not proof.exists()
    path.write_bytes(whole)
    assert cli([*arguments, "-f", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    written = json.loads(proof.read_text())
    assert report == written
    assert "nobody" not in proof.read_text()
    salt = bytes.fromhex(written["certificate"]["salt"])
    assert written["certificate"]["value_hashes"] == [hashlib.sha256(salt + b"nobody").hexdigest()]
    assert {(one["kind"], one["files"], one["by_filter"] + one["by_scan"]) for one in written["looked_at"]} == {
        ("data files", 2, 2)
    }
    snapshots = {row[0] for row in spark.sql(f"select snapshot_id from {name}.snapshots").collect()}
    assert {*written["versions"]} == snapshots
    assert cli(["find", "-v", ERASED, *arguments[3:-1], str(tmp_path / "other.json")]) == 1
    assert not (tmp_path / "other.json").exists()


@pytest.mark.parametrize("damage", [b"no Avro", b""])
def test_a_damaged_manifest_list_that_no_snapshot_reaches_is_named_with_the_statement_that_removes_it(
    spark: SparkSession, damage: bytes
) -> None:
    name = iceberg(spark, f"left_over_{len(damage)}")
    folder = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "") / "db" / name.rpartition(".")[2]
    path = folder / "metadata" / "snap-1-1-left.avro"
    path.write_bytes(damage)
    with pytest.raises(UnreadableError) as raised:
        look(spark, name)
    assert str(raised.value.path).endswith(path.name)
    assert f"remove_orphan_files(table => 'db.{folder.name}')" in (raised.value.hint or "")


def test_values_of_partition_columns_are_in_the_log_and_in_names_of_directories(
    spark: SparkSession, folder: Path
) -> None:
    name, odd = f"delta.`{folder}`", "it's 50% ü/=:"
    spark.sql(f"create table {name} (id bigint, who string, day date) using delta partitioned by (who, day)")
    for who in (odd, odd + " more"):
        text = who.replace("'", r"\'")
        spark.sql(f"insert into {name} select id, '{text}', date'2026-11-01' from range(0, 9, 1, 1)")
    assert look(spark, name, odd[:-1], "who").certificate
    assert look(spark, name, "2026-11-02", "day").certificate
    found = look(spark, name, odd, "who")
    assert kinds(found) >= {"bounds in the log", "names of directories"}
    assert all(place.live_rows == place.rows for place in found.places)
    assert found.statements[0] == rf"DELETE FROM {name} WHERE who IN ('it\'s 50% ü/=:')"
    assert kinds(look(spark, name, "2026-11-01", "day")) == kinds(found)
    spark.sql(found.statements[0])
    left = look(spark, name, odd, "who")
    assert kinds(left) >= {"bounds in the log", "names of directories", "texts of commits"}
    assert not any("DELETE" in text for text in left.statements)
    assert ended(spark, name, left, folder / "_delta_log", values=odd, column="who") <= 3
    assert [row[0] for row in spark.sql(f"select count(*) from {name}").collect()] == [9]


@pytest.mark.parametrize("utc", [True, False])
def test_partitions_of_times_and_bytes_are_compared_as_spark_reads_them(
    spark: SparkSession, folder: Path, utc: bool
) -> None:
    name = f"delta.`{folder}`"
    spark.conf.set("spark.databricks.delta.write.utcTimestampPartitionValues", str(utc).lower())
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        spark.sql(
            f"create table {name} (n int, at timestamp, local timestamp_ntz, raw binary) using delta"
            " partitioned by (at, local, raw) tblproperties ('delta.feature.timestampNtz'='supported')"
        )
        for micros in (5, 6):
            local = f"timestamp_ntz'2026-11-01 12:00:00.00000{micros}'"
            spark.sql(f"insert into {name} select 1, timestamp_micros(176200000000000{micros}), {local}, X'6162'")
        others = (
            ("local", "2026-11-01 12:00:00.000005", "2026-11-01 12:00:00.000004"),
            ("raw", "0x6162", "0x6163"),
        )
        of_time = ("at", "2025-11-01 12:26:40.000005Z", "2025-11-01 12:26:40.000004Z")
        for column, erased, other in (of_time, *(others if utc else ())):
            assert look(spark, name, other, column).certificate, column
            found = look(spark, name, erased, column)
            assert kinds(found) >= {"bounds in the log", "names of directories"}, column
            assert any("Asia/Kolkata" in text for text in found.not_looked_at) is (column == "at")  # of directories
        spark.sql(look(spark, name, "2025-11-01 12:26:40.000005Z", "at").statements[0])
        assert [row.local.microsecond for row in spark.table(name).collect()] == [6]
        if utc:
            spark.sql(look(spark, name, "0x6162", "raw").statements[0])
            assert spark.table(name).count() == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.unset("spark.databricks.delta.write.utcTimestampPartitionValues")


def test_imported_files_of_an_iceberg_partition_have_its_value_in_the_metadata_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    name, hive = "ice.db.hive_files", tmp_path / "hive"
    spark.sql("select concat('u', id) user_id, 1 n from range(3)").write.partitionBy("user_id").parquet(str(hive))
    spark.sql(f"create table {name} (n int, user_id string) using iceberg partitioned by (user_id)")
    spark.sql(f"call ice.system.add_files(table => 'db.hive_files', source_table => '`parquet`.`{hive}`')")
    report = look(spark, name, "u1")
    assert kinds(report) == {"bounds in manifests"}
    assert report.statements[0] == f"DELETE FROM {name} WHERE user_id IN ('u1')"
    assert ended(spark, name, report, values="u1") <= 3
    assert spark.table(name).count() == 2


def test_a_column_s_default_is_the_value_of_rows_from_before_it_was_added(spark: SparkSession) -> None:
    name = iceberg(spark, "added", 3)
    spark.sql(f"alter table {name} add column part struct<a int>")
    jvm = spark._jvm
    assert jvm is not None
    api = jvm.org.apache.iceberg
    change = api.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name).updateSchema()
    day, text, literal = api.types.Types.DateType.get(), api.types.Types.StringType.get(), api.expressions.Literal
    change.addColumn("day", day, literal.of("2026-11-01").to(day))
    change.addColumn("part", "place", text, None, literal.of("here"))
    change.commit()
    spark.sql(f"insert into {name} values ('new', 1, struct(1, 'there'), date'2026-11-02')")
    for column, value, other in (("day", "2026-11-01", "2026-11-03"), ("part.place", "here", "her")):
        report = look(spark, name, value, column)
        assert kinds(report) == {"default values"}
        assert "DELETE" in report.statements[0]
        assert look(spark, name, other, column).certificate
    assert kinds(look(spark, name, "2026-11-02", "day")) == {"data files", "bounds in manifests"}
    report = look(spark, name, "2026-11-01", "day")
    assert ended(spark, name, report, values="2026-11-01", column="day") <= 3
    assert [row.user_id for row in spark.table(name).collect()] == ["new"]


def test_values_of_iceberg_partitions_are_in_their_statistics_summaries_and_lists_of_manifests(
    spark: SparkSession, tmp_path: Path
) -> None:
    name, erased = "ice.db.counted", "a+b@c.org"
    spark.sql(f"create table {name} (user_id string, n int) using iceberg partitioned by (user_id)"
              " tblproperties ('write.summary.partition-limit' = '9')")  # fmt: skip
    for user in (erased, "b"):
        spark.sql(f"insert into {name} select '{user}', 1")
    spark.sql("call ice.system.compute_partition_stats('db.counted')")
    folder = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "") / "db" / "counted" / "metadata"
    kept = shutil.copytree(folder, tmp_path / "kept")
    report = look(spark, name, erased)
    assert kinds(report) == {"data files", "statistics of partitions", "bounds in manifests", "texts of commits"}
    assert ended(spark, name, report, folder, values=erased) <= 3
    for pattern, kind in (("snap-*.avro", "bounds in manifests"), ("partition-*", "statistics of partitions")):
        for file in kept.glob(pattern):  # as if an expiry had been stopped
            shutil.copy(file, folder)
        report = look(spark, name, erased)
        assert kinds(report) == {kind}
        assert ended(spark, name, report, folder, values=erased) == 1
    assert "names of directories without files" in look(spark, name, erased).not_looked_at


def test_statistics_of_iceberg_partitions_in_avro_are_looked_at_like_those_in_parquet(spark: SparkSession) -> None:
    name, erased = "ice.db.counted_in_avro", "a+b@c.org"
    spark.sql(f"create table {name} (user_id string, n int) using iceberg partitioned by (user_id, bucket(4, n))")
    for user in (erased, "b"):
        spark.sql(f"insert into {name} select '{user}', 1")
    for form in ("avro", "parquet"):
        spark.sql(f"alter table {name} set tblproperties ('write.format.default' = '{form}')")
        if form == "avro":
            spark.sql("call ice.system.compute_partition_stats('db.counted_in_avro')")
    folder = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "") / "db" / "counted_in_avro" / "metadata"
    (statistics,) = folder.glob("partition-stats-*.avro")
    kept = statistics.read_bytes()
    for value, column in (("nobody", "user_id"), ("77", "n")):
        assert look(spark, name, value, column).certificate
    report = look(spark, name, erased)
    assert kinds(report) >= {"data files", "statistics of partitions"}
    assert [place.path for place in report.places if place.kind == "statistics of partitions"] == [f"{statistics}"]
    assert ended(spark, name, report, folder, values=erased) <= 3
    statistics.write_bytes(kept)  # as if an expiry had been stopped
    report = look(spark, name, erased)
    assert kinds(report) == {"statistics of partitions"}
    assert ended(spark, name, report, folder, values=erased) == 1


@pytest.mark.parametrize("using", ["iceberg", "delta"])
def test_a_dropped_column_is_looked_up_by_the_name_that_it_had_until_it_is_gone(
    spark: SparkSession, folder: Path, using: str
) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    delta = using == "delta"
    name = made(spark, f"delta.`{folder}`", "delta", **mapped) if delta else iceberg(spark, "dropped_column")
    warehouse = Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "")
    log = folder / "_delta_log" if delta else warehouse / "db" / "dropped_column" / "metadata"
    spark.sql(f"alter table {name} rename column user_id to person")
    with pytest.raises(UnknownColumn, match="'user_id' is called 'person' now"):
        look(spark, name)
    spark.sql(f"alter table {name} drop column person")
    with pytest.raises(UnknownColumn, match="no schema that it still reaches has one"):
        look(spark, name, column="persons")
    for column in ("person", "user_id"):
        assert look(spark, name, "nobody", column).certificate
        report = look(spark, name, column=column)
        (file,) = (place for place in report.places if place.kind == "data files")
        assert (file.rows, file.live_rows) == (1, 0)
        assert not any("DELETE" in text for text in report.statements)
    for _ in range(4):  # Delta forgets the name with the last of its values
        for text in report.statements:
            spark.sql(text)
        age(log)
        try:
            report = look(spark, name, column="person")
        except UnknownColumn:
            assert delta
            break
        if report.certificate:
            break
    else:
        raise AssertionError(report.places)
    assert files_with(log.parent) == []
    assert spark.table(name).count() == 200


@pytest.mark.parametrize("damage", [b"no JSON", b'{"add": 5}', b'{"remove": {}}', b'{"metaData": [1]}'])
def test_a_damaged_file_of_a_delta_log_that_no_version_has_is_named_with_what_to_do(
    spark: SparkSession, folder: Path, damage: bytes
) -> None:
    name = made(spark, f"delta.`{folder}`", "delta", **{"delta.enableChangeDataFeed": "false"})
    for left in ("left.json", "00000000000000000001.left.json", "00000000000000000001.crc"):
        path = folder / "_delta_log" / left
        path.write_bytes(damage)
        (path.parent / f".{left}.crc").unlink(missing_ok=True)
        with pytest.raises(UnreadableError, match=r"if the file is damaged .* remove it") as raised:
            look(spark, name)
        assert str(raised.value.path).endswith(left)
        path.unlink()
    assert look(spark, name, "nobody").certificate


def test_a_data_file_of_delta_with_any_name_is_searched(spark: SparkSession, folder: Path) -> None:
    name = f"delta.`{folder}`"
    folder.mkdir()
    pq.write_table(pa.table({"user_id": ["u1", "u2", "u3"]}), folder / "000000_0")
    spark.sql(f"convert to delta parquet.`{folder}`")
    report = look(spark, name, "u2")  # in no bounds
    assert kinds(report) == {"data files"}
    assert [place.live_rows for place in report.places] == [1]
    assert ended(spark, name, report, folder / "_delta_log", values="u2") <= 3
    assert not (folder / "000000_0").exists()


def test_rows_are_counted_after_a_column_no_longer_partitions_a_delta_table(
    spark: SparkSession, folder: Path
) -> None:
    name = f"delta.`{folder}`"
    spark.sql(f"create table {name} (user_id string, n int) using delta partitioned by (user_id)")
    spark.sql(f"insert into {name} select {SHORT} from range(3)")
    frame = spark.sql(f"select {SHORT} from range(0, 9, 1, 1)")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(folder))
    report = look(spark, name, "u1")
    assert max(place.live_rows for place in report.places) == 1
    assert report.statements[0] == f"DELETE FROM {name} WHERE user_id IN ('u1')"


def test_change_data_in_directories_with_random_names_are_called_so(spark: SparkSession, folder: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    name = made(spark, f"delta.`{folder}`", "delta", **mapped)
    spark.sql(f"update {name} set n = -1 where user_id = '{ERASED}'")
    (change,) = (place for place in look(spark, name).places if place.kind == "change data")
    assert change.kept_by == ("the change data feed, until VACUUM takes it",)
    assert "/_change_data/" not in change.path


def test_what_cannot_be_looked_at_is_refused(spark: SparkSession) -> None:
    name = iceberg(spark, "whole")
    with pytest.raises(UsageError, match="all snapshots"):
        find_in_reachable(
            spark, TableOptions(table=name, where="n > 3"), Values([ERASED]), FindOptions(column="user_id")
        )
    with pytest.raises(UsageError, match="all branches"):
        look(spark, f"{name}.snapshot_id_{look(spark, name).version}")
    frame = spark.createDataFrame([(ERASED, 1), (None, 2)], "id string, n int")
    found = bloom_spark.find_reachable(spark, name, frame, column="user_id", values_column="id")
    assert found.values == found.values_found == 1
