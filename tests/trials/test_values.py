"""The values that a trial looks up: extremes, random values, and absent values."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bloomcli.errors import CorruptFile, UsageError
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source
from bloomcli.trials.columns import ColumnFile
from bloomcli.trials.texts import from_text, text_of
from bloomcli.trials.values import LookupValue, counted_values, sampled_values


def values_of(path: Path, column: str, wanted: int = 8, seed: int = 0) -> tuple[LookupValue, ...]:
    with open_source(path) as source:
        file = open_file(source)
        (found,) = [c for c in file.leaves if c.path == column]
        arrow = ColumnFile(str(path), file.format)
        return sampled_values(arrow, arrow.leaf(found), file.rows, wanted, seed)


def written(path: Path, values: Sequence[Any], kind: pa.DataType, *, rows: int = 50) -> Path:
    pq.write_table(pa.table({"c": pa.array(values, kind)}), path, row_group_size=rows)
    return path


def texts(found: Sequence[LookupValue], *, present: bool) -> set[str]:
    return {one.text for one in found if one.present == present}


def test_both_zeros_nan_and_the_bounds_come_first(tmp_path: Path) -> None:
    data = [-0.0, math.nan, math.inf, -3.5, 7.25, None] * 40 + [float(n) for n in range(1, 200)]
    found = values_of(written(tmp_path / "f.parquet", data, pa.float64()), "c", 6)
    assert texts(found, present=True) >= {"0.0", "-0.0", "nan", "-3.5", "inf"}
    assert {one.rows for one in found if one.text in {"0.0", "-0.0"}} == {40}


def test_the_empty_string_is_looked_up_and_null_never(tmp_path: Path) -> None:
    data = ["", None, "x", "yy"] * 50
    found = values_of(written(tmp_path / "f.parquet", data, pa.string()), "c")
    assert texts(found, present=True) == {"", "x", "yy"}
    assert [one.rows for one in found if one.text == ""] == [50]


def test_ends_of_row_groups_are_looked_up(tmp_path: Path) -> None:
    path = written(tmp_path / "f.parquet", list(range(1000)), pa.int64(), rows=250)
    assert texts(values_of(path, "c", 8), present=True) == {"0", "999", "249", "250", "499", "500", "749", "750"}


def test_a_damaged_page_gives_no_values(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"c": pa.array(range(1000), pa.int64())})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[data.index((500).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match=r"c: .*page integrity"):
        values_of(path, "c")


@pytest.mark.parametrize("seed", range(5))
def test_absent_values_are_not_in_the_column_and_lie_within_its_bounds_if_they_can(tmp_path: Path, seed: int) -> None:
    data = [n * 7 % 100_003 for n in range(5000)]
    found = values_of(written(tmp_path / "f.parquet", data, pa.int32(), rows=1000), "c", 10, seed)
    absent = [int(text) for text in texts(found, present=False)]
    assert len(absent) == 10
    assert not set(absent) & set(data)
    assert all(min(data) < number < max(data) for number in absent)


def test_a_column_that_has_every_value_between_its_bounds_gives_absent_ones_beyond(tmp_path: Path) -> None:
    found = values_of(written(tmp_path / "f.parquet", list(range(100)), pa.int64()), "c", 5)
    assert len(texts(found, present=False)) == 5
    assert all(int(text) > 99 for text in texts(found, present=False))


def test_counts_are_those_of_the_column(tmp_path: Path) -> None:
    data = [n % 17 for n in range(3000)]
    for one in values_of(written(tmp_path / "f.parquet", data, pa.int16(), rows=700), "c", 20):
        assert one.rows == Counter(data)[int(one.text)]


def test_the_same_seed_takes_the_same_values_and_another_one_others(tmp_path: Path) -> None:
    path = written(tmp_path / "f.parquet", [n * 31 for n in range(5000)], pa.int64(), rows=5000)
    assert values_of(path, "c", 8, 1) == values_of(path, "c", 8, 1)
    assert texts(values_of(path, "c", 8, 1), present=True) != texts(values_of(path, "c", 8, 2), present=True)


@pytest.mark.parametrize("name", ["parquet/spark_types.parquet", "orc/java_types.orc", "parquet/orders.parquet"])
def test_every_type_gives_values_that_bloom_reads_as_the_same(fixtures: Path, name: str) -> None:
    path = fixtures / name
    tried = 0
    with open_source(path) as source:
        file = open_file(source)
        arrow = ColumnFile(str(path), file.format)
        for column in file.leaves:
            if (
                column.max_repetition_level
                or "_elem" in column.path
                or "_key" in column.path
                or "._value" in column.path
            ):
                with pytest.raises(UsageError, match="list or a map"):
                    arrow.leaf(column)
                continue
            leaf = arrow.leaf(column)
            found = sampled_values(arrow, leaf, file.rows, 5, 0)
            assert any(one.present for one in found), column.path
            if column.physical.upper() == "BOOLEAN":
                continue
            for one in found:
                again = from_text(one.text, file.literal_column(column), leaf.type)
                assert again is not None
                assert text_of(again) == one.text
                (counted,) = counted_values(arrow, leaf, [again])
                assert counted.rows == one.rows, (column.path, one.text)
            tried += 1
    assert tried >= 4


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.decimal256(50, 2), Decimal("1.50"), "1.50"),
        (pa.float32(), 0.1, "0.1"),
        (pa.float16(), 0.5, "0.5"),
        (pa.binary(2), b"\x01\xff", "0x01ff"),
        (pa.time32("ms"), 1250, "00:00:01.25"),
        (pa.timestamp("ns", "UTC"), 1, "1970-01-01T00:00:00.000000001Z"),
        (pa.date32(), -719528, "0000-01-01"),
        (pa.uint64(), 2**64 - 1, str(2**64 - 1)),
    ],
)
def test_texts_are_those_that_probe_takes(kind: pa.DataType, value: Any, text: str) -> None:
    number = not isinstance(value, bytes | float | Decimal) and not pa.types.is_integer(kind)
    whole = pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
    assert text_of(pa.scalar(value, whole).cast(kind) if number else pa.scalar(value, kind)) == text


def test_columns_that_no_query_compares_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a.b": [1], "a": [{"b": 2}], "tags": [["x"]]}), path)
    with open_source(path) as source:
        file = open_file(source)
        arrow = ColumnFile(str(path), "parquet")
        for column in file.leaves:
            with pytest.raises(UsageError, match=f"column {column.path} can't be looked up"):
                arrow.leaf(column)


def test_absent_texts_lie_between_the_bounds_of_row_groups_even_if_all_texts_of_their_length_are_there(
    tmp_path: Path,
) -> None:
    users = [f"user-{number:05d}" for number in range(5000)]
    random.Random(1).shuffle(users)
    pq.write_table(pa.table({"c": users * 2}), tmp_path / "users.parquet", row_group_size=500)
    file = ColumnFile(str(tmp_path / "users.parquet"), "parquet")
    with open_source(tmp_path / "users.parquet") as source:
        leaf = file.leaf(open_file(source).leaves[0])
    values = sampled_values(file, leaf, 10_000, 20, 0)
    absent = [value.value.as_py() for value in values if not value.present]
    assert len(absent) == 20
    groups = [sorted(users[at : at + 500]) for at in range(0, 5000, 500)]
    for value in absent:
        assert value not in users
        assert any(group[0] <= value <= group[-1] for group in groups), value
