"""The options for tables on the command line: the options that they replace, and errors before Spark starts."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from support import datasets
from support.cli import Bloom

from bloomcli.cli import command_of
from bloomcli.cli.dataset import Dataset
from bloomcli.commands.options import TableOptions

CHANGING = ("add", "remove", "fold", "repair")
READING = ("inspect", "validate", "probe")


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether another test's session runs in this process decides nothing here."""
    monkeypatch.setattr("bloomcli.tables.without_spark.is_running", lambda: False)


def gathered(name: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """The dataset that a command line means."""
    seen: list[Dataset] = []
    module = import_module("bloomcli.cli.dataset")

    def keep(**fields: Any) -> Dataset:
        seen.append(Dataset(**fields))
        raise click.Abort

    monkeypatch.setattr(module, "Dataset", keep)
    command = command_of(name)
    context = command.make_context(name, list(arguments))
    with pytest.raises(click.Abort), context:
        command.invoke(context)
    (one,) = seen
    return one


@pytest.mark.parametrize("name", CHANGING)
def test_commands_that_change_files_take_a_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = gathered(
        name, "--table", "ice.db.t", "--where", "day > 3", "--commit-every", "7", "--new-row-ids",
        monkeypatch=monkeypatch,
    )  # fmt: skip
    assert dataset.table == TableOptions(table="ice.db.t", where="day > 3", commit_every=7, new_row_ids=True)
    assert (dataset.engine, dataset.paths, dataset.single) == ("spark", (), None)


@pytest.mark.parametrize("name", READING)
def test_commands_that_read_take_a_table_at_a_snapshot(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = gathered(name, "--table", "delta.`/lake/t`", "--snapshot", "12", monkeypatch=monkeypatch)
    assert dataset.table == TableOptions(table="delta.`/lake/t`", snapshot=12)
    assert dataset.engine == "local"


@pytest.mark.parametrize(
    ("arguments", "engine"),
    [
        (["--table", "ice.db.t"], "spark"),
        (["--table", "ice.db.`a/b`"], "spark"),
        (["--table", "./lake/t"], "local"),
        (["--table", "s3://lake/t"], "local"),
        (["--table", "./lake/t", "--engine", "spark"], "spark"),
        (["--table", "./lake/t", "--conf", "spark.x=1"], "spark"),
        (["--table", "./lake/t", "--master", "local"], "spark"),
        (["--table", "ice.db.t", "--engine", "local"], "local"),
        (["--table", "known.db.t"], "local"),
    ],
)
def test_spark_reads_a_table_if_it_is_named_or_set_up_or_nothing_else_finds_the_table(
    arguments: list[str], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KNOWN__URI", "http://localhost:1")
    assert gathered("inspect", *arguments, monkeypatch=monkeypatch).engine == engine


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = gathered("inspect", "--table", "t", "--as-of", "2026-11-01T12:00:00", monkeypatch=monkeypatch)
    assert dataset.table is not None
    assert dataset.table.time is not None
    assert dataset.table.time.isoformat() == "2026-11-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["add", "a.parquet", "--table", "t", "-c", "id"], "a.parquet: --table takes no files"),
        (["add", "--table", "t", "-c", "id", "--in-place"], "--table and --in-place exclude each other"),
        (["add", "--table", "t", "-c", "id", "-o", "out"], "--table and --output exclude each other"),
        (["fold", "--table", "t", "--force"], "--table and --force exclude each other"),
        (["remove", "--table", "t", "--overwrite"], "--table and --overwrite exclude each other"),
        (["inspect", "--table", "t", "--files-from", "list"], "--table and --files-from exclude each other"),
        (["fold", "--table", "t", "--engine", "local"], "--table works on Spark"),
        (["inspect", "--table", "t", "--snapshot", "1", "--as-of", "2026-01-01"], "exclude each other"),
        (["inspect", "--table", "t", "--as-of", "yesterday"], "'yesterday' is not a time"),
        (["inspect", "--table", "t", "--pages"], "--pages is for one file"),
        (["inspect", "--table", "t", "--jobs", "2"], "--jobs is for the local engine"),
        (["add", "a.parquet", "-c", "id", "--where", "x = 1"], "--where is for tables"),
        (["add", "a.parquet", "--from-properties"], "--from-properties is for tables"),
        (["add", "a.parquet", "-c", "id", "--commit-every", "1"], "--commit-every is for tables"),
        (["validate", "a.parquet", "--snapshot", "1"], "--snapshot is for tables"),
        (["probe", "--table", "t", "-c", "id", "-v", "1", "x"], "x: --table takes no files"),
        (["probe", "--table", "t", "-c", "id", "a.parquet"], "ends like a data file"),
        (["add", "--table", "t"], "no columns to add filters for"),
        (["add", "--table", "t", "-c", "id", "--from-properties"], "--columns and --from-properties exclude each"),
    ],
)
def test_contradictions_are_refused_before_spark_starts(bloom: Bloom, arguments: list[str], text: str) -> None:
    result = bloom(*arguments)
    assert result.code == 2
    assert text in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("_delta_log", "hint: bloom fold --table 'delta.`"),
        ("metadata", "hint: bloom fold --table CATALOG.DATABASE.TABLE"),
        (".hoodie", "a Hudi table: bloom doesn't read Hudi's timeline"),
        ("nothing", "no table is there"),
    ],
)
def test_a_table_that_spark_is_to_change_is_not_named_by_its_path(
    bloom: Bloom, tmp_path: Path, mark: str, text: str
) -> None:
    (tmp_path / mark).mkdir()
    (tmp_path / mark / "v1.metadata.json").write_text("{}")
    result = bloom("fold", "--table", tmp_path)
    assert result.code in {2, 4}
    assert text in result.err


