"""A dataset's rows as text and CSV: many files by their errors and notes, and the sums.
`tests/golden/test_written_reports.py` has few files one by one."""

from __future__ import annotations

import csv as reader
import io
from dataclasses import fields, replace
from typing import Any, Final

import pytest
from support.written_reports import DONE, FAILED, SKIPPED, dataset, probed

from bloomcli.model.dataset import DatasetReport, FileRow, Status, TableCommit, TableFacts
from bloomcli.model.file import Presence
from bloomcli.report import csv, render, text_dataset


def shown(whole: DatasetReport, *, every: bool = False) -> str:
    """The report as text."""
    stream = io.StringIO()
    render.write(text_dataset.dataset(whole, every=every), stream)
    return stream.getvalue()


def test_the_sums_of_one_file_and_of_none_are_sentences() -> None:
    assert "1 file: 1 done, 2.00 s (0.5 files/s, local, 1 job)" in shown(dataset(DONE, jobs=1))
    assert "0 files: none" in shown(dataset(seconds=0.0))


@pytest.mark.parametrize(
    ("row", "says"),
    [(SKIPPED, "skipped 3 files: not a file of a known format"), (FAILED, "it is torn (byte 7); the same in 2 more")],
)
def test_files_with_nothing_but_the_same_trouble_are_not_listed(row: FileRow, says: str) -> None:
    rows = [replace(row, path=f"lake/{n}", error=row.error and f"lake/{n}: it is torn (byte 7)") for n in range(3)]
    text = shown(dataset(*rows))
    assert says in text
    assert "lake/1" not in text
    assert "lake/1" in shown(dataset(*rows), every=True)
    assert "lake/1" in shown(dataset(*rows, DONE))
    assert row.path in shown(dataset(row)), "a single file is named"


def test_reasons_for_skipping_are_counted_the_most_frequent_first() -> None:
    rows = [replace(SKIPPED, reason=r) for r in ("seldom", "often", "often")]
    lines = shown(dataset(*rows)).splitlines()
    assert lines[-2:] == ["skipped 2 files: often", "skipped 1 file: seldom"]


@pytest.mark.parametrize(("files", "listed"), [(text_dataset.ROWS_SHOWN, True), (text_dataset.ROWS_SHOWN + 1, False)])
def test_of_many_files_only_those_with_trouble_are_shown(files: int, listed: bool) -> None:
    rows = [replace(DONE, path=f"lake/{i}.parquet") for i in range(files - 1)]
    text = shown(dataset(*rows, FAILED))
    assert ("lake/7.parquet" in text) == listed
    assert "it is torn" in text
    assert f"{files} files: {files - 1} done, 1 failed" in text


def test_filters_that_cannot_be_read_are_reported_for_any_number_of_files() -> None:
    odd = replace(DONE, path="lake/odd.parquet", reason="1 unreadable: its header is torn")
    for others in (1, 100):
        assert shown(dataset(*[DONE] * others, odd)).count("1 unreadable: its header is torn") == 1


@pytest.mark.parametrize("status", [Status.DONE, Status.SKIPPED])
def test_a_long_note_stands_below_the_table_and_not_in_a_column_of_a_word_per_line(status: Status) -> None:
    reason = "left out: f16, values are hashed at 2 bytes and DuckDB looks 4 up"
    lines = shown(dataset(DONE, replace(DONE, path="lake/odd.parquet", status=status, reason=reason))).splitlines()
    (row,) = [text for text in lines if text.startswith("lake/odd.parquet ")]
    assert row.endswith("see below")
    expected = {Status.DONE: f"lake/odd.parquet: {reason}", Status.SKIPPED: f"skipped 1 file: {reason}"}
    assert lines.count(expected[status]) == 1
    assert sum(reason in text for text in lines) == 1


def test_what_is_wrong_with_many_files_is_shown_once_and_the_files_are_counted() -> None:
    wrong = [
        replace(
            FAILED, path=f"{i}.parquet", error=f"{i}.parquet: no column 'idd'", hint=f"`bloom inspect {i}.parquet`"
        )
        for i in range(12)
    ]
    text = shown(dataset(*wrong, FAILED))
    assert "\n0.parquet: no column 'idd'; the same in 11 more files\n  hint: `bloom inspect 0.parquet`\n" in text
    assert text.count("no column 'idd'") == 1
    assert shown(dataset(*wrong), every=True).count("no column 'idd'") == 12
    assert "\nlake/b.parquet: it is torn (byte 7)\n" in text


def test_trouble_beyond_bearing_is_cut_and_the_rest_counted() -> None:
    rows = [replace(FAILED, path=f"{i}", error=f"{i}: it is torn (byte {i})") for i in range(1234)]
    text = shown(dataset(*rows))
    assert text.count("it is torn") == 200
    assert "... and 1,034 files more: --all or --format csv" in text
    assert len(text.splitlines()) < 410


