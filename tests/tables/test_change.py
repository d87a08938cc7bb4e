"""The run loop of `--table`: batches, commits, conflicts, failures and stops, on the tests' small table format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.directory_table import DirectoryTable, Entry

import bloomcli
from bloomcli.commands.options import AddOptions, FoldOptions, ProbeOptions, RemoveOptions, TableOptions, WriteOptions
from bloomcli.datasets.engine import LocalEngine
from bloomcli.datasets.spark import SparkEngine
from bloomcli.datasets.task import Task
from bloomcli.datasets.task import run as run_task
from bloomcli.errors import UnknownColumn, UnreadableError, UnsupportedError, UsageError, WriteError
from bloomcli.model.dataset import DatasetReport, Status
from bloomcli.tables import change as of_bytes
from bloomcli.tables.base import CommitInfo, Conflict, DataFile, Replacement, UnknownOutcome
from bloomcli.tables.change import change_table
from bloomcli.tables.columns import check_columns
from bloomcli.tables.reading import task_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROWS = 200


def write(path: Path, start: int) -> None:
    """A file whose rows have no ids of files with another start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = [start * ROWS + n * 7 % ROWS for n in range(ROWS)]
    pq.write_table(pa.table({"id": ids, "name": [f"n{i}" for i in ids]}), path)


@pytest.fixture
def table(tmp_path: Path) -> DirectoryTable:
    """Six files in two partitions."""
    files = []
    for n in range(6):
        partition = f"day={n % 2}"
        path = f"{partition}/part-{n}.parquet"
        write(tmp_path / "lake" / path, n)
        files.append((path, partition))
    return DirectoryTable.create(tmp_path / "lake", files, filters={"name": 0.02})


def run(
    table: DirectoryTable,
    options: WriteOptions | None = None,
    *,
    spark: SparkSession | None = None,
    fail_fast: bool = False,
    where: str | None = None,
    commit_every: int | None = None,
    from_properties: bool = False,
    new_row_ids: bool = False,
) -> DatasetReport:
    """Run a command on a table; by default `add` on the column id. The loop is the same for every engine: this
    process makes the files, unless there is a session.
    """
    engine = LocalEngine(jobs=1, fail_fast=fail_fast) if spark is None else SparkEngine(spark, fail_fast=fail_fast)
    table.refresh()
    which = TableOptions(
        table=table.name,
        where=where,
        commit_every=commit_every,
        from_properties=from_properties,
        new_row_ids=new_row_ids,
    )
    return change_table(table, engine, options or AddOptions(columns=["id"]), which, fail_fast=fail_fast)


def statuses(report: DatasetReport) -> list[str]:
    return [row.status.value for row in report.rows]


def data_files(table: DirectoryTable) -> set[str]:
    """The data files below the table, even if no version has them."""
    return {str(path.relative_to(table.root)) for path in table.root.rglob("*.parquet")}


def filters(table: DirectoryTable, column: str = "id") -> int:
    """The files of the newest version that have a filter on a column."""
    found = [bloomcli.inspect(table.root / path) for path in table.entries(table.newest())]
    return sum(any(f.column == column for f in report.filters) for report in found)


@pytest.mark.spark
def test_every_file_is_replaced_in_one_commit_and_the_rows_stay(spark: SparkSession, table: DirectoryTable) -> None:
    before = table.rows()
    report = run(table, spark=spark)
    assert statuses(report) == ["done"] * 6
    assert [(c.version, c.files) for c in report.commits] == [(1, 6)]
    assert (report.version_before, report.table and report.table.name) == (0, table.name)
    assert table.rows(1) == before
    assert filters(table) == 6
    assert table.read(1)["commit"][1:] == [1, "id"]
    assert data_files(table) == set(table.entries(0)) | set(table.entries(1)), "the old files stay, nothing else does"
    commit = report.commits[0]
    assert commit.bytes_before == sum(entry.size for entry in table.entries(0).values())
    assert commit.bytes_after == sum(entry.size for entry in table.entries(1).values())


def test_files_that_have_the_filters_are_left_alone(table: DirectoryTable) -> None:
    run(table, where="day=0")
    assert filters(table) == 3
    report = run(table)
    assert sorted(statuses(report)) == ["done"] * 3 + ["skipped"] * 3
    assert [c.files for c in report.commits] == [3]
    again = run(table)
    assert statuses(again) == ["skipped"] * 6
    assert again.commits == ()
    assert table.newest() == 2
    assert len(data_files(table)) == 12, "an unchanged file isn't copied"


