"""Equality queries by the engines that read Parquet files, and what each engine read for them, by its own counters.

Each engine uses its own types: the literal is made of the type and the values that the engine itself reports for a
column, so the engine looks up what it understands of a file's types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from support import clickhouse
from support.clickhouse import ClickHouse
from support.spark_scan import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER: Final = "n"
"""The column that numbers a file's rows."""


class Answer(NamedTuple):
    """The numbers of the rows that meet a condition, in order, and how much was read for them."""

    rows: list[int]
    read: int | None
    """Row groups, or their pages; None if the engine doesn't count them."""


class Engine(Protocol):
    """The queries of one engine."""

    def literals(self, path: Path, column: str, numbers: Iterable[int]) -> dict[int, Any]:
        """The values of a column in the rows of these numbers, nulls left out, as this engine's literals."""

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        """The rows in which the column equals the literal."""


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _quoted(column: str) -> str:
    """The path of a field as SQL."""
    return ".".join(f'"{part}"' for part in column.split("."))


class DuckDB:
    """DuckDB counts the row groups that a table function has scanned."""

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET enable_profiling = 'no_output'")

    def literals(self, path: Path, column: str, numbers: Iterable[int]) -> dict[int, str]:
        query = (
            f"SELECT {NUMBER}, typeof({_quoted(column)}), {_quoted(column)}::VARCHAR FROM '{path}'"
            f" WHERE {NUMBER} IN ({_listed(numbers)}) AND {_quoted(column)} IS NOT NULL"
        )
        found = self._connection.execute(query).fetchall()
        return {number: f"'{text}'::{kind}" for number, kind, text in found}

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        query = f"SELECT {NUMBER} FROM '{path}' WHERE {_quoted(column)} = {literal}"
        rows = sorted(number for (number,) in self._connection.execute(query).fetchall())
        profile = json.loads(self._connection.get_profiling_information(format="json"))
        return Answer(rows, profile["query"].get("total_row_groups_scanned", 0))


class DataFusion:
    """DataFusion counts the row groups that remain after statistics and filters."""

    _LEFT: Final = re.compile(r"row_groups_pruned_bloom_filter\{[^}]*\}=\d+ total → (\d+) matched")

    def __init__(self) -> None:
        import datafusion

        config = datafusion.SessionConfig().set("datafusion.execution.parquet.bloom_filter_on_read", "true")
        self._context = datafusion.SessionContext(config)
        self._tables: dict[Path, Any] = {}

    def _table(self, path: Path) -> Any:
        if path not in self._tables:
            self._tables[path] = self._context.read_parquet(str(path), file_extension=path.suffix)
        return self._tables[path]

    @staticmethod
    def _field(column: str) -> Any:
        from datafusion import col

        top, *inner = column.split(".")
        found = col(f'"{top}"')
        for name in inner:
            found = found[name]
        return found

    def literals(self, path: Path, column: str, numbers: Iterable[int]) -> dict[int, pa.Scalar]:
        field = self._field(column)
        found = self._table(path).select(self._field(NUMBER), field.alias("c")).to_arrow_table()
        wanted = set(numbers)
        pairs = zip(found[NUMBER].to_pylist(), found["c"], strict=True)
        return {number: scalar for number, scalar in pairs if number in wanted and scalar.is_valid}

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        from datafusion import lit

        condition = self._field(column) == lit(literal)
        frame = self._table(path).filter(condition).select(self._field(NUMBER))
        rows = sorted(number for batch in frame.collect() for number in batch[0].to_pylist())
        counters = repr(frame.execution_plan().collect_metrics())
        return Answer(rows, sum(map(int, self._LEFT.findall(counters))))


