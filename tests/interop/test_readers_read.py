"""The engines that read Parquet return the same rows before and after `bloom add`, for every type of every writer.

Each engine asks in its own types for values that are there and for values that lie between them, with its use of
filters on. Where it looks filters up, its own counters have to say that row groups were skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support import clickhouse, engine_scans, other_writers, spark_scan
from support.other_writers import WRITERS

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

PRESENT = (1718, 2048, 3998)
ABSENT = (1719, 2001)
READERS = ("duckdb", "datafusion", "clickhouse")
"""Those that look filters up, and read every writer's files."""
OTHERS = [("polars", "arrow_integers"), ("polars", "duckdb"), ("arrow", "polars"), ("arrow", "clickhouse")]
FPP = 0.0001

LOST = {"float16", "f16", "decimal50", "d76"}
"""Columns whose rows DuckDB would lose by any filter: `add` leaves them out of a pattern."""
UNREADABLE = {
    "datafusion": {"int128"},
    "polars": {"decimal50", "d76", "interval"},
    "arrow": {"int128"},
    "spark": {
        *("float16", "decimal50", "uuid", "time32", "time64", "time64_ns", "id", "clock", "d76", "f16", "interval"),
    },
}
"""Columns for which a reader refuses a file, or the column, with filters and without."""
INCOMPARABLE = {"arrow": {"float16", "f16", "uuid"}, "datafusion": {"interval"}}
"""Columns that a reader reads, and has no equality, or its Python package no literal, for."""

PRUNED = {
    "duckdb": (
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "string"),
        *(
            "large_string",
            "binary",
            "large_binary",
            "fixed",
            "uuid",
            "date32",
            "date64",
            "time32",
            "time64",
            "time64_ns",
        ),
        *(f"timestamp_{unit}{zone}" for unit in ("s", "ms", "us", "ns") for zone in ("", "_utc")),
        *("duration", "dictionary", *other_writers.PAIR),
    ),
    "datafusion": (
        *("int32", "int64", "uint32", "uint64", "float32", "float64", "decimal9", "decimal18", "decimal30"),
        *("decimal38", "string", "large_string", "binary", "large_binary", "fixed", "dictionary"),
    ),
    "clickhouse": (
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string", "large_string"),
        *("binary", "large_binary", "fixed", "duration", "dictionary", *other_writers.PAIR),
    ),
}
"""Columns by which a reader skips row groups of Arrow's file without dictionaries: these at least."""


class Files(NamedTuple):
    """Rows of even numbers without filters, with ours, with them folded, without them again; rows of odd numbers."""

    columns: tuple[str, ...]
    bare: Path
    ours: Path
    folded: Path
    removed: Path
    others: Path


def files(folder: Path, writer: str, reader: str) -> Files:
    """A writer's files of what the reader can read. Made once."""
    known = WRITERS[writer].columns
    without = [column for column in known if column in UNREADABLE.get(reader, ())]
    columns = tuple(column for column in known if column not in without)
    place = folder / "-".join([writer, "without", *without])
    paths = [place / f"{name}.parquet" for name in ("bare", "ours", "folded", "removed", "others")]
    found = Files(columns, *paths)
    if not place.exists():
        place.mkdir()
        WRITERS[writer].write(found.bare, 0, columns)
        WRITERS[writer].write(found.others, 1, columns)
        bloomcli.add(found.bare, ["*"], output=found.ours, fpp=FPP)
        bloomcli.fold(found.ours, output=found.folded, fpp=0.05)
        bloomcli.remove(found.ours, output=found.removed)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readers")


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, engine_scans.Engine]]:
    with engine_scans.running() as found:
        yield found


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pattern_takes_every_column_in_that_no_reader_loses(folder: Path, writer: str) -> None:
    found = files(folder, writer, "duckdb")
    filtered = {facts.column for facts in bloomcli.inspect(found.ours).filters}
    assert set(found.columns) - filtered == LOST & set(found.columns)


