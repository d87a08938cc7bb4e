"""Each reader finds every value of every type, and its metrics show that it reads less with filters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.trials import NO_JAVA, of, orders, trial

from bloomcli.errors import UsageError
from bloomcli.trials.readers import ENTRIES, named
from bloomcli.trials.readers.base import digest_of, rows_of

pytestmark = pytest.mark.interop

SPARK_TYPES = [
    "tiny",
    "small",
    "whole",
    "big",
    "real",
    "wide",
    "cents",
    "money",
    "huge",
    "text",
    "label",
    "blob",
    "day",
    "moment",
    "local",
    "person.name",
    "person.age",
]


def test_every_reader_finds_the_values_of_every_type(fixtures: Path) -> None:
    report = trial(fixtures / "parquet" / "spark_types.parquet", *SPARK_TYPES, values=2, runs=0)
    for reader in report.readers:
        assert (reader.status, reader.reason) == ("equal", None), reader.reader
        present = [lookups for lookups in reader.lookups if lookups.kind == "present"]
        assert [lookups.column for lookups in present] == SPARK_TYPES
        for lookups in present:
            assert lookups.not_found == 0, (reader.reader, lookups.column)
            assert lookups.rows_with == lookups.rows_without >= lookups.lookups
        for lookups in reader.lookups:
            assert lookups.kind == "present" or lookups.rows_without == 0, (reader.reader, lookups.column)


@pytest.mark.parametrize("filters", [False, True], ids=["added", "there"])
def test_readers_that_use_filters_read_less_by_their_own_metrics(tmp_path: Path, filters: bool) -> None:
    report = trial(orders(tmp_path / "f.parquet", filters=filters), "id", values=6)
    for name in ("duckdb", "datafusion"):
        reader = of(report, name)
        assert reader.uses_filters
        (present, absent) = reader.lookups
        assert absent.row_groups == 60
        assert (absent.row_groups_without or 0) >= 54  # minimum and maximum exclude a value now and then
        assert absent.row_groups_with <= 6  # false positives at 1 %
        assert present.row_groups_with < (present.row_groups_without or 0)
        assert absent.bytes_with < (absent.bytes_without or 0) / 2
    clickhouse = of(report, "chdb")
    (present, absent) = clickhouse.lookups
    assert (absent.rows_read_without or 0) >= 54 * 2000
    assert absent.rows_read_with <= 6 * 2000
    for name in ("pyarrow", "polars"):
        reader = of(report, name)
        assert not reader.uses_filters
        assert {lookups.row_groups_with for lookups in reader.lookups} == {None}
    switched = {reader.reader for reader in report.readers if reader.comparison == "switch"}
    assert switched == ({"datafusion", "chdb"} if filters else set())
    others = {reader.comparison for reader in report.readers} - {"switch"}
    assert others == {"removed" if filters else "added"}


def test_names_that_sql_quotes_or_that_are_patterns_are_looked_up(tmp_path: Path) -> None:
    folder = tmp_path / "day=1" / 'it\'s [a] "folder" *'
    folder.mkdir(parents=True)
    names = [
        'a"b',
        "a`b",
        "a'b",
        "a b;--",
        "select",
        "bloom trial",
        "ä\\n",
        "*",
        "^a.*$",
        "a.b",
        "e,f",
        "日本",
        "new\nline",
    ]
    path = folder / "part {0}.snappy"
    rows = [f'it\'s \\ "{n}" ü' for n in range(200)]
    pq.write_table(pa.table(dict.fromkeys([*names, "abc"], rows)), path)
    report = trial(path, *names, values=2, runs=0)
    for reader in report.readers:
        assert (reader.status, reader.reason) == ("equal", None), reader.reader
        assert sum(lookups.rows_with for lookups in reader.lookups) == 2 * len(names), reader.reader
        assert not any(lookups.not_found for lookups in reader.lookups)
        assert {lookups.column for lookups in reader.lookups} == set(names), reader.reader


def test_a_column_that_a_reader_cannot_compare_is_said_and_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    half = pa.array([n + 0.5 for n in range(100)], pa.float32()).cast(pa.float16())
    pq.write_table(pa.table({"half": half, "n": list(range(100))}), path)
    reader = of(trial(path, "half", "n", readers=["pyarrow"]), "pyarrow")
    assert reader.status == "equal"
    assert {lookups.column for lookups in reader.lookups} == {"n"}
    assert reader.reason is not None
    assert "8 lookups of half failed without filters" in reader.reason


def test_rows_are_compared_whole_and_in_any_order() -> None:
    one = pa.table({"a": [1, 2, 2], "b": ["x", None, "z"]})
    assert digest_of(rows_of(one)) == digest_of(rows_of(one.take([2, 0, 1])))
    assert digest_of(rows_of(one)) != digest_of(rows_of(one.take([0, 1, 1])))
    assert digest_of(rows_of(one))[0] == 3
    moments = pa.array([1, 1001], pa.int64()).cast(pa.timestamp("ns"))
    nested = pa.table({"m": moments, "s": pa.StructArray.from_arrays([moments], ["m"])})
    assert digest_of(rows_of(nested)) != digest_of(rows_of(nested.take([0, 0])))
    assert digest_of(7) == (7, None)


def test_readers_are_known_by_their_names_and_others_get_similar_names() -> None:
    assert [entry.name for entry in named(["ClickHouse", "pyspark", "arrow", "chdb"])] == ["chdb", "spark", "pyarrow"]
    assert named([]) == ENTRIES
    assert {entry.name for entry in ENTRIES} == {*NO_JAVA, "spark"}
    with pytest.raises(UsageError, match="no reader 'duckbd' to run") as raised:
        named(["duckbd"])
    assert "did you mean duckdb?" in str(raised.value.hint)
    with pytest.raises(UsageError) as raised:
        named(["trino"])
    assert "bloom validate --readers" in str(raised.value.hint)


@pytest.mark.parametrize("name", NO_JAVA)
def test_no_reader_is_imported_to_know_its_version(name: str) -> None:
    program = (
        "import sys\nfrom bloomcli.trials.readers import named\n"
        f"assert named([{name!r}])[0].version\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"duckdb", "datafusion", "polars", "chdb", "pyspark"} & set(done.stdout.split())


def test_orc_files_are_tried_by_the_readers_that_read_them(fixtures: Path) -> None:
    report = trial(fixtures / "orc" / "java_types.orc", "text", "big", values=3, runs=0)
    assert {reader.reader: reader.status for reader in report.readers} == {
        "duckdb": "unsupported",
        "datafusion": "unsupported",
        "polars": "unsupported",
        "pyarrow": "equal",
        "chdb": "equal",
    }
    assert of(report, "duckdb").reason == "it doesn't read ORC files"
    assert not any(lookups.not_found for lookups in of(report, "chdb").lookups)
    assert all(lookups.rows_without for lookups in of(report, "chdb").lookups if lookups.kind == "present")


def test_rows_of_a_failed_query_of_clickhouse_are_not_those_of_the_next_one() -> None:
    """chDB gives what a query has made before its error to the next query."""
    pytest.importorskip("chdb")
    from bloomcli.trials.readers.chdb import InstalledReader

    reader = InstalledReader()
    settings = "max_threads = 1, max_block_size = 50000"
    failing = f"SELECT number, throwIf(number = 150000) FROM numbers(200000) SETTINGS {settings}"
    with pytest.raises(Exception, match="throwIf"):
        reader._ask(failing)
    assert reader._ask("SELECT 7 AS n").to_pydict() == {"n": [7]}
    reader.close()
