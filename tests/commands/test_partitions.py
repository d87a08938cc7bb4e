"""Columns of Hive's partitions: those of directories, with Spark's types."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from support.partition_types import NULL, TYPES

import bloomcli
from bloomcli.commands.options import FindOptions
from bloomcli.commands.partitions import with_partitions
from bloomcli.errors import UsageError
from bloomcli.storage.base import FileEntry
from bloomcli.storage.names import partition_of


def write(lake: Path, partition: str, table: dict[str, list[Any]], name: str = "part.parquet") -> Path:
    directory = lake / partition
    directory.mkdir(parents=True, exist_ok=True)
    (pq.write_table if name.endswith("t") else po.write_table)(pa.table(table), directory / name)
    return directory


def records(path: Any, value: str = "1", column: str = "id", **options: Any) -> pa.Table:
    found = bloomcli.find(path, value, column=column, **options)
    tables = [pa.Table.from_struct_array(batch.column("record")) for batch in found]
    assert found.report.failed == 0, found.report.errors
    return pa.concat_tables(tables)


@pytest.mark.parametrize(
    ("directory", "columns"),
    [
        ("/lake/day=1/hour=02", {"day": "1", "hour": "02"}),
        ("/lake/x=1/deep/hour=2", {"hour": "2"}),
        ("s3://lake/day=2024-01-01 10%3A00", {"day": "2024-01-01 10:00"}),
        (f"/lake/day={NULL}", {"day": None}),
        ("/lake/a%3Db=x%2Fy", {"a=b": "x/y"}),
        ("/lake/p=%C3%A4/q=%e4/r=%zz", {"p": "ä", "q": "ä", "r": "%zz"}),
        ("/lake/p=", {}),
        ("/lake/=p", {}),
        ("/lake/p=a=b", {"p": "a=b"}),
        ("/lake", {}),
    ],
)
def test_the_directories_above_a_file_are_columns(directory: str, columns: dict[str, str | None]) -> None:
    assert partition_of(f"{directory}/part.parquet") == columns


@pytest.mark.parametrize("values", TYPES, ids=str)
def test_types_are_those_that_spark_infers(values: tuple[str, ...]) -> None:
    listed = [FileEntry(f"/lake/p={value}/a.parquet", 1, "a.parquet", walked=True) for value in values]
    assert with_partitions(FindOptions(column="id"), listed).partitions == (("p", TYPES[values]),)


@pytest.mark.parametrize("file", ["part.parquet", "part.orc"])
def test_records_have_the_columns_of_their_directories(tmp_path: Path, file: str) -> None:
    for directory in ("day=2024-01-01/n=+1", f"day={NULL}/n=1e3", "day=2024-01-03/n=" + "9" * 20):
        write(tmp_path, directory, {"id": [1, 2], "x": ["a", "b"]}, file)
    found = records(tmp_path)
    assert found.schema.field("day").type == pa.date32()
    assert found.column_names == ["id", "x", "day", "n"]
    assert [(str(row["day"]), row["n"]) for row in found.to_pylist()] == [
        ("2024-01-01", Decimal(1)),
        ("2024-01-03", Decimal("9" * 20)),
        ("None", Decimal(1000)),
    ]


def test_a_directory_that_is_named_is_a_column_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write(tmp_path, "day=1", {"id": [1]})
    monkeypatch.chdir(directory)
    for path in (directory, directory / "part.parquet", ".", "part.parquet", tmp_path / "day=*"):
        assert records(path).to_pylist() == [{"id": 1, "day": 1}]


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        (["day"], ["day"]),
        (["d*"], ["day"]),
        (["day", "x"], ["x", "day"]),
        (["x"], ["x"]),
        (["*"], ["id", "x", "day"]),
        (["place.city", "day"], ["place", "day"]),
    ],
)
def test_select_names_columns_of_directories(tmp_path: Path, select: list[str], columns: list[str]) -> None:
    write(tmp_path, "day=5", {"id": [1, 1], "x": ["a", "b"], "place": [{"city": "c"}] * 2})
    found = records(tmp_path, select=select)
    assert [name for name in found.column_names if name != "place" or "place" in columns] == columns
    assert found["day"].to_pylist() == [5, 5] if "day" in columns else True
    with pytest.raises(AssertionError, match="no column 'dya'"):
        records(tmp_path, select=["dya"])


def test_the_directory_wins_over_a_column_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, "DAY=5", {"day": [1], "id": [1]})
    assert records(tmp_path).to_pylist() == [{"DAY": 5, "id": 1}]
    write(tmp_path, "DAY=x", {"day": [1], "id": [1]})
    assert records(tmp_path).to_pylist() == [{"DAY": "5", "id": 1}, {"DAY": "x", "id": 1}]


def test_a_column_of_directories_alone_is_not_searched_and_the_hint_says_what_is(tmp_path: Path) -> None:
    write(tmp_path, "day=2024-01-01", {"id": [1]})
    found = bloomcli.find(tmp_path, "2024-01-01", column="day")
    assert list(found) == []
    (error,) = found.report.errors
    assert error.exit_code == UsageError.exit_code
    assert "day is a partition column: its value is in the name of the directory day=2024-01-01" in str(error.error)
    assert error.hint == "name the directory day=2024-01-01 as the path, and look another column up"
    (failed,) = bloomcli.probe(tmp_path, 5, column="dya").rows
    assert failed.hint == "the file's columns: id; in the names of directories: day"


def test_a_column_of_both_is_searched_where_the_file_agrees_with_its_directory(tmp_path: Path) -> None:
    write(tmp_path, "day=007", {"day": [7, 7], "id": [1, 2]})
    assert records(tmp_path, "7", "day").to_pylist() == [{"day": 7, "id": 1}, {"day": 7, "id": 2}]
    write(tmp_path, "day=8", {"day": [7, 8], "id": [3, 4]})
    found = bloomcli.find(tmp_path, "7", column="day")
    assert sum(batch.num_rows for batch in found) == 2
    (error,) = found.report.errors
    assert "its column day has '7', and its directory says '8', which readers take" in str(error.error)


def test_csv_and_parquet_have_the_same_columns_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "lake", "day=1", {"id": [1]})
    from bloomcli.cli import run

    for value in ("1", "9"):
        assert run(
            ["find", str(tmp_path / "lake"), value, "-c", "id", "-f", "parquet", "-o", f"{tmp_path}/{value}", "-q"]
        ) in {0, 1}
    assert pq.read_schema(tmp_path / "1").equals(pq.read_schema(tmp_path / "9"))
    assert [field.name for field in pq.read_schema(tmp_path / "1").field("record").type] == ["id", "day"]
