"""DuckDB. Its metrics: the row groups that it scans, and the bytes that it reads. No option switches filters off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from bloomcli.trials.readers.base import Lookup, Query, Reader, ReadMetrics
from bloomcli.trials.texts import is_binary, quoted_name, sql_text

_ROWS = '"bloom trial"'
"""The alias of the file. It must not be the name of a column."""


class InstalledReader(Reader):
    """An in-memory database of DuckDB."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET enable_profiling = 'no_output'")
        self._types: dict[tuple[str, tuple[str, ...]], str] = {}

    def query(self, lookup: Lookup) -> Query:
        """Prepare a SELECT."""
        file = f"read_parquet({_quoted(lookup.path)}, hive_partitioning = false) AS {_ROWS}"
        column = self._column(lookup, file)
        selection = f"{_ROWS}::VARCHAR" if lookup.whole else "count(*)"
        statement = f"SELECT {selection} FROM {file} WHERE {column} = {self._literal(lookup, file, column)}"  # noqa: S608  all names and texts are quoted
        return Query(lambda: self._rows(statement, whole=lookup.whole), self._read)

    def _rows(self, statement: str, *, whole: bool) -> list[Any] | int:
        rows = self._connection.execute(statement).fetchall()
        return rows if whole else int(rows[0][0])

    def _column(self, lookup: Lookup, file: str) -> str:
        """The column; of a field of a VARIANT, which DuckDB reads as one value, the expression with its type."""
        inside = lookup.in_variant
        if inside is not None and self._type(file, _path(inside.names)) == "VARIANT":
            (kind,) = self._connection.from_arrow(pa.table({"c": pa.array([lookup.value])})).types
            return f"TRY_CAST({_path((*inside.names, *inside.fields))} AS {kind})"
        return _path(lookup.names)

    def _type(self, file: str, column: str) -> str:
        described = self._connection.execute(f"DESCRIBE SELECT {column} FROM {file}").fetchall()  # noqa: S608  all names and texts are quoted
        return str(described[0][1])

    def _literal(self, lookup: Lookup, file: str, column: str) -> str:
        key = (lookup.path, lookup.names)
        if key not in self._types:
            self._types[key] = self._type(file, column)
        kind, value = self._types[key], lookup.value
        if is_binary(value.type):
            data: bytes = value.as_py()
            return f"from_hex('{data.hex()}')" if kind == "BLOB" else f"CAST('{_plain(data, kind)}' AS {kind})"
        zone = "+00" if kind == "TIMESTAMP WITH TIME ZONE" else ""
        return f"CAST({_quoted(sql_text(value) + zone)} AS {kind})"

    def _read(self) -> ReadMetrics:
        try:
            profile = json.loads(self._connection.get_profiling_information(format="json"))
        except (AttributeError, duckdb.Error, ValueError):  # releases before 2.0
            return ReadMetrics()
        return ReadMetrics(
            row_groups=profile.get("query", {}).get("total_row_groups_scanned", 0),
            bytes=profile.get("io", {}).get("total_bytes_read", 0),
        )

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _plain(data: bytes, kind: str) -> str:
    """Format bytes that DuckDB reads as another type: UUID, text, or an interval of months, days and milliseconds."""
    if kind == "UUID":
        return data.hex()
    if kind == "INTERVAL":
        months, days, millis = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8))
        return f"{months} months {days} days {millis} milliseconds"
    return data.decode("utf-8").replace("'", "''")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _path(names: Sequence[str]) -> str:
    return ".".join((_ROWS, *map(quoted_name, names)))
