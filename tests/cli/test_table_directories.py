"""Directories of tables that are named as plain files: `find` asks how they are meant, and the others say what they
count."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from support.cli import Bloom


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A Delta table that has deleted the row 5: a file that it has replaced still has the row."""
    root = tmp_path / "lake" / "orders"
    rows = pa.table({"id": list(range(100)), "day": ["1"] * 50 + ["2"] * 50})
    write_deltalake(root, rows, partition_by=["day"])
    DeltaTable(root).delete("id = 5")
    return root


def _plain(table: Path) -> Path:
    """The same files, of no table."""
    copy = table.with_name("plain")
    shutil.copytree(table, copy)
    shutil.rmtree(copy / "_delta_log")
    return copy


def test_find_refuses_the_files_of_a_table_that_may_have_deleted_rows(bloom: Bloom, table: Path) -> None:
    file = next(table.rglob("*.parquet"))
    for named in (table, table.parent, table / "day=1", file, f"{table}/*/*.parquet", f"{table.parent}/o*"):
        done = bloom("find", "5", named, "-c", "id")
        assert (done.code, done.out) == (2, ""), named
        assert f"{table}: it is a Delta table: its files may have rows that the table has replaced" in done.err
        assert f"--table 'delta.`{table}`' searches the table's rows; --as-files" in done.err
    listed = table.parent / "list"
    listed.write_text(f"{file}\n")
    assert bloom("find", "5", "--files-from", listed, "-c", "id").code == 2


def test_find_searches_the_files_of_a_table_if_it_is_told_to(bloom: Bloom, table: Path) -> None:
    done = bloom("find", "5", table, "-c", "id", "--as-files", "-f", "jsonl", "--select", "id")
    assert done.code == 0
    rows = [json.loads(line)["record"] for line in done.out.splitlines()]
    assert rows == [{"id": 5}], "the file that the table has replaced"
    assert DeltaTable(table).to_pyarrow_table(filters=[("id", "=", 5)]).num_rows == 0
    assert bloom("find", "5", _plain(table), "-c", "id").code == 0, "no table, no question"
    both = bloom("find", "5", "--table", f"delta.`{table}`", "-c", "id", "--as-files")
    assert both.code == 2
    assert "--table and --as-files exclude each other" in both.err


def test_the_files_of_a_table_s_log_are_searched_as_files_only(
    bloom: Bloom, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaTable(table).create_checkpoint()
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    monkeypatch.chdir(checkpoint.parent)
    for named in (checkpoint, checkpoint.parent, checkpoint.name):
        done = bloom("find", "0", named, "-c", "protocol.minReaderVersion")
        assert (done.code, done.out) == (2, ""), named
        assert "the files are metadata of a Delta table, and hold none of its rows" in done.err
        assert "--as-files" in done.err
        assert "--table" not in done.err
        assert bloom("find", "1", named, "-c", "protocol.minReaderVersion", "--as-files").code == 0
        changed = bloom("add", named, "-c", "protocol.minReaderVersion", "--in-place")
        assert changed.code == 2
        assert "--table" not in changed.err
    mixed = bloom("find", "0", table, checkpoint, "-c", "id")
    assert "--table" in mixed.err


@pytest.mark.parametrize(
    ("mark", "kind", "instead"),
    [
        (".hoodie/hoodie.properties", "a Hudi table", None),
        ("metadata/00001-a.metadata.json", "an Iceberg table", "--table {}"),
        ("metadata/v1.metadata.json", "an Iceberg table", "--table {}"),
    ],
)
def test_the_hint_names_the_table_where_bloom_can_open_it(
    bloom: Bloom, table: Path, mark: str, kind: str, instead: str | None
) -> None:
    root = _plain(table)
    (root / mark).parent.mkdir()
    (root / mark).write_text("{}")
    done = bloom("find", "5", root, "-c", "id")
    assert done.code == 2
    assert f"it is {kind}" in done.err
    assert ("--table" in done.err) is (instead is not None)
    assert instead is None or instead.format(root) in done.err
    note = bloom("inspect", root)
    assert note.code == 0
    assert f"note: {root} is {kind}; its files are read as plain files" in note.err


def test_a_summary_of_footers_is_no_table(bloom: Bloom, table: Path) -> None:
    root = _plain(table)
    (root / "_metadata").write_bytes(b"PAR1")
    assert bloom("find", "5", root, "-c", "id").code == 0
    assert "note:" not in bloom("inspect", root).err


COMMANDS = (
    ("inspect",),
    ("inspect", "-f", "json"),
    ("probe", "-v", "5", "-c", "id"),
    ("validate",),
    ("advise",),
    ("add", "-c", "id", "-o", "copies"),
    ("add", "-c", "id", "-o", "copies", "--dry-run"),
    ("index", "build", "-c", "id", "-o", "made.index"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=shlex.join)
def test_every_command_on_files_says_that_replaced_files_count(
    bloom: Bloom, table: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent.parent)
    done = bloom(*command, "./lake")
    assert done.code in {0, 1}, done.err
    note = f"note: {table} is a Delta table; its files are read as plain files, and those that it has replaced or"
    assert done.err.count(note) == 1
    assert f"--table 'delta.`{table}`' takes its current files" in done.err
    assert "note:" not in done.out


def test_a_quiet_command_says_nothing_of_tables(bloom: Bloom, table: Path) -> None:
    assert bloom("inspect", "-q", table).err == ""


@pytest.mark.parametrize("command", ["add", "remove", "fold"])
def test_a_dry_run_refuses_what_a_change_in_place_would(bloom: Bloom, table: Path, command: str) -> None:
    options = ("-c", "id") if command == "add" else ()
    if command != "add":
        assert bloom("add", table, "-c", "id", "--in-place", "--force", "--fpp", "0.00001").code == 0
    for named in (table, next(table.rglob("*.parquet"))):
        dry = bloom(command, named, *options, "--dry-run")
        real = bloom(command, named, *options, "--in-place")
        assert (dry.code, real.code) == (2, 2)
        assert "not to be changed in place" in dry.out + dry.err
        assert dry.err == real.err
        forced = bloom(command, named, *options, "--dry-run", "--force")
        assert forced.code == 0, forced.err