@pytest.mark.parametrize(("mark", "name"), [("_delta_log", "'delta.`{}`'"), ("metadata", "CATALOG.DATABASE.TABLE")])
def test_in_place_within_a_table_names_the_command_for_tables(
    bloom: Bloom, tmp_path: Path, mark: str, name: str
) -> None:
    path = datasets.write(tmp_path / "table" / "part.parquet", rows=10)
    (tmp_path / "table" / mark).mkdir()
    (tmp_path / "table" / mark / "v1.metadata.json").write_text("{}")
    result = bloom("add", path, "--columns", "id", "--in-place")
    assert result.code == 2
    table = name.format(tmp_path / "table")
    assert f"hint: bloom add --table {table} --columns id lets the table commit the change; -o" in result.err


@pytest.mark.parametrize(("mark", "name"), [("_delta_log", "'delta.`{}`'"), ("metadata", "CATALOG.DATABASE.TABLE")])
def test_findings_on_a_table_s_file_name_the_command_for_tables(
    bloom: Bloom, tmp_path: Path, mark: str, name: str
) -> None:
    path = datasets.write(tmp_path / "a table" / "part.parquet", rows=10)
    assert "`bloom add " in (before := bloom("validate", path, "--require", "id").out)
    assert "--in-place`" in before
    (tmp_path / "a table" / mark).mkdir()
    (tmp_path / "a table" / mark / "v1.metadata.json").write_text("{}")
    table = name.format(tmp_path / "a table")
    for target in (path, tmp_path / "a table"):
        result = bloom("validate", target, "--require", "id")
        assert result.code == 1
        assert f"hint: `bloom add --table {table} --columns id`" in result.out
        assert "--in-place" not in result.out


def test_in_place_within_a_table_names_the_command_that_was_given(bloom: Bloom, tmp_path: Path) -> None:
    root = tmp_path / "a `b` c%20d"
    path = datasets.write(root / "part.parquet", rows=10)
    assert bloom("add", path, "--columns", "id", "--in-place").code == 0
    (root / "_delta_log").mkdir()
    table = f"'delta.`{tmp_path}/a ``b`` c%20d`'"
    for command in ("remove", "fold"):
        extra = ["--fpp", "0.5"] if command == "fold" else []
        result = bloom(command, path, *extra, "--in-place")
        assert f"hint: bloom {command} --table {table} lets the table commit the change; -o" in result.err
    result = bloom("remove", path, "--columns", "i*", "--in-place")
    assert f"hint: bloom remove --table {table} --columns 'i*' lets the table" in result.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["lake/"], "--reachable is for tables"),
        (["--table", "t", "--index", "i"], "an index doesn't have what a table has deleted"),
        (["--table", "t", "-f", "csv"], "--reachable has no --format csv"),
        (["--table", "t", "-o", "s3://bucket/proof.json"], "results are written to files of this machine"),
    ],
)
def test_options_that_do_not_go_with_reachable_are_refused(bloom: Bloom, arguments: list[str], reason: str) -> None:
    result = bloom("find", "-v", "17", "-c", "id", "--reachable", *arguments)
    assert result.code == 2
    assert reason in result.err
