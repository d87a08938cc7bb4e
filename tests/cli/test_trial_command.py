"""`bloom trial` on the command line: forms of output, exit codes, and errors."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom
from support.trials import halves, orders

from bloomcli.report import csv as csv_report

pytestmark = pytest.mark.interop

FAST = ("--values", 4, "--runs", 1)


def test_rows_that_a_reader_loses_are_shown_and_exit_with_1(bloom: Bloom, tmp_path: Path) -> None:
    path, page = halves(tmp_path / "f.parquet"), tmp_path / "trial.html"
    args = ("trial", path, "-c", "c", "--readers", "duckdb,polars", *FAST)
    done = bloom(*args, "--report", f"html={page}")
    assert done.code == 1
    assert "returns 0 rows with filters and 6 without" in done.out
    assert "hint: `bloom validate --explain reader-float16`" in done.out
    assert done.out.count("4 of 4 differ") == 1
    assert "never looks at filters" in done.out
    assert "other rows with filters than without" in page.read_text()
    assert "reader-float16" in page.read_text()
    quiet = bloom(*args, "--quiet")
    assert quiet.code == 1
    assert len(quiet.out.splitlines()) == 8
    assert done.out.count("returns 0 rows") == quiet.out.count("returns 0 rows") == 4
    before = path.read_bytes()
    refused = bloom(*args, "--report", f"html={path}")
    assert (refused.code, refused.out) == (2, "")
    assert "would replace a data file" in refused.err
    assert path.read_bytes() == before


def test_equal_rows_exit_with_0_and_print_nothing_if_quiet(bloom: Bloom, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    path, page = tmp_path / "f.parquet", tmp_path / "trial.html"
    rows = [f"value {number * 7919 % 1000}" for number in range(1000)]
    pq.write_table(pa.table({name: rows}), path, row_group_size=100)
    done = bloom("trial", path, "-c", name, "--readers", "duckdb,polars", *FAST, "--report", f"html={page}")
    assert (done.code, done.err) == (0, "")
    assert "2 readers returned the same rows with filters and without, in 16 lookups" in done.out
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "2 readers returned the same rows with filters and without" in text
    assert "never looks at filters" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text
    quiet = bloom("trial", path, "-c", name, "--readers", "duckdb", "-q", *FAST)
    assert (quiet.code, quiet.out) == (0, "")


def test_json_has_the_report_and_csv_a_row_for_each_reader_and_kind(bloom: Bloom, tmp_path: Path) -> None:
    path, saved = orders(tmp_path / "f.parquet", 1000), tmp_path / "trial.csv"
    args = ("trial", path, "-c", "id", "--readers", "duckdb,pyarrow", *FAST)
    found = bloom(*args, "-f", "json", "--report", f"csv={saved}").json
    assert found["schema"] == "bloom/trial/1"
    assert [reader["status"] for reader in found["readers"]] == ["equal", "equal"]
    assert found["readers"][0]["lookups"][0]["ratio"]["count"] == 4
    rows = list(csv.reader(io.StringIO(saved.read_text())))
    assert tuple(rows[0]) == csv_report.TRIAL_HEADER
    expected = [(reader, kind) for reader in ("duckdb", "pyarrow") for kind in ("present", "absent")]
    assert [(row[0], row[6]) for row in rows[1:]] == expected


def test_literals_of_queries_are_looked_up(bloom: Bloom, tmp_path: Path) -> None:
    path, log = orders(tmp_path / "f.parquet", 1000), tmp_path / "q.sql"
    log.write_text(
        "SELECT * FROM orders WHERE at = 7;\n"
        "SELECT id FROM orders o WHERE o.at IN (7, 5000) AND name = 'user 3';\n"
        "SELECT 1 FROM customers WHERE at = 8;"
    )
    args = ("trial", path, "--queries", log, "--table-name", "orders", "--readers", "duckdb", "--runs", 0)
    found = bloom(*args, "-f", "json", "--report", f"text={tmp_path / 'text'}").json
    assert found["columns"] == ["name", "at"]
    assert found["queries"] == [str(log)]
    lookups = {(one["column"], one["kind"]): one for one in found["readers"][0]["lookups"]}
    assert {key: one["lookups"] for key, one in lookups.items()} == {
        ("at", "present"): 1,
        ("at", "absent"): 1,
        ("name", "absent"): 1,
    }
    assert "the most frequent of" in (tmp_path / "text").read_text()
    done = bloom(*args, "-c", "id")
    assert done.code == 2
    assert "the queries name no value of it" in done.err


def test_help_names_the_readers(bloom: Bloom) -> None:
    text = " ".join(bloom("trial", "--help").out.split())
    assert "Known: duckdb, spark, datafusion, pyarrow, polars, chdb." in text


def test_a_glob_leaves_out_columns_that_can_not_be_looked_up_and_says_so(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    columns = {"id": range(100), "tags": [[number] for number in range(100)], "none": pa.nulls(100, pa.int64())}
    pq.write_table(pa.table(columns), path, row_group_size=50)
    args = ("trial", path, "--readers", "duckdb", *FAST)
    done = bloom(*args, "-c", "*")
    assert (done.code, done.err) == (0, "")
    assert "columns  id\n" in done.out
    assert "column tags.list.element can't be looked up: no query compares single values of a list" in done.out
    assert "column none can't be tried: it has no values" in done.out
    for named in ("id,tags.list.element", "*,none", "tags*"):
        refused = bloom(*args, "-c", named)
        assert (refused.code, refused.out) == (2, "")


def test_encrypted_files_and_columns_are_refused_because_readers_get_no_keys(bloom: Bloom, fixtures: Path) -> None:
    path = fixtures / "parquet" / "pyarrow_encrypted_columns.parquet"
    whole = fixtures / "encrypted" / "java_columns_gcm.parquet"
    for file, why in ((path, "column id can't be tried: it is encrypted"), (whole, "the footer is encrypted")):
        done = bloom("trial", file, "-c", "id", "--readers", "duckdb", *FAST)
        assert done.code == 4
        assert f"{file}: {why}" in done.err
        assert "hint: readers get no keys from bloom: try the same rows in a plain file" in done.err
        assert "--key" not in done.err and "--column-key" not in done.err
    advised = bloom("advise", path)
    assert advised.out.count("encrypted: give its key") == 2


def test_texts_are_in_quotes_where_rows_are_lost(bloom: Bloom, fixtures: Path) -> None:
    path = fixtures / "rules" / "value-missing" / "broken.parquet"
    done = bloom("trial", path, "-c", "name", "--readers", "duckdb", "--runs", 0, "-q")
    assert done.code == 1
    assert ": name = 'name 40' returns 0 rows with filters and 1 without" in done.out