def test_a_dry_run_says_files_bytes_and_commits_and_writes_nothing(table: DirectoryTable) -> None:
    before = data_files(table)
    report = run(table, AddOptions(columns=["id"], dry_run=True), commit_every=4)
    assert statuses(report) == ["planned"] * 6
    assert [(c.version, c.files) for c in report.commits] == [(None, 4), (None, 2)]
    assert all(row.bytes_decoded and row.bytes_copied and row.bytes_after for row in report.rows)
    assert (data_files(table), table.newest()) == (before, 0)
    done = run(table, commit_every=4)
    assert [(c.version, c.files) for c in done.commits] == [(1, 4), (2, 2)]
    assert filters(table) == 6
    for planned, made in zip(report.commits, done.commits, strict=True):
        assert planned.bytes_after >= made.bytes_after


def test_remove_gives_the_original_bytes_and_fold_smaller_filters(table: DirectoryTable) -> None:
    originals = [(table.root / path).read_bytes() for path in table.entries()]
    run(table, AddOptions(columns=["id"], ndv=100_000))
    folded = run(table, FoldOptions())
    assert statuses(folded) == ["done"] * 6
    removed = run(table, RemoveOptions())
    assert statuses(removed) == ["done"] * 6
    assert [(table.root / path).read_bytes() for path in table.entries(table.newest())] == originals


def test_the_table_s_properties_name_columns_and_rates(table: DirectoryTable) -> None:
    report = run(table, AddOptions(), from_properties=True)
    assert statuses(report) == ["done"] * 6
    assert (filters(table, "name"), filters(table, "id")) == (6, 0)
    path = table.root / next(iter(table.entries(1)))
    assert 0.001 < bloomcli.inspect(path).filters[0].fpp <= 0.02
    assert statuses(run(table, AddOptions(), from_properties=True)) == ["skipped"] * 6


def test_existing_filters_need_not_meet_the_rates_of_properties(table: DirectoryTable) -> None:
    run(table, AddOptions(columns=["name"], fpp=0.3))
    assert statuses(run(table, AddOptions(), from_properties=True)) == ["skipped"] * 6


def test_columns_and_properties_exclude_each_other(table: DirectoryTable) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        run(table, from_properties=True)


def test_a_property_for_a_column_that_is_gone_is_a_remark(table: DirectoryTable) -> None:
    table.write(list(table.entries().values()), properties={"filters": {"old": 0.1, "id": 0.1}})
    table.refresh()
    report = run(table, AddOptions(), from_properties=True)
    assert statuses(report) == ["done"] * 6
    assert "a filter on old, a column that the table doesn't have" in report.remarks[0]


def test_an_unknown_column_is_refused_before_any_file_is_read(table: DirectoryTable) -> None:
    with pytest.raises(UnknownColumn, match="the table has no column 'idd'") as caught:
        run(table, AddOptions(columns=["idd"]))
    assert caught.value.hint == "did you mean id?"


def test_a_column_is_listed_as_the_option_takes_it(tmp_path: Path) -> None:
    tmp_path.joinpath("lake").mkdir()
    pq.write_table(pa.table({"e,f": [1], "g h": [2], "i": [3]}), tmp_path / "lake" / "a.parquet")
    table = DirectoryTable.create(tmp_path / "lake", [("a.parquet", "")])
    for options, listed in (
        (AddOptions(columns=["x"]), r"'e\,f', 'g h', i"),
        (ProbeOptions(column="x"), "'e,f', 'g h', i"),
    ):
        with pytest.raises(UnknownColumn) as caught:
            check_columns(table, options, table.names())
        assert caught.value.hint == f"the table's columns: {listed}"


def test_a_table_that_would_lose_something_is_refused(table: DirectoryTable) -> None:
    table.write(list(table.entries().values()), properties={"row_ids": True})
    table.refresh()
    with pytest.raises(UnsupportedError, match="row ids"):
        run(table)
    assert statuses(run(table, new_row_ids=True)) == ["done"] * 6


def test_a_file_that_fails_is_a_row_and_the_others_go_on(table: DirectoryTable) -> None:
    broken = list(table.entries())[-1]
    (table.root / broken).write_bytes(b"PAR1 broken PAR1")
    report = run(table)
    assert sorted(statuses(report)) == ["done"] * 5 + ["failed"]
    assert [c.files for c in report.commits] == [5]
    assert report.exit_code == 3
    assert broken in table.entries(1)


