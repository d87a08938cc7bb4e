"""find: the rows that it returns, their order and form, the bytes that it reads for them, and errors."""

from __future__ import annotations

import os
import shutil
import struct
import threading
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.found_lake import FILES, GROUP, ROWS, made, place_of
from support.wrong_statistics import lying

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.formats import arrays
from bloomcli.formats.parquet import page_decoder


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("lake"))


def rows_of(found: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize("jobs", [1, 3])
def test_rows_come_in_the_order_of_files_and_rows_with_their_records(lake: Path, jobs: int) -> None:
    wanted = [5, 4000, 7999, 6, 123456]
    found = bloomcli.find(lake, wanted, column="id", select=["id", "place"], jobs=jobs)
    rows = rows_of(found)
    places = sorted((*place_of(n), n) for n in wanted if n < FILES * ROWS)
    assert [(row["path"], row["row"], row["record"]["id"]) for row in rows] == [
        (f"{lake}/day={file}/part.parquet", at, number) for file, at, number in places
    ]
    assert [row["row_group"] for row in rows] == [at // GROUP for _, at, _ in places]
    assert [row["value"] for row in rows] == [str(number) for _, _, number in places]
    assert rows[0]["record"].keys() == {"id", "place"}
    assert rows[0]["record"]["place"].keys() == {"city", "zip"}
    report = found.report
    assert (report.files, report.files_found, report.rows, report.skipped) == (
        FILES,
        len({p[0] for p in places}),
        4,
        1,
    )
    assert report.exit_code == 0


def test_only_pages_that_can_have_a_value_are_read(lake: Path, tmp_path: Path) -> None:
    ordered = pa.table({"id": range(50_000), "name": ["x" * 50] * 50_000})
    path = tmp_path / "ordered.parquet"
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "data_page_size": 4000}
    pq.write_table(ordered, path, row_group_size=25_000, write_page_index=True, write_batch_size=100, **options)
    found = bloomcli.find(path, 30_000, column="id", select=["id"])
    assert [row["row"] for row in rows_of(found)] == [30_000]
    assert (found.report.row_groups_possible, found.report.row_groups_read, found.report.pages_read) == (1, 1, 1)
    assert found.report.pages_left_out > 40
    size = path.stat().st_size
    assert found.report.bytes_read < found.report.scan_bytes < size
    nothing = bloomcli.find(lake, 123_456, column="id")
    assert rows_of(nothing) == []
    assert nothing.report.row_groups_read == 0
    assert nothing.report.exit_code == 1


def test_a_limit_ends_the_search(lake: Path) -> None:
    found = bloomcli.find(lake, "name 3", column="name", limit=250, jobs=2)
    rows = rows_of(found)
    assert [row["row"] for row in rows] == [n % ROWS for n in range(3, FILES * ROWS, 10)][:250]
    assert found.report.limited
    assert found.report.files < FILES


@pytest.mark.slow
def test_many_values_are_looked_up_in_batches_with_the_same_rows(lake: Path) -> None:
    wanted = list(range(0, 100_000, 3))
    found = bloomcli.find(lake, pa.array(wanted), column="id", select=["id"])
    rows = rows_of(found)
    assert sorted(row["record"]["id"] for row in rows) == list(range(0, FILES * ROWS, 3))
    assert all(int(row["value"]) == row["record"]["id"] for row in rows)
    names = bloomcli.find(lake, pa.array([f"name {n}" for n in range(5, 900)]), column="name", select=["name"])
    assert sum(batch.num_rows for batch in names) == FILES * ROWS // 2
    outside = bloomcli.find(lake, pa.array(range(10**6, 2 * 10**6)), column="id")
    assert rows_of(outside) == []
    assert outside.report.row_groups_possible == 0, "min/max rule them out"


def test_pages_are_decoded_some_at_a_time(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_of(bloomcli.find(lake, ["name 3", "name 8"], column="name"))
    monkeypatch.setattr(page_decoder, "_TOGETHER_BYTES", 2000)
    assert rows_of(bloomcli.find(lake, ["name 3", "name 8"], column="name")) == whole


def test_statistics_that_a_filter_contradicts_are_not_trusted(tmp_path: Path) -> None:
    path = lying(tmp_path / "lies.parquet", blooms=True)
    for values in ([1500], list(range(1500, 3000))):
        report: Any = bloomcli.probe(path, values=values[:1], column="id")
        assert not report.absent_everywhere
        rows = rows_of(bloomcli.find(path, values, column="id"))
        assert [row["row"] for row in rows] == [n - 1000 for n in values if n < 2000]


def test_without_a_filter_statistics_are_believed_as_readers_do(tmp_path: Path) -> None:
    path = lying(tmp_path / "lies.parquet", blooms=False)
    for values in ([1500], list(range(1500, 3000))):
        assert rows_of(bloomcli.find(path, values, column="id")) == []


def test_pages_whose_minimum_exceeds_the_maximum_are_read(tmp_path: Path) -> None:
    path = tmp_path / "swapped.parquet"
    table = pa.table({"id": pa.array(range(1000, 2000), pa.int64())})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_page_index=True)
    data = path.read_bytes()
    low, high = struct.pack("<q", 1000), struct.pack("<q", 1999)
    tail = data[8068:].replace(low, b"_swapped").replace(high, low).replace(b"_swapped", high)
    path.write_bytes(data[:8068] + tail)
    assert [row["row"] for row in rows_of(bloomcli.find(path, 1234, column="id"))] == [234]


def test_an_offset_index_that_contradicts_the_pages_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "data_page_size": 800}
    table = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(table, path, write_page_index=True, write_batch_size=100, **options)
    data = path.read_bytes()
    # first_row_index 100 of the second page, zigzag, behind its size
    footer = int.from_bytes(data[-8:-4], "little")
    at = data.rindex(b"\xc8\x01", 0, len(data) - footer - 8)
    path.write_bytes(data[:at] + b"\xc6\x01" + data[at + 2 :])
    found = bloomcli.find(path, list(range(95, 130)), column="id")
    rows = [row["row"] for row in rows_of(found)]
    assert rows == list(range(95, 130))
    assert found.report.errors == ()


