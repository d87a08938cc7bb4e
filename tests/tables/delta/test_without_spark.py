"""Delta tables read from their log, without Spark: the same answers as with Delta's own library."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.delta_tables import Lake
from support.without_spark import all_commands, answer, both, found_by_both

from bloomcli.cli import run as cli
from bloomcli.errors import UnsupportedError
from bloomcli.tables.without_spark import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VECTORS = {"enableDeletionVectors": "true"}
ODD = ("a b", "x/y%", "50%41", "ü:=#", "")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_partitions_deletes_and_renamed_columns_are_read_as_by_delta(
    lake: Lake, mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    columns = "id bigint, name string, at timestamp, price decimal(20, 4), day date, part string"
    lake.create(columns, more="partitioned by (day, part)", columnMapping_mode=mode, **VECTORS)
    rows = "id, concat('n', id), timestamp'2026-11-01 10:00:00.123456', id / 4, date_add(date'2026-11-01', p)"
    parts = ", ".join(f"'{part}'" for part in ODD)
    lake.insert(f"{rows}, array({parts})[p] from (select id, int(id div 100) p from range(0, 500, 1, 1))")
    lake.insert("id, null, null, null, null, null from range(500, 600)")
    lake.sql("alter table {t} rename column name to label")
    lake.sql("delete from {t} where id in (2, 151, 152) or id between 310 and 390")
    read = all_commands if mode == "name" else found_by_both
    rows = read(capfd, lake.name, "id", ["1", "2", "150", "151", "311", "420", "505", "9999"])
    assert sorted(row["record"]["id"] for row in rows) == [1, 150, 420, 505]
    both(capfd, lake.name, "find", "-v", "n1", "-v", "n420", "-c", "label", "--select", "id,part", "-f", "jsonl")
    by_path = answer(capfd, "find", "1", "-c", "id", "--table", str(lake.folder), "--engine", "local", "-f", "jsonl")
    assert by_path == answer(capfd, "find", "1", "-c", "id", "--table", lake.name, "--engine", "spark", "-f", "jsonl")


@pytest.fixture(scope="module")
def versions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of seven versions without a checkpoint: five files, and two rows that the last version deletes."""
    lake = Lake(spark, tmp_path_factory.mktemp("versions") / "table")
    lake.create("id bigint, at timestamp, p int", more="partitioned by (p)", checkpointPolicy="v2", **VECTORS)
    for number in range(5):
        lake.insert(f"id, timestamp'2026-11-01 10:00:00', {number} from range({number * 10}, {number * 10 + 10})")
    lake.sql("delete from {t} where id in (3, 13)")
    return lake.folder