@pytest.mark.spark
def test_fail_fast_commits_nothing_where_a_file_is_refused(spark: SparkSession, table: DirectoryTable) -> None:
    (table.root / list(table.entries())[-1]).write_bytes(b"PAR1 broken PAR1")
    before = data_files(table)
    report = run(table, spark=spark, fail_fast=True)
    assert (statuses(report), report.not_started, report.commits) == (["failed"], 5, ())
    assert (data_files(table), table.newest()) == (before, 0)


def test_a_file_of_another_format_is_a_row_with_its_error(table: DirectoryTable) -> None:
    (table.root / "day=0/x.avro").write_bytes(b"Obj\x01")
    table.write([*table.entries().values(), Entry("day=0/x.avro", 4, "day=0")])
    table.refresh()
    report = run(table)
    assert statuses(report) == ["done"] * 6 + ["failed"]
    assert "avro" in (report.rows[-1].error or "")
    assert report.exit_code == 4


class Interfered(DirectoryTable):
    """A table that makes calls before its first commits: one call for each commit."""

    before: list[Callable[[DirectoryTable], object]]

    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        if self.before:
            self.before.pop(0)(DirectoryTable(self.root))
        return super().commit(replacements, info)


def interfered(table: DirectoryTable, *before: Callable[[DirectoryTable], object]) -> Interfered:
    """The table, with the calls before its commits."""
    other = Interfered(table.root)
    other.before = list(before)
    return other


def append(table: DirectoryTable) -> None:
    """Another writer appends a file."""
    write(table.root / "day=0/new.parquet", 50)
    entry = Entry("day=0/new.parquet", (table.root / "day=0/new.parquet").stat().st_size, "day=0")
    table.write([*table.entries().values(), entry])


def delete(table: DirectoryTable) -> None:
    """Another writer deletes two rows of the first file."""
    first, *rest = table.entries().values()
    table.write([Entry(first.path, first.size, first.partition, (*first.deleted, 3, 4)), *rest])


def compact(table: DirectoryTable) -> None:
    """Another writer replaces the first two files by one."""
    one, two, *rest = table.entries().values()
    whole = pa.concat_tables([pq.ParquetFile(table.root / entry.path).read() for entry in (one, two)])
    pq.write_table(whole, table.root / f"compact-{table.version}.parquet")
    path = f"compact-{table.version}.parquet"
    table.write([Entry(path, (table.root / path).stat().st_size), *rest])


def rewrite(table: DirectoryTable) -> None:
    """Another writer replaces every file by a copy."""
    copies = []
    for entry in table.entries().values():
        path = f"copy-{table.version}-{len(copies)}.parquet"
        pq.write_table(pq.ParquetFile(table.root / entry.path).read(), table.root / path)
        copies.append(Entry(path, (table.root / path).stat().st_size))
    table.write(copies)


def test_an_append_does_not_conflict_and_stays(table: DirectoryTable) -> None:
    other = interfered(table, append)
    report = run(other)
    assert [c.files for c in report.commits] == [6]
    assert len(table.rows(table.newest())) == 7 * ROWS
    assert filters(table) == 6


def test_deletes_that_come_between_stay_and_no_file_is_made_again(table: DirectoryTable) -> None:
    other = interfered(table, delete, delete)
    before = len(data_files(table))
    report = run(other)
    assert statuses(report) == ["done"] * 6
    assert [c.files for c in report.commits] == [6]
    assert len(table.rows(table.newest())) == 6 * ROWS - 2
    assert len(data_files(table)) == before + 6
    assert filters(table) == 6


def test_files_of_a_compaction_that_came_between_get_filters_too(table: DirectoryTable) -> None:
    other = interfered(table, compact)
    rows = sorted(row["id"] for row in table.rows())
    report = run(other)
    assert sorted(statuses(report)) == ["done"] * 5 + ["skipped"] * 2
    assert [c.files for c in report.commits] == [4, 1]
    assert {row.reason for row in report.rows if row.status is Status.SKIPPED} == {
        "another commit has replaced or removed the file"
    }
    assert sorted(row["id"] for row in table.rows(table.newest())) == rows
    assert filters(table) == 5
    used = {path for version in range(table.newest() + 1) for path in table.entries(version)}
    assert data_files(table) == used, "the new files of compacted ones are removed"


def test_a_second_run_of_bloom_at_the_same_time_loses_nothing(table: DirectoryTable) -> None:
    other = interfered(table, run)
    rows = table.rows()
    report = run(other)
    assert statuses(report) == ["skipped"] * 12
    assert table.rows(table.newest()) == rows
    assert filters(table) == 6
    assert len(data_files(table)) == 12


