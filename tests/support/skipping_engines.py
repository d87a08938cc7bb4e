"""The same question to six engines, which skip what the file's metadata let them skip, or don't."""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Question(NamedTuple):
    """A query of one column."""

    column: str
    test: str
    """`=`, `IS NULL`, `IS NOT NULL`; `rows` for all rows; `order` for the first rows in the column's order; or an
    aggregate: `count`, `min` and `max` of the column."""
    value: Any = None
    """For `=`."""
    kind: str | None = None
    """The SQL type to which the value is cast, if its literal has another one."""
    key: str = "up"
    """The column of the rows that are returned."""

    @property
    def text(self) -> str:
        """The question as a reader of the table reads it."""
        if self.test == "rows":
            return "all rows"
        if self.test == "order":
            return f"`ORDER BY {self.column} LIMIT {FIRST}`"
        if self.test in AGGREGATES:
            return f"`{self.test}({self.column})`"
        return f"`{self.column} = ...`" if self.test == "=" else f"`{self.column} {self.test}`"


Answer = list[Any]
"""The keys of the rows in order, or the column's values in their order, or the aggregate."""
Ask = Callable[[Path, Question, bool], Answer]
"""An engine's answer about a file; the last argument lets it skip. Raises the engine's own errors."""

FIRST: Final = 60
CONDITIONS: Final = ("=", "IS NULL", "IS NOT NULL")
AGGREGATES: Final = ("count", "min", "max")
ENGINES: Final = ("Spark", "DuckDB", "DataFusion", "Polars", "ClickHouse", "PyArrow")


def _literal(question: Question, engine: str) -> str:
    value = question.value
    if isinstance(value, dt.datetime):
        text = f"{value:%Y-%m-%d %H:%M:%S}"
        return {
            "Spark": f"TIMESTAMP '{text}'",
            "DuckDB": f"TIMESTAMPTZ '{text}+00'",
            "DataFusion": f"arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))')",
            "ClickHouse": f"toDateTime64('{text}', 6, 'UTC')",
        }[engine]
    if isinstance(value, dt.date):
        return f"toDate32('{value}')" if engine == "ClickHouse" else f"DATE '{value}'"
    if isinstance(value, bytes):
        texts = {"DuckDB": "from_hex('{}')", "ClickHouse": "unhex('{}')"}
        return texts.get(engine, "X'{}'").format(value.hex())
    text = f"'{value}'" if isinstance(value, str | Decimal) else str(value)
    return text if question.kind is None else f"CAST({text} AS {question.kind})"


def _sql(question: Question, source: str, engine: str) -> str:
    quote = "`" if engine == "Spark" else '"'
    column, key = (f"{quote}{name}{quote}" for name in (question.column, question.key))
    test = question.test
    if test in AGGREGATES:
        return f"SELECT {test}({column}) FROM {source}"
    if test == "order":
        return f"SELECT {column} FROM {source} ORDER BY {column} LIMIT {FIRST}"
    if test == "rows":
        return f"SELECT {key}, {column} FROM {source}"
    condition = f"{column} = {_literal(question, engine)}" if test == "=" else f"{column} {test}"
    return f"SELECT {key} FROM {source} WHERE {condition}"


def _answer(question: Question, rows: list[Any]) -> Answer:
    """The rows, which are tuples, as an answer."""
    if question.test == "rows":
        return sorted(map(str, rows))
    values = [row[0] for row in rows]
    return sorted(values) if question.test in CONDITIONS else values


def _duckdb() -> Ask:
    import duckdb

    connections = {}
    for skips in (True, False):
        connection = connections[skips] = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        if not skips:
            connection.execute("SET disabled_optimizers = 'filter_pushdown,statistics_propagation,top_n'")

    def ask(path: Path, question: Question, skips: bool) -> Answer:
        return _answer(question, connections[skips].execute(_sql(question, f"'{path}'", "DuckDB")).fetchall())

    return ask


def _datafusion() -> Ask:
    from datafusion import SessionConfig, SessionContext

    switches = ("enable_page_index", "pruning", "bloom_filter_on_read")
    without = SessionConfig().set("datafusion.execution.collect_statistics", "false")
    for switch in switches:
        without = without.set(f"datafusion.execution.parquet.{switch}", "false")

    def ask(path: Path, question: Question, skips: bool) -> Answer:
        context = SessionContext(SessionConfig() if skips else without)
        context.register_parquet("t", str(path), parquet_pruning=skips)
        found = context.sql(_sql(question, "t", "DataFusion")).to_arrow_table()
        return _answer(question, [*zip(*(column.to_pylist() for column in found.columns), strict=True)])

    return ask


def _polars() -> Ask:
    import polars as pl

    def ask(path: Path, question: Question, skips: bool) -> Answer:
        frame, column = pl.scan_parquet(path, use_statistics=skips), pl.col(question.column)
        if question.test in AGGREGATES:
            found = frame.select(getattr(column, question.test)())
        elif question.test == "order":
            found = frame.select(column).sort(column).head(FIRST)
        elif question.test == "rows":
            found = frame.select(question.key, question.column)
        else:
            tests = {"=": column == pl.lit(question.value), "IS NULL": column.is_null()}
            found = frame.filter(tests.get(question.test, column.is_not_null())).select(question.key)
        return _answer(question, found.collect().rows())

    return ask


