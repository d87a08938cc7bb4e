"""Metadata of tables that an attacker, or a careless writer, has made: what bloom opens, allocates and believes."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import iceberg_metadata

from bloomcli.cli import run
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.tables.base import check_place
from bloomcli.tables.without_spark import open_snapshot

FIELD = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
METADATA = {"id": "t", "format": {"provider": "parquet"}, "partitionColumns": [], "configuration": {},
            "schemaString": json.dumps({"type": "struct", "fields": [FIELD]})}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether another test's session runs in this process decides nothing here."""
    monkeypatch.setattr("bloomcli.tables.without_spark.is_running", lambda: False)


def delta(folder: Path, path: str = "a.parquet", **entry: Any) -> str:
    """A Delta table of one file."""
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
    add = {"path": path, "size": (folder / "a.parquet").stat().st_size, "partitionValues": {}, **entry}
    actions = ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": METADATA}, {"add": add})
    (log / f"{0:020}.json").write_text("".join(f"{json.dumps(one)}\n" for one in actions))
    return str(folder)


@pytest.mark.parametrize("path", ["../../etc/passwd", "%2e%2e/%2E%2E/etc/passwd", "p=1/../../x", "a%00.parquet",
                                  "/data/../etc/passwd", "file:///data/../etc/passwd"])  # fmt: skip
def test_a_path_that_no_writer_makes_is_an_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(CorruptFile, match="a path that no writer makes"):
        open_snapshot(delta(tmp_path / "t", path))


@pytest.mark.parametrize("path", ["http://169.254.169.254/latest", "HTTPS://example.org/x.parquet"])
def test_a_table_sends_no_requests_to_web_servers(tmp_path: Path, path: str) -> None:
    vector = {"storageType": "p", "pathOrInlineDv": path, "sizeInBytes": 40, "cardinality": 1}
    for table in (delta(tmp_path / "t", path), delta(tmp_path / "u", deletionVector=vector)):
        with pytest.raises(UnsupportedError, match="it isn't opened"):
            open_snapshot(table)


@pytest.mark.parametrize(
    ("table", "path", "opened"),
    [
        ("/lake/t", "/other/t/a.parquet", True),
        ("/lake/t", "file:/other/a.parquet", True),
        ("/lake/t", "s3://other/a.parquet", True),
        ("s3://lake/t", "s3a://other/a.parquet", True),
        ("s3://lake/t", "gs://other/a.parquet", True),
        ("https://lake/t", "https://other/a.parquet", True),
        ("s3://lake/../t", "s3://lake/../t/a.parquet", True),
        ("/lake/t", "/lake/t/a..b/..c", True),
        ("s3://lake/t", "/etc/passwd", False),
        ("s3://lake/t", "file:///etc/passwd", False),
        ("s3://lake/t", "http://lake/t", False),
        ("s3://lake/t", "s3://lake/t/../../other/a", False),
    ],
)
def test_a_table_in_a_store_names_no_files_of_this_machine(table: str, path: str, opened: bool) -> None:
    if opened:
        check_place(table, path)
    else:
        with pytest.raises(BloomError):
            check_place(table, path)


def test_each_path_of_iceberg_s_metadata_is_checked(tmp_path: Path) -> None:
    metadata = iceberg_metadata.write(tmp_path / "t")
    kept, folder = metadata.read_text(), metadata.parent
    metadata.write_text(kept.replace("list.avro", "../metadata/list.avro"))
    with pytest.raises(CorruptFile, match="a path that no writer makes"):
        open_snapshot(str(metadata)).files()
    metadata.write_text(kept)
    for name, old in (("list.avro", b"m0.avro"), ("m0.avro", b"a.parquet")):
        whole = (folder / name).read_bytes()
        with (folder / name).open("rb") as file:
            reader = fastavro.reader(file)
            rows: list[Any] = json.loads(json.dumps(list(reader), default=lambda value: value.decode("latin-1")))
            schema = reader.writer_schema
        for row in rows:
            for bound in (row.get("data_file") or {}).get("lower_bounds") or ():
                bound["value"] = bound["value"].encode("latin-1")
            if "data_file" in row:
                row["data_file"]["file_path"] = "http://169.254.169.254/x"
            else:
                row["manifest_path"] = "http://169.254.169.254/x"
        with (folder / name).open("wb") as out:
            fastavro.writer(out, schema, rows)
        with pytest.raises(UnsupportedError, match="it isn't opened"):
            open_snapshot(str(metadata)).files()
        assert old in whole
        (folder / name).write_bytes(whole)
    assert len(open_snapshot(str(metadata)).files()) == 1