class Expiring(DirectoryTable):
    """A table in which another writer replaces two files, and removes them, before the first new file is written."""

    def new_path(self, file: DataFile) -> str:
        if self.newest() == 0:
            gone = list(self.entries(0))[:2]
            compact(DirectoryTable(self.root))
            for path in gone:
                (self.root / path).unlink()
        return super().new_path(file)


def test_files_that_others_have_replaced_and_removed_are_not_failures(table: DirectoryTable) -> None:
    rows = table.rows()
    report = run(Expiring(table.root))
    assert sorted(statuses(report)) == ["done"] * 5 + ["skipped"] * 2
    assert report.exit_code == 0
    assert sorted(row["id"] for row in table.rows(table.newest())) == sorted(row["id"] for row in rows)
    assert filters(table) == 5


def test_the_report_names_the_commits_of_others(table: DirectoryTable) -> None:
    alone = run(DirectoryTable(table.root), where="day=0")
    assert alone.remarks == ()
    report = run(interfered(table, append, delete), commit_every=2)
    own = {commit.version for commit in report.commits}
    others = sorted(set(range(2, table.newest() + 1)) - own)
    assert len(others) == 2
    assert report.remarks == (f"2 commits of others during the run: commit {others[0]}, commit {others[1]}",)


def test_a_table_that_keeps_changing_ends_as_failed_rows(table: DirectoryTable) -> None:
    other = interfered(table, *[delete] * 9)
    report = run(other)
    assert statuses(report) == ["failed"] * 6
    assert "another commit has changed files" in (report.rows[0].error or "")
    assert "start it again" in (report.rows[0].hint or "")
    assert report.exit_code == 3
    assert filters(table) == 0
    assert len(data_files(table)) == 6


def test_files_that_are_replaced_again_and_again_end_as_failed_rows(table: DirectoryTable) -> None:
    other = interfered(table, *[rewrite] * 9)
    report = run(other)
    assert "plans were not enough" in (report.rows[-1].error or "")
    assert len(table.rows(table.newest())) == 6 * ROWS
    used = {path for version in range(table.newest() + 1) for path in table.entries(version)}
    assert data_files(table) == used


class Failing(DirectoryTable):
    """A table whose commits raise an error, from the given commit on."""

    error: BaseException
    good: int = 0
    takes_place: bool = False
    unremovable: bool = False

    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        if info.batch > self.good:
            if self.takes_place:
                super().commit(replacements, info)
            raise self.error
        return super().commit(replacements, info)

    def remove_files(self, paths: object) -> list[str]:
        assert isinstance(paths, set)
        return sorted(paths) if self.unremovable else super().remove_files(paths)


def failing(table: DirectoryTable, error: BaseException, *, good: int = 0) -> Failing:
    """The table with failing commits."""
    other = Failing(table.root)
    other.error, other.good = error, good
    return other


def test_a_commit_that_fails_leaves_what_was_committed_and_no_new_files(table: DirectoryTable) -> None:
    other = failing(table, WriteError("no space", path=table.name), good=1)
    report = run(other, commit_every=2)
    assert statuses(report) == ["done"] * 2 + ["failed"] * 2
    assert (report.not_started, [c.files for c in report.commits]) == (2, [2])
    assert "no space" in (report.rows[2].error or "")
    assert len(data_files(table)) == 8
    again = run(DirectoryTable(table.root), commit_every=2)
    assert [c.files for c in again.commits] == [2, 2]
    assert filters(table) == 6


def test_new_files_that_cannot_be_removed_are_named(table: DirectoryTable) -> None:
    other = failing(table, WriteError("no space"))
    other.unremovable = True
    report = run(other)
    assert len(report.remarks) == 6
    for path in data_files(table) - set(table.entries()):
        assert f"the new file file:{table.root / path} couldn't be removed" in report.remarks


@pytest.mark.parametrize("takes_place", [True, False])
def test_new_files_stay_where_it_is_not_known_whether_a_commit_took_place(
    table: DirectoryTable, takes_place: bool
) -> None:
    other = failing(table, UnknownOutcome("the answer was lost", path=table.name))
    other.takes_place = takes_place
    rows = table.rows()
    report = run(other, commit_every=4)
    assert statuses(report) == ["failed"] * 4
    assert (report.not_started, report.commits, report.exit_code) == (2, (), 3)
    assert len(data_files(table)) == 10
    (remark,) = report.remarks
    for path in data_files(table) - set(table.entries(0)):
        assert str(table.root / path) in remark
    assert all((row.output or "") in remark for row in report.rows)
    run(DirectoryTable(table.root))
    assert table.rows(table.newest()) == rows
    assert filters(table) == 6


