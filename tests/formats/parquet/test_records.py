"""Rows that are read by position have the values and types of a whole read, by pages or by chunks."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli

ROWS: Final = 4000
DAY: Final = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "dictionary": {},
    "plain, version 2": {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"},
    "uncompressed": {"compression": "none", "use_dictionary": ["category", "text"]},
    "checksums": {"write_page_checksum": True},
    "INT96": {"use_deprecated_int96_timestamps": True},
}


def table() -> pa.Table:
    """A table with columns of many types; a third of the values is null."""
    values = {
        "id": pa.array(range(ROWS), pa.int64()),
        "narrow": pa.array([n % 100 for n in range(ROWS)], pa.uint8()),
        "text": pa.array([f"käse {n % 300}" for n in range(ROWS)]),
        "view": pa.array([f"a view of {n}" for n in range(ROWS)], pa.string_view()),
        "large": pa.array([f"{n}" * 5 for n in range(ROWS)], pa.large_string()),
        "category": pa.array([f"c{n % 7}" for n in range(ROWS)]).dictionary_encode(),
        "half": pa.array([float(n % 50) for n in range(ROWS)]).cast(pa.float16()),
        "money": pa.array([Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(12, 2)),
        "day": pa.array([DAY.date() + dt.timedelta(days=n) for n in range(ROWS)]),
        "zoned": pa.array([DAY + dt.timedelta(seconds=n) for n in range(ROWS)], pa.timestamp("us", "Europe/Berlin")),
        "nanos": pa.array([DAY + dt.timedelta(seconds=n) for n in range(ROWS)], pa.timestamp("ns")),
        "long": pa.array([dt.timedelta(seconds=n) for n in range(ROWS)], pa.duration("ms")),
        "flag": pa.array([n % 3 == 0 for n in range(ROWS)]),
        "fixed": pa.array([b"%05d" % n for n in range(ROWS)], pa.binary(5)),
        "with.dot": pa.array([n / 3 for n in range(ROWS)]),
        "place": pa.array([{"city": f"c{n}", "zip": n} for n in range(ROWS)]),
        "tags": pa.array([[f"t{n}"] * (n % 3) for n in range(ROWS)]),
        "map": pa.array([[(f"k{n}", n)] for n in range(ROWS)], pa.map_(pa.string(), pa.int64())),
        "nothing": pa.nulls(ROWS),
    }
    kept = pa.array([n if n % 3 != 1 else None for n in range(ROWS)])
    without = {"id", "view", "nothing", "category"}
    values = {name: array if name in without else array.take(kept) for name, array in values.items()}
    schema = [pa.field(name, array.type, nullable=name != "id") for name, array in values.items()]
    return pa.table(list(values.values()), schema=pa.schema(schema, metadata={"a": "b"}))


@pytest.fixture(scope="module", params=LAYOUTS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "f.parquet"
    options = LAYOUTS[request.param]
    pq.write_table(
        table(), path, row_group_size=2000, write_page_index=True, data_page_size=200, write_batch_size=50, **options
    )
    return path


def whole_read(file: Path, rows: list[int], columns: list[str] | None = None) -> pa.Table:
    """Rows of a table, without view types, which `take` doesn't support."""
    found = pq.read_table(file, columns=columns)
    kinds = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in found.schema]
    return found.cast(pa.schema(kinds)).take(rows)


@pytest.mark.parametrize("count", [1, 3, 40, 1900])
def test_rows_are_those_of_a_whole_read(file: Path, count: int) -> None:
    rng = random.Random(count)
    wanted = sorted(rng.sample(range(ROWS), count))
    found = bloomcli.find(file, wanted, column="id")
    batches = list(found)
    whole = whole_read(file, wanted)
    assert [row for batch in batches for row in batch.column("record").to_pylist()] == whole.to_pylist()
    for batch in batches:
        fields = [(field.name, field.type) for field in batch.schema.field("record").type]
        assert fields == [(field.name, field.type) for field in whole.schema]


@pytest.mark.parametrize("name", [field.name for field in table().schema if field.name not in {"place", "map"}])
def test_one_column_is_read_by_pages(file: Path, name: str) -> None:
    found = bloomcli.find(file, [7, 1900, 3999], column="id", select=[name])
    whole = whole_read(file, [7, 1900, 3999], [name])
    assert [row for batch in found for row in batch.column("record").to_pylist()] == whole.to_pylist()


def test_pages_without_the_rows_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = pa.table({"id": range(100_000), "text": [f"{n:050d}" for n in range(100_000)]})
    pq.write_table(data, path, write_page_index=True, use_dictionary=False, compression="none", data_page_size=10_000)
    found = bloomcli.find(path, [5, 70_000], column="id")
    assert [row for batch in found for row in batch.column("record").to_pylist()] == data.take(
        [5, 70_000]
    ).to_pylist()
    assert found.report.bytes_read < 300_000
    assert path.stat().st_size > 5_000_000


def test_damaged_pages_of_other_rows_do_not_matter_and_those_of_the_row_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = pa.table({"id": range(10_000), "text": [f"{n:050d}" for n in range(10_000)]})
    pq.write_table(data, path, write_page_index=True, use_dictionary=False, compression="none", data_page_size=10_000)
    content = path.read_bytes()
    at = content.index(b"%050d" % 6000)
    begin = content.rindex(b"\x15\x00\x15", 0, at)  # the page's header
    path.write_bytes(content[:begin] + b"\xff" * 9 + content[begin + 9 :])
    found = bloomcli.find(path, 5, column="id")
    assert [row for batch in found for row in batch.column("record").to_pylist()] == data.take([5]).to_pylist()
    found = bloomcli.find(path, 6000, column="id")
    assert list(found) == []
    (error,) = found.report.errors
    assert "row_groups[0].columns[1]" in str(error.error)
