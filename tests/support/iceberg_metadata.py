"""An Iceberg table of one data file and one delete file, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq


def _field(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


_PARTITION = {"type": "record", "name": "r102", "fields": [_field("p", "string", 1000)]}
_BOUNDS = {
    "type": "record",
    "name": "k126_v127",
    "fields": [
        {"name": "key", "type": "int", "field-id": 126},
        {"name": "value", "type": "bytes", "field-id": 127},
    ],
}
_DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        {"name": "partition", "type": _PARTITION, "field-id": 102},
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _field("lower_bounds", {"type": "array", "items": _BOUNDS, "logicalType": "map"}, 125),
        _field("equality_ids", {"type": "array", "items": "int", "element-id": 136}, 135),
    ],
}
_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        _field("snapshot_id", "long", 1),
        _field("sequence_number", "long", 3),
        {"name": "data_file", "type": _DATA_FILE, "field-id": 2},
    ],
}
_LISTED = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", "string", 500),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
    ],
}


def write(folder: Path, location: str | None = None) -> Path:
    """Write the table, and return its metadata file. The ids are 0 to 9, of which 3 is deleted by equality. The
    metadata say that the folder is at `location`."""
    root = location or str(folder)
    data = _parquet(folder / "data" / "a.parquet", list(range(10)))
    deletes = _parquet(folder / "data" / "d.parquet", [3])
    listed = []
    for number, (path, content, sequence) in enumerate(((data, 0, 1), (deletes, 2, None))):
        facts = {
            "content": content,
            "file_path": f"{root}/data/{path.name}",
            "file_format": "PARQUET",
            "partition": {"p": "x"},
            "record_count": 1 if content else 10,
            "file_size_in_bytes": path.stat().st_size,
            "lower_bounds": [{"key": 1, "value": bytes(8)}],
            "equality_ids": [1] if content else None,
        }
        manifest = folder / "metadata" / f"m{number}.avro"
        _avro(manifest, _ENTRY, {"status": 1, "snapshot_id": 7, "sequence_number": sequence, "data_file": facts})
        named = f"{root}/metadata/{manifest.name}"
        listed.append({"manifest_path": named, "partition_spec_id": 0, "content": int(content > 0),
                       "sequence_number": 2})  # fmt: skip
    _avro(folder / "metadata" / "list.avro", _LISTED, *listed)
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"},
              {"id": 2, "name": "p", "required": False, "type": "string"}]  # fmt: skip
    partition = {"source-id": 2, "field-id": 1000, "name": "p", "transform": "identity"}
    snapshot = {"snapshot-id": 7, "timestamp-ms": 1000, "manifest-list": f"{root}/metadata/list.avro",
                "schema-id": 0}  # fmt: skip
    metadata = {
        "format-version": 2,
        "location": root,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "partition-specs": [{"spec-id": 0, "fields": [partition]}],
        "properties": {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'},
        "current-snapshot-id": 7,
        "snapshots": [snapshot],
        "snapshot-log": [{"snapshot-id": 7, "timestamp-ms": 1000}],
        "refs": {"main": {"snapshot-id": 7, "type": "branch"}},
    }
    found = folder / "metadata" / "v1.metadata.json"
    found.write_text(json.dumps(metadata))
    return found


def with_unions(manifest: Path) -> None:
    """Write a manifest again as BigQuery does: each type may be null, records too."""
    with manifest.open("rb") as file:
        reader = fastavro.reader(file)
        schema, entries = json.loads(reader.metadata["avro.schema"]), list(reader)
    data_file = _by_name(schema)["data_file"]
    partition = _by_name(data_file["type"])["partition"]
    for field in (partition, data_file):
        field["type"] = ["null", field["type"]]
    _avro(manifest, schema, *entries)


def _by_name(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in schema["fields"]}


def _parquet(path: Path, ids: list[int]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    field = pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})
    pq.write_table(pa.table([pa.array(ids)], schema=pa.schema([field])), path)
    return path


def _avro(path: Path, schema: dict[str, Any], *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), rows)