@pytest.mark.parametrize(
    ("policy", "settings", "pattern"),
    [
        ("classic", {}, ".checkpoint.parquet"),
        ("classic", {"spark.databricks.delta.checkpoint.partSize": "2"}, ".checkpoint.0000000002.0000000002.parquet"),
        ("v2", {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "json"}, ".checkpoint.*-*.json"),
        ("v2", {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}, ".checkpoint.*-*.parquet"),
    ],
)
def test_checkpoints_of_each_kind_are_read_and_the_log_before_them_is_not_needed(
    spark: SparkSession,
    lake: Lake,
    versions: Path,
    policy: str,
    settings: dict[str, str],
    pattern: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = shutil.copytree(versions, lake.folder) / "_delta_log"
    first = log / f"{0:020}.json"
    assert '"delta.checkpointPolicy":"v2"' in first.read_text()
    first.write_text(
        first.read_text().replace('"delta.checkpointPolicy":"v2"', f'"delta.checkpointPolicy":"{policy}"')
    )
    for checksum in log.glob("*.crc"):  # it says the policy, too
        checksum.unlink()
    table = lake.open(snapshot=4)
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        table._table.deltaLog().checkpoint(table._snapshot._snapshot, table._jvm.none)
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert list(log.glob(f"{4:020}{pattern}"))
    for number in range(4):
        (log / f"{number:020}.json").unlink()
    wanted = [word for number in ("3", "4", "13", "44") for word in ("-v", number)]
    _, rows = both(capfd, lake.name, "find", *wanted, "-c", "id", "-f", "jsonl")
    assert [row["record"]["id"] for row in rows] == [4, 44]
    both(capfd, lake.name, "inspect", "-f", "json")
    code, error = answer(capfd, "inspect", "--table", lake.name, "--engine", "local", "--snapshot", "2")
    assert (code, "the table has no version 2 that can be read: it has 4 to 6" in error) == (2, True)
    (log / f"{5:020}.json").unlink()
    code, error = answer(capfd, "inspect", "--table", lake.name, "--engine", "local")
    assert (code, "the log has no version 5, and no checkpoint after it" in error) == (3, True)


def test_checkpoints_with_statistics_as_columns_only_are_compared_with_files(
    lake: Lake, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.create("id bigint, at timestamp, day date, price decimal(30, 10), name string", checkpointInterval="2",
                checkpoint_writeStatsAsJson="false", checkpoint_writeStatsAsStruct="true")  # fmt: skip
    row = "timestamp'2026-11-01 10:00:00.1234', date'2026-11-01', 12345678901234567890.0123456789, 'n'"
    lake.insert(f"id, {row} from range(0, 10)").insert(f"id, {row} from range(10, 20)")
    for number in range(2):
        (lake.folder / "_delta_log" / f"{number:020}.json").unlink()
    code, (report,) = answer(
        capfd, "validate", "--table", str(lake.folder), "--engine", "local", "--deep", "--columns", "*", "-f", "json"
    )
    assert (code, report["files"], [found for row in report["rows"] for found in row["findings"]]) == (0, 2, [])


def test_widened_types_and_files_of_a_clone_s_source_are_read(
    spark: SparkSession, lake: Lake, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.create("id int, day date, amount decimal(5, 2)", enableTypeWidening="true", **VECTORS)
    lake.insert("cast(id as int), date'2026-11-01', cast(id as decimal(5, 2)) from range(0, 10)")
    lake.sql("alter table {t} alter column id type bigint")
    lake.sql("alter table {t} alter column amount type decimal(12, 4)")
    lake.insert("id + 5000000000, date'2026-11-02', cast(id as decimal(12, 4)) from range(0, 10)")
    lake.sql("delete from {t} where id = 4")
    assert len(found_by_both(capfd, lake.name, "id", ["3", "4", "5000000003"])) == 2
    clone = Lake(spark, tmp_path / "clone")
    clone.sql(f"create table {{t}} shallow clone {lake.name}")
    clone.sql("delete from {t} where id = 5")
    assert len(found_by_both(capfd, clone.name, "id", ["3", "4", "5", "5000000003"])) == 2


def test_versions_and_times_choose_what_delta_chooses(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    lake.create("id bigint", enableInCommitTimestamps="true", **VECTORS)
    for number in range(2):
        lake.insert(f"id from range({number * 10}, {number * 10 + 10})")
    both(capfd, lake.name, "inspect", "--snapshot", "1", "-f", "json")
    for made in lake.history():
        moment = made["timestamp"].astimezone(UTC).isoformat()
        _, (report,) = both(capfd, lake.name, "inspect", "--as-of", moment, "-f", "json")
        assert report["version_before"] == made["version"]
    too_early = ["--as-of", datetime(2001, 1, 1, tzinfo=UTC).isoformat()]
    code, error = answer(capfd, "inspect", "--table", lake.name, "--engine", "local", *too_early)
    assert (code, "no version of 2001-01-01T00:00:00+00:00 or before" in error) == (2, True)


def test_times_are_those_of_the_log_s_files_without_in_commit_timestamps(
    lake: Lake, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.create("id bigint").insert("id from range(0, 10)")
    for made in lake.history():
        moment = made["timestamp"].astimezone(UTC).isoformat()
        both(capfd, lake.name, "inspect", "--as-of", moment, "-f", "json")


def test_a_feature_that_is_not_known_is_refused_by_name(lake: Lake) -> None:
    lake.create("id bigint", **VECTORS).insert("id from range(0, 10)")
    protocol = lake.log(0)["protocol"][0]
    for where, feature in (("readerFeatures", "telepathy"), ("writerFeatures", "catalogManaged")):
        changed = {**protocol, where: [*protocol[where], feature]}
        (lake.folder / "_delta_log" / f"{2:020}.json").write_text(json.dumps({"protocol": changed}))
        with pytest.raises(UnsupportedError, match=f"can't be read: table feature {feature}: "):
            open_snapshot(str(lake.folder))
    assert open_snapshot(str(lake.folder), snapshot=1).version == 1


def test_a_damaged_log_or_vector_is_an_error_with_its_file(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    lake.create("id bigint", **VECTORS).insert("id from range(0, 100)").sql("delete from {t} where id = 3")
    vector = next(lake.folder.glob("deletion_vector_*.bin"))
    kept = vector.read_bytes()
    vector.write_bytes(kept[:20] + b"\xff" + kept[21:])
    code, error = answer(capfd, "find", "4", "-c", "id", "--table", lake.name, "--engine", "local")
    assert (code, vector.name in str(error)) == (3, True)
    vector.write_bytes(kept)
    broken = lake.folder / "_delta_log" / f"{1:020}.json"
    for text in ('{"add": {"path": 5}}\n', '{"add": \n', "[]\n", "\xff"):
        broken.write_text(text, encoding="latin-1")
        code, error = answer(capfd, "find", "4", "-c", "id", "--table", lake.name, "--engine", "local")
        assert (code, broken.name in str(error)) == (3, True), text


def test_a_change_of_a_table_by_its_path_says_the_command_for_spark(
    lake: Lake, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.create("id bigint").insert("id from range(0, 10)")
    assert cli(["add", "--table", str(lake.folder), "--columns", "id"]) == 2
    assert f"hint: bloom add --table '{lake.name}' --columns id\n" in capfd.readouterr().err
    shutil.rmtree(lake.folder / "_delta_log")
    assert cli(["inspect", "--table", str(lake.folder)]) == 2
    assert "no table is there" in capfd.readouterr().err
