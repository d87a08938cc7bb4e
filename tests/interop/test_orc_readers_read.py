"""ORC C++ (PyORC) and ClickHouse give the same rows before and after `bloom add`, of every type that PyORC writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as ds
import pyorc
import pytest
from pyorc.predicates import PredicateColumn
from support import clickhouse
from support.engine_scans import ClickHouseFiles

import bloomcli

pytestmark = pytest.mark.interop

ROWS, STRIDE, STEP = 4000, 1000, 1237
PRESENT, ABSENT = (1718, 2048, 3998), (1719, 2001)
DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SCHEMA = {
    "n": "bigint",
    "tiny": "tinyint",
    "small": "smallint",
    "whole": "int",
    "big": "bigint",
    "single": "float",
    "double": "double",
    "text": "string",
    "blob": "binary",
    "code": "char(8)",
    "word": "varchar(20)",
    "day": "date",
    "moment": "timestamp",
    "instant": "timestamp with local time zone",
    "d9": "decimal(9,2)",
    "d18": "decimal(18,4)",
    "d30": "decimal(30,4)",
}
COLUMNS = tuple(SCHEMA)[1:]
KINDS = {
    "tiny": pyorc.TypeKind.BYTE,
    "small": pyorc.TypeKind.SHORT,
    "whole": pyorc.TypeKind.INT,
    "big": pyorc.TypeKind.LONG,
    "single": pyorc.TypeKind.FLOAT,
    "double": pyorc.TypeKind.DOUBLE,
    "text": pyorc.TypeKind.STRING,
    "code": pyorc.TypeKind.CHAR,
    "word": pyorc.TypeKind.VARCHAR,
    "day": pyorc.TypeKind.DATE,
    "moment": pyorc.TypeKind.TIMESTAMP,
    "instant": pyorc.TypeKind.TIMESTAMP_INSTANT,
    "d9": pyorc.TypeKind.DECIMAL,
    "d18": pyorc.TypeKind.DECIMAL,
    "d30": pyorc.TypeKind.DECIMAL,
}
"""What PyORC takes predicates of: no binary."""
CLICKHOUSE_SKIPS = ("small", "whole", "big", "double", "text", "code", "word", "day", "d9", "d18", "d30")
"""By which ClickHouse leaves row groups out of its ORC files: these at least."""


def row(n: int) -> tuple[Any, ...]:
    """The row of an even number. Rows of odd numbers are between existing rows, and absent."""
    moment = DAY + dt.timedelta(seconds=n)
    money = Decimal(n) / 4
    return (
        *(n, n % 250 - 125, n * 4 - 16_000, n * 1000 - 7, n * 10**9 - 7, n / 4, n + 0.1, f"text {n} ä"),
        *(f"b{n}".encode(), f"c{n}", f"w{n}", (DAY + dt.timedelta(days=n)).date(), moment, moment),
        *(money, money, money + 10**20),
    )


def value(column: str, n: int) -> Any:
    """What a reader gives for it: CHAR with its padding."""
    found = row(n)[tuple(SCHEMA).index(column)]
    return found.ljust(8) if column == "code" else found


def write(path: Path, parity: int, blooms: list[str] | None = None) -> Path:
    """The rows of even or odd numbers by ORC C++; every thirteenth value of a column is null."""
    schema = ",".join(f"{name}:{kind}" for name, kind in SCHEMA.items())
    options = {"row_index_stride": STRIDE, "bloom_filter_columns": blooms, "bloom_filter_fpp": 0.0001}
    with path.open("wb") as opened, pyorc.Writer(opened, f"struct<{schema}>", **options) as writer:
        for i in range(ROWS):
            found = row(i * STEP % ROWS * 2 + parity)
            writer.write(tuple(None if at and (i + at) % 13 == 12 else cell for at, cell in enumerate(found)))
    return path


class Files(NamedTuple):
    """Without filters, with ours, without them again, with ORC C++'s own, and the rows of odd numbers."""

    bare: Path
    ours: Path
    removed: Path
    theirs: Path
    others: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("orc")
    found = Files(*(folder / f"{name}.orc" for name in Files._fields))
    write(found.bare, 0)
    write(found.theirs, 0, list(COLUMNS))
    write(found.others, 1)
    bloomcli.add(found.bare, COLUMNS, output=found.ours, fpp=0.0001)
    bloomcli.remove(found.ours, output=found.removed)
    return found