def _pyarrow() -> Ask:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    def ask(path: Path, question: Question, skips: bool) -> Answer:
        columns = [question.key, question.column]
        file = ds.dataset(path) if skips else ds.dataset(pq.read_table(path, columns=[*dict.fromkeys(columns)]))
        field = ds.field(question.column)
        if question.test in AGGREGATES:
            return [getattr(pc, question.test)(file.to_table(columns=columns[1:])[0]).as_py()]
        if question.test == "order":
            return file.to_table(columns=columns[1:]).sort_by(question.column)[0].to_pylist()[:FIRST]
        if question.test == "rows":
            return _answer(question, [*zip(*(file.to_table()[name].to_pylist() for name in columns), strict=True)])
        value = None if question.value is None else pa.scalar(question.value, file.schema.field(question.column).type)
        tests = (
            {"=": field == value, "IS NULL": field.is_null()} if value is not None else {"IS NULL": field.is_null()}
        )
        found = file.to_table(columns=[question.key], filter=tests.get(question.test, field.is_valid()))
        return _answer(question, [(key,) for key in found[0].to_pylist()])

    return ask


def _clickhouse() -> Ask:
    from chdb import session

    server = session.Session()
    switches = ("filter", "page_filter", "bloom_filter", "dictionary_filter")
    without = ", ".join(f"input_format_parquet_{switch}_push_down = 0" for switch in switches)

    def ask(path: Path, question: Question, skips: bool) -> Answer:
        settings = "use_query_condition_cache = 0" + ("" if skips else f", {without}")
        query = f"{_sql(question, f'file({str(path)!r}, Parquet)', 'ClickHouse')} SETTINGS {settings}"
        try:
            lines = str(server.query(query, "JSONCompactEachRow")).splitlines()
        except Exception:
            server.query("SELECT 1")  # takes the rows of the failed query, which chDB gives to the next one
            raise
        return _answer(question, [json.loads(line) for line in lines])

    return ask


_AT_ONCE: Final = 16


class Spark:
    """Spark, in one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._prepared: dict[tuple[Path, Question, bool], Answer] = {}

    def __call__(self, path: Path, question: Question, skips: bool) -> Answer:
        found = self._prepared.get((path, question, skips))
        return _answer(question, self._rows(_sql_of(path, question), skips)) if found is None else found

    def prepare(self, asked: Sequence[tuple[Path, Question]], skips: bool) -> None:
        """Answer questions for rows by queries of 16 files, because a query of one takes Spark just as long, and the
        plan of one of two hundred takes longer for each.

        If a query fails, it is divided. A question that fails alone, and one of another kind, is left to be asked.
        """
        asked = [(path, question) for path, question in dict.fromkeys(asked) if question.test in CONDITIONS]
        if len(asked) > _AT_ONCE:
            for start in range(0, len(asked), _AT_ONCE):
                self.prepare(asked[start : start + _AT_ONCE], skips)
            return
        if not asked:
            return
        parts = (f"SELECT {n}, asked.* FROM ({_sql_of(*one)}) AS asked" for n, one in enumerate(asked))
        try:
            rows = self._rows(" UNION ALL ".join(parts), skips)
        except Exception:  # noqa: BLE001  Spark has many errors for files that it can't read
            if len(asked) > 1:
                middle = len(asked) // 2
                self.prepare(asked[:middle], skips)
                self.prepare(asked[middle:], skips)
            return
        keys: list[list[Any]] = [[] for _ in asked]
        for number, key in rows:
            keys[number].append((key,))
        for (path, question), found in zip(asked, keys, strict=True):
            self._prepared[path, question, skips] = _answer(question, found)

    def _rows(self, sql: str, skips: bool) -> list[Any]:
        self._session.conf.set("spark.sql.parquet.filterPushdown", str(skips).lower())
        try:
            return list(self._session.sql(sql).collect())
        finally:
            self._session.conf.unset("spark.sql.parquet.filterPushdown")


def _sql_of(path: Path, question: Question) -> str:
    return _sql(question, f"parquet.`{path}`", "Spark")


IN_PROCESS: Final[dict[str, Callable[[], Ask]]] = {
    "DuckDB": _duckdb,
    "DataFusion": _datafusion,
    "Polars": _polars,
    "ClickHouse": _clickhouse,
    "PyArrow": _pyarrow,
}


_TRIES: Final = 3
_HANGS: Final = 30
"""The seconds without an answer after which an engine is taken to hang, and asked again in another process."""


class CrashError(Exception):
    """The engine's process ended."""


def _serve(engine: str, pipe: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # engines print the stacks of their panics
    ask = IN_PROCESS[engine]()
    while True:
        try:
            answer: Any = ask(*pipe.recv())
        except EOFError:
            return
        except BaseException as error:  # noqa: BLE001  Polars and DataFusion panic
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        pipe.send(answer)


@contextmanager
def running(engine: str) -> Iterator[Ask]:
    """An engine of `IN_PROCESS` in a process of its own, which may crash: then another one is started."""
    context = multiprocessing.get_context("spawn")
    started: list[tuple[Any, Connection]] = []

    def start() -> None:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(engine, there), daemon=True)
        process.start()
        there.close()
        started.append((process, here))

    def stop() -> None:
        process, pipe = started.pop()
        pipe.close()
        process.join(5)
        process.kill()

    def ask(path: Path, question: Question, skips: bool) -> Answer:
        for _ in range(_TRIES):
            pipe = started[-1][1]
            try:
                pipe.send((path, question, skips))
                if not pipe.poll(_HANGS):  # threads of Arrow's scanner can wait for each other after an error
                    stop()
                    start()
                    continue
                answer = pipe.recv()
                break
            except (EOFError, OSError):
                stop()
                start()
                raise CrashError from None
        else:
            raise CrashError
        if isinstance(answer, RuntimeError):
            raise answer
        return list(answer)

    start()
    try:
        yield ask
    finally:
        stop()
