"""What named readers would lose: for every rule a real writer's file that breaks it, and a neighbour that doesn't."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from support import blooms, footers, orcfiles
from support.tables import write

import bloomcli
from bloomcli.checks.readers import confirmed_zeros, readers
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.policy.table_schema import TableSchema, parse
from bloomcli.rules.readers import READERS
from bloomcli.storage.registry import open_source

EVERYONE = tuple(name for name, who in READERS.items() if name != "impala" and not who.issues)
"""But for the one that can't take the small filters of most files here, and those with faults that no file shows:
they have tests of their own."""
ZERO = "reader-negative-zero"


@contextmanager
def opened(path: Path) -> Iterator[FilterFile]:
    with open_source(path) as source:
        yield open_file(source)


def check(
    path: Path,
    names: Sequence[str] = EVERYONE,
    table: TableSchema | str | None = None,
    columns: set[int] | None = None,
) -> list[Finding]:
    """The findings."""
    schema = parse(table, "t") if isinstance(table, str) else table
    with opened(path) as file:
        return list(readers(file, list(file.facts(None)), names, schema, columns))


def brief(findings: list[Finding]) -> list[tuple[str, str, str | None, int | None, int | None]]:
    return [(f.id, f.severity.value, f.column, f.stripe, f.row_group) for f in findings]


def floats(path: Path, *groups: list[float], kind: str = "float64", **options: Any) -> Path:
    """A row group of each list, with filters by Arrow C++, which inserts the values unchanged."""
    rows = len(groups[0])
    array = pa.array(np.array([v for group in groups for v in group], dtype=kind))
    return write(path, {"c": array}, rows=rows, dictionary=False, blooms={"c": {"ndv": 1000}}, **options)


PLUS, MINUS, BOTH, NONE = [-2.0, 0.0, 3.0], [-2.0, -0.0, 3.0], [-0.0, 0.0, 3.0], [-2.0, 1.0, 3.0]


@pytest.mark.parametrize("values", [PLUS, BOTH, NONE])
def test_the_ordinary_cases_are_no_finding(tmp_path: Path, values: list[float]) -> None:
    assert check(floats(tmp_path / "f", values)) == []


def test_readers_that_are_right_about_zeros_and_those_that_do_not_look_are_not_named(tmp_path: Path) -> None:
    path = floats(tmp_path / "f", MINUS)
    (finding,) = [f for f in check(path, list(READERS)) if f.id == ZERO]
    for name, who in READERS.items():
        loses = "parquet" in who.probes and "DOUBLE" in who.zeros and name != "clickhouse"
        assert sum(f.id == ZERO for f in check(path, [name])) == loses
        assert (f"{who.title}, " in finding.message or f"{who.title} lose" in finding.message) == loses
    half = floats(tmp_path / "h", MINUS, kind="float16")
    names = {name for name in READERS for f in check(half, [name]) if f.id == ZERO}
    assert names == {"parquet-java"}


def test_statistics_that_leave_no_room_for_a_zero_rule_it_out(tmp_path: Path) -> None:
    """Three values in one block of 32 bytes: many other values seem to be there, negative zero among them."""
    zero, plain = struct.pack("<d", -0.0), struct.Struct("<d").pack
    values = [v / 8 for v in range(8, 400)]
    full = blooms.build([plain(v) for v in values] + [zero], 1024)
    path = write(tmp_path / "f", {"c": pa.array(values)}, dictionary=False)
    (tmp_path / "with").write_bytes(blooms.planted(path.read_bytes(), 0, 0, blooms.header(1024) + full))
    assert not blooms_hold(full, plain(0.0))
    assert check(tmp_path / "with") == []
    path = write(tmp_path / "g", {"c": pa.array(values)}, dictionary=False, write_statistics=False)
    (tmp_path / "without").write_bytes(blooms.planted(path.read_bytes(), 0, 0, blooms.header(1024) + full))
    assert brief(check(tmp_path / "without")) == [(ZERO, "note", "c", None, 0)]


def blooms_hold(bitset: bytes, plain: bytes) -> bool:
    block, bits = blooms.positions(blooms.hash_of(plain), len(bitset) // 32)
    words = struct.unpack_from("<8I", bitset, block * 32)
    return all(word >> bit & 1 for word, bit in zip(words, bits, strict=True))


def test_what_deep_found_is_an_error_of_the_readers_that_are_wrong(tmp_path: Path) -> None:
    path = floats(tmp_path / "f", PLUS, MINUS, MINUS)
    found = [Finding(id="x", severity=Severity.ERROR, message="", column="c", row_group=i) for i in (1, 2)]
    with opened(path) as file:
        (sure,) = confirmed_zeros(file, found, ["spark", "trino", "duckdb"])
        assert list(confirmed_zeros(file, found, ["duckdb", "clickhouse", "polars"])) == []
        assert list(confirmed_zeros(file, [], EVERYONE)) == []
    assert brief([sure]) == [(ZERO, "error", "c", None, 1)]
    assert "in 2 row groups: Spark, Trino lose its rows" in sure.message
    report = bloomcli.validate(path, readers=["spark"], deep=True)
    assert brief(list(report.findings)) == [(ZERO, "error", "c", None, 1)]
    assert not report.ok
    assert bloomcli.validate(path, readers=["spark"]).ok


def test_an_orc_filter_of_negative_zero_alone_is_found_by_stripe(tmp_path: Path) -> None:
    values = [1.0] * 1000 + [*MINUS, *[0.5] * 997] + MINUS
    table = pa.table({"c": values, "f": pa.array(values, pa.float32()), "s": ["x" * 200] * 2003, "i": range(2003)})
    path = orcfiles.write(tmp_path / "f", table, stripe=1000, stride=1000, blooms=[1, 2, 3, 4])
    found = check(path)
    assert [(f.id, f.column, f.stripe, f.row_group) for f in found] == [(ZERO, "c", 1, 0), (ZERO, "f", 1, 0)]
    assert all(f.places is not None and f.places.startswith("1:0") for f in found)
    assert "in 2 of 3 row groups" in found[0].message
    for name, who in READERS.items():
        assert len(check(path, [name], columns={1})) == ("orc" in who.probes and "DOUBLE" in who.zeros)
        assert len(check(path, [name], columns={2})) == ("orc" in who.probes and "FLOAT" in who.zeros)
    plus = pa.table({"c": [abs(v) for v in values], "i": range(2003)})
    assert check(orcfiles.write(tmp_path / "g", plus, blooms=[1, 2])) == []
    bloomcli.add(path, ["c", "f"], output=tmp_path / "ours", replace=True)
    assert check(tmp_path / "ours") == []


NOON = dt.datetime(2024, 2, 29, 12)


def moments(path: Path, unit: str) -> Path:
    write(path, {"c": pa.array([NOON, None, NOON], pa.timestamp(unit))}, rows=1)
    bloomcli.add(path, ["c"], in_place=True)
    return path


def test_timestamps_in_milliseconds_are_an_error_under_iceberg_and_in_microseconds_not(tmp_path: Path) -> None:
    path = moments(tmp_path / "ms", "ms")
    (finding,) = check(path)
    assert brief([finding]) == [("reader-millis", "error", "c", None, 0)]
    assert "hashed as milliseconds and Iceberg looks microseconds up: every `=` and IN loses" in finding.message
    assert finding.message.endswith("in 2 row groups with a filter")  # the null's row group has nothing to lose
    assert "`bloom remove FILE --columns c --in-place`" in (finding.hint or "")
    assert check(path, set(EVERYONE) - {"iceberg"}) == []
    assert [f.id for f in check(path, ["iceberg"], "c timestamp")] == ["reader-millis"]
    assert check(path, ["iceberg"], "c bigint") == []
    assert check(moments(tmp_path / "us", "us")) == []
    assert check(moments(tmp_path / "ns", "ns")) == []


def test_times_in_milliseconds_are_not_looked_up_by_iceberg(tmp_path: Path) -> None:
    path = write(tmp_path / "f", {"c": pa.array([dt.time(12)], pa.time32("ms"))})
    bloomcli.add(path, ["c"], in_place=True)
    assert check(path) == []


def decimals(path: Path, precision: int, **options: Any) -> Path:
    values = pa.array([Decimal(i) / 100 for i in range(-9, 9)], pa.decimal128(precision, 2))
    write(path, {"c": values}, **options)
    bloomcli.add(path, ["c"], in_place=True)
    return path


def duck_decimals(path: Path, precision: int) -> Path:
    """DuckDB stores decimals of more than 18 digits in 16 bytes."""
    with duckdb.connect() as duck:
        duck.execute(
            f"COPY (SELECT (i / 7)::DECIMAL({precision}, 2) AS c FROM range(20) t(i)) TO '{path}' (FORMAT parquet)"
        )
    bloomcli.add(path, ["c"], in_place=True, replace=True)
    return path


def test_decimals_wider_than_their_precision_needs_are_an_error_under_iceberg(tmp_path: Path) -> None:
    path = duck_decimals(tmp_path / "f", 20)
    (finding,) = check(path)
    assert brief([finding]) == [("reader-decimal-width", "error", "c", None, 0)]
    assert "decimals are hashed at 16 bytes and Iceberg looks 9 up" in finding.message
    assert "as FIXED_LEN_BYTE_ARRAY(9)" in (finding.hint or "")
    assert [f.id for f in check(path, ["iceberg"], "c decimal(20, 2)")] == ["reader-decimal-width"]
    assert check(path, ["iceberg"], "c binary") == []
    assert check(duck_decimals(tmp_path / "g", 37), ["iceberg"]) == []
    for precision in (9, 20, 37):
        assert check(decimals(tmp_path / f"{precision}", precision), ["iceberg"]) == []


def test_decimals_of_other_than_16_bytes_are_an_error_under_older_datafusion(tmp_path: Path) -> None:
    old = ["datafusion-54"]
    for precision, hint in ((9, "as INT32 or INT64"), (20, "--columns c --in-place`")):
        (finding,) = check(decimals(tmp_path / f"{precision}", precision), ["datafusion", *old])
        assert brief([finding]) == [("reader-decimal-width", "error", "c", None, 0)]
        assert "DataFusion up to 54 looks 16 up" in finding.message
        assert (finding.hint or "").endswith(hint)
    assert check(duck_decimals(tmp_path / "f", 20), old) == []
    assert check(decimals(tmp_path / "37", 37), old) == []
    assert check(decimals(tmp_path / "int", 9, store_decimal_as_integer=True)) == []


def test_readers_that_err_differently_share_a_finding(tmp_path: Path) -> None:
    path = decimals(tmp_path / "f", 20)
    bare = path.read_bytes()
    path.write_bytes(footers.edited(bare, footers_type_length(12)))
    (finding,) = check(path)
    assert "hashed at 12 bytes and Iceberg, DataFusion up to 54 look 9 and 16 up" in finding.message


def test_decimals_of_any_length_are_a_warning_under_iceberg(tmp_path: Path) -> None:
    """What parquet-java writes of them is tried in tests/interop/test_reader_rules.py; here the type alone counts."""
    path = decimals(tmp_path / "f", 20)

    def as_byte_array(tree: Any) -> None:
        element = tree[2][1].values[1]
        element[1] = (element[1][0], 6)
        del element[2]
        chunk = footers.meta(tree, 0, 0)
        chunk[1] = (chunk[1][0], 6)

    path.write_bytes(footers.edited(path.read_bytes(), as_byte_array))
    (finding,) = check(path)
    assert brief([finding]) == [("reader-decimal-width", "warning", "c", None, 0)]
    assert "at the bytes that each has and Iceberg looks 9 up: `=` and IN lose the rows of shorter" in finding.message
    assert "FIXED_LEN_BYTE_ARRAY(9)" in (finding.hint or "")


def footers_type_length(length: int) -> Any:
    """An edit of the first leaf's type_length (field 2 of SchemaElement)."""

    def edit(tree: Any) -> None:
        element = tree[2][1].values[1]
        element[2] = (element[2][0], length)

    return edit


