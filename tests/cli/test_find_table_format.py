"""bloom find --format table: aligned, and cut on terminals, which is said."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom
from support.terminal import on_terminal

import bloomcli


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for day in ("1", "2"):
        (tmp_path / f"day={day}").mkdir()
        columns = {
            "id": [5, 5],
            "amount": [1.5, None],
            "name": ["short", "\x1b[31m" + "long " * 20],
            "path": ["a", ""],
            "tags": [["x", None], []],
        }
        pq.write_table(pa.table(columns), tmp_path / f"day={day}/part.parquet")
    return tmp_path


def test_a_file_has_whole_aligned_rows(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    done = bloom("find", lake, "5", "-c", "id", "-f", "table", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    head, *rows = (tmp_path / "out").read_text().splitlines()
    assert head.split() == ["path", "row", "id", "amount", "name", "record.path", "tags", "day"]
    assert len(rows) == 4
    assert all(row[head.index("record.path") - 1] == " " != row[head.index("record.path")] for row in rows)
    assert [row[: head.index("name")].split()[1:] for row in rows] == [["0", "5", "1.5"], ["1", "5", "NULL"]] * 2
    assert rows[1].count("long") == 20
    assert r"\x1b[31m" in rows[1]
    assert '["x", null]' in rows[0]
    assert bloom("find", lake, "5", "-c", "id", "-f", "table", "-q").out == (tmp_path / "out").read_text()


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_terminal_has_what_fits_and_a_line_says_what_does_not(lake: Path, columns: int) -> None:
    done = on_terminal(["find", "day=*", "5", "-c", "id", "-f", "table", "-q"], columns, folder=lake)
    lines = done.out.splitlines()
    assert done.code == 0
    assert max(map(len, lines)) <= columns
    if columns == 60:
        assert "not shown: " in done.out
        assert "--format jsonl" in done.out
    if columns == 120:
        assert "…" in done.out
        assert "… marks a text that is cut; --format jsonl has all of it." in done.out


def test_files_with_other_columns_begin_another_table(bloom: Bloom, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [5], "x": ["1"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [5], "y": [1]}), tmp_path / "b.parquet")
    done = bloom("find", tmp_path, "5", "-c", "id", "-f", "table", "-q")
    first, second = done.out.split("\n\n")
    assert (first.split()[:4], second.split()[:4]) == (["path", "row", "id", "x"], ["path", "row", "id", "y"])
    assert bloom("find", tmp_path, "5", "-c", "id", "-f", "table", "--maybe").code == 2


def test_columns_keep_their_types_in_parquet_and_arrow(bloom: Bloom, tmp_path: Path) -> None:
    columns = {
        "id": pa.array([5], pa.int16()),
        "text": pa.array(["a"]),
        "large": pa.array(["a"], pa.large_string()),
        "dictionary": pa.array(["a"]).dictionary_encode(),
        "binary": pa.array([b"a"]),
        "fixed": pa.array([b"ab"], pa.binary(2)),
        "decimal": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "time": pa.array([5], pa.timestamp("ns", "Europe/Berlin")),
        "list": pa.array([["a"]], pa.large_list(pa.string())),
        "struct": pa.array([{"x": "a"}]),
    }
    for name, whole in (("plain", False), ("arrow", True)):
        file, out = tmp_path / f"{name}.parquet", tmp_path / f"{name}.hits"
        pq.write_table(pa.table(columns), file, store_schema=whole)
        expected = {field.name: field.type for field in pq.read_schema(file)}
        (batch,) = bloomcli.find(file, 5, column="id")
        assert bloom("find", file, "5", "-c", "id", "-f", "parquet", "-o", out).code == 0
        for schema in (batch.schema, pq.read_schema(out)):
            assert {field.name: field.type for field in schema.field("record").type} == expected
            assert {str(schema.field(name).type) for name in ("path", "value")} <= {"string", "large_string"}
