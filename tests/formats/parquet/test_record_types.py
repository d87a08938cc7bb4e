"""The records of a few rows, of which find reads some pages, equal those of the whole file."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers
from support.thrift import I32, STRUCT, Fields

import bloomcli

ROWS = 5000
WANTED = (0, 1, 777, 2500, 2501, 4999)
EPOCH = dt.datetime(2026, 1, 1)


def table() -> pa.Table:
    n = range(ROWS)
    times = [EPOCH + dt.timedelta(seconds=k) for k in n]
    return pa.table(
        {
            "id": pa.array(n, pa.int64()),
            "i32": pa.array([-k for k in n], pa.int32()),
            "u32": pa.array([2**32 - 1 - k for k in n], pa.uint32()),
            "u64": pa.array([2**64 - 1 - k for k in n], pa.uint64()),
            "f32": pa.array([k / 4 for k in n], pa.float32()),
            "f64": pa.array([-k / 8 for k in n], pa.float64()),
            "text": [f"naïve {k}" if k % 5 else "" for k in n],
            "raw": pa.array([bytes([255, k % 256]) for k in n], pa.binary()),
            "day": pa.array(n, pa.int32()).cast(pa.date32()),
            "ms": pa.array(times, pa.timestamp("ms")),
            "us": pa.array(times, pa.timestamp("us")),
            "ns": pa.array(times, pa.timestamp("ns")),
            "zoned": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
            "few": [f"kind {k % 7}" for k in n],
            "same": pa.array([12] * ROWS, pa.int64()),
            "i8": pa.array([k % 100 for k in n], pa.int8()),
            "nulls": pa.array([None if k % 3 == 1 else k for k in n], pa.int64()),
            "flag": [k % 2 == 0 for k in n],
            "amount": pa.array([decimal.Decimal(k) / 4 for k in n], pa.decimal128(12, 2)),
            "small": pa.array([decimal.Decimal(k - 2500) / 4 for k in n], pa.decimal128(7, 2)),
            "long": pa.array(
                [None if k % 7 == 2 else decimal.Decimal(2500 - k) * 10**20 for k in n], pa.decimal128(38)
            ),
            "fixed": pa.array([k.to_bytes(4, "big") for k in n], pa.binary(4)),
            "large": pa.array([f"large {k}" for k in n], pa.large_string()),
            "seconds": pa.array(times, pa.timestamp("s")),
            "clock": pa.array(n, pa.int64()).cast(pa.time64("us")),
            "took": pa.array(n, pa.int64()).cast(pa.duration("us")),
            "list": [[k, None] if k % 4 else [] for k in n],
            "struct": [{"a": k, "b": {"c": str(k)}} if k % 4 else None for k in n],
            "coded": pa.array([f"code {k % 5}" for k in n]).dictionary_encode(),
        }
    )


def records(found: Any) -> pa.Table:
    return pa.concat_tables(pa.Table.from_struct_array(batch.column("record")) for batch in found)


def write(path: Path, **options: Any) -> pa.Table:
    made = table()
    pq.write_table(made, path, data_page_size=3000, write_batch_size=100, write_page_index=True, **options)
    return pq.read_table(path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_records_are_those_that_arrow_reads(codec: str, version: str, dictionary: bool, tmp_path: Path) -> None:
    path = tmp_path / "kinds.parquet"
    options: dict[str, Any] = {"use_dictionary": dictionary, "dictionary_pagesize_limit": 8000}
    options |= {"store_decimal_as_integer": codec in {"snappy", "gzip"}}
    whole = write(path, compression=codec, data_page_version=version, row_group_size=2500, **options)
    dense = (range(0, ROWS, 9), range(0, ROWS, 3)) if codec == "zstd" else ()  # of a third, Arrow reads chunks
    for wanted in (WANTED, WANTED[2:3], *dense):
        found = records(bloomcli.find(path, list(wanted), column="id"))
        expected = whole.take(list(wanted))
        assert found.schema.names == expected.schema.names
        for name in expected.column_names:
            assert found[name].to_pylist() == expected[name].to_pylist(), name
            assert found[name].type == expected[name].type, name


def test_bytes_that_are_not_utf8_are_given_as_arrow_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "latin.parquet"
    text = pa.array([b"caf\xe9 %d" % n for n in range(ROWS)], pa.binary())
    buffers = text.buffers()
    wrong = pa.Array.from_buffers(pa.string(), ROWS, buffers)
    pq.write_table(pa.table({"id": range(ROWS), "text": wrong}), path, data_page_size=3000, write_page_index=True)
    found = records(bloomcli.find(path, 4000, column="id"))
    assert found["text"].cast(pa.binary()).to_pylist() == [b"caf\xe9 4000"]


@pytest.mark.parametrize("stored", [False, True], ids=["", "with Arrow's schema"])
def test_enums_are_text_at_any_depth(tmp_path: Path, stored: bool) -> None:
    def enums(metadata: Fields) -> None:
        for element in metadata[2][1].values:
            if element.get(6) == (I32, 0):  # UTF8
                element[6] = (I32, 4)
                element[10] = (STRUCT, {4: element[10][1][1]})

    path = tmp_path / "a.parquet"
    sizes = ["größer" if k % 9 == 0 else "small" for k in range(ROWS)]
    rows = [{"id": k, "size": v, "list": [v, None], "pair": {"a": v, "n": k}} for k, v in enumerate(sizes)]
    pq.write_table(pa.Table.from_pylist(rows), path, store_schema=stored)
    footers.edit_file(path, path, enums)
    assert stored or pa.types.is_binary(pq.read_schema(path).field("size").type)
    assert records(bloomcli.find(path, [3, 4500], column="id")).to_pylist() == [rows[3], rows[4500]]
    assert records(bloomcli.find(path, "größer", column="size", limit=1)).to_pylist() == [rows[0]]


def test_damaged_pages_are_an_error_and_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    write(path, **options)
    data = bytearray(path.read_bytes())
    at = data.index("naïve 2501".encode())
    data[at] ^= 1
    path.write_bytes(data)
    found = bloomcli.find(path, 2501, column="id", select=["text"])
    assert list(found) == []
    assert [error.exit_code for error in found.report.errors] == [3]
    again = records(bloomcli.find(path, 4999, column="id", select=["text"]))
    assert again["text"].to_pylist() == ["naïve 4999"]


def int96_file(path: Path, times: list[dt.datetime | None]) -> Path:
    """Times as INT96, as Spark writes them by default, in row groups of 500 rows."""
    found = pa.table({"id": range(len(times)), "time": pa.array(times, pa.timestamp("us"))})
    pq.write_table(found, path, use_deprecated_int96_timestamps=True, row_group_size=500, use_dictionary=False,
                   compression="none", write_page_index=True)  # fmt: skip
    return path


@pytest.mark.parametrize("last", [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2262, 4, 12)])
def test_int96_timestamps_beyond_nanoseconds_are_those_of_the_file(tmp_path: Path, last: dt.datetime) -> None:
    times = [None if k % 3 == 1 else last if k % 10 == 0 else EPOCH + dt.timedelta(hours=k) for k in range(2000)]
    path = int96_file(tmp_path / "f.parquet", times)
    for wanted in ([10], [9, 10, 1500], list(range(0, 2000, 7))):
        found = bloomcli.find(path, wanted, column="id")
        records = [row["record"] for batch in found for row in batch.to_pylist()]
        assert found.report.errors == ()
        assert [one["id"] for one in records] == wanted
        shown = [one["time"] and one["time"].replace(tzinfo=None) for one in records]
        assert shown == [times[number] for number in wanted]


def test_int96_timestamps_within_other_types_are_instants_as_those_at_the_top(tmp_path: Path) -> None:
    """Of one file with a time beyond nanoseconds, and of several files, whose rows have one type."""
    path, far = tmp_path / "f.parquet", dt.datetime(9999, 12, 31)
    time = pa.array([far], pa.timestamp("us"))
    some = {
        "time": time,
        "in_struct": pa.StructArray.from_arrays([time, pa.array([1])], ["t", "n"]),
        "in_list": pa.array([[far]], pa.list_(time.type)),
        "in_map": pa.array([[("k", far)]], pa.map_(pa.string(), time.type)),
    }
    pq.write_table(pa.table({"id": [1], **some}), path, use_deprecated_int96_timestamps=True)
    near = int96_file(tmp_path / "near.parquet", [EPOCH])
    instant = far.replace(tzinfo=dt.UTC)
    wanted = {"time": instant, "in_struct": {"t": instant, "n": 1}, "in_list": [instant], "in_map": [("k", instant)]}
    for paths in ([path], [path, near]):
        found = [row["record"] for batch in bloomcli.find(paths, 1, column="id") for row in batch.to_pylist()]
        assert found == [{"id": 1, **wanted}]


def test_int96_timestamps_that_no_type_holds_are_an_error(tmp_path: Path) -> None:
    path = int96_file(tmp_path / "f.parquet", [EPOCH + dt.timedelta(hours=k) for k in range(500)])
    day = (EPOCH.date() - dt.date(1970, 1, 1)).days + 2440588
    data, kept = path.read_bytes(), (3 * 3600 * 10**9).to_bytes(8, "little") + day.to_bytes(4, "little")
    nanos = (3 * 3600 * 10**9 + 7).to_bytes(8, "little") + (5373484).to_bytes(4, "little")
    assert data.count(kept) == 1
    path.write_bytes(data.replace(kept, nanos))
    found = bloomcli.find(path, [3], column="id")
    assert list(found) == []
    (error,) = found.report.errors
    assert "no type of Arrow holds both" in str(error.error)
    (batch,) = bloomcli.find(path, [3], column="id", select=["id"])
    assert batch.column("record").to_pylist() == [{"id": 3}]
