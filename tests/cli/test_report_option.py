"""`--report FORM=FILE` of `inspect`: every form goes to a file as it would go to standard output, and pages too."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.advised_lakes import LAKES, write
from support.cli import Bloom

from bloomcli.cli import reports


@pytest.mark.slow
def test_forms_in_files_are_what_standard_output_shows(
    bloom: Bloom, filtered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {form: tmp_path / f"report.{form}" for form in ("text", "json", "csv", "html")}
    options = [part for form, path in files.items() for part in ("--report", f"{form}={path}")]
    shown = bloom("inspect", filtered, *options)
    assert (shown.code, shown.err) == (0, "")
    assert files["text"].read_text() == shown.out == bloom("inspect", filtered).out
    for form in ("json", "csv"):
        assert files[form].read_text() == bloom("inspect", filtered, "--format", form).out
    assert files["html"].read_text().startswith("<!DOCTYPE html>")
    assert "user.email" in files["html"].read_text()


def test_a_dataset_s_report_has_every_filter_where_a_form_shows_them(
    bloom: Bloom, filtered: Path, tmp_path: Path
) -> None:
    both = (filtered, filtered.with_name("orders.parquet"))
    options = ("--report", f"csv={tmp_path / 'f.csv'}", "--report", f"json={tmp_path / 'f.json'}")
    done = bloom("inspect", *both, "--all", *options, "--report", f"html={tmp_path / 'f.html'}", "--jobs", 1)
    assert done.code == 0
    assert (tmp_path / "f.csv").read_text() == bloom("inspect", *both, "--all", "--format", "csv", "--jobs", 1).out
    rows = json.loads((tmp_path / "f.json").read_text())["rows"]
    assert max(len(row["filter_facts"]) for row in rows) == 6
    assert "Coverage" in (tmp_path / "f.html").read_text()


def test_a_page_replaces_a_page_and_never_a_data_file(bloom: Bloom, filtered: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>an earlier page</p>")
    assert bloom("inspect", filtered, "-q", "--report", f"html={page}").code == 0
    assert "user.email" in page.read_text()
    before = filtered.read_bytes()
    refused = bloom("inspect", filtered, "--report", f"html={filtered}")
    assert (refused.code, refused.out) == (2, "")
    assert "would replace a data file" in refused.err
    assert filtered.read_bytes() == before
    assert bloom("inspect", filtered, "--report", f"html={tmp_path / 'no' / 'page.html'}").code == 3
    twice = bloom("inspect", filtered, "--report", f"html={page}", "--report", f"json={page}")
    assert "another file of this run" in twice.err


@pytest.mark.parametrize("part", ["--pages", "--indexes", "--schema", "--footer"])
def test_parts_that_a_page_does_not_show_are_refused(bloom: Bloom, filtered: Path, tmp_path: Path, part: str) -> None:
    done = bloom("inspect", filtered, "-c", "id", part, "--report", f"html={tmp_path / 'p.html'}")
    assert done.code == 2
    assert f"nothing of {part}" in done.err
    assert not (tmp_path / "p.html").exists()
    kept = tmp_path / "p.json"
    assert bloom("inspect", filtered, "-c", "id", part, "--report", f"json={kept}").code == 0
    assert kept.read_text() == bloom("inspect", filtered, "-c", "id", part, "--format", "json").out


@pytest.mark.slow
def test_the_page_of_advice_has_what_is_recommended_and_stays_apart_from_the_lake(
    bloom: Bloom, tmp_path: Path
) -> None:
    lake, page = tmp_path / "lake", tmp_path / "advice.html"
    write(LAKES["general"], lake)
    before = {path: path.read_bytes() for path in lake.iterdir()}
    order = ("advise", lake, "--columns", "id,seq,status,user.email")
    done = bloom(*order, "--format", "json", "--report", f"html={page}")
    assert (done.code, done.err) == (0, "")
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert [column["column"] for column in done.json["columns"] if column["recommended"]]
    for column in done.json["columns"]:
        assert f">{column['column']}<" in text
    assert len(text.encode()) < 2_000_000
    refused = bloom(*order, "--report", f"html={min(before)}")
    assert (refused.code, refused.out) == (2, "")
    assert "would replace a data file" in refused.err
    assert {path: path.read_bytes() for path in lake.iterdir()} == before


@pytest.mark.parametrize("command", ["inspect", "validate", "advise"])
def test_files_without_values_have_pages_too(bloom: Bloom, tmp_path: Path, command: str) -> None:
    tables = {
        "no_rows": pa.table({"id": pa.array([], pa.int64())}),
        "one_row": pa.table({"id": [1]}),
        "only_nulls": pa.table({"id": pa.nulls(100, pa.int64())}),
    }
    for name, rows in tables.items():
        path, page = tmp_path / f"{name}.parquet", tmp_path / f"{name}.html"
        pq.write_table(rows, path)
        done = bloom(command, path, "-q", "--report", f"html={page}")
        assert (done.code, done.err) == (0, ""), name
        assert page.read_text().rstrip().endswith("</html>")


def test_a_report_is_not_written_to_a_file_that_is_named_as_standard_output(
    bloom: Bloom, filtered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bloom("inspect", filtered, "--report", "html=-")
    assert (done.code, done.out) == (2, "")
    assert "--report writes to files" in done.err
    assert list(tmp_path.iterdir()) == []


def test_disks_and_files_below_dev_are_no_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report would be written to a disk, or appended to an earlier report in ``/dev/shm``."""
    for kind, written in ((stat.S_IFBLK, False), (stat.S_IFCHR, True), (stat.S_IFIFO, True), (stat.S_IFREG, False)):
        monkeypatch.setattr(reports, "status", lambda _, mode=kind: os.stat_result((mode, *[0] * 9)))
        assert reports.is_stream("/dev/x") is written
