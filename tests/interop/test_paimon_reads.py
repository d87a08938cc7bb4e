"""Paimon's own library finds every row by index files that `fold` and `add --replace` wrote, and uses them."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from conftest import need
from support.golden import ENGINE_FILTERS
from support.processes import started
from support.servers import install

import bloomcli
from bloomcli.engine_filters.paimon.index_file import BLOOM, Embedded, IndexFile

pytestmark = pytest.mark.interop

PROGRAM = Path(__file__).parents[1] / "support" / "PaimonTables.java"
COLUMNS = 15
TEXT, ROW = 0, 7


RowsFound = Callable[[Path, str, list[tuple[int, int]]], list[str]]
"""The number of rows that Paimon finds by the value of each pair of a column and a row of a warehouse's table, or its
error."""


@pytest.fixture(scope="module")
def rows_found() -> Iterator[RowsFound]:
    """One Java process, which takes seconds to compile the program and to load Paimon."""
    jars = install.program("paimon")
    need(jars is not None, "Paimon: python tests/support/servers/install.py paimon")
    need(shutil.which("javac") is not None, "a JDK on the PATH")
    assert jars is not None
    spark = Path(pyspark.__file__).parent / "jars"  # has Hadoop's classes, which Paimon's library needs
    hadoop = [path for name in ("hadoop-client", "slf4j-api") for path in spark.glob(f"{name}*.jar")]
    paths = os.pathsep.join(map(str, [*jars.glob("*.jar"), *hadoop]))
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", paths, str(PROGRAM), "find"]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def ask(warehouse: Path, table: str, lookups: list[tuple[int, int]]) -> list[str]:
            requests.writelines(f"{column} {row} {table} {warehouse}\n" for column, row in lookups)
            requests.flush()
            return [answers.readline().strip() for _ in lookups]

        yield ask
        requests.close()
        assert process.wait(600) == 0


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ENGINE_FILTERS / "paimon-tables.zip") as packed:
        packed.extractall(tmp_path)
    return tmp_path


def file_of(warehouse: Path, table: str) -> Path:
    (path,) = (warehouse / "d.db" / table / "bucket-0").glob(f"*.{table}")
    return path


@pytest.mark.parametrize("table", ["parquet", "orc"])
def test_paimon_finds_every_row_by_index_files_that_were_written_again(
    warehouse: Path, rows_found: RowsFound, table: str
) -> None:
    path = file_of(warehouse, table)
    lookups = [(column, row) for column in range(COLUMNS) for row in (0, 1, ROW, 20, 120, 298) if column != 3]
    before = rows_found(warehouse, table, lookups)
    columns = [one.column for one in bloomcli.inspect(path).by_column if not one.column.startswith("tags")]
    if table == "orc":
        columns.remove("fixed")  # a CHAR, padded with blanks
    bloomcli.add(path, columns, fpp=0.02, replace=True, in_place=True)
    assert {one.id for one in bloomcli.validate(path, deep=True).findings} == {"filter-not-checked"}
    found = rows_found(warehouse, table, lookups)
    assert len(found) == len(lookups)
    assert found == before  # in ORC, Paimon doesn't find floating-point numbers by its own index files either
    if table == "parquet":
        assert set(found) == {"1"}, list(zip(lookups, found, strict=True))


def test_paimon_uses_the_index_file_and_fails_without_it(warehouse: Path, rows_found: RowsFound) -> None:
    path = file_of(warehouse, "parquet")
    index_path = path.with_name(path.name + ".index")
    data = index_path.read_bytes()
    index = IndexFile(Embedded("", data))
    lookups = [(TEXT, ROW), (5, ROW)]
    index_path.write_bytes(index.with_filters({"text": struct.pack(">i", 3) + bytes(180)}))
    assert rows_found(warehouse, "parquet", lookups) == ["0", "1"]
    entry = next(one for one in index.entries if one[:2] == ("text", BLOOM))
    index_path.write_bytes(data[: entry.start + 9])
    assert rows_found(warehouse, "parquet", lookups)[0] in {"EOFException", "IOException"}
    index_path.unlink()
    assert rows_found(warehouse, "parquet", lookups) == ["FileNotFoundException"] * 2
    bloomcli.add(path, ["text", "whole"], replace=True, in_place=True)
    assert rows_found(warehouse, "parquet", lookups) == ["1", "1"]
