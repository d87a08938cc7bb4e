"""Searches for many rows of a row group find the rows that Python finds, by keys of every type, in little memory."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.pagefiles import one_page

import bloomcli
from bloomcli.formats.parquet import page_decoder, records

ROWS = 4000
KINDS = 500
EPOCH = dt.datetime(2026, 1, 1)


def _decimal(n: int) -> decimal.Decimal:
    return decimal.Decimal(n - 250) / 4


KEYS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int8": (pa.int8(), lambda n: n % 256 - 128),
    "uint16": (pa.uint16(), lambda n: 65_535 - n),
    "int32": (pa.int32(), lambda n: n - 250),
    "uint32": (pa.uint32(), lambda n: 2**32 - 1 - n),
    "int64": (pa.int64(), lambda n: (n - 250) << 40),
    "float": (pa.float32(), lambda n: (n - 250) / 4),
    "double": (pa.float64(), lambda n: (n - 250) / 8),
    "string": (pa.string(), lambda n: f"naïve {n}" * (n % 5)),
    "binary": (pa.binary(), lambda n: n.to_bytes(2 + n % 12, "little") + b"\xff" * (n % 40)),
    "fixed": (pa.binary(8), lambda n: n.to_bytes(8, "big")),
    "large_string": (pa.large_string(), lambda n: f"large {n}"),
    "date": (pa.date32(), lambda n: (EPOCH + dt.timedelta(days=n)).date()),
    "time": (pa.time64("us"), lambda n: (EPOCH + dt.timedelta(microseconds=n)).time()),
    "millis": (pa.timestamp("ms"), lambda n: EPOCH + dt.timedelta(seconds=n)),
    "micros": (pa.timestamp("us", "UTC"), lambda n: (EPOCH + dt.timedelta(seconds=n)).replace(tzinfo=dt.UTC)),
    "decimal": (pa.decimal128(12, 2), _decimal),
    "long decimal": (pa.decimal128(38, 2), _decimal),
}


def text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def keys_of(made: Callable[[int], Any]) -> list[Any]:
    chosen = random.Random(7)
    return [None if chosen.random() < 0.1 else made(chosen.randrange(KINDS)) for _ in range(ROWS // 2)]


def found_in(path: Path, values: Sequence[str], **options: Any) -> tuple[list[int], pa.Table]:
    """The numbers of the matching rows, and their records."""
    found = bloomcli.find(path, values, column="key", jobs=1, **options)
    batches = list(found)
    assert not found.report.errors
    numbers = [number for batch in batches for number in batch["row"].to_pylist()]
    return numbers, pa.concat_tables(pa.Table.from_struct_array(batch["record"]) for batch in batches)


def bits_of(column: pa.ChunkedArray) -> list[Any]:
    """Values as their bits, so that zeros of both signs, and NaNs, can be compared."""
    if pa.types.is_floating(column.type):
        numbers = pa.int32() if column.type.bit_width == 32 else pa.int64()
        return [number for chunk in column.chunks for number in chunk.view(numbers).to_pylist()]
    return column.to_pylist()


def same(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema.names == expected.schema.names
    for name in expected.column_names:
        assert found[name].type == expected[name].type, name
        assert bits_of(found[name]) == bits_of(expected[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYS)
def test_rows_by_keys_of_every_type_are_those_with_an_equal_key(name: str, tmp_path: Path) -> None:
    kind, made = KEYS[name]
    keys = keys_of(made)
    present = sorted({text_of(key) for key in keys if key is not None})
    table = pa.table(
        {
            "key": pa.array(keys, kind),
            "list": [[n, None] if n % 4 else [] for n in range(len(keys))],
            "deep": [{"a": {"b": n}} if n % 5 else None for n in range(len(keys))],
            "note": [None if n % 6 == 0 else f"note {n % 90}" for n in range(len(keys))],
        }
    )
    layouts: dict[int, dict[str, Any]] = {  # Arrow decodes whole chunks where a third of the rows is read
        40: {"data_page_version": "2.0", "write_page_index": True},
        3: {"use_dictionary": False, "store_decimal_as_integer": True},
    }
    for share, layout in layouts.items():
        wanted = {text for text in present if text} & {*random.Random(share).sample(present, len(present) // share)}
        rows = [n for n, key in enumerate(keys) if key is not None and text_of(key) in wanted]
        assert len(rows) > 20
        path = tmp_path / f"{share}.parquet"
        options = {"data_page_size": 900, "write_batch_size": 64, "row_group_size": len(keys) // 2}
        pq.write_table(table, path, **options, **layout)
        for select in ((), ("note",)):
            numbers, found = found_in(path, sorted(wanted), select=select)
            assert numbers == rows
            same(found, pq.read_table(path, columns=list(select) or None).take(rows))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("wanted", ["0", "-0.0", "nan", "inf"])
def test_zeros_of_both_signs_and_nan_keep_their_bits(kind: pa.DataType, wanted: str, tmp_path: Path) -> None:
    values = [(0.0, -0.0, math.nan, 1.5, math.inf, None)[n % 6] for n in range(ROWS)]
    path = tmp_path / "floats.parquet"
    pq.write_table(pa.table({"key": pa.array(values, kind)}), path, data_page_size=900, write_batch_size=64)
    numbers, found = found_in(path, [wanted])
    rows = [n for n in range(ROWS) if n % 6 in {"0": (0, 1), "-0.0": (0, 1), "nan": (2,), "inf": (4,)}[wanted]]
    assert numbers == rows
    same(found, pq.read_table(path).take(rows))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=1, max_size=600),
    st.sets(st.integers(0, 70), min_size=1, max_size=40),
    st.booleans(),
    st.booleans(),
    st.integers(1, 60),
    st.sampled_from(["int", "text"]),
)
def test_any_rows_are_those_with_an_equal_key(
    tmp_path: Path,
    keys: list[int | None],
    wanted: set[int],
    dictionary: bool,
    index: bool,
    batch: int,
    kind: str,
) -> None:
    path = tmp_path / "any.parquet"
    made = [None if key is None else key if kind == "int" else f"key {key}" for key in keys]
    table = pa.table({"key": pa.array(made, pa.int32() if kind == "int" else pa.string()), "n": range(len(keys))})
    options: dict[str, Any] = {"use_dictionary": dictionary, "write_page_index": index}
    pq.write_table(table, path, data_page_size=100, write_batch_size=batch, row_group_size=250, **options)
    rows = [n for n, key in enumerate(keys) if key in wanted]
    found = bloomcli.find(path, [str(n) if kind == "int" else f"key {n}" for n in wanted], column="key", jobs=1)
    given = [(row["row"], row["record"]) for batch in found for row in batch.to_pylist()]
    assert given == [(n, {"key": made[n], "n": n}) for n in rows]


def test_fewer_rows_are_made_together_where_their_values_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.parquet"
    keys = [f"{n:04}" * (1 + n % 170) for n in range(ROWS)]
    table = pa.table({"key": keys, "note": [f"{n}" * (n % 300) for n in range(ROWS)]})
    pq.write_table(table, path, use_dictionary=["key"], data_page_size=20_000, write_batch_size=64)
    most = 20_000
    monkeypatch.setattr(records, "_BYTES_MOST", most)
    rows = list(range(0, ROWS, 12))
    found = list(bloomcli.find(path, [keys[n] for n in rows], column="key"))
    assert [number for batch in found for number in batch["row"].to_pylist()] == rows
    records_found = pa.concat_tables(pa.Table.from_struct_array(batch["record"]) for batch in found)
    same(records_found, table.take(rows))
    for batch in found:
        for name in table.column_names:
            sizes = [len(value) for value in batch["record"].field(name).to_pylist()]
            assert len(sizes) == 1 or sum(sizes) <= most
    assert len(found) > 10


@pytest.mark.slow
def test_few_rows_of_many_take_the_memory_of_some_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wide.parquet"
    count, wide = 120_000, 400
    texts = random.Random(3).randbytes(count * wide // 2).hex()
    notes = [texts[n * wide : (n + 1) * wide] for n in range(count)]
    table = pa.table({"key": range(count), "note": notes})
    pq.write_table(table, path, use_dictionary=False, row_group_size=count, data_page_size=1 << 20)

    def not_called(*_: Any, **__: Any) -> Any:
        raise AssertionError("whole chunks are decoded")

    monkeypatch.setattr(records.Records, "_whole", not_called)
    rows = range(0, count, 50)
    texts_wanted = [str(n) for n in rows]
    found = bloomcli.find(path, texts_wanted, column="key")
    tracemalloc.start()
    try:
        numbers = []
        before = pa.total_allocated_bytes()
        arrow = 0
        for batch in found:
            numbers += batch["row"].to_pylist()
            assert batch["record"].field("note")[-1].as_py() == notes[numbers[-1]]
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers == list(rows)
    assert peak + arrow < 30 << 20 < count * wide


def test_the_first_rows_are_given_without_the_other_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_decoder, "_TOGETHER_BYTES", 2000)
    path = tmp_path / "first.parquet"
    keys = [n * 7919 % ROWS for n in range(ROWS)]
    pq.write_table(pa.table({"key": keys}), path, use_dictionary=False, data_page_size=900, write_batch_size=64)
    wanted = [str(n) for n in range(0, ROWS, 9)]
    every, first = (bloomcli.find(path, wanted, column="key", limit=limit) for limit in (None, 3))
    some = [row for batch in first for row in batch.to_pylist()]
    assert some == [row for batch in every for row in batch.to_pylist()][:3]
    assert first.report.pages_read < 10 < every.report.pages_read


def test_a_run_of_billions_of_equal_values_is_not_found_one_by_one(tmp_path: Path) -> None:
    count = (1 << 31) - 1
    head = bytearray()
    left = count << 1
    while left:
        head.append(left & 0x7F | (0x80 if left >> 7 else 0))
        left >>= 7
    path = one_page(
        tmp_path / "run.parquet",
        b"\1" + bytes(head) + b"\0",
        "INT64",
        "RLE_DICTIONARY",
        count,
        dictionary=(7).to_bytes(8, "little"),
        entries=1,
    )
    found = bloomcli.find(path, 7, column="c")
    assert list(found) == []
    assert "at most" in (found.report.errors[0].error or "")