def test_probe_of_many_files_lists_those_that_may_have_a_value() -> None:
    rows = [probed(f"lake/{i}", Presence.ABSENT, 4, 1) for i in range(57)]
    odd = (
        probed("lake/some", Presence.MAYBE, 1, 0),
        probed("lake/none", Presence.NO_FILTER, 0, 0),
        probed("lake/torn", Presence.UNKNOWN, 0, 0),
    )
    text = shown(dataset(*rows, *odd, command="probe"))
    assert "42: absent in 57 of 60 files;" in text
    assert "\n  maybe: lake/some\n" in text
    assert "\n  no filter: 1 file; --files-with-matches lists them, too\n" in text
    assert "\n  can't tell: 1 file; --files-with-matches lists them, too\n" in text
    assert "lake/7" not in text
    assert text.endswith("60 files not shown: --all or --format csv\n")
    few = shown(dataset(*odd, command="probe"))
    assert ("  maybe: " in few, "not shown" in few) == (False, False)


def test_all_shows_the_rows_of_many_files() -> None:
    rows = [replace(DONE, path=f"lake/{i}.parquet") for i in range(text_dataset.ROWS_SHOWN + 1)]
    every = shown(dataset(*rows), every=True)
    assert all(f"lake/{i}.parquet " in every for i in range(len(rows)))
    assert "not shown" not in every
    assert shown(dataset(*rows)).endswith("51 files not shown: --all or --format csv\n")
    assert shown(dataset(*rows, command="add")).endswith("51 files not shown: --all or --format csv\n")


# --- CSV and JSON


def test_csv_has_a_row_a_file_under_the_names_of_the_fields() -> None:
    stream = io.StringIO()
    csv.write_rows(dataset(DONE, SKIPPED, replace(FAILED, path='a,"b\nc')), stream)
    rows = list(reader.DictReader(io.StringIO(stream.getvalue())))
    assert [r["path"] for r in rows] == ["lake/a.parquet", "lake/notes.txt", r'a,"b\nc']
    assert [r["status"] for r in rows] == ["done", "skipped", "failed"]
    assert rows[0]["filters"] == "6"
    assert rows[1]["filters"] == ""
    assert rows[2]["exit_code"] == "3"
    assert {r["seen"] for r in rows} == {""}, "no tuple as Python writes it"
    nested = ("findings", "totals", "by_column", "filter_facts", "engine_filters")
    assert list(rows[0]) == [f.name for f in fields(FileRow) if f.name not in nested]
    assert "\r" not in stream.getvalue()


def test_csv_of_nothing_has_a_header_still() -> None:
    stream = io.StringIO()
    csv.write_rows(dataset(), stream)
    assert stream.getvalue().startswith("path,status,format,")
    assert stream.getvalue().count("\n") == 1


# --- the exit code of many


ORDERS: Final = TableFacts(name="ice.db.orders", format="iceberg")


def of_table(*commits: TableCommit, command: str = "add", files: int = 3, **fields: Any) -> DatasetReport:
    """A report on a table."""
    rows = [FileRow(path=f"/t/{n}.parquet", status=Status.DONE) for n in range(files)]
    return replace(
        dataset(*rows, command=command), **{"table": ORDERS, "version_before": 7, "commits": commits, **fields}
    )


def commit(version: int | None, files: int, snapshots: int = 1) -> TableCommit:
    """A commit."""
    return TableCommit(version=version, files=files, bytes_before=1024, bytes_after=2048, snapshots=snapshots)


@pytest.mark.parametrize(
    ("whole", "text"),
    [
        (of_table(commit(8, 2)), "snapshot 7: 2 of 3 files replaced in 1 commit, snapshot 8\n"),
        (of_table(commit(8, 1), commit(9, 1)), "2 of 3 files replaced in 2 commits, the last one snapshot 9\n"),
        (of_table(commit(8, 3, snapshots=2)), "3 of 3 files replaced in 1 commit (2 snapshots), snapshot 8\n"),
        (of_table(), "table ice.db.orders (Iceberg), snapshot 7: nothing to commit\n"),
        (of_table(command="inspect"), "table ice.db.orders (Iceberg), snapshot 7: 3 data files\n"),
        (of_table(version_before=None, files=0), "table ice.db.orders (Iceberg), no snapshot: nothing to commit\n"),
        (of_table(commit(8, 2), not_started=2), "2 of 5 files replaced in 1 commit"),
    ],
)
def test_a_table_s_snapshot_and_commits_are_a_sentence(whole: DatasetReport, text: str) -> None:
    assert text in shown(whole)


def test_delta_has_versions_and_a_dry_run_says_what_each_commit_takes() -> None:
    row = FileRow(
        path="/t/0.parquet", status=Status.PLANNED, bytes_before=1024, bytes_after=2048, bytes_copied=1000,
        bytes_decoded=100,
    )  # fmt: skip
    whole = replace(
        dataset(row, row, row, command="add"),
        table=TableFacts(name="t", format="delta"),
        version_before=0,
        dry_run=True,
        commits=(commit(None, 1), commit(None, 2)),
    )
    text = shown(whole)
    assert "table t (Delta), version 0: 3 of 3 files would be replaced in 2 commits; it reads at most 300 B" in text
    assert "copies 2.9 KiB, writes at most 3.1 KiB anew" in text
    assert "  commit 1: 1 file, 1.0 KiB -> at most 2.0 KiB\n  commit 2: 2 files" in text
