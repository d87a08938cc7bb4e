"""The records of a few rows, of which find reads some pages, have the values and types of a whole read."""

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

ROWS = 2000
WANTED = (0, 1, 777, 1000, 1001, 1999)
LAYOUTS: dict[str, dict[str, Any]] = {
    "dictionaries, not compressed": {"compression": "none"},
    "some dictionaries, decimals as integers": {
        "compression": "snappy",
        "use_dictionary": ["few", "text"],
        "store_decimal_as_integer": True,
    },
    "version 2, plain": {"compression": "zstd", "data_page_version": "2.0", "use_dictionary": False},
    "version 2, dictionaries": {"compression": "gzip", "data_page_version": "2.0", "store_decimal_as_integer": True},
    "plain, checksums": {"compression": "brotli", "use_dictionary": False, "write_page_checksum": True},
    "INT96": {"compression": "lz4", "use_deprecated_int96_timestamps": True},
}
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
            "small": pa.array([decimal.Decimal(k - 1000) / 4 for k in n], pa.decimal128(7, 2)),
            "long": pa.array(
                [None if k % 7 == 2 else decimal.Decimal(1000 - k) * 10**20 for k in n], pa.decimal128(38)
            ),
            "fixed": pa.array([k.to_bytes(4, "big") for k in n], pa.binary(4)),
            "large": pa.array([f"large {k}" for k in n], pa.large_string()),
            "seconds": pa.array(times, pa.timestamp("s")),
            "clock": pa.array(n, pa.int64()).cast(pa.time64("us")),
            "took": pa.array(n, pa.int64()).cast(pa.duration("us")),
            "list": [[k, None] if k % 4 else [] for k in n],
            "struct": [{"a": k, "b": {"c": str(k)}} if k % 4 else None for k in n],
            "coded": pa.array([f"code {k % 5}" for k in n]).dictionary_encode(),
            "view": pa.array([f"a view of {k}" for k in n], pa.string_view()),
            "half": pa.array([float(k % 50) for k in n], pa.float32()).cast(pa.float16()),
            "map": pa.array([[(f"k{k}", k)] for k in n], pa.map_(pa.string(), pa.int64())),
            "with.dot": [None if k % 3 == 1 else k / 3 for k in n],
            "nothing": pa.nulls(ROWS),
        }
    )


def records(found: Any) -> pa.Table:
    return pa.concat_tables(pa.Table.from_struct_array(batch.column("record")) for batch in found)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_records_are_those_that_arrow_reads(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "kinds.parquet"
    pages = {"data_page_size": 1000, "write_batch_size": 50, "dictionary_pagesize_limit": 8000}
    pq.write_table(table(), path, row_group_size=1000, write_page_index=True, **pages, **LAYOUTS[layout])
    whole = pq.read_table(path)
    whole = whole.set_column(whole.column_names.index("view"), "view", whole["view"].cast(pa.string()))
    for wanted in (WANTED, WANTED[2:3], range(0, ROWS, 9), range(0, ROWS, 3)):  # of a third, Arrow reads chunks
        found = records(bloomcli.find(path, list(wanted), column="id"))
        expected = whole.take(list(wanted))
        assert found.schema.names == expected.schema.names
        for name in expected.column_names:
            assert found[name].to_pylist() == expected[name].to_pylist(), name
            assert found[name].type == expected[name].type, name


def test_pages_without_the_rows_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = pa.table({"id": range(100_000), "text": [f"{n:050d}" for n in range(100_000)]})
    pq.write_table(data, path, write_page_index=True, use_dictionary=False, compression="none", data_page_size=10_000)
    found = bloomcli.find(path, [5, 70_000], column="id")
    assert records(found).to_pylist() == data.take([5, 70_000]).to_pylist()
    assert found.report.bytes_read < 400_000
    assert path.stat().st_size > 5_000_000


def test_bytes_that_are_not_utf8_are_given_as_arrow_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "latin.parquet"
    text = pa.array([b"caf\xe9 %d" % n for n in range(ROWS)], pa.binary())
    buffers = text.buffers()
    wrong = pa.Array.from_buffers(pa.string(), ROWS, buffers)
    pq.write_table(pa.table({"id": range(ROWS), "text": wrong}), path, data_page_size=3000, write_page_index=True)
    found = records(bloomcli.find(path, 1400, column="id"))
    assert found["text"].cast(pa.binary()).to_pylist() == [b"caf\xe9 1400"]


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
    assert records(bloomcli.find(path, [3, 1800], column="id")).to_pylist() == [rows[3], rows[1800]]
    assert records(bloomcli.find(path, "größer", column="size", limit=1)).to_pylist() == [rows[0]]


def test_damaged_pages_of_other_rows_do_not_matter_and_those_of_the_row_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = pa.table({"id": range(10_000), "text": [f"{n:050d}" for n in range(10_000)]})
    pq.write_table(data, path, write_page_index=True, use_dictionary=False, compression="none", data_page_size=10_000)
    content = path.read_bytes()
    at = content.index(b"%050d" % 6000)
    begin = content.rindex(b"\x15\x00\x15", 0, at)  # the page's header
    path.write_bytes(content[:begin] + b"\xff" * 9 + content[begin + 9 :])
    found = bloomcli.find(path, 5, column="id")
    assert records(found).to_pylist() == data.take([5]).to_pylist()
    found = bloomcli.find(path, 6000, column="id")
    assert list(found) == []
    (error,) = found.report.errors
    assert "row_groups[0].columns[1]" in str(error.error)


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
