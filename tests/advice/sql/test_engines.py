"""Literals of every type: the value from a statement is the value in the rows that the engine returns."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bloomcli.advice.queries import read_queries
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source
from bloomcli.values.literals import decode_bound, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Callable[[str], list[int]]
"""Executes a statement that selects n, and gives the rows' values of it."""

UTC = dt.UTC
COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "i32": (pa.int32(), [-5, 0, 7]),
    "i64": (pa.int64(), [-(2**63), 2**53 + 1, 42]),
    "f64": (pa.float64(), [-0.5, 1e300, 0.1]),
    "dec": (pa.decimal128(12, 2), [Decimal("-0.05"), Decimal("1234567890.12"), Decimal("1.50")]),
    "txt": (pa.string(), ["it's", "-- ;", "ü\\n"]),
    "bin": (pa.binary(), [b"\x00\xff", b"0x41", b"abc"]),
    "day": (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]),
    "ts": (
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 500000), dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 13, 45)],
    ),
    "tz": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 2, 29, 12, tzinfo=UTC), *(dt.datetime(2024, 3, day, tzinfo=UTC) for day in (1, 2))],
    ),
    "uid": (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2**127 + 5).bytes, uuid.UUID(int=77).bytes]),
}  # fmt: skip

EVERYWHERE = (
    ("i32 = -5", 0), ("i32 = - 5", 0), ("i32 = (7)", 2), ("i32 IN (-5)", 0), ("i64 = 9007199254740993", 1),
    ("i64 = -9223372036854775808", 0), ("i64 = CAST('42' AS BIGINT)", 2), ("i32 = CAST(7 AS INT)", 2),
    ("f64 = CAST('-0.5' AS DOUBLE)", 0), ("dec = 1.50", 2), ("dec = 1.5", 2), ("dec = -0.05", 0),
    ("dec = CAST('1.5' AS DECIMAL(10, 2))", 2), ("txt = 'it''s'", 0), ("txt = '-- ;'", 1), ("txt IN ('-- ;')", 1),
    ("day = CAST('2024-02-29' AS DATE)", 1),
)  # fmt: skip
DATES = (("day = DATE '1969-12-31'", 0), ("day BETWEEN DATE '2024-02-29' AND DATE '2024-02-29'", 1))
TIMES = (
    ("ts = TIMESTAMP '2024-02-29 13:45:00'", 2),
    ("ts = TIMESTAMP '1969-12-31 23:59:59.5'", 0),
    ("ts = CAST('2024-02-29' AS TIMESTAMP)", 1),
)
OF = {
    "duckdb": (
        *EVERYWHERE, *DATES, *TIMES, ("f64 = 1e300", 1), ("i32 = 0_7", 2), ("bin = unhex('00ff')", 0),
        ("bin = from_hex('616263')", 2),
        ("bin = 'abc'::BLOB", 2),
        ("tz = TIMESTAMPTZ '2024-02-29 12:00:00Z'", 0),
        ("uid = UUID '00000000-0000-0000-0000-00000000004d'", 2), ("day = '2024-02-29'", 1), ("i64 = '42'", 2),
        ("txt = 'ü\\n'", 2), ("day = date '2024-02-29'", 1), ("ts = '2024-02-29 13:45:00'::timestamp", 2),
    ),
    "clickhouse": (
        *EVERYWHERE[:-1], ("i32 = toInt32(7)", 2), ("day = toDate32('1969-12-31')", 0), ("txt = 'it\\'s'", 0),
        ("day = toDate('2024-02-29')", 1), ("i32 IN [7]", 2),
        ("i32 = 0x7", 2), ("bin = unhex('00ff')", 0), ("txt = 'ü\\\\n'", 2), ("day = DATE '2024-02-29'", 1),
    ),
    "postgres": (*EVERYWHERE, *DATES, *TIMES, ("f64 = 1e300", 1), ("bin = X'00FF'", 0)),
    "spark": (
        *(pair for pair in EVERYWHERE if "''" not in pair[0]), *DATES, ("txt = 'it\\'s'", 0), ('txt = "it\'s"', 0),
        ("ts = TIMESTAMP_NTZ '2024-02-29 13:45:00'", 2), ("tz = TIMESTAMP '2024-02-29 12:00:00Z'", 0),
        ("tz = TIMESTAMP '2024-03-01 00:00:00'", 1), ("i64 = 42L", 2), ("i32 = 7S", 2), ("dec = 1.50BD", 2),
        ("f64 = 1e300D", 1), ("bin = X'00FF'", 0), ("bin = unhex('616263')", 2), ("bin = CAST('abc' AS BINARY)", 2),
        ("day = to_date('2024-02-29')", 1), ("day = date('2024-02-29')", 1), ("i32 <=> -5", 0),
    ),
}  # fmt: skip
"""Predicates in each dialect, and the number of the row that has the value."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rows, each in its own row group, so that the statistics are the values."""
    path = tmp_path_factory.mktemp("types") / "t.parquet"
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()} | {"n": [0, 1, 2]})
    pq.write_table(table, path, row_group_size=1, store_schema=False, write_statistics=True)
    return path


