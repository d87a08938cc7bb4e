"""The log's entries, names of new files, and table features, as far as they don't need Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bloomcli.tables.delta.snapshot import (
    KEPT,
    REFUSED,
    full_path,
    new_entry_path,
    partition_of,
    refusal,
    removal,
    replacement,
)

UUID = "00000000-1111-4222-8333-444444444444"


@pytest.mark.parametrize(
    ("location", "path", "full"),
    [
        ("file:/t", "part-0.parquet", "file:/t/part-0.parquet"),
        ("s3a://b/t", "p=a%2520b/x.parquet", "s3a://b/t/p=a%20b/x.parquet"),
        ("s3a://b", "p=%C3%BC+1/x.parquet", "s3a://b/p=ü+1/x.parquet"),
        ("hdfs://n:1/t", "file:///o/x%20y.parquet", "file:/o/x y.parquet"),
        ("file:/t", "s3a://b/o/x%23.parquet", "s3a://b/o/x#.parquet"),
        ("file:/t", "/o/x.parquet", "/o/x.parquet"),
    ],
)
def test_a_path_of_the_log_is_a_uri_below_the_table(location: str, path: str, full: str) -> None:
    assert full_path(location, path) == full


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (f"part-00003-{UUID}.c000.snappy.parquet", r"part-00003-UUID\.c000\.snappy\.parquet"),
        (f"Ab/part-00003-{UUID}-c001.parquet", r"Ab/part-00003-UUID-c001\.parquet"),
        (f"p=a%2520b/q=%25/{UUID}.parquet", r"p=a%2520b/q=%25/UUID\.parquet"),
        ("p=1/data%20x.parquet", r"p=1/part-00000-UUID-c000\.parquet"),
        ("data.parquet", r"part-00000-UUID-c000\.parquet"),
        (f"s3://b/o/p=1/part-00003-{UUID}.c000.snappy.parquet", r"part-00003-UUID\.c000\.snappy\.parquet"),
    ],
)
def test_a_new_file_is_called_as_the_old_one_with_another_uuid(path: str, pattern: str) -> None:
    name = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
    given = {new_entry_path(path) for _ in range(3)}
    assert all(re.fullmatch(pattern.replace("UUID", name), new) for new in given)
    assert len(given) == 3
    assert not any(UUID in new for new in given)


def test_an_entry_is_removed_and_added_with_all_that_it_says() -> None:
    entry = {
        "path": "a", "partitionValues": {"p": None}, "size": 1, "modificationTime": 2, "dataChange": True,
        "stats": "{}", "tags": {"k": "v"}, "deletionVector": {"storageType": "u"}, "baseRowId": 0,
        "defaultRowCommitVersion": 7,
        "clusteringProvider": "liquid", "unheard": 1,
    }  # fmt: skip
    assert replacement(entry, "b", 9, 8) == {
        **entry,
        "path": "b",
        "size": 9,
        "modificationTime": 8,
        "dataChange": False,
    }
    gone = removal(entry, 5)
    assert (gone["dataChange"], gone["deletionTimestamp"], gone["extendedFileMetadata"]) == (False, 5, True)
    kept = ("partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion", "stats", "tags")
    assert {key: gone[key] for key in kept} == {key: entry[key] for key in kept}


def test_a_partition_is_shown_as_in_the_names_of_directories() -> None:
    columns = [("day", "col-1"), ("a/b", "col-2"), ("n", "col-3")]
    entry = {"partitionValues": {"col-1": "2026-11-01 00:00", "col-2": "50%", "col-3": None}}
    assert partition_of(entry, columns) == "day=2026-11-01 00%3A00/a%2Fb=50%25/n=__HIVE_DEFAULT_PARTITION__"


def metadata(schema: str = "{}", **configuration: str) -> dict[str, Any]:
    """A log's ``metaData``."""
    return {
        "schemaString": schema,
        "configuration": {f"delta.{k.replace('_', '.')}": v for k, v in configuration.items()},
    }


def protocol(*features: str, reader: int = 3, writer: int = 7) -> dict[str, Any]:
    """A log's ``protocol``."""
    return {"minReaderVersion": reader, "minWriterVersion": writer, "writerFeatures": list(features)}


@pytest.mark.parametrize("reader", [1, 2])
@pytest.mark.parametrize("writer", range(2, 7))
def test_protocols_without_features_are_kept(reader: int, writer: int) -> None:
    assert refusal({"minReaderVersion": reader, "minWriterVersion": writer}, metadata()) is None


def test_features_that_are_kept_are_accepted() -> None:
    assert refusal(protocol(*KEPT), metadata()) is None
    assert not KEPT & set(REFUSED)


@pytest.mark.parametrize("feature", [*REFUSED, "of the future"])
def test_other_features_are_refused_by_name(feature: str) -> None:
    why = refusal({**protocol("appendOnly"), "readerFeatures": [feature]}, metadata())
    assert why is not None
    assert why.startswith(f"table feature {feature}: ")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (metadata(universalFormat_enabledFormats="iceberg"), "universalFormat.enabledFormats is iceberg"),
        (metadata(rowTrackingSuspended="true"), "rows would lose their ids"),
        (metadata('{"metadata":{"delta.bloomFilter.enabled":true}}'), "Databricks' Bloom filter indexes"),
    ],
)
def test_tables_that_would_lose_something_are_refused(found: dict[str, Any], why: str) -> None:
    assert why in str(refusal(protocol(), found))


def test_newer_protocols_are_refused() -> None:
    assert "protocol version 4" in str(refusal(protocol(reader=4), metadata()))
    assert "8 for writers" in str(refusal(protocol(writer=8), metadata()))