@pytest.mark.parametrize(("reader", "writer"), [*((r, w) for w in WRITERS for r in READERS), *OTHERS])
def test_a_reader_gives_the_same_rows_before_and_after(
    folder: Path, engines: dict[str, engine_scans.Engine], writer: str, reader: str
) -> None:
    found, engine = files(folder, writer, reader), engines[reader]
    asked = 0
    for column in found.columns:
        if column in INCOMPARABLE.get(reader, ()):
            continue
        number, literal = next(iter(engine.literals(found.bare, column, PRESENT).items()))
        expected = engine.equal(found.bare, column, literal).rows
        assert number in expected, column
        for path in (found.ours, found.folded, found.removed):
            assert engine.equal(path, column, literal).rows == expected, (column, literal, path.name)
        absent = next(iter(engine.literals(found.others, column, ABSENT).values()))
        assert engine.equal(found.ours, column, absent).rows == engine.equal(found.bare, column, absent).rows, column
        asked += 1
    assert asked > len(found.columns) - 4


@pytest.mark.parametrize("reader", PRUNED)
def test_a_reader_skips_row_groups_by_our_filters(
    folder: Path, engines: dict[str, engine_scans.Engine], reader: str
) -> None:
    found, engine = files(folder, "arrow", reader), engines[reader]
    for column in PRUNED[reader]:
        literal = next(iter(engine.literals(found.others, column, ABSENT).values()))
        before, after = (engine.equal(path, column, literal) for path in (found.bare, found.ours))
        assert (before.rows, after.rows) == ([], [])
        assert before.read is not None
        assert before.read >= other_writers.ROWS // other_writers.GROUP, column
        assert after.read == 0, column
        assert engine.equal(found.removed, column, literal).read == before.read


DECLARED = [
    ("string", "FixedString(16)", "string = 'text 001718 ä'", [1, 0]),
    ("fixed", "FixedString(8)", "fixed = '001718'", [1, 0]),
    ("fixed", "FixedString(6)", "fixed = '001718'", [1, 1]),
    ("fixed", "String", "fixed = '001718'", [1, 1]),
    ("int32", "Int64", "int32 = 1717993", [1, 1]),
    ("int64", "Int256", "int64 = 2047999999999993", [1, 1]),
]
"""A column, its type as declared in the query, a condition, and the rows that ClickHouse finds without filters and
with ours."""


def test_clickhouse_loses_rows_of_texts_under_a_longer_fixed_string_only(folder: Path) -> None:
    """It pads the literal with zeros before it hashes it, and the file's text has none."""
    found = files(folder, "arrow", "clickhouse")
    with clickhouse.running() as server:
        for column, declared, condition, rows in DECLARED:
            query = f"SELECT n FROM file('{{}}', Parquet, 'n Int64, {column} Nullable({declared})') WHERE {condition}"
            counts = [len(server.ask(query.format(path)).rows) for path in (found.bare, found.ours)]
            assert counts == rows, declared


@pytest.mark.spark
@pytest.mark.parametrize("writer", WRITERS)
def test_spark_gives_the_same_rows_before_and_after(spark: SparkSession, folder: Path, writer: str) -> None:
    """A query has all values of a row at once, because Spark is slow: one wrong lookup loses the row."""
    found = files(folder, writer, "spark")
    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    try:
        engine = engine_scans.Spark(spark)
        there, between = (engine.every(path, found.columns) for path in (found.bare, found.others))
        frame = spark.read.parquet(str(found.ours))
        for number in PRESENT:
            values = [f"{column} = {there[column][number]}" for column in found.columns if number in there[column]]
            assert len(values) > len(found.columns) * 3 // 4
            rows, _ = spark_scan.scan(frame, " AND ".join(values))
            assert [row.n for row in rows] == [number], [
                value for value in values if spark_scan.scan(frame, value)[0] == []
            ]
        absent = " OR ".join(f"{column} = {next(iter(between[column].values()))}" for column in found.columns)
        assert spark_scan.scan(frame, absent)[0] == []
    finally:
        spark.conf.unset("spark.sql.legacy.parquet.nanosAsLong")
