"""`bloom find` finds the rows of ORC files that DuckDB finds by scanning what ORC's C++ reader reads: every type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from pyarrow import orc
from support import searched_columns
from support.searched_columns import Kind, by_bloom, columns, iso, orders

import bloomcli

pytestmark = pytest.mark.interop

ROWS: Final = 5000
STRIDE: Final = 400
MOMENT: Final = dt.datetime(1969, 12, 31, 12, 30)
KINDS: Final[dict[str, Kind]] = {
    **searched_columns.KINDS,
    "unique": Kind(pa.string(), lambda n: f"{n * 7919 % 100_003:x}" * 3),
    "moment": Kind(pa.timestamp("ns"), lambda n: MOMENT + dt.timedelta(microseconds=n * 17_001_001), iso),
    "zoned": Kind(
        pa.timestamp("ns", "UTC"), lambda n: (MOMENT + dt.timedelta(seconds=n * 77)).replace(tzinfo=dt.UTC), iso
    ),
}
LISTS: Final = ("int64", "text", "day")
"""Kinds that are also elements of lists."""
LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"compression": "uncompressed"},
    "zstd and dictionaries": {"compression": "zstd", "dictionary_key_size_threshold": 0.9},
    "snappy and version 1": {"compression": "snappy", "file_version": "0.11", "dictionary_key_size_threshold": 0.9},
}


def table(odd: int) -> pa.Table:
    """The columns, a map, and two of them in structs."""
    made = columns(KINDS, LISTS, ROWS, odd)
    pairs = [None if n % 13 == 2 else [(f"k{m}", m % 90) for m in range(n, n + n % 3)] for n in orders(ROWS)[odd]]
    made["pairs"] = pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    inner = pa.StructArray.from_arrays([made["text"], made["wide"]], ["text", "wide"])
    outer = pa.StructArray.from_arrays([inner], ["inner"], mask=pa.array([n % 19 == 4 for n in orders(ROWS)[odd]]))
    made["nested"] = outer
    return pa.table(made)


@pytest.fixture(scope="module", params=LAYOUTS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = request.param
    columns = table(list(LAYOUTS).index(layout) % 2)
    path = tmp_path_factory.mktemp(layout.replace(" ", "-")) / "f.orc"
    options: dict[str, Any] = {"row_index_stride": STRIDE, "stripe_size": 70_000, "batch_size": STRIDE}
    orc.write_table(columns, path, bloom_filter_columns=[4, 9, 11], **options | LAYOUTS[layout])
    return path


@pytest.fixture(scope="module")
def scanned(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    rows = orc.read_table(path)
    rows = rows.append_column("number", pa.array(range(rows.num_rows)))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET disabled_optimizers = 'filter_pushdown, statistics_propagation'")
        connection.register("rows", rows)
        yield connection


def by_duckdb(scanned: duckdb.DuckDBPyConnection, where: str, value: Any) -> list[int]:
    found = scanned.execute(f"SELECT number FROM rows WHERE {where} ORDER BY 1", [value])
    return [row for (row,) in found.fetchall()]


NUMBERS: Final = (0, 1, 1399, 4999, ROWS + 5)
"""Of rows whose values are looked up; the last one has none, and others are null."""


def test_stripes_and_row_groups_are_numbered_as_probe_does(path: Path) -> None:
    report: Any = bloomcli.probe(path, values=["1"], column="wide")
    places = [(v.stripe, v.row_group) for v in report.verdicts]
    assert len(places) >= ROWS // STRIDE
    if "plain" in str(path):  # of compressed streams ORC C++ counts whole blocks only, so that stripes become larger
        assert len({stripe for stripe, _ in places}) > 1
    found = bloomcli.find(path, [str(KINDS["wide"].value(4000))], column="wide", select=["wide"])
    ((stripe, group, row),) = [
        (row["stripe"], row["row_group"], row["row"]) for batch in found for row in batch.to_pylist()
    ]
    file = orc.ORCFile(path)
    first = sum(file.read_stripe(number).num_rows for number in range(stripe))
    assert (stripe, group) in places
    assert group == (row - first) // STRIDE


@pytest.mark.parametrize("name", KINDS)
def test_every_row_that_equals_is_found_and_no_other(
    path: Path, scanned: duckdb.DuckDBPyConnection, name: str
) -> None:
    kind = KINDS[name]
    for number in NUMBERS:
        value = kind.value(number)
        wanted = by_duckdb(scanned, f'"{name}" = {kind.sql}', value)
        assert by_bloom(path, name, [kind.text(value)], select=[name]) == wanted, value


@pytest.mark.parametrize("name", LISTS)
def test_rows_with_an_element_that_equals_are_found_once(
    path: Path, scanned: duckdb.DuckDBPyConnection, name: str
) -> None:
    kind = KINDS[name]
    for number in NUMBERS:
        value = kind.value(number)
        wanted = by_duckdb(scanned, f'list_contains("{name}s", {kind.sql})', value)
        assert by_bloom(path, f"{name}s._elem", [kind.text(value)], select=["wide"]) == wanted, value


def test_keys_and_values_of_maps_and_fields_of_structs_are_found(
    path: Path, scanned: duckdb.DuckDBPyConnection
) -> None:
    for number in NUMBERS:
        key = by_duckdb(scanned, "list_contains(map_keys(pairs), $1)", f"k{number}")
        assert by_bloom(path, "pairs._key", [f"k{number}"], select=["pairs"]) == key
        value = by_duckdb(scanned, "list_contains(map_values(pairs), $1)", number % 90)
        assert by_bloom(path, "pairs._value", [str(number % 90)], select=["pairs"]) == value
        wide = KINDS["wide"].value(number)
        wanted = by_duckdb(scanned, "nested.inner.wide = $1", wide)
        assert by_bloom(path, "nested.inner.wide", [str(wide)], select=["nested.inner.text"]) == wanted


@pytest.mark.parametrize("name", ["wide", "text", "unique", "huge", "moment", "real"])
def test_many_values_are_found_as_few_are(path: Path, name: str) -> None:
    kind = KINDS[name]
    wanted = {kind.value(n) for n in range(0, 2 * ROWS, 7)}
    found = bloomcli.find(path, [kind.text(value) for value in wanted] * 30, column=name, select=[name], jobs=1)
    rows = [(row["row"], row["record"][name]) for batch in found for row in batch.to_pylist()]
    assert not found.report.errors
    values = orc.read_table(path, columns=[name]).column(0).to_pylist()
    assert [row for row, _ in rows] == [at for at, value in enumerate(values) if value in wanted]
    assert all(value in wanted for _, value in rows)


def test_records_are_what_pyarrow_reads(path: Path) -> None:
    found = bloomcli.find(path, [str(n % 100 - 50) for n in range(0, ROWS, 50)], column="int64", jobs=1)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert not found.report.errors
    whole = orc.read_table(path).to_pylist()
    assert rows
    assert all(row["record"] == whole[row["row"]] for row in rows)
