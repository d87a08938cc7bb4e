"""Equality deletes apply to the same rows before and after: Iceberg drops them with the oldest data files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support import work
from support.iceberg_runs import (
    append,
    copied,
    delete_equal,
    files_below,
    ids,
    info,
    make,
    opened,
    prepared,
    row_delta,
    rows,
    summaries,
)
from support.table_stages import stages

import bloomcli
from bloomcli.commands.options import AddOptions, FoldOptions, RemoveOptions, TableOptions, WriteOptions
from bloomcli.datasets.engine import LocalEngine
from bloomcli.errors import WriteError
from bloomcli.model.dataset import DatasetReport
from bloomcli.tables.base import WrongCommit
from bloomcli.tables.change import change_table
from bloomcli.tables.iceberg import IcebergTable, scans
from bloomcli.tables.iceberg import commit as commits
from bloomcli.tables.iceberg.java import Methods

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

FIRST = dt.date(2026, 1, 1)
SECOND = dt.date(2026, 1, 2)

Fill = Callable[["SparkSession", str], object]


def sql(text: str) -> Fill:
    return lambda spark, name: spark.sql(text.format(t=name, s=name.removeprefix("ice."))).collect()


def rows_from(start: int) -> Fill:
    return lambda spark, name: append(spark, name, start)


def delta(*deletes: list[int], rows: range = range(0), day: dt.date | None = None, branch: str | None = None) -> Fill:
    return lambda spark, name: row_delta(
        spark, name, [("id", values) for values in deletes], rows, day=day, branch=branch
    )


class Case(NamedTuple):
    """How a table is filled."""

    steps: tuple[Fill, ...]
    partitioned: str = ""
    part: str = ""
    """The selector of a branch, which is changed."""


CASES = {
    "one delete, and a younger file": Case((rows_from(0), delta([3, 5]), rows_from(100))),
    "two deletes, and no other file": Case((rows_from(0), delta([3]), delta([5]))),
    "two deletes of one number": Case((rows_from(0), delta([3], [5]), delta([6]), rows_from(0))),
    "deletes of all numbers": Case((rows_from(0), delta([3]), rows_from(0), delta([3, 4]), rows_from(0), delta([5]))),
    "upserts": Case((rows_from(0), *(delta([n], rows=range(n, n + 1)) for n in (3, 5, 3)), delta([5, 6]))),
    "beside deletes of positions": Case(
        (
            rows_from(0),
            sql("delete from {t} where id in (7, 8)"),
            delta([3, 5]),
            sql("delete from {t} where id = 9"),
            rows_from(100),
            sql("delete from {t} where id in (10, 103)"),
        )
    ),
    "in one partition": Case(
        (rows_from(0), delta([4, 5], day=FIRST), delta([7], day=SECOND), rows_from(0)), partitioned="day"
    ),
    "of several specs": Case(
        (
            rows_from(0),
            delta([3, 4]),
            sql("alter table {t} add partition field day"),
            delta([6], day=FIRST),
            rows_from(0),
            delta([7], day=SECOND, rows=range(201, 203)),
        )
    ),
    "in a branch": Case(
        (
            rows_from(0),
            sql("alter table {t} create branch side"),
            delta([3, 5], branch="side"),
            lambda spark, name: append(spark, f"{name}.branch_side", 100),
            rows_from(200),
        ),
        part=".branch_side",
    ),
    "after a compaction": Case(
        (
            rows_from(0),
            rows_from(0),
            delta([3]),
            sql("call ice.system.rewrite_data_files(table => '{s}', options => map('rewrite-all', 'true'))"),
            delta([5]),
            delta([6], rows=range(5, 6)),
        )
    ),
    "of columns that are renamed": Case(
        (
            rows_from(0),
            lambda spark, name: delete_equal(spark, name, "name", ["n3"]),
            sql("alter table {t} rename column name to title"),
            rows_from(0),
        )
    ),
}

KINDS = [("2", "parquet"), ("2", "orc"), ("3", "parquet")]
KIND_OF = [
    *((case, *KINDS[number % 3]) for number, case in enumerate(CASES)),
    ("two deletes, and no other file", *KINDS[2]),
]
"""Each case has one kind of table: a commit doesn't depend on the kind, except by the deletes of positions."""