def numbers(path: Path, kind: pa.DataType) -> Path:
    write(path, {"c": pa.array(range(20), kind), "l": pa.array([[i] for i in range(20)], pa.list_(kind))}, rows=10)
    bloomcli.add(path, ["*"], in_place=True)
    return path


@pytest.mark.parametrize(
    ("kind", "table", "hashed"),
    [
        (pa.int32(), "bigint", "INT32"),
        (pa.int16(), "bigint", "INT32"),
        (pa.uint32(), "bigint", "INT32"),
        (pa.int64(), "int", "INT64"),
        (pa.float32(), "double", "FLOAT"),
        (pa.int32(), "double", "INT32"),
    ],
)
def test_a_column_of_another_width_than_the_tables_is_an_error_under_trino(
    tmp_path: Path, kind: pa.DataType, table: str, hashed: str
) -> None:
    path = numbers(tmp_path / "f", kind)
    found = check(path, EVERYONE, f"C {table}, l array<{table}>")
    assert brief(found) == [("reader-widened", "error", name, None, 0) for name in ("c", "l.list.element")]
    assert f"hashed as {hashed}, and Trino looks them up as the table's {table.upper()}" in found[0].message
    assert found[0].message.endswith("in 2 row groups with a filter")
    assert f"the table's type, {table.upper()}" in (found[0].hint or "")
    assert len(check(path, ["trino"], f"c {table}, l array<{table}>", columns={0})) == 1
    assert check(path, set(EVERYONE) - {"trino"}, f"c {table}, l array<{table}>") == []
    assert check(path, EVERYONE) == []
    assert check(path, EVERYONE, "other bigint") == []


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (pa.int32(), "int"),
        (pa.int8(), "tinyint"),
        (pa.uint16(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "real"),
        (pa.float64(), "double"),
        (pa.int32(), "decimal(12,2)"),
        (pa.date32(), "date"),
        (pa.date32(), "timestamp"),
        (pa.timestamp("us"), "bigint"),
    ],
)
def test_a_column_of_the_tables_width_and_one_that_trino_does_not_look_up_are_no_finding(
    tmp_path: Path, kind: pa.DataType, table: str
) -> None:
    assert check(numbers(tmp_path / "f", kind), ["trino", "spark"], f"c {table}, l array<{table}>") == []


