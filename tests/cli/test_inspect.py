"""`bloom inspect` of one file and of many, and the files that it refuses."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom
from support.golden import FIXTURES, ORC

import bloomcli
from bloomcli.report import csv as csv_report
from bloomcli.report.human import value_text

ORDERS = FIXTURES / "orders.parquet"


def test_bounds_are_values_that_probe_takes(bloom: Bloom) -> None:
    """A minimum is in the file: no row group is ruled out for it by all of min/max."""
    for path in (FIXTURES / "spark_types.parquet", FIXTURES / "duckdb_types.parquet", ORC / "java_types.orc"):
        for column in bloomcli.inspect(path).by_column:
            if column.min is None or column.min_exact is False:
                continue
            for bound in (column.min, column.max):
                done = bloom("probe", path, "-c", column.column, "-v", bound, "--format", "json")
                assert done.code == 0, (path.name, column.column, bound, done.err)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("", '""'),
        (" a", '" a"'),
        ("a\x1b[31m\n", '"a\\x1b[31m\\n"'),
        ("x" * 21, "x" * 19 + "…"),
        ("\x1b" * 20, "\\x1b" * 4 + "…"),
        ("名" * 11, "名" * 9 + "…"),
        ("-2989999999999.9999999701", "-2989999999999.9999999701"),
        ("2024-12-24T12:00:00.299299Z", "2024-12-24T12:00:00.299299Z"),
    ],
)
def test_values_are_escaped_and_visibly_cut(text: str, shown: str) -> None:
    assert value_text(text) == shown


def test_bounds_that_the_writer_shortened_are_marked() -> None:
    assert value_text("abc", exact=False) == "abc…"
    assert value_text("abc", exact=None) == "abc"


# --- parts of one file


def test_footer_is_one_json_document(bloom: Bloom) -> None:
    footer = bloom("inspect", ORDERS, "--footer").json
    assert len(footer["FileMetaData"]["row_groups"]) == 4
    report = bloom("inspect", ORDERS, "--footer", "--format", "json").json
    assert report["footer"] == footer


def test_schema_is_a_tree_as_the_format_has_it(bloom: Bloom, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"})])
    pq.write_table(pa.table({"id": [1]}, schema=schema), tmp_path / "a.parquet")
    assert bloom("inspect", tmp_path / "a.parquet", "--schema").out == (
        "group schema\n  required INT64 id (field id 7)\n"
    )
    nodes = bloom("inspect", FIXTURES / "spark_types.parquet", "--schema", "-f", "json").json["schema_tree"]
    assert next(node for node in nodes if node["path"] == "person.age")["depth"] == 2
    assert "\n  bigint id (column id 1)\n" in bloom("inspect", ORC / "java_encrypted.orc", "--schema").out


def test_pages_and_indexes_are_csv(bloom: Bloom) -> None:
    rows = list(csv.DictReader(io.StringIO(bloom("inspect", ORDERS, "-c", "status", "--pages", "-f", "csv").out)))
    assert [row["kind"] for row in rows] == ["DICTIONARY_PAGE", "DATA_PAGE"] * 4
    entries = bloom("inspect", ORDERS, "-c", "status", "--indexes", "-f", "csv").out
    assert [row["min"] for row in csv.DictReader(io.StringIO(entries))] == ["open"] * 4


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--pages"], "--pages is for one column, and none is chosen"),
        (["--indexes", "-c", "id,status"], "--indexes is for one column, and 2 are chosen"),
        (["--pages", "--indexes", "-c", "id", "-f", "csv"], "--pages and --indexes are different tables"),
        (["--footer", "-f", "csv"], "--footer isn't a table"),
        (["--footer", "--schema"], "--schema and --footer are different"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(bloom: Bloom, args: list[str], says: str) -> None:
    done = bloom("inspect", ORDERS, *args)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "hint: " in done.err


@pytest.mark.parametrize("part", ["--pages", "--indexes", "--schema", "--footer"])
def test_parts_are_of_one_file(bloom: Bloom, tmp_path: Path, part: str) -> None:
    done = bloom("inspect", tmp_path, part)
    assert (done.code, done.out) == (2, "")
    assert f"{part} is for one file" in done.err
    assert ("by -c COLUMN" in done.err) == (part in {"--pages", "--indexes"})


def test_names_in_schemas_and_pages_cannot_act_on_the_terminal(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a\x1b[31m": ["\x1b]0;x\x07"]}), path)
    for args in ([], ["--schema"], ["--footer"], ["-c", "*", "--pages", "--indexes"]):
        done = bloom("inspect", path, *args)
        assert done.code == 0
        assert "\x1b" not in done.out
        assert "\x07" not in done.out


# --- many files


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files with filters on two columns, one with a filter on one, one without, and one that is cut off."""
    root = tmp_path / "lake"
    root.mkdir()
    for number in range(3):
        bloomcli.add(ORDERS, ["id", "user.email"], output=root / f"{number}.parquet")
    bloomcli.add(ORDERS, ["id"], output=root / "half.parquet")
    shutil.copy(ORDERS, root / "none.parquet")
    (root / "torn.parquet").write_bytes(ORDERS.read_bytes()[:5000])
    return root