def raising(
    monkeypatch: pytest.MonkeyPatch,
    table: DirectoryTable,
    error: BaseException,
    engine: type[LocalEngine | SparkEngine] = LocalEngine,
) -> None:
    """Have the second batch's job raise an error when its files are made."""
    engine_run = engine.run

    def run_and_raise(self: Any, tasks: Sequence[Task], **rest: Any) -> DatasetReport:
        report = engine_run(self, tasks, **rest)
        if table.newest() == 1:
            raise error
        return report

    monkeypatch.setattr(engine, "run", run_and_raise)


STOPS = [pytest.param(KeyboardInterrupt(), id="Ctrl-C"), pytest.param(SystemExit(143), id="SIGTERM")]


@pytest.mark.spark
@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_keeps_what_is_committed_and_removes_the_running_batch_s_files(
    spark: SparkSession, table: DirectoryTable, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    raising(monkeypatch, table, stop, SparkEngine)
    stopped(table, monkeypatch, stop, spark)


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_of_local_processes_does_the_same(
    table: DirectoryTable, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    raising(monkeypatch, table, stop)
    stopped(table, monkeypatch, stop)


def test_a_commit_that_a_table_has_repeated_in_vain_is_not_tried_again(
    table: DirectoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def commit(self: DirectoryTable, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        tries.append(len(replacements))
        raise Conflict("other commits came between 5 times", path=self.name)

    monkeypatch.setattr(DirectoryTable, "commit", commit)
    report = run(table)
    assert tries == [6]
    assert statuses(report) == ["failed"] * 6
    assert report.rows[0].hint == "start it again: files that have the filters are skipped"
    assert filters(table) == 0


def stopped(
    table: DirectoryTable, monkeypatch: pytest.MonkeyPatch, stop: BaseException, spark: SparkSession | None = None
) -> None:
    """A run that is stopped after the commit of two of six files keeps that commit, and no other new file."""
    with pytest.raises(type(stop)) as caught:
        run(table, spark=spark, commit_every=2)
    if isinstance(stop, KeyboardInterrupt):
        assert "2 of 6 files replaced in 1 commit" in str(caught.value)
    assert len(data_files(table)) == 8
    assert filters(table) == 2
    monkeypatch.undo()
    assert statuses(run(table)).count("done") == 4


def test_a_job_that_fails_ends_the_run_and_leaves_no_new_files(
    table: DirectoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    raising(monkeypatch, table, UnreadableError("the Spark job failed: no executors"))
    report = run(table, commit_every=2)
    assert statuses(report) == ["done"] * 2 + ["failed"] * 2
    assert (report.not_started, report.exit_code) == (2, 3)
    assert "no executors" in (report.rows[2].error or "")
    assert len(data_files(table)) == 8


class Choosy(DirectoryTable):
    """A table that has no path for one of its new files."""

    def new_path(self, file: DataFile) -> str:
        if "part-3" in file.path:
            raise UnsupportedError("the data file is encrypted", path=file.path)
        return super().new_path(file)


def test_a_file_that_can_have_no_new_one_is_a_row(table: DirectoryTable) -> None:
    report = run(Choosy(table.root), commit_every=1)
    assert sorted(statuses(report)) == ["done"] * 5 + ["failed"]
    assert (len(report.commits), report.exit_code) == (5, 4)


def test_a_second_attempt_of_a_task_finds_the_new_file_made(table: DirectoryTable) -> None:
    (file, *_) = table.files()
    task = task_of(file, {"parquet": AddOptions(columns=["id"]).checked()}, table.new_path(file), changing=True)
    first, second = run_task(task), run_task(task)
    assert (first.status, second.status) == (Status.DONE, Status.DONE)
    assert first.bytes_after == second.bytes_after == Path(task.output or "").stat().st_size
    assert second.output == task.output


def test_batches_end_at_their_bytes_and_files(table: DirectoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    del table
    monkeypatch.setattr(of_bytes, "BATCH_FILES", 3)
    monkeypatch.setattr(of_bytes, "BATCH_BYTES", 100)
    sizes = [60, 30, 20, 5, 5, 5, 5, 200, 1]
    assert [len(b) for b in of_bytes.batches(sizes, int, None)] == [2, 3, 2, 1, 1]
    assert [len(b) for b in of_bytes.batches(sizes, int, 4)] == [4, 4, 1]
