"""Compares the lookups derived from statements with the rows that engines return for them."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from sqlglot import Dialect

from bloomcli.advice.sql.reading import StatementReader, read_text
from bloomcli.advice.sql.scopes import Names
from tests.support.sql_statements import COLUMNS, statements

pytestmark = pytest.mark.slow

_TYPES = {"id": "INTEGER", "grp": "INTEGER", "name": "VARCHAR", "day": "DATE"}
_ROWS = """
    SELECT i % 5 AS id, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 3 END AS grp,
           CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'it''s' END AS name,
           DATE '2024-01-01' + CAST(i % 4 AS INTEGER) AS day
    FROM range({}) r(i)"""


@pytest.fixture(scope="module")
def tables() -> duckdb.DuckDBPyConnection:
    """Tables all_rows and u of every combination of few values and NULL."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE all_rows AS {_ROWS.format(60)}")
    connection.execute(f"CREATE TABLE u AS {_ROWS.format(9)} UNION ALL SELECT NULL, 1, 'a', NULL")
    return connection


def _read(statement: str) -> StatementReader:
    names = Names(Dialect.get_or_raise("duckdb"), COLUMNS)
    (found,) = read_text(statement, names, lambda parts: [part.text for part in parts] == ["t"])
    return found


def _result(connection: duckdb.DuckDBPyConnection, statement: str) -> Counter[tuple[object, ...]]:
    return Counter(connection.execute(statement).fetchall())


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(statement=statements())
def test_rows_without_a_looked_up_value_change_no_result(tables: duckdb.DuckDBPyConnection, statement: str) -> None:
    found = _read(statement)
    tables.execute("CREATE OR REPLACE VIEW t AS SELECT * FROM all_rows")
    expected = _result(tables, statement)
    by_column: dict[str, list[str]] = {}
    for read in found.lookups:
        assert None not in read.values, "all values of these statements are literals"
        by_column.setdefault(read.column, []).extend(value.text for value in read.values if value is not None)
    for column, texts in by_column.items():
        listed = ", ".join(f"CAST('{text.replace(chr(39), chr(39) * 2)}' AS {_TYPES[column]})" for text in texts)
        kept = f"{column} IN ({listed})" if texts else "false"
        tables.execute(f"CREATE OR REPLACE VIEW t AS SELECT * FROM all_rows WHERE {kept}")
        assert _result(tables, statement) == expected, (column, texts)