@pytest.fixture(scope="module")
def duckdb(file: Path) -> Engine:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = 'UTC'; CREATE VIEW t AS SELECT * FROM '{file}'")
    return lambda text: [n for (n,) in connection.execute(text).fetchall()]


@pytest.fixture(scope="module")
def clickhouse(file: Path) -> Engine:
    import chdb

    def run(text: str) -> list[int]:
        return [int(n) for n in str(chdb.query(text.replace("FROM t", f"FROM file('{file}')"), "TSV")).split()]

    return run


@pytest.fixture(scope="module")
def postgres(file: Path) -> Engine:
    """DataFusion, whose SQL follows PostgreSQL's."""
    import datafusion

    context = datafusion.SessionContext()
    context.register_parquet("t", str(file))
    return lambda text: [n for batch in context.sql(text).collect() for n in batch.column(0).to_pylist()]


@pytest.fixture(scope="module")
def spark_engine(file: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Engine]:
    path = tmp_path_factory.mktemp("spark") / "t.parquet"
    pq.write_table(pq.read_table(file).drop(["uid"]), path, row_group_size=1)  # Spark reads no UUIDs
    spark.read.parquet(str(path)).createOrReplaceTempView("t")
    yield lambda text: [row[0] for row in spark.sql(text).collect()]
    spark.catalog.dropTempView("t")


def _has(file: Path, column: str, row: int, encodings: tuple[bytes, ...]) -> bool:
    """Whether a row has one of these values, by its own PLAIN bytes."""
    kind, values = COLUMNS[column]
    value = values[row]
    if isinstance(value, bytes):
        plain = value
    elif isinstance(value, str):
        plain = value.encode()
    elif isinstance(value, Decimal):
        unscaled = int(value.scaleb(2))
        plain = unscaled.to_bytes(len(encodings[0]), "big", signed=True)
    else:
        plain = pa.array([value], kind).buffers()[1].to_pybytes()[: kind.bit_width // 8]
    return plain in encodings


@pytest.mark.parametrize(
    ("dialect", "predicate"),
    [
        ("duckdb", "bin = '\\x00\\xFF'::BLOB"),  # PostgreSQL writes other escapes in the same cast
        ("clickhouse", "ts = toDateTime64('2024-02-29 13:45:00', 6, 'Europe/Oslo')"),
        ("spark", "ts = TIMESTAMP '2024-02-29 13:45:00 Europe/Oslo'"),
        ("spark", "dec = CAST('1.555' AS DECIMAL(10, 2))"),
        ("trino", "day = date_add('day', 1, DATE '2024-02-29')"),
        ("duckdb", "f64 = CAST(0.1 AS FLOAT)"),
    ],
)
def test_a_value_that_engines_compute_is_not_guessed(tmp_path: Path, dialect: str, predicate: str) -> None:
    (tmp_path / "one.sql").write_text(f"SELECT n FROM t WHERE {predicate}")
    (column,) = read_queries([tmp_path / "one.sql"], dialect=dialect).columns
    assert (column.lookups, column.without_literal, column.literals) == (1, 1, ())


@pytest.mark.interop
@pytest.mark.parametrize(
    ("dialect", "predicate", "row"),
    [
        pytest.param(dialect, *case, marks=pytest.mark.spark if dialect == "spark" else ())
        for dialect, cases in OF.items()
        for case in cases
    ],
)
def test_an_engine_returns_the_row_of_the_derived_value(
    request: pytest.FixtureRequest, file: Path, tmp_path: Path, dialect: str, predicate: str, row: int
) -> None:
    engine: Engine = request.getfixturevalue(dialect if dialect != "spark" else "spark_engine")
    statement = f"SELECT n FROM t WHERE {predicate}"
    assert engine(statement) == [row], "the engine returns the row that the case names"
    log = tmp_path / "one.sql"
    log.write_text(statement)
    with open_source(file) as source:
        opened = open_file(source)
        found = read_queries([log], dialect=dialect, columns=opened.columns)
        (queried,) = found.columns
        ((text, count),) = queried.literals
        column = next(column for column in opened.columns if column.path == queried.column)
    chunk = pq.read_table(file, columns=[queried.column])
    assert (count, len(chunk)) == (1, 3)
    literal = parse(text, column)
    assert literal.impossible is None
    others = [number for number in range(3) if _has(file, queried.column, number, literal.encodings)]
    assert others == [row]
    assert literal.order_key is None or all(decode_bound(e, column) is not None for e in literal.encodings)