REWRITTEN = ("one delete, and a younger file", "upserts", "beside deletes of positions", "of several specs")
"""Cases whose old snapshots expire afterwards, and whose data files Iceberg rewrites: it reads all tables alike."""


def filled(spark: SparkSession, case: str, label: str, version: str = "2", kind: str = "parquet") -> str:
    """A table that is filled as a case says, with the name that is changed."""
    given = CASES[case]
    number = list(CASES).index(case)
    properties = {"write.format.default": kind}
    label = f"eq_{label}_{number}_{version}_{kind}"
    name = make(spark, label, version=version, appends=0, partitioned=given.partitioned, **properties)
    for step in given.steps:
        step(spark, name)
    return name + given.part


def added(spark: SparkSession, name: str, column: str = "id", *, new_row_ids: bool = False) -> IcebergTable:
    """All data files are replaced by one commit, without executors."""
    table, replacements = prepared(spark, name, [column], new_row_ids=new_row_ids)
    main = name.partition(".branch_")[0]
    commits, before = table.snapshots([one.old for one in replacements]), len(summaries(spark, main))
    table.commit(replacements, info())
    assert [row.operation for row in summaries(spark, main)[before:]] == ["replace"] * commits
    table.refresh()
    assert {file.path for file in table.files()} == {one.path for one in replacements}
    return table


def history(spark: SparkSession, name: str, snapshots: int) -> list[list[Row]]:
    """The rows of each snapshot that isn't among the first ones."""
    found = spark.table(f"{name}.snapshots").orderBy("committed_at").collect()[snapshots:]
    return [
        sorted(spark.sql(f"select * from {name} version as of {row.snapshot_id}").collect(), key=repr)
        for row in found
    ]


@pytest.mark.parametrize(("case", "version", "kind"), KIND_OF)
def test_deleted_rows_stay_deleted_and_others_stay(spark: SparkSession, case: str, version: str, kind: str) -> None:
    name = filled(spark, case, "kept", version, kind)
    before, main = rows(spark, name), name.partition(".branch_")[0]
    of_main, snapshots = rows(spark, main), len(summaries(spark, main))
    added(spark, name, new_row_ids=version == "3")
    assert rows(spark, name) == before
    assert rows(spark, main) == of_main
    assert all(found == before for found in history(spark, main, snapshots))
    added(spark, name, "day", new_row_ids=version == "3")  # what the first commit wrote is replaced, too
    assert rows(spark, name) == before
    if case not in REWRITTEN:
        return
    spark.sql(
        f"call ice.system.expire_snapshots(table => '{name.removeprefix('ice.')}', "
        "older_than => timestamp '2100-01-01', retain_last => 1)"
    )
    assert rows(spark, name) == before
    CASES["after a compaction"].steps[3](spark, name)
    assert rows(spark, name) == before


def run(
    spark: SparkSession, name: str, options: WriteOptions, *, new_row_ids: bool = False, **which: Any
) -> DatasetReport:
    """A whole run. This process makes the files, as executors would."""
    given = TableOptions(table=name, new_row_ids=new_row_ids, **which)
    report = change_table(opened(spark, name), LocalEngine(jobs=1), options, given)
    assert not [row.error for row in report.rows if row.error]
    return report