class ClickHouseFiles:
    """ClickHouse counts the pages that it has read; it reads none of a skipped row group."""

    def __init__(self, server: ClickHouse) -> None:
        self._server = server

    def literals(self, path: Path, column: str, numbers: Iterable[int]) -> dict[int, str]:
        field = column.replace('"', "")
        query = (
            f"SELECT {NUMBER}, toTypeName({field}), hex(CAST({field} AS Nullable(String))) FROM file('{path}')"
            f" WHERE {NUMBER} IN ({_listed(numbers)}) AND {field} IS NOT NULL"
        )
        found = self._server.ask(query).rows
        return {number: f"CAST(unhex('{text}') AS {kind})" for number, kind, text in found}

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        found = self._server.ask(f"SELECT {NUMBER} FROM file('{path}') WHERE {column} = {literal}")
        return Answer(sorted(number for (number,) in found.rows), found.read_pages)


class Polars:
    """Polars doesn't look filters up."""

    def literals(self, path: Path, column: str, numbers: Iterable[int]) -> dict[int, Any]:
        import polars as pl

        top, *inner = column.split(".")
        wanted = list(numbers)
        field = pl.col(top)
        for name in inner:
            field = field.struct.field(name)
        frame = pl.scan_parquet(path).filter(pl.col(NUMBER).is_in(wanted)).select(NUMBER, field.alias("c")).collect()
        series = frame["c"]
        found = {}
        for at, number in enumerate(frame[NUMBER].to_list()):
            if series[at] is not None:
                found[number] = pl.lit(series.slice(at, 1)).first()
        return found

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        import polars as pl

        top, *inner = column.split(".")
        field = pl.col(top)
        for name in inner:
            field = field.struct.field(name)
        frame = pl.scan_parquet(path).filter(field == literal).select(NUMBER).collect()
        return Answer(sorted(frame[NUMBER].to_list()), None)


class Arrow:
    """Arrow's scans don't look filters up."""

    def literals(self, path: Path, column: str, numbers: Iterable[int]) -> dict[int, pa.Scalar]:
        names = column.split(".")
        found = ds.dataset(path, format="parquet").to_table(columns={NUMBER: ds.field(NUMBER), "c": ds.field(*names)})
        wanted = set(numbers)
        pairs = zip(found[NUMBER].to_pylist(), found["c"], strict=True)
        return {number: scalar for number, scalar in pairs if number in wanted and scalar.is_valid}

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        condition = ds.field(*column.split(".")) == literal
        found = ds.dataset(path, format="parquet").to_table(columns=[NUMBER], filter=condition)
        return Answer(sorted(found[NUMBER].to_pylist()), None)


class Spark:
    """Spark counts the rows of its scan: all rows of each row group that it doesn't skip."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def every(self, path: Path, columns: Iterable[str]) -> dict[str, dict[int, str]]:
        """The values of all rows of each column as literals, by a single query, because a query takes long."""
        columns = list(columns)
        frame = self._session.read.parquet(str(path))
        kinds = frame.limit(1).selectExpr(*(f"typeof({column})" for column in columns)).collect()[0]
        texts = [
            f"hex({column})" if kind == "binary" else f"cast({column} as string)"
            for column, kind in zip(columns, kinds, strict=True)
        ]
        rows = frame.selectExpr(NUMBER, *texts).collect()
        return {
            column: {
                row[0]: f"unhex('{row[at]}')" if kind == "binary" else f"cast('{row[at]}' as {kind})"
                for row in rows
                if row[at] is not None
            }
            for at, (column, kind) in enumerate(zip(columns, kinds, strict=True), 1)
        }

    def equal(self, path: Path, column: str, literal: Any) -> Answer:
        frame = self._session.read.parquet(str(path)).select("n", column.partition(".")[0])
        rows, read = scan(frame, f"{column} = {literal}")
        return Answer(sorted(row[0] for row in rows), read)


@contextmanager
def running() -> Iterator[dict[str, Engine]]:
    """Every engine that runs in Python's process, by name."""
    with clickhouse.running() as server:
        yield {
            "duckdb": DuckDB(),
            "datafusion": DataFusion(),
            "clickhouse": ClickHouseFiles(server),
            "polars": Polars(),
            "arrow": Arrow(),
        }
