"""Delete files in each format that Iceberg writes: the same rows are deleted."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from bloomcli.datasets.record_shape import RecordField
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.tables.deleted_rows import DeletedRows, EqualityDeletes, PositionDeletes, delete_rows

pytestmark = pytest.mark.slow

TYPES: dict[str, tuple[int, Any, Any, list[Any]]] = {
    "id": (1, pa.int64(), "int", [1, 7, None]),
    "name": (2, pa.string(), "string", ["a", "b", None]),
    "day": (3, pa.date32(), {"type": "int", "logicalType": "date"}, [date(2026, 11, 1), date(1969, 1, 1), None]),
    "at": (
        4,
        pa.timestamp("us", "UTC"),
        {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
        [datetime(2026, 11, 1, 10, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), None],
    ),
    "local": (
        5,
        pa.timestamp("us"),
        {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        [datetime(2026, 11, 1, 10), datetime(1960, 1, 1), None],
    ),
    "price": (
        6,
        pa.decimal128(9, 2),
        {"type": "fixed", "size": 4, "name": "d", "logicalType": "decimal", "precision": 9, "scale": 2},
        [Decimal("1.25"), Decimal("-3.00"), None],
    ),
    "raw": (7, pa.binary(), "bytes", [b"x", b"", None]),
    "yes": (8, pa.bool_(), "boolean", [True, False, None]),
}


def parquet(path: Path, rows: list[dict[str, Any]], ids: dict[str, int]) -> None:
    pq.write_table(_table(rows, "PARQUET:field_id", ids), path)


def orc_file(path: Path, rows: list[dict[str, Any]], ids: dict[str, int]) -> None:
    orc.write_table(_table(rows, "iceberg.id", ids), path)


def _table(rows: list[dict[str, Any]], key: str, ids: dict[str, int]) -> pa.Table:
    """The rows, under other names where fields have ids."""
    if not ids:
        return pa.Table.from_pylist(rows)
    fields = [pa.field(f"old_{name}", TYPES[name][1], metadata={key: str(ids[name])}) for name in rows[0]]
    return pa.Table.from_pylist([{f"old_{name}": row[name] for name in row} for row in rows], pa.schema(fields))


def avro(path: Path, rows: list[dict[str, Any]], ids: dict[str, int], codec: str = "deflate") -> None:
    fields = []
    for name in rows[0]:
        kind = TYPES[name][2] if name in TYPES else {"file_path": "string", "pos": "long"}[name]
        given = {"field-id": ids[name]} if name in ids else {}
        fields.append({"name": f"old_{name}" if name in TYPES else name, "type": ["null", kind], **given})
    schema = {"type": "record", "name": "deletes", "fields": fields}
    renamed = [{(f"old_{k}" if k in TYPES else k): v for k, v in row.items()} for row in rows]
    with path.open("wb") as file:
        fastavro.writer(file, schema, renamed, codec=codec, sync_interval=100)


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]], dict[str, int]], None]] = {
    "parquet": parquet,
    "orc": orc_file,
    "avro": avro,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_position_deletes_are_read_in_each_format(tmp_path: Path, kind: str) -> None:
    rows = [{"file_path": f"s3://b/{n % 2}.parquet", "pos": n} for n in range(5000)]
    WRITERS[kind](tmp_path / "d", rows, {})
    deletes = PositionDeletes(path=str(tmp_path / "d"), format=kind)
    found = DeletedRows(data_file="s3://b/1.parquet", positions=(deletes,))
    record = pa.array([{}] * 4, pa.struct([]))
    assert found.kept(pa.array([0, 1, 4998, 4999]), record).to_pylist() == [True, False, True, False]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("columns", [[name] for name in TYPES] + [["id", "name", "day"]])
def test_equality_deletes_are_read_by_field_ids_in_each_format(tmp_path: Path, kind: str, columns: list[str]) -> None:
    rows = [{name: TYPES[name][3][at] for name in columns} for at in (1, 2)]
    WRITERS[kind](tmp_path / "d", rows, {name: TYPES[name][0] for name in columns})
    shape = tuple(RecordField(name=name, type=TYPES[name][1], field_id=TYPES[name][0]) for name in columns)
    deletes = EqualityDeletes(path=str(tmp_path / "d"), format=kind, shape=shape)
    every = [{name: TYPES[name][3][at] for name in columns} for at in range(3)]
    record = pa.array(every, pa.struct([pa.field(name, TYPES[name][1]) for name in columns]))
    assert deletes.matches(record).to_pylist() == [False, True, True]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_damaged_delete_file_is_an_error_and_no_row_comes_back(tmp_path: Path, kind: str) -> None:
    rows = [{"file_path": "f", "pos": n} for n in range(300)]
    WRITERS[kind](tmp_path / "d", rows, {})
    data = (tmp_path / "d").read_bytes()
    expected = pa.array(range(300))
    for end in range(0, len(data), 7):
        (tmp_path / "d").write_bytes(data[:end])
        try:
            found = PositionDeletes(path=str(tmp_path / "d"), format=kind).positions("f")
        except BloomError as error:
            assert error.path == str(tmp_path / "d")
            continue
        assert found.equals(expected[: len(found)]), end
        assert kind == "avro", "an Avro file has no end mark: only its size shows that blocks are missing"
        with pytest.raises(CorruptFile, match="bytes, and the table says"):
            PositionDeletes(path=str(tmp_path / "d"), format=kind, size=len(data)).positions("f")


def test_a_parquet_delete_file_whose_pages_end_early_is_an_error_and_no_row_comes_back(tmp_path: Path) -> None:
    """Arrow skips a page of another type, and ends without an error if a file has one column."""
    path = tmp_path / "d"
    pq.write_table(_table([{"id": 7}], "PARQUET:field_id", {"id": 1}), path, use_dictionary=False, compression="none")
    data, at = bytearray(path.read_bytes()), pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    assert data[at : at + 2] == b"\x15\x00"  # the page's type, DATA_PAGE
    data[at + 1] = 2  # INDEX_PAGE
    path.write_bytes(data)
    shape = (RecordField(name="id", type=pa.int64(), field_id=1),)
    with pytest.raises(CorruptFile, match="the pages have 0 rows, and the footer says 1"):
        EqualityDeletes(path=str(path), format="parquet", shape=shape).matches(pa.array([{"id": 7}]))


def test_a_position_delete_file_without_its_columns_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"file_path": ["f"]}), tmp_path / "d")
    with pytest.raises(UnsupportedError, match="has no column pos"):
        PositionDeletes(path=str(tmp_path / "d"), format="parquet").positions("f")


def test_avro_that_is_no_table_and_other_formats_are_errors(tmp_path: Path) -> None:
    into = io.BytesIO()
    fastavro.writer(into, "string", ["a"])
    (tmp_path / "d").write_bytes(into.getvalue())
    with pytest.raises(CorruptFile, match="its rows aren't records"):
        PositionDeletes(path=str(tmp_path / "d"), format="avro").positions("f")
    with pytest.raises(UnsupportedError, match="of the format lance"):
        PositionDeletes(path=str(tmp_path / "d"), format="lance").positions("f")


def test_a_delete_file_whose_page_does_not_fit_its_checksum_hides_no_row(tmp_path: Path) -> None:
    shape = (RecordField(name="pos", type=pa.int64(), names=("pos",)),)
    path = tmp_path / "deletes.parquet"
    table = pa.table({"pos": pa.array([10**9 + n for n in range(100)], pa.int64())})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    (rows,) = delete_rows(str(path), "parquet", shape)
    assert rows.field("pos").to_pylist() == table["pos"].to_pylist()
    data = bytearray(path.read_bytes())
    data[data.index((10**9 + 50).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match="page integrity"):
        list(delete_rows(str(path), "parquet", shape))