@pytest.mark.parametrize("version", ["2", "3"])
def test_no_command_and_no_division_into_commits_brings_rows_back(spark: SparkSession, version: str) -> None:
    name = filled(spark, "beside deletes of positions", "run", version)
    before = rows(spark, name)
    row_ids = rows(spark, name, "id", "_row_id", "_last_updated_sequence_number") if version == "3" else []
    runs: list[tuple[WriteOptions, dict[str, Any]]] = [
        (AddOptions(columns=["id"]), {"where": "id < 100"}),
        (AddOptions(columns=["id"]), {"commit_every": 1}),
        (AddOptions(columns=["id", "name"], replace=True, ndv=5000), {}),
        (FoldOptions(fpp=0.1), {"commit_every": 1}),
        (RemoveOptions(), {}),
    ]
    for options, which in runs:
        report = run(spark, name, options, **which)
        assert report.commits, options
        assert rows(spark, name) == before, options
    if version == "3":
        assert rows(spark, name, "id", "_row_id", "_last_updated_sequence_number") == row_ids


def test_partitions_are_changed_one_after_another(spark: SparkSession) -> None:
    name = filled(spark, "in one partition", "parts")
    before = rows(spark, name)
    for day in (FIRST, SECOND):
        assert run(spark, name, AddOptions(columns=["id"]), where=f"day = date'{day}'").commits
        assert rows(spark, name) == before


def test_only_the_deletes_that_iceberg_would_drop_are_copied(spark: SparkSession) -> None:
    name = filled(spark, "deletes of all numbers", "few")
    old = files_below(opened(spark, name))
    before = rows(spark, name)
    table = added(spark, name)
    new = files_below(table) - old
    assert len([path for path in new if "-bloom-" not in path]) == 1
    first = filled(spark, "one delete, and a younger file", "none")
    table, replacements = prepared(spark, first)
    old = files_below(table)
    table.commit([one for one in replacements if one.old.record.sequence == 3], info())
    assert files_below(table) == old
    assert rows(spark, name) == before


