"""`bloom find` finds the rows that DuckDB finds by reading everything: every type, encoding and layout of pages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import searched_columns
from support.searched_columns import Kind, by_bloom, columns, hexadecimal, iso

import bloomcli

pytestmark = pytest.mark.interop

ROWS: Final = 3000
GROUP: Final = 1000
MOMENT: Final = dt.datetime(2024, 1, 1, 12, 30)
KINDS: Final[dict[str, Kind]] = {
    **searched_columns.KINDS,
    **{f"uint{bits}": Kind(getattr(pa, f"uint{bits}")(), lambda n: n % 200) for bits in (8, 16, 32, 64)},
    "unsigned": Kind(pa.uint64(), lambda n: 2**63 + n, sql="$1::UBIGINT"),
    "fixed": Kind(pa.binary(5), lambda n: b"a%04d" % n, hexadecimal),
    "clock": Kind(pa.time64("us"), lambda n: dt.time(n % 24, n % 60, n % 59, n), iso),
    "millis": Kind(pa.timestamp("ms"), lambda n: MOMENT + dt.timedelta(milliseconds=n), iso),
    "micros": Kind(pa.timestamp("us"), lambda n: MOMENT + dt.timedelta(microseconds=n * 1001), iso),
    "zoned": Kind(
        pa.timestamp("us", "UTC"), lambda n: (MOMENT + dt.timedelta(seconds=n)).replace(tzinfo=dt.UTC), iso
    ),
}
LISTS: Final = ("int64", "text")
"""Kinds that are also elements of lists."""

SMALL: Final[dict[str, Any]] = {"data_page_size": 300, "write_batch_size": 50}
LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "dictionary": {},
    "page index": {"write_page_index": True, "use_dictionary": False, "compression": "none", **SMALL},
    "page index and dictionary": {
        "write_page_index": True,
        "data_page_version": "2.0",
        "compression": "zstd",
        **SMALL,
    },
    "no statistics": {"write_statistics": False, "use_dictionary": False, "compression": "gzip", **SMALL},
}


def table(odd: int) -> pa.Table:
    """The columns, and two of them in structs."""
    made = columns(KINDS, LISTS, ROWS, odd)
    inner = pa.StructArray.from_arrays([made["text"], made["wide"]], ["text", "wide"])
    made["nested"] = pa.StructArray.from_arrays([inner], ["inner"])
    return pa.table(made)


@pytest.fixture(scope="module", params=LAYOUTS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = request.param
    columns = table(list(LAYOUTS).index(layout) % 2)
    path = tmp_path_factory.mktemp("found") / "f.parquet"
    filtered = {"text": {"ndv": 700, "fpp": 0.01}, "wide": {"ndv": GROUP, "fpp": 0.01}, "day": {"ndv": 9, "fpp": 0.1}}
    pq.write_table(
        columns, path, row_group_size=GROUP, bloom_filter_options=filtered, store_schema=False, **LAYOUTS[layout]
    )
    return path


def by_duckdb(path: Path, condition: str, values: Sequence[Any]) -> list[list[int]]:
    """For each value the numbers of the rows that meet a condition on it (``$1``). All rows are read: the conditions
    are columns of the result, so that DuckDB uses no filter and no statistics of the file."""
    columns = ", ".join(condition.replace("$1", f"${number}") for number in range(1, len(values) + 1))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        source = f"read_parquet('{path}', file_row_number = true)"
        rows = connection.execute(f"SELECT {columns} FROM {source} ORDER BY file_row_number", list(values)).fetchall()
    assert len(rows) == ROWS
    return [[at for at, row in enumerate(rows) if row[number]] for number in range(len(values))]


NUMBERS: Final = (0, 1, 999, 1000, ROWS + 5)
"""Of rows whose values are looked up; the last one has none, and others are null."""


@pytest.mark.parametrize("name", KINDS)
def test_every_row_that_equals_is_found_and_no_other(path: Path, name: str) -> None:
    kind = KINDS[name]
    values = [kind.value(number) for number in (NUMBERS[:-1] if name == "clock" else NUMBERS)]
    for value, wanted in zip(values, by_duckdb(path, f'"{name}" = {kind.sql}', values), strict=True):
        assert by_bloom(path, name, [kind.text(value)]) == wanted, value


@pytest.mark.parametrize("name", LISTS)
def test_rows_with_an_element_that_equals_are_found_once(path: Path, name: str) -> None:
    kind = KINDS[name]
    leaf = next(c.path for c in _columns(path) if c.path.startswith(f"{name}s."))
    values = [kind.value(number) for number in NUMBERS]
    for value, wanted in zip(values, by_duckdb(path, f'list_contains("{name}s", {kind.sql})', values), strict=True):
        assert by_bloom(path, leaf, [kind.text(value)]) == wanted, value


def test_a_field_of_a_struct_is_found(path: Path) -> None:
    values = [KINDS["wide"].value(number) for number in NUMBERS]
    for value, wanted in zip(values, by_duckdb(path, "nested.inner.wide = $1", values), strict=True):
        assert by_bloom(path, "nested.inner.wide", [str(value)]) == wanted


@pytest.mark.parametrize("name", ["wide", "text", "huge", "micros", "uint16"])
def test_many_values_are_found_as_few_are(path: Path, name: str) -> None:
    kind = KINDS[name]
    wanted = {kind.value(n) for n in range(0, 2 * ROWS, 7)}
    assert len(wanted) > 28
    found = bloomcli.find(path, [kind.text(value) for value in wanted] * 12, column=name, select=[name], jobs=1)
    rows = [(row["row"], row["record"][name], row["value"]) for batch in found for row in batch.to_pylist()]
    values = pq.read_table(path, columns=[name]).column(0).to_pylist()
    assert [row for row, _, _ in rows] == [at for at, value in enumerate(values) if value in wanted]
    same = Decimal if name == "huge" else str
    assert all(same(kind.text(value)) == same(text) for _, value, text in rows)


def test_a_nan_is_found_whatever_its_bits(tmp_path: Path) -> None:
    bits = [0x7FF8000000000000, 0xFFF8000000000001, 0x3FF0000000000000, 0x7FF0000000000001]
    values = pa.array(bits, pa.uint64()).view(pa.float64())
    pq.write_table(pa.table({"x": values}), tmp_path / "nan.parquet")
    assert by_bloom(tmp_path / "nan.parquet", "x", ["nan"]) == [0, 1, 3]
    assert by_bloom(tmp_path / "nan.parquet", "x", ["nan", "1"]) == [0, 1, 2, 3]


def _columns(path: Path) -> Sequence[Any]:
    from bloomcli.formats.registry import open_file
    from bloomcli.storage.registry import open_source

    with open_source(path) as source:
        return open_file(source).columns


def test_integers_are_found_whose_deltas_duckdb_writes_with_more_bits_than_arrow_reads(tmp_path: Path) -> None:
    spread = [(-(2**31), 2**31 - 1, n * 7919 % 3000 - 1500)[n % 3] for n in range(ROWS)]
    made = {"n": pa.array(spread, pa.int32()), "s": pa.array([[n, None] for n in spread], pa.list_(pa.int32()))}
    source = pa.table({**made, "id": pa.array(range(ROWS), pa.int64())})
    path = tmp_path / "wide.parquet"
    with duckdb.connect() as connection:
        connection.register("source", source)
        connection.execute(f"COPY source TO '{path}' (FORMAT parquet, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1)")
    assert bloomcli.validate(path, columns=["*"], deep=True).findings == ()
    with pytest.raises(OSError, match="EOF"):
        pq.read_table(path)
    for column, value in (("n", -(2**31)), ("n", spread[5]), ("s.list.element", spread[5]), ("id", 17)):
        wanted = [n for n, x in enumerate(range(ROWS) if column == "id" else spread) if x == value]
        found = bloomcli.find(path, value, column=column).to_arrow()
        assert found["row"].to_pylist() == wanted, column
        assert [record["n"] for record in found["record"].to_pylist()] == [spread[row] for row in wanted]