def predicate_read(path: Path, column: str, wanted: Any) -> tuple[list[int], int]:
    """The rows that have the value, and how many rows ORC C++ gave: all of each row group that it doesn't skip."""
    precision, _, scale = SCHEMA[column].removeprefix("decimal(").rstrip(")").partition(",")
    places = {"precision": int(precision), "scale": int(scale)} if scale else {}
    with path.open("rb") as opened:
        predicate = PredicateColumn(KINDS[column], column, **places) == wanted
        rows = list(pyorc.Reader(opened, predicate=predicate, column_names=["n", column]))
    return sorted(n for n, found in rows if found == wanted), len(rows)


@pytest.mark.parametrize("column", KINDS)
def test_orc_cpp_gives_the_same_rows_and_reads_fewer(files: Files, column: str) -> None:
    for n in (*PRESENT, *ABSENT):
        wanted = value(column, n)
        rows, everything = predicate_read(files.bare, column, wanted)
        assert everything == ROWS
        ours, read = predicate_read(files.ours, column, wanted)
        assert ours == rows
        assert predicate_read(files.removed, column, wanted) == (rows, ROWS)
        if n in ABSENT:
            assert (rows, read) == ([], 0)
        elif column != "tiny":
            assert read == STRIDE * len(rows)
    assert any(predicate_read(files.bare, column, value(column, n))[0] for n in PRESENT)


@pytest.fixture(scope="module")
def server() -> Iterator[clickhouse.ClickHouse]:
    with clickhouse.running() as started:
        yield started


@pytest.mark.parametrize("column", COLUMNS)
def test_clickhouse_gives_the_same_rows_and_reads_fewer(
    files: Files, server: clickhouse.ClickHouse, column: str
) -> None:
    def ask(path: Path, literal: str) -> tuple[list[list[int]], int]:
        found = server.ask(f"SELECT n FROM file('{path}') WHERE {column} = {literal}")
        return sorted(found.rows), found.read_rows

    engine = ClickHouseFiles(server)
    there, between = engine.literals(files.bare, column, PRESENT), engine.literals(files.others, column, ABSENT)
    for n, literal in there.items():
        rows, _ = ask(files.bare, literal)
        assert [n] in rows
        assert ask(files.ours, literal)[0] == ask(files.removed, literal)[0] == rows
    for literal in between.values():
        assert ask(files.bare, literal) == ([], ROWS)
        rows, read = ask(files.ours, literal)
        assert rows == []
        assert read == 0 or column not in CLICKHOUSE_SKIPS


@pytest.mark.parametrize("column", COLUMNS)
def test_arrow_gives_the_same_rows(files: Files, column: str) -> None:
    bare, ours = (ds.dataset(path, format="orc") for path in (files.bare, files.ours))
    table = bare.to_table(columns=["n", column])
    present = [scalar for n, scalar in zip(table["n"].to_pylist(), table[column], strict=True) if n in PRESENT]
    for scalar in present:
        rows, found = (dataset.to_table(filter=ds.field(column) == scalar) for dataset in (bare, ours))
        assert found.equals(rows)
        assert found.num_rows or not scalar.is_valid


def test_orc_cpp_loses_every_char_by_its_own_filters_and_none_by_ours(
    files: Files, server: clickhouse.ClickHouse, tmp_path: Path
) -> None:
    """Its writer hashes the original text, and pads it with spaces afterwards."""
    mended = tmp_path / "mended.orc"
    bloomcli.add(files.theirs, ["code"], output=mended, fpp=0.0001, replace=True)
    wanted = value("code", 1718)
    assert predicate_read(files.theirs, "code", wanted)[0] == []
    assert predicate_read(mended, "code", wanted)[0] == predicate_read(files.bare, "code", wanted)[0] == [1718]
    query = "SELECT n FROM file('{}') WHERE code = 'c1718   '"
    counts = [len(server.ask(query.format(path)).rows) for path in (files.bare, files.theirs, mended)]
    assert counts == [1, 0, 1]
    missing = {f.column for f in bloomcli.validate(files.theirs, deep=True).findings if f.id == "value-missing"}
    assert "code" in missing
    assert "value-missing" not in {f.id for f in bloomcli.validate(mended, columns=["code"], deep=True).findings}