def test_numbers_that_are_too_large_are_errors(tmp_path: Path) -> None:
    table = delta(tmp_path / "t")
    (tmp_path / "t" / "_delta_log" / f"{0:020}.checkpoint.{1:010}.{9999999999:010}.parquet").touch()
    assert len(open_snapshot(table).files()) == 1  # nothing is made for each of the parts that it says
    with pytest.raises(CorruptFile):
        open_snapshot(delta(tmp_path / "u", size=math.inf))
    commit = {"commitInfo": {"inCommitTimestamp": 10**30}}
    timed = {**METADATA, "configuration": {"delta.enableInCommitTimestamps": "true"}}
    table = delta(tmp_path / "v")
    (tmp_path / "v" / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"metaData": timed}) + "\n")
    first = tmp_path / "v" / "_delta_log" / f"{0:020}.json"
    first.write_text(f"{json.dumps(commit)}\n{first.read_text()}")
    with pytest.raises(CorruptFile, match="the commit's time isn't valid"):
        open_snapshot(table, as_of=datetime(2026, 11, 1, tzinfo=UTC))
    metadata = iceberg_metadata.write(tmp_path / "i")
    kept = metadata.read_text()
    metadata.write_text(kept.replace('"transform": "identity"', '"transform": "hour"'))
    with pytest.raises(CorruptFile, match="an entry of a manifest isn't valid"):
        open_snapshot(str(metadata)).files()
    metadata.write_text(kept)
    empty = fastavro.parse_schema({"type": "record", "name": "r", "fields": []})
    with (metadata.parent / "list.avro").open("wb") as out:
        fastavro.writer(out, empty, [{}] * 300_000)
    whole = (metadata.parent / "list.avro").read_bytes()
    with pytest.raises(CorruptFile, match=r"list\.avro: the manifest can't be read: a block has more records than"):
        open_snapshot(str(metadata)).files()
    assert len(whole) * 1032 < 300_000


def test_a_schema_that_is_not_there_is_an_error_and_not_another_schema(tmp_path: Path) -> None:
    metadata = iceberg_metadata.write(tmp_path / "t")
    metadata.write_text(metadata.read_text().replace('"current-schema-id": 0', '"current-schema-id": 9'))
    with pytest.raises(CorruptFile, match="metadata aren't valid"):
        open_snapshot(str(metadata))


def test_the_log_s_partition_values_count_and_not_those_of_files(tmp_path: Path) -> None:
    """Delta's writers may write partition columns into files, where nulls are empty and times are cut to 64 bits."""
    fields = [FIELD, *({"name": name, "type": kind, "nullable": True, "metadata": {}}
                       for name, kind in (("p", "string"), ("t", "timestamp"), ("u", "timestamp")))]  # fmt: skip
    values = {"p": "", "t": "9999-12-31T23:59:59.999999Z", "u": "2026-11-01 10:00:00"}
    table = delta(tmp_path / "t", partitionValues=values)
    times = pa.array([datetime(9999, 12, 31, 23, 59, 59, 999999)] * 2, pa.timestamp("us"))
    known = pa.array([datetime(2026, 11, 1, 10)] * 2, pa.timestamp("us"))
    rows = pa.table({"id": [1, 2], "p": ["", ""], "t": times, "u": known})
    pq.write_table(rows, tmp_path / "t" / "a.parquet", use_deprecated_int96_timestamps=True)
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    metadata = {**METADATA, "partitionColumns": ["p", "t", "u"],
                "schemaString": json.dumps({"type": "struct", "fields": fields})}  # fmt: skip
    log.write_text(log.read_text().replace(json.dumps(METADATA), json.dumps(metadata)))
    out = tmp_path / "rows"
    words = ("find", "1", "-c", "id", "--table", table, "--engine", "local", "-f", "jsonl", "-q", "-o", str(out))
    assert run(words) == 0
    assert json.loads(out.read_text())["record"] == {
        "id": 1, "p": None, "t": "9999-12-31T23:59:59.999999+00:00", "u": "2026-11-01T10:00:00+00:00"
    }  # fmt: skip
