"""The summary of a column equals what pyarrow reads from the same metadata, without wrong statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.golden import RULE_PAIRS

import bloomcli
from bloomcli.formats.answer import WRONG
from bloomcli.formats.column_facts import MISORDERED, UNORDERED, merged_bounds
from bloomcli.model.file import Column, ColumnSummary

TABLE = pa.table(
    {
        "id": pa.array([i - 700 if i % 9 else None for i in range(1000)], pa.int64()),
        "small": pa.array([i % 300 for i in range(1000)], pa.uint16()),
        "price": pa.array([i / 7 - 20 for i in range(1000)]),
        "name": pa.array([f"name {i % 40}" for i in range(1000)]),
        "raw": pa.array([bytes([i % 256, 0xFF]) for i in range(1000)]),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 1,000 rows in 5 row groups, without filters."""
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=200)
    return tmp_path / "a.parquet"


def by_name(path: Path, **options: Any) -> dict[str, ColumnSummary]:
    """The columns of a file."""
    return {column.column: column for column in bloomcli.inspect(path, **options).by_column}


def test_only_chosen_columns_are_summed_up(path: Path) -> None:
    assert list(by_name(path, columns=["name", "id"])) == ["id", "name"]
    assert list(by_name(path, exclude=["id"])) == TABLE.column_names[1:]


def test_bounds_that_the_filter_contradicts_are_not_shown() -> None:
    broken = [c for c in bloomcli.inspect(RULE_PAIRS / "value-missing" / "broken.parquet").by_column if c.untrusted]
    assert broken
    for column in broken:
        assert (column.min, column.max, column.no_bounds) == (None, None, WRONG)
    sound = bloomcli.inspect(RULE_PAIRS / "value-missing" / "sound.parquet").by_column
    assert all(column.no_bounds is None for column in sound)
    assert any(column.min is not None for column in sound)


INT = Column(path="a", index=0, physical="INT32")


def packed(*values: int) -> list[bytes | None]:
    """PLAIN int32s."""
    return [value.to_bytes(4, "little", signed=True) for value in values]


def test_a_minimum_above_its_maximum_makes_all_bounds_unknown() -> None:
    assert merged_bounds(packed(1, 9), packed(2, 8), INT).problem == MISORDERED
    assert merged_bounds(packed(1, 7), packed(2, 8), INT)[:2] == (packed(1)[0], packed(8)[0])


def test_bounds_of_another_width_than_the_types_are_not_shown() -> None:
    found = merged_bounds([b"\0\0"], packed(5), INT)
    assert found.low is None
    assert found.problem == UNORDERED


def test_a_row_group_without_bounds_makes_those_of_the_column_unknown() -> None:
    found = merged_bounds([*packed(1), None], packed(2, 3), INT)
    assert (found.low, found.high, found.problem) == (None, packed(3)[0], None)


def test_unsigned_and_negative_values_compare_as_such() -> None:
    unsigned = Column(path="a", index=0, physical="INT32", signed=False)
    assert merged_bounds(packed(-1, 5), packed(-1, 6), unsigned)[:2] == (packed(5)[0], packed(-1)[0])
    assert merged_bounds(packed(-1, 5), packed(-1, 6), INT)[:2] == (packed(-1)[0], packed(6)[0])


def test_columns_without_statistics_and_of_only_nulls_have_no_bounds(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([None] * 10, pa.int32()), "v": pa.array(range(10))})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=["n"])
    found = by_name(tmp_path / "a.parquet")
    assert (found["n"].nulls, found["n"].min, found["n"].no_bounds) == (10, None, None)
    assert (found["v"].nulls, found["v"].min, found["v"].no_bounds) == (None, None, None)


@pytest.mark.parametrize("key", ["legacyDateTime", "legacyINT96", "timeZone"])
def test_files_with_dates_that_spark_moves_are_named(tmp_path: Path, key: str) -> None:
    table = pa.table({"day": [1]}).replace_schema_metadata({f"org.apache.spark.{key}": ""})
    pq.write_table(table, tmp_path / "a.parquet")
    names = [name for name, _ in bloomcli.inspect(tmp_path / "a.parquet").details]
    assert names == ["calendar"] * key.startswith("legacy")
