"""`bloom find` in ORC files of other writers: its rows are those that ORC C++ and Spark read by scanning."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
# Arrow doesn't read geometries
FILES: Final = sorted(set(FIXTURES.glob("orc/*.orc")) - {FIXTURES / "orc" / "java_geometry.orc"})


def text_of(value: Any) -> str:
    """A value as it is given to bloom."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, float):
        return repr(value)
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def found_in(path: Path, texts: Iterable[str], column: str) -> list[dict[str, Any]]:
    found = bloomcli.find(path, list(texts), column=column, select=[column], jobs=1)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert not found.report.errors, found.report.errors
    return rows


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rows_of_every_column_are_those_of_orc_cpp(path: Path) -> None:
    check_columns(path)


def test_rows_of_files_by_older_writers_are_those_of_orc_cpp(corpus: Path) -> None:
    paths = sorted(corpus.glob("*.orc"))
    assert len(paths) >= 4
    for path in paths:
        check_columns(path)


def check_columns(path: Path) -> None:
    """Compare the rows of some values, and of many, of every column that isn't nested."""
    table = orc.read_table(path)
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_nested(kind) or (name == "secret" and "encrypted" in path.name):
            continue
        values = table.column(name).to_pylist()
        places: dict[Any, list[int]] = {}
        for at, value in enumerate(values):
            if value is not None:
                places.setdefault(value, []).append(at)
        chosen = list(places)
        for value in (*chosen[:2], *chosen[len(chosen) // 2 :][:1], *chosen[-2:]):
            rows = found_in(path, [text_of(value)], name)
            assert [row["row"] for row in rows] == places[value], (name, value)
            assert all(row["record"] == {name: value} for row in rows)
        if chosen:
            every = found_in(path, map(text_of, chosen[:400]), name)
            wanted = sorted(at for value in chosen[:400] for at in places[value])
            assert [row["row"] for row in every] == wanted


UNIONS: Final = (
    "struct<id:int,either:uniontype<int,string>,deep:struct<x:int,u:uniontype<string,timestamp>>,"
    "items:array<uniontype<int,struct<a:bigint>>>,far:timestamp>"
)


def test_values_within_unions_and_far_timestamps_are_found(tmp_path: Path) -> None:
    path = tmp_path / "u.orc"
    day = dt.datetime(2024, 1, 1)
    with path.open("wb") as file:
        writer = pyorc.Writer(file, UNIONS, row_index_stride=1000)
        for n in range(2500):  # no union is null: ORC C++ writes other values after 1,024 rows with nulls
            either = n % 90 if n % 3 else f"s{n % 90}"
            deep = (n, f"t{n}" if n % 2 else day + dt.timedelta(milliseconds=n))
            items = None if n % 13 == 1 else [n % 50, (n % 60,)][: n % 4]
            writer.write((n, either, deep, items, dt.datetime(1500, 1, 1) + dt.timedelta(days=n)))
        writer.close()
    given = {
        ("either.0", "40"): lambda n: n % 3 and n % 90 == 40,
        ("either.1", "s42"): lambda n: not n % 3 and n % 90 == 42,
        ("deep.u.0", "t2001"): lambda n: n == 2001,
        ("deep.u.1", "2024-01-01T00:00:01.5"): lambda n: n == 1500,
        ("items._elem.0", "7"): lambda n: n % 13 != 1 and n % 4 > 0 and n % 50 == 7,
        ("items._elem.1.a", "58"): lambda n: n % 13 != 1 and n % 4 > 1 and n % 60 == 58,
        ("far", "1501-05-16"): lambda n: n == 500,
    }
    for (column, value), there in given.items():
        for select in (["id"], ["id", "far"], []):
            found = bloomcli.find(path, value, column=column, select=select, jobs=1)
            rows = [row for batch in found for row in batch.to_pylist()]
            assert not found.report.errors, found.report.errors
            wanted = [n for n in range(2500) if there(n)]
            assert wanted
            assert [row["row"] for row in rows] == wanted, column
            assert [row["record"]["id"] for row in rows] == wanted
            if select != ["id"]:
                days = [dt.datetime(1500, 1, 1) + dt.timedelta(days=n) for n in wanted]
                assert [row["record"]["far"] for row in rows] == days


@pytest.mark.spark
@pytest.mark.parametrize("name", ["java_types", "cpp_types"])
def test_records_are_those_that_a_scan_by_spark_gives(spark: SparkSession, name: str) -> None:
    path = FIXTURES / f"orc/{name}.orc"
    frame = spark.read.orc(str(path))
    columns = ["tiny", "whole", "big", "wide", "cents", "huge", "text", "day"]
    if name != "cpp_types":  # Spark fails at timestamps before 1970 of Arrow's writer, whose nanoseconds are negative
        columns.append("moment")
    *scanned, tags = zip(*frame.select(*columns, "tags" if "java" in name else "items").collect(), strict=True)
    for column, values in zip(columns, scanned, strict=True):
        value = [known for known in values if known is not None][100]
        rows = found_in(path, [text_of(value)], column)
        assert [row["row"] for row in rows] == [at for at, other in enumerate(values) if other == value]
    wanted = next(tag for row in tags[50:] if row for tag in row if tag is not None)
    column = "tags._elem" if "java" in name else "items._elem"
    rows = found_in(path, [text_of(wanted)], column)
    assert [row["row"] for row in rows] == [at for at, row in enumerate(tags) if row and wanted in row]