def test_columns_without_a_filter_and_filters_that_no_reader_uses_are_no_finding(
    tmp_path: Path, fixtures: Path
) -> None:
    path = write(tmp_path / "f", {"c": pa.array([NOON], pa.timestamp("ms"))})
    assert check(path) == []
    bloomcli.add(path, ["c"], output=tmp_path / "draft", variant="parquet-2018-12byte")
    assert check(tmp_path / "draft") == []
    data = bytearray(moments(tmp_path / "broken", "ms").read_bytes())
    for fact in bloomcli.inspect(tmp_path / "broken").filters:
        data[fact.offset] ^= 0xFF
    (tmp_path / "broken").write_bytes(data)
    assert check(tmp_path / "broken") == []
    empty = write(tmp_path / "nulls", {"c": pa.array([None], pa.timestamp("ms"))}, blooms={"c": {"ndv": 9}})
    assert check(empty) == []


def test_other_formats_and_no_readers_give_nothing(tmp_path: Path, fixtures: Path) -> None:
    assert check(moments(tmp_path / "f", "ms"), []) == []
    for path in sorted((fixtures / "mosaic").glob("*.mosaic")):
        assert check(path) == []


@pytest.mark.parametrize("name", ["pyarrow_types", "spark_types", "duckdb_types", "arrow_rs_between", "orders"])
def test_untouched_files_of_real_writers_give_no_error_but_where_a_reader_really_errs(
    fixtures: Path, name: str
) -> None:
    found = {
        (f.id, f.column) for f in check(fixtures / "parquet" / f"{name}.parquet") if f.severity is Severity.ERROR
    }
    wrong = {
        "pyarrow_types": {("reader-decimal-width", "decimal"), ("reader-float16", "half")},
    }
    assert found == wrong.get(name, set())


