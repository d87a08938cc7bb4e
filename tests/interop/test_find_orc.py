"""`bloom find` finds the rows of ORC files that DuckDB finds by scanning what ORC's C++ reader reads: every type."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from pyarrow import orc

import bloomcli

pytestmark = pytest.mark.interop

ROWS: Final = 5000
STRIDE: Final = 400
DAY: Final = dt.date(2024, 1, 1)
MOMENT: Final = dt.datetime(1969, 12, 31, 12, 30)


class Kind(NamedTuple):
    """A column's type, a value for each number, and the value as bloom takes it and as SQL has it."""

    type: pa.DataType
    value: Callable[[int], Any]
    text: Callable[[Any], str] = str
    sql: str = "$1"


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _iso(value: Any) -> str:
    return str(value.isoformat())


KINDS: Final[dict[str, Kind]] = {
    **{f"int{bits}": Kind(getattr(pa, f"int{bits}")(), lambda n: n % 100 - 50) for bits in (8, 16, 32, 64)},
    "wide": Kind(pa.int64(), lambda n: n * 10**14 - 10**17),
    "real": Kind(pa.float32(), lambda n: (n % 300) / 4 - 20, repr, "$1::FLOAT"),
    "double": Kind(pa.float64(), lambda n: (0.0, -0.0, float("inf"), n / 7)[n % 4], repr, "$1::DOUBLE"),
    "flag": Kind(pa.bool_(), lambda n: n % 3 == 0, lambda v: str(v).lower()),
    "text": Kind(pa.string(), lambda n: f"käse-{n % 700}"),
    "blank": Kind(pa.string(), lambda n: "" if n % 5 else "a" * (n % 60)),
    "unique": Kind(pa.string(), lambda n: f"{n * 7919 % 100_003:x}" * 3),
    "bytes": Kind(pa.binary(), lambda n: n.to_bytes(3, "big"), _hex),
    "cents": Kind(pa.decimal128(9, 2), lambda n: Decimal(n - 1500) / 100, sql="$1::DECIMAL(9,2)"),
    "money": Kind(pa.decimal128(18, 4), lambda n: Decimal(n - 1500) / 10000, sql="$1::DECIMAL(18,4)"),
    "huge": Kind(pa.decimal128(30, 4), lambda n: Decimal(n - 1500) * 10**15, sql="$1::DECIMAL(30,4)"),
    "day": Kind(pa.date32(), lambda n: DAY + dt.timedelta(days=n - 1500), _iso),
    "moment": Kind(pa.timestamp("ns"), lambda n: MOMENT + dt.timedelta(microseconds=n * 17_001_001), _iso),
    "zoned": Kind(
        pa.timestamp("ns", "UTC"), lambda n: (MOMENT + dt.timedelta(seconds=n * 77)).replace(tzinfo=dt.UTC), _iso
    ),
}
LISTS: Final = ("int64", "text", "day")
"""Kinds that are also elements of lists."""
LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"compression": "uncompressed"},
    "zlib": {"compression": "zlib", "compression_block_size": 1 << 16},
    "zstd and dictionaries": {"compression": "zstd", "dictionary_key_size_threshold": 0.9},
    "snappy and version 1": {"compression": "snappy", "file_version": "0.11", "dictionary_key_size_threshold": 0.9},
    "lz4": {"compression": "lz4", "compression_block_size": 1 << 16},
}


def table(odd: int) -> pa.Table:
    """A column of each kind, some of its values null; those of `LISTS` also in lists and maps, and two in structs.

    Every second column is in order and the others are shuffled, the even ones or the odd ones: among the layouts each
    kind is in both orders, and each layout has both.
    """
    orders = [list(range(ROWS)), random.Random(7).sample(range(ROWS), ROWS)]
    columns: dict[str, pa.Array] = {}
    for at, (name, kind) in enumerate(KINDS.items()):
        values = [None if n % 17 == 3 else kind.value(n) for n in orders[(at + odd) % 2]]
        columns[name] = pa.array(values, kind.type)
    for at, name in enumerate(LISTS):
        kind, order = KINDS[name], orders[(at + odd) % 2]
        lists = [None if n % 11 == 1 else [kind.value(m) for m in range(n, n + n % 4)] for n in order]
        columns[f"{name}s"] = pa.array(lists, pa.list_(kind.type))
    pairs = [None if n % 13 == 2 else [(f"k{m}", m % 90) for m in range(n, n + n % 3)] for n in orders[odd]]
    columns["pairs"] = pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    inner = pa.StructArray.from_arrays([columns["text"], columns["wide"]], ["text", "wide"])
    outer = pa.StructArray.from_arrays([inner], ["inner"], mask=pa.array([n % 19 == 4 for n in orders[odd]]))
    columns["nested"] = outer
    return pa.table(columns)


@pytest.fixture(scope="module", params=LAYOUTS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = request.param
    columns = table(list(LAYOUTS).index(layout) % 2)
    path = tmp_path_factory.mktemp(layout.replace(" ", "-")) / "f.orc"
    options: dict[str, Any] = {"row_index_stride": STRIDE, "stripe_size": 70_000, "batch_size": STRIDE}
    orc.write_table(columns, path, bloom_filter_columns=[4, 8, 12], **options | LAYOUTS[layout])
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


def by_bloom(path: Path, column: str, texts: Sequence[str], **options: Any) -> list[int]:
    """The numbers of the rows that `find` gives, which are in the order of the file."""
    found = bloomcli.find(path, list(texts), column=column, jobs=1, **options)
    rows = [row for batch in found for row in batch.column("row").to_pylist()]
    assert not found.report.errors, found.report.errors
    assert found.report.rows == len(rows)
    return rows


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


@pytest.mark.parametrize("name", ["wide", "text", "unique", "huge", "moment", "int16", "real", "bytes"])
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