def test_damaged_pages_are_an_error_of_their_file_and_the_others_are_searched(lake: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lake, tmp_path / "lake")
    bad = copy / "day=1/part.parquet"
    data = bytearray(bad.read_bytes())
    data[4:40_000] = bytes(39_996)
    bad.write_bytes(data)
    found = bloomcli.find(copy, "name 3", column="name", select=["id"])
    rows = rows_of(found)
    assert {row["path"] for row in rows} == {f"{copy}/day={n}/part.parquet" for n in (0, 2, 3)}
    (error,) = found.report.errors
    assert error.path == str(bad)
    assert found.report.exit_code == 3


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([], {}, "no values"),
        ([1], {"column": ""}, "no column"),
    ],
)
def test_orders_without_sense_are_refused(
    lake: Path, values: list[int], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        bloomcli.find(lake, values, **({"column": "id"} | options))


def test_values_are_those_of_probe(lake: Path) -> None:
    (five,) = rows_of(bloomcli.find(lake, 5, column="id"))
    assert rows_of(bloomcli.find(lake, "0x5", column="id")) == [five | {"value": "0x5"}]
    impossible = bloomcli.find(lake, ["1.5", 10**30], column="id")
    assert rows_of(impossible) == []
    wrong = bloomcli.find(lake, "a word", column="id")
    assert rows_of(wrong) == []
    assert wrong.report.exit_code == 2
    assert "not a value of column id" in str(wrong.report.errors[0].error)


def test_no_thread_of_arrow_reads_records(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread aborts the process, with exit code 134, if it is in Python's code when Python ends."""
    readers: list[threading.Thread] = []
    read = arrays.SourceStream.read

    def noted(stream: Any, size: int = -1) -> bytes:
        readers.append(threading.current_thread())
        return read(stream, size)

    monkeypatch.setattr(arrays.SourceStream, "read", noted)
    assert rows_of(bloomcli.find(lake, 5, column="id", limit=1, jobs=1))
    assert set(readers) == {threading.current_thread()}


def test_a_name_that_is_no_utf_8_is_escaped_in_rows(lake: Path, tmp_path: Path) -> None:
    source = next(lake.rglob("*.parquet"))
    path = tmp_path / os.fsdecode(b"x\xff.parquet")
    path.write_bytes(source.read_bytes())
    value = pq.read_table(source, columns=["id"])["id"][0].as_py()
    rows = rows_of(bloomcli.find(path, value, column="id"))
    assert {row["path"] for row in rows} == {str(tmp_path / "x\\udcff.parquet")}


def test_columns_of_one_name_keep_their_values_where_pages_are_read(tmp_path: Path) -> None:
    count = 5000
    numbers = pa.array(range(count))
    texts = [pa.array([f"{letter}{n}" for n in range(count)]) for letter in "ab"]
    table = pa.Table.from_arrays([numbers, *texts], names=["id", "s", "s"])
    pq.write_table(table, tmp_path / "f.parquet", write_page_index=True, data_page_size=1000, use_dictionary=False)
    found = bloomcli.find(tmp_path / "f.parquet", 777, column="id")
    assert [row["record"] for batch in found for row in batch.to_pylist()] == [
        {"id": 777, "s": "a777", "s_1": "b777"}
    ]


@pytest.mark.parametrize("count", [1, 400])
def test_a_hexadecimal_number_that_is_too_large_is_no_negative_one(tmp_path: Path, count: int) -> None:
    pq.write_table(pa.table({"n": pa.array([-1, 5, 255], pa.int32())}), tmp_path / "f.parquet")
    others = [str(n) for n in range(1000, 1000 + count)]
    found = bloomcli.find(tmp_path / "f.parquet", ["0xFFFFFFFF", "0xff", *others], column="n")
    assert [row["row"] for batch in found for row in batch.to_pylist()] == [2]


@pytest.mark.parametrize("filtered", [False, True])
def test_decimals_with_more_digits_than_their_type_says_are_found(tmp_path: Path, filtered: bool) -> None:
    """pandas has written such columns; readers show their values."""
    path = tmp_path / "wide.parquet"
    wide = [Decimal("922337203685477580700.92230685477500000"), Decimal("1.00000000000000000")]
    stored = pa.array(wide, pa.decimal128(38, 17))
    narrow = pa.Array.from_buffers(pa.decimal128(36, 17), 2, stored.buffers())
    pq.write_table(pa.table({"d": narrow}), path)
    assert pq.read_table(path)["d"].to_pylist() == wide
    if filtered:
        bloomcli.add(path, "d", in_place=True)
    for row, value in enumerate(wide):
        (found,) = bloomcli.find(path, value, column="d")
        assert found["row"].to_pylist() == [row]
        assert not bloomcli.probe(path, value, column="d").absent_everywhere
    assert list(bloomcli.find(path, -wide[0], column="d")) == []
    assert list(bloomcli.find(path, "1e21", column="d")) == []
    assert list(bloomcli.find(path, "9" * 60, column="d")) == []