# --- several columns of one path


def test_a_column_is_not_blamed_for_the_filters_of_another_with_the_same_path(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1.5, 2.5], "a": [{"b": 1}, {"b": 2}]})
    write(tmp_path / "f", table, blooms={"a.b": {"ndv": 2, "fpp": 0.5}})
    with opened(tmp_path / "f") as file:
        facts = list(file.facts(None))
        both = list(readers(file, facts, ["impala"], None, None))
        one = list(readers(file, [f for f in facts if f.physical == "INT64"], ["impala"], None, None))
    assert [f.physical for f in facts] == ["DOUBLE", "INT64"]
    assert [f.message.partition(" the ")[0] for f in both] == ["in 1 row group"] * 2
    assert [f.offset for f in both] == [f.offset for f in facts]
    assert [f.offset for f in one] == [facts[1].offset]


# --- reader-interval


def intervals(path: Path, **options: Any) -> Path:
    """Two row groups of up to 49 days, by DuckDB, which says that its filters hold the normal form."""
    with duckdb.connect() as duck:
        duck.execute(
            "COPY (SELECT i, iv, [iv] AS l, {'iv': iv} AS s"
            " FROM (SELECT i, INTERVAL (i % 50) DAY AS iv FROM range(4096) t(i)))"
            f" TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
    return path


INTERVALS = ["iv", "l.list.element", "s.iv"]


def test_filters_without_the_normal_form_of_intervals_are_an_error_of_duckdb(tmp_path: Path) -> None:
    if int(duckdb.__version__.partition(".")[0]) < 2:
        pytest.skip("needs DuckDB 2, which inserts the normal form")
    path = intervals(tmp_path / "f")
    assert check(path, ["duckdb"]) == []
    bloomcli.add(path, INTERVALS, output=tmp_path / "ours", replace=True)
    assert check(tmp_path / "ours", ["duckdb"]) == []
    assert bloomcli.validate(tmp_path / "ours", readers=["duckdb"], deep=True).findings == ()
    for column in range(1, 4):
        lacking = tmp_path / f"lacking{column}"
        lacking.write_bytes(with_raw_hashes_alone(path.read_bytes(), 1, column))
        (finding,) = check(lacking, ["duckdb"])
        assert brief([finding]) == [("reader-interval", "error", INTERVALS[column - 1], None, 1)]
        assert "in 1 row group they don't: DuckDB loses rows" in finding.message
        assert finding.places == "1"
        assert check(lacking, ["spark", "duckdb-1", "clickhouse"]) == check(path, ["clickhouse"])
        assert not bloomcli.validate(lacking, readers=["duckdb"], deep=True).ok
        assert bloomcli.validate(lacking).findings == ()
        (same,) = bloomcli.validate(lacking, deep=True).findings
        assert replace(same, hint=None) == replace(finding, hint=None)  # the footer's word, whoever reads
        others = [name for n, name in enumerate(INTERVALS, start=1) if n != column]
        assert bloomcli.validate(lacking, columns=others, deep=True).findings == ()
        assert bloomcli.validate(lacking, readers=["spark"], deep=True).ok
        bloomcli.add(lacking, [finding.column or ""], in_place=True, replace=True)  # as the hint says
        assert check(lacking, ["duckdb"]) == []


def with_raw_hashes_alone(data: bytes, row_group: int, column: int) -> bytes:
    """The file with a filter of the stored bytes alone, as older releases of bloom built it."""
    plain = [struct.pack("<III", 0, days, 0) for days in range(50)]
    bits = blooms.build(plain, 256)
    return blooms.planted(data, row_group, column, blooms.header(256) + bits)
