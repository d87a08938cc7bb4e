"""DuckDB reads what we wrote: the same rows, and its own probe sees our filters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.tables import write

import bloomcli

pytestmark = pytest.mark.interop

ROWS, GROUP = 4000, 1000
MIDNIGHT = dt.datetime(2024, 1, 1)
TYPES = {
    "i": pa.int32(),
    "n": pa.int64(),
    "u": pa.uint64(),
    "s": pa.string(),
    "b": pa.binary(),
    "f": pa.float32(),
    "d": pa.float64(),
    "cents": pa.decimal128(9, 2),
    "money": pa.decimal128(18, 4),
    "huge": pa.decimal128(30, 4),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
}
SQL = {
    "i": "INTEGER",
    "n": "BIGINT",
    "u": "UBIGINT",
    "s": "VARCHAR",
    "b": "BLOB",
    "f": "FLOAT",
    "d": "DOUBLE",
    "cents": "DECIMAL(9,2)",
    "money": "DECIMAL(18,4)",
    "huge": "DECIMAL(30,4)",
    "day": "DATE",
    "moment": "TIMESTAMP",
}
LAYOUTS = {"plain": {"dictionary": False}, "dictionary": {"page_version": 2, "compression": "zstd"}}


def value(column: str, n: int) -> Any:
    """A column's value for a number: even ones are in the file, odd ones lie between them."""
    text = f"{n:06}"
    return {
        "i": n,
        "n": n * 10**9,
        "u": n + 2**63,
        "s": text,
        "b": text.encode(),
        "f": n + 0.25,
        "d": n + 0.1,
        "cents": Decimal(n) / 100,
        "money": Decimal(n) / 100 + 10**12,
        "huge": Decimal(n) / 100 + 10**20,
        "day": MIDNIGHT.date() + dt.timedelta(days=n),
        "moment": MIDNIGHT + dt.timedelta(microseconds=n),
    }[column]


@pytest.fixture(scope="module", params=LAYOUTS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    numbers = [i * 1237 % ROWS * 2 for i in range(ROWS)]
    table = pa.table({name: pa.array([value(name, n) for n in numbers], kind) for name, kind in TYPES.items()})
    bare = write(folder / "bare.parquet", table, rows=GROUP, store_decimal_as_integer=True, **LAYOUTS[request.param])
    bloomcli.add(bare, ["*"], output=folder / "ours.parquet", fpp=0.0001)
    return folder / "ours.parquet"


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        yield connection


def literal(column: str, n: int) -> str:
    """The value as DuckDB's SQL."""
    found = value(column, n)
    text = found.decode() if isinstance(found, bytes) else str(found)
    return f"'{text}'::{SQL[column]}"


@pytest.mark.parametrize("column", TYPES)
def test_the_same_rows_come_with_pushdown_on_and_off(duck: Any, file: Path, column: str) -> None:
    bare = file.with_name("bare.parquet")
    for n, count in ((0, 1), (1718, 1), (ROWS * 2 - 2, 1), (1719, 0), (3, 0)):
        answers = []
        for switch in ("SET disabled_optimizers = 'filter_pushdown'", "RESET disabled_optimizers"):
            duck.execute(switch)
            answers += [
                duck.execute(f"SELECT * FROM '{path}' WHERE {column} = {literal(column, n)}").fetchall()
                for path in (bare, file)
            ]
        assert len(answers[0]) == count
        assert answers == [answers[0]] * 4


def test_a_decimal_that_duckdb_does_not_hash_is_never_excluded(duck: Any, file: Path) -> None:
    for n in (0, 1718):
        probe = f"SELECT * FROM parquet_bloom_probe('{file}', 'huge', {literal('huge', n)})"
        assert [row[-1] for row in duck.execute(probe).fetchall()] == [False] * (ROWS // GROUP)


@pytest.mark.parametrize("column", [column for column in TYPES if column != "huge"])
def test_duckdbs_probe_excludes_what_is_absent_and_nothing_that_exists(duck: Any, file: Path, column: str) -> None:
    def excluded(n: int) -> list[bool]:
        probe = f"SELECT * FROM parquet_bloom_probe('{file}', '{column}', {literal(column, n)}) ORDER BY row_group_id"
        return [row[-1] for row in duck.execute(probe).fetchall()]

    groups = ROWS // GROUP
    for n in (0, 1718, 2042, 7998):
        found = excluded(n)
        (home,) = [i // GROUP for i in range(ROWS) if i * 1237 % ROWS * 2 == n]
        assert found == [group != home for group in range(groups)]
    for n in (1, 1719, 7997):
        assert excluded(n) == [True] * groups


def test_duckdbs_metadata_shows_our_filters(duck: Any, file: Path) -> None:
    columns = "row_group_id, path_in_schema, bloom_filter_offset, bloom_filter_length"
    shown = set(duck.execute(f"SELECT {columns} FROM parquet_metadata('{file}')").fetchall())
    ours = {(f.row_group, f.column, f.offset, f.length) for f in bloomcli.inspect(file).filters}
    assert len(ours) == len(TYPES) * ROWS // GROUP
    assert shown == ours


def test_whole_tables_are_the_same(duck: Any, file: Path) -> None:
    bare = file.with_name("bare.parquet")
    assert duck.execute(f"SELECT count(*) FROM '{file}'").fetchone() == (ROWS,)
    assert duck.execute(f"FROM '{file}' EXCEPT ALL FROM '{bare}'").fetchall() == []


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("wanted", ["0.0", "-0.0"])
def test_a_zero_of_either_sign_is_found(duck: Any, tmp_path: Path, stored: float, wanted: str) -> None:
    values = [float(i) for i in range(1, 100)] + [stored]
    bare = write(tmp_path / "bare.parquet", {"d": pa.array(values)}, rows=50)
    bloomcli.add(bare, ["d"], output=tmp_path / "ours.parquet", fpp=0.0001)
    query = f"SELECT count(*) FROM '{tmp_path / 'ours.parquet'}' WHERE d = '{wanted}'::DOUBLE"
    assert duck.execute(query).fetchone() == (1,)
