"""ClickHouse, as chDB. Its metrics: the rows of the row groups that it doesn't skip."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from chdb import session

from bloomcli.trials.readers.base import Lookup, Query, Reader, ReadMetrics, Rows, rows_of
from bloomcli.trials.texts import escaped_literal, is_binary, sql_text

_SWITCH: Final = "input_format_parquet_bloom_filter_push_down"
_ROWS: Final = "ParquetRowsFilterExpression"
"""The event that counts the rows that were decoded for a condition."""
_FORMATS: Final = {"parquet": "Parquet", "orc": "ORC"}
_NO_CACHE: Final = "use_query_condition_cache = 0"


class InstalledReader(Reader):
    """An in-memory session of chDB."""

    def __init__(self) -> None:
        self._session: Any = session.Session()  # type: ignore[no-untyped-call]
        self._types: dict[tuple[str, tuple[str, ...]], str] = {}

    def query(self, lookup: Lookup) -> Query:
        """Prepare a SELECT."""
        file = f"file({escaped_literal(lookup.path)}, {escaped_literal(_FORMATS[lookup.format])})"
        column = ".".join(map(_name, lookup.names))
        selection = "toString(tuple(*))" if lookup.whole else "count()"
        settings = [_NO_CACHE]
        if lookup.format == "parquet":
            settings.append(f"{_SWITCH} = {int(lookup.filters)}")
        statement = (
            f"SELECT {selection} FROM {file} WHERE {column} = {self._literal(lookup, file, column)}"  # noqa: S608  all names and texts are quoted
            f" SETTINGS {', '.join(settings)}"
        )
        counts = lookup.format == "parquet" and len(lookup.names) == 1  # it doesn't count rows for a tuple's element
        before = self._counted() if counts else 0

        def run() -> Rows:
            table = self._ask(statement)
            if lookup.whole:
                return rows_of(table)
            return int(table.column(0)[0].as_py())

        def read() -> ReadMetrics:
            return ReadMetrics(rows=self._counted() - before) if counts else ReadMetrics()

        return Query(run, read)

    def _ask(self, statement: str) -> Any:
        try:
            data = self._session.query(statement, "ArrowStream").bytes()
        except Exception:
            self._session.query("SELECT 1")  # takes the rows of the failed query, which chDB gives to the next one
            raise
        return pa.ipc.open_stream(data).read_all() if data else pa.table({})

    def _counted(self) -> int:
        table = self._ask(f"SELECT value FROM system.events WHERE event = {escaped_literal(_ROWS)}")  # noqa: S608  all names and texts are quoted
        return int(table.column(0)[0].as_py()) if table.num_rows else 0

    def _literal(self, lookup: Lookup, file: str, column: str) -> str:
        key = (lookup.path, lookup.names)
        if key not in self._types:
            table = self._ask(f"SELECT toTypeName({column}) FROM {file} LIMIT 1")  # noqa: S608  all names and texts are quoted
            self._types[key] = _bare(table.column(0)[0].cast(pa.string()).as_py())
        kind, value = self._types[key], lookup.value
        data = value.as_py() if is_binary(value.type) else sql_text(value).encode("utf-8", "surrogateescape")
        if kind == "UUID":
            data = str(UUID(bytes=data)).encode()
        return f"CAST(unhex('{data.hex()}') AS {kind})"

    def close(self) -> None:
        """Close the session."""
        self._session.close()


def _bare(kind: str) -> str:
    """The name of a type without the wrappers for nulls and dictionaries."""
    for around in ("LowCardinality(", "Nullable("):
        if kind.startswith(around):
            kind = kind.removeprefix(around).removesuffix(")")
    return kind


def _name(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