def test_json_of_many_files_has_the_columns_of_each_and_of_all(bloom: Bloom, lake: Path) -> None:
    report = bloom("inspect", lake, "--format", "json").json
    column = next(c for c in report["by_column"] if c["column"] == "id")
    assert (column["files"], column["files_with_filter"], column["files_without_filter"]) == (5, 4, 1)
    rows = {Path(row["path"]).name: row for row in report["rows"]}
    assert [c["row_groups_with_filter"] for c in rows["half.parquet"]["by_column"][:2]] == [4, 0]
    assert rows["half.parquet"]["filter_facts"] == []
    every = bloom("inspect", lake, "--all", "--format", "json").json
    assert sum(len(row["filter_facts"]) for row in every["rows"]) == 28


def test_csv_of_every_filter_has_the_columns_of_one_file_and_loses_no_file(bloom: Bloom, lake: Path) -> None:
    one = bloom("inspect", lake / "0.parquet", "--format", "csv").out.splitlines()
    many = bloom("inspect", lake, "--all", "--format", "csv").out.splitlines()
    assert many[0] == one[0] == ",".join(csv_report.HEADER)
    assert many[1 : len(one)] == one[1:]
    rows = list(csv.DictReader(many))
    assert len([row for row in rows if not row["problem"]]) == 28
    (torn,) = [row for row in rows if row["problem"]]
    assert torn["path"].endswith("torn.parquet")
    assert "cut off" in torn["problem"]


def test_files_that_are_all_different_or_all_alike_are_said_to_be(bloom: Bloom, lake: Path) -> None:
    (lake / "torn.parquet").unlink()
    alike = bloom("inspect", lake / "0.parquet", lake / "1.parquet").out
    assert "All 2 files have filters of the same columns." in alike
    different = bloom("inspect", lake / "0.parquet", lake / "none.parquet").out
    assert "No two files have filters of the same columns." in different
    shutil.copy(lake / "none.parquet", lake / "none too.parquet")
    without = bloom("inspect", lake / "none.parquet", lake / "none too.parquet").out
    assert "None of the 2 files has a filter of its format." in without
    assert "have filters" not in without


def test_the_library_gives_the_same_as_the_command_line(bloom: Bloom) -> None:
    from bloomcli.report.json import document

    args = {"pages": True, "indexes": True, "schema": True, "footer": True}
    report = bloomcli.inspect(ORDERS, columns=["id"], **args)  # type: ignore[arg-type]
    shown = bloom("inspect", ORDERS, "-c", "id", *(f"--{name}" for name in args), "-f", "json").json
    assert json.loads(json.dumps(document("inspect", report))) == shown