def test_many_deletes_of_many_files_are_read_in_parts_and_with_few_calls_of_java(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make(spark, "eq_many", appends=0)
    for step in (*[rows_from(number * 100) for number in range(10)], delta(*([n] for n in range(0, 1000, 20)))):
        step(spark, name)
    before, read, texts = rows(spark, name), list[int](), Methods.texts

    def counted(self: Methods, items: Any, handle: Any) -> list[str]:
        read.append(items.size())
        return texts(self, items, handle)

    monkeypatch.setattr(scans, "_READ_AT_ONCE", 110)
    table, replacements = prepared(spark, name)
    monkeypatch.setattr(Methods, "texts", counted)
    with work.java_calls(spark) as sent:
        table.commit([one for one in replacements if one.old.record.sequence > 1], info())
    asked = [command for command in sent if command.split("\n")[2:3] == ["content"]]
    assert len(asked) <= 50, "each delete file once, not for each of the 9 data files"
    assert max(read) <= 110
    assert rows(spark, name) == before


def without_copies(self: commits._Attempt, rewrite: Any, files: Any) -> None:
    """Iceberg's own way: it drops the deletes."""
    del self, rewrite, files


def test_a_commit_that_would_lose_a_delete_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    name = filled(spark, "one delete, and a younger file", "refused")
    before, snapshots = rows(spark, name), summaries(spark, name)
    table, replacements = prepared(spark, name)
    monkeypatch.setattr(commits._Attempt, "_keep_deletes", without_copies)
    with pytest.raises(WriteError, match="the commit was refused: other deletes would apply"):
        table.commit(replacements, info())
    assert rows(spark, name) == before
    assert summaries(spark, name) == snapshots


def lost(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = lambda: None) -> None:
    """Let a commit lose deletes, and its first check miss it."""
    difference = commits._Attempt._difference
    checks = iter([True])

    def missed(self: commits._Attempt, table: Any, snapshot_id: int) -> str | None:
        if next(checks, False):
            return None
        then()
        return difference(self, table, snapshot_id)

    monkeypatch.setattr(commits._Attempt, "_keep_deletes", without_copies)
    monkeypatch.setattr(commits._Attempt, "_difference", missed)


@pytest.mark.parametrize("case", ["one delete, and a younger file", "deletes of all numbers", "in a branch"])
def test_a_commit_that_lost_a_delete_is_taken_back(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    name = filled(spark, case, "back")
    before, main = rows(spark, name), name.partition(".branch_")[0]
    of_main = rows(spark, main)
    lost(monkeypatch)
    report = change_table(
        opened(spark, name), LocalEngine(jobs=1), AddOptions(columns=["id"]), TableOptions(table=name)
    )
    assert report.exit_code == 3
    assert not report.commits
    assert {row.status.value for row in report.rows} == {"failed"}
    assert "it was taken back: the table is at snapshot" in str(report.rows[0].error)
    assert opened(spark, name).version == report.version_before
    assert (rows(spark, name), rows(spark, main)) == (before, of_main)
    for snapshot in spark.table(f"{main}.snapshots").collect():  # the history can still be read
        spark.sql(f"select count(*) from {main} version as of {snapshot.snapshot_id}").collect()


def test_a_wrong_commit_stays_where_others_have_committed_on_top(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = filled(spark, "one delete, and a younger file", "on_top")
    before = rows(spark, name)
    table, replacements = prepared(spark, name)
    lost(monkeypatch, lambda: append(spark, name, 500))
    with pytest.raises(WrongCommit, match="others have committed since, so it wasn't taken back") as caught:
        table.commit(replacements, info())
    assert len([number for number in ids(spark, name) if number >= 500]) == 100
    undo, _, statement = str(caught.value.hint).partition(": ")
    assert undo == "this SQL undoes their commits, too"
    spark.sql(statement)
    assert rows(spark, name) == before


OTHERS: dict[str, tuple[Fill, ...]] = {
    "appends": (rows_from(500), rows_from(600)),
    "a delete and an append": (delta([8, 9]), rows_from(500)),
    "upserts": (delta([8], rows=range(8, 9)), delta([9], rows=range(9, 10)), delta([8])),
    "deletes of positions": (sql("delete from {t} where id in (8, 109)"), rows_from(500)),
    "a delete, and the younger file is compacted": (
        delta([8]),
        sql("call ice.system.rewrite_data_files(table => '{s}', where => 'id >= 100', "
            "options => map('rewrite-all', 'true', 'use-starting-sequence-number', 'false'))"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_deletes_that_others_commit_at_the_last_instant_are_kept(spark: SparkSession, other: str) -> None:
    number = list(OTHERS).index(other)
    name = make(spark, f"eq_last_{number}", appends=0)
    for step in (rows_from(0), delta([3, 5]), rows_from(100)):
        step(spark, name)
    after: list[Any] = []

    def call(stage: str, count: int, paths: object) -> None:
        if (stage, count) == ("committing", 1):
            for step in OTHERS[other]:
                step(spark, name)
            after.extend(rows(spark, name))

    table = opened(spark, name)
    table.check_changes()
    version = table.version
    (oldest,) = [file for file in table.files() if file.record.sequence == 1]
    replacement = copied(table, oldest)
    with stages(call):
        table.commit([replacement], info())
    assert after
    assert rows(spark, name) == after
    table.refresh()
    others = [change for change in table.changes(version) if change.run is None]
    assert len(others) == len(OTHERS[other])
    assert [change.run is None for change in table.changes(version)] == [True] * len(others) + [False]
    assert bloomcli.inspect(replacement.path).filters


def test_a_commit_that_is_not_supported_leaves_no_new_files(spark: SparkSession) -> None:
    name = make(spark, "eq_refused_3", **{"write.delete.granularity": "partition"})
    spark.sql(f"delete from {name} where id in (3, 103)")
    spark.sql(f"alter table {name} set tblproperties ('format-version' = '3')")
    before, files = rows(spark, name), files_below(opened(spark, name))
    which = TableOptions(table=name, where="id < 100")
    report = change_table(opened(spark, name), LocalEngine(jobs=1), AddOptions(columns=["id"]), which)
    assert "in format version 3 they can't be rewritten" in str(report.rows[0].error)
    assert (report.remarks, report.exit_code) == ((), 4)
    assert rows(spark, name) == before
    assert files_below(opened(spark, name)) == files
