"""Commits of other writers between the planning of files and bloom's commit: none is lost or undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JNetworkError
from support.iceberg_runs import (
    append,
    delete_equal,
    files_below,
    ids,
    info,
    local_path,
    make,
    opened,
    prepared,
    rows,
    summaries,
)

import bloomcli
from bloomcli.errors import BloomError, WriteError
from bloomcli.tables.base import Conflict, UnknownOutcome
from bloomcli.tables.iceberg import commit as commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark 4.1's, of each collect()
]

Other = Callable[["SparkSession", str], Any]


def sql(text: str) -> Other:
    """Another writer's statement; ``{t}`` is the table and ``{s}`` its name for procedures."""
    return lambda spark, name: spark.sql(text.format(t=name, s=name.removeprefix("ice."))).collect()


KEPT: dict[str, tuple[Other, ...]] = {
    "rows": (
        lambda spark, name: append(spark, name, 500),
        sql("delete from {t} where id in (5, 105)"),
        sql("delete from {t} where id = 6"),
        sql("update {t} set name = 'new' where id in (6, 7, 106)"),
        sql(
            "merge into {t} t using (select 8 id) s on t.id = s.id when matched then update set name = 'm' "
            "when not matched then insert (id) values (s.id)"
        ),
    ),
    "equality deletes": (lambda spark, name: delete_equal(spark, name, "id", [8, 108]),),
    "compacted deletes": (
        sql("delete from {t} where id = 9"),
        sql("call ice.system.rewrite_position_delete_files(table => '{s}', options => map('rewrite-all', 'true'))"),
    ),
    "schema and partitions": (
        sql("alter table {t} rename column name to title"),
        sql("alter table {t} drop column title"),
        sql("alter table {t} add partition field bucket(2, id)"),
    ),
    "maintenance": (
        sql("call ice.system.rewrite_manifests('{s}')"),
        lambda spark, name: append(spark, name, 500),
        sql(
            "call ice.system.expire_snapshots(table => '{s}', older_than => timestamp '2100-01-01', retain_last => 1)"
        ),
    ),
}


@pytest.mark.parametrize(
    ("other", "version"),
    # Version 3 has other deletes, and ids of new rows: only what writes rows or deletes differs there.
    [*((other, "2") for other in KEPT), ("rows", "3")],
)
def test_commits_that_leave_the_data_files_are_kept(spark: SparkSession, other: str, version: str) -> None:
    name = make(spark, f"kept_{other.replace(' ', '_')}_{version}", version=version)
    spark.sql(f"delete from {name} where id in (1, 101)")
    table, replacements = prepared(spark, name, new_row_ids=version == "3")
    for step in KEPT[other]:
        step(spark, name)
    before, snapshots = rows(spark, name), len(summaries(spark, name))
    table.commit(replacements, info())
    assert rows(spark, name) == before
    assert len(summaries(spark, name)) == snapshots + 1
    new = {one.path for one in replacements}
    assert new <= {file.path for file in opened(spark, name).files()}
    assert all(bloomcli.inspect(path).filters for path in new)


GONE: dict[str, Other] = {
    "compaction": sql("call ice.system.rewrite_data_files(table => '{s}', options => map('rewrite-all', 'true'))"),
    "overwrite": sql("insert overwrite {t} select * from {t} where id < 50"),
}


@pytest.mark.parametrize("other", GONE)
def test_data_files_that_other_commits_removed_are_named_and_nothing_changes(spark: SparkSession, other: str) -> None:
    name = make(spark, f"gone_{other}")
    spark.sql(f"delete from {name} where id in (1, 101)")
    table, replacements = prepared(spark, name)
    GONE[other](spark, name)
    before, snapshots = rows(spark, name), summaries(spark, name)
    with pytest.raises(Conflict, match="another commit has removed data files") as caught:
        table.commit(replacements, info())
    assert caught.value.paths == {one.old.path for one in replacements}
    assert rows(spark, name) == before
    assert summaries(spark, name) == snapshots
    assert table.remove_files([one.path for one in replacements]) == []
    live = {Path(row.file_path).name for row in spark.table(f"{name}.all_files").select("file_path").collect()}
    assert files_below(table) <= live  # the delete files of failed attempts are removed too


def test_the_other_files_of_a_batch_can_be_committed_after_a_conflict(spark: SparkSession) -> None:
    name = make(spark, "part", appends=3, **{"write.delete.mode": "copy-on-write"})
    table, replacements = prepared(spark, name)
    spark.sql(f"delete from {name} where id = 150")
    before = rows(spark, name)
    with pytest.raises(Conflict) as caught:
        table.commit(replacements, info())
    assert len(caught.value.paths) == 1
    table.commit([one for one in replacements if one.old.path not in caught.value.paths], info())
    table.refresh()
    assert rows(spark, name) == before
    assert sorted(bool(bloomcli.inspect(file.path).filters) for file in table.files()) == [False, True, True]


def test_files_whose_rows_have_got_row_ids_meanwhile_have_to_be_copied_again(spark: SparkSession) -> None:
    name = make(spark, "upgraded", appends=1)
    table, replacements = prepared(spark, name)
    spark.sql(f"alter table {name} set tblproperties ('format-version' = '3')")
    append(spark, name, 100)
    before = rows(spark, name, "*", "_row_id")
    with pytest.raises(Conflict, match="have got row ids") as caught:
        table.commit(replacements, info())
    assert caught.value.paths == {one.old.path for one in replacements}
    assert rows(spark, name, "*", "_row_id") == before


def test_a_table_that_was_dropped_and_made_anew_is_left_alone(spark: SparkSession) -> None:
    name = make(spark, "again", appends=1)
    table, replacements = prepared(spark, name)
    spark.sql(f"drop table {name}")
    make(spark, "again", appends=1)
    before = rows(spark, name)
    with pytest.raises(BloomError):
        table.commit(replacements, info())
    assert rows(spark, name) == before
    assert len(summaries(spark, name)) == 1


def test_a_commit_whose_answer_is_lost_is_found_in_the_history(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make(spark, "lost")
    spark.sql(f"delete from {name} where id = 5")
    before = rows(spark, name)
    table, replacements = prepared(spark, name)
    commit = commits._Attempt._commit

    def losing(self: commits._Attempt) -> None:
        commit(self)
        append(spark, name, 500)
        raise Py4JNetworkError("the answer is lost")

    monkeypatch.setattr(commits._Attempt, "_commit", losing)
    snapshot = table.commit(replacements, info())
    monkeypatch.undo()
    assert table.table.snapshot(snapshot).operation() == "replace"
    assert [row for row in rows(spark, name) if row.id < 500] == before
    assert {one.path for one in replacements} <= {file.path for file in table.files()}


def test_a_commit_that_may_have_taken_place_keeps_its_files(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make(spark, "unknown")
    spark.sql(f"delete from {name} where id = 5")
    table, replacements = prepared(spark, name)

    def losing(self: commits._Attempt) -> None:
        self._rewrite(self.table.table, *self.groups[0])  # its delete files are written
        raise Py4JNetworkError("the answer is lost")

    monkeypatch.setattr(commits._Attempt, "_commit", losing)
    before = files_below(table)
    with pytest.raises(UnknownOutcome, match="it isn't known whether the commit has taken place") as caught:
        table.commit(replacements, info(run="the-run"))
    assert "the-run" in (caught.value.hint or "")
    assert len(files_below(table) - before) == 1
    assert len(summaries(spark, name)) == 3


def test_a_commit_that_fails_leaves_nothing(spark: SparkSession) -> None:
    name = make(spark, "failing")
    spark.sql(f"delete from {name} where id = 5")
    before = rows(spark, name)
    table, replacements = prepared(spark, name)
    files = files_below(table)
    manifest = Path(table.table.currentSnapshot().dataManifests(table.table.io()).get(0).path())
    hidden = manifest.rename(manifest.with_suffix(".hidden"))
    with pytest.raises(WriteError, match="the commit failed"):
        table.commit(replacements, info())
    hidden.rename(manifest)
    assert rows(spark, name) == before
    assert len(summaries(spark, name)) == 3
    assert files_below(table) == files
    table.commit(replacements, info())
    assert rows(spark, name) == before


def test_a_new_file_that_is_missing_or_cut_off_is_not_committed(spark: SparkSession) -> None:
    name = make(spark, "missing", appends=1)
    table, (one,) = prepared(spark, name)
    with pytest.raises(WriteError, match=f"has {one.size} bytes, and {one.size + 1} were written"):
        table.commit([one._replace(size=one.size + 1)], info())
    local_path(one.path).unlink()
    with pytest.raises(WriteError, match="the new file can't be opened"):
        table.commit([one], info())
    assert ids(spark, name) == list(range(100))
    assert len(summaries(spark, name)) == 1


@pytest.mark.parametrize("times", [2, 99])
def test_deletes_that_come_between_each_try_are_never_lost(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    name = make(spark, f"raced_{times}", appends=1)
    table, replacements = prepared(spark, name)
    files, deleted = files_below(table), iter(range(times))
    commit = commits._Attempt._commit

    def raced(self: commits._Attempt) -> None:
        if (number := next(deleted, None)) is not None:
            spark.sql(f"delete from {name} where id = {number}")
        commit(self)

    monkeypatch.setattr(commits._Attempt, "_commit", raced)
    if times == 2:
        table.commit(replacements, info())
        assert ids(spark, name) == list(range(2, 100))
        assert {file.path for file in opened(spark, name).files()} == {one.path for one in replacements}
        return
    with pytest.raises(Conflict, match="other commits came between 5 times") as caught:
        table.commit(replacements, info())
    assert not caught.value.paths, "the run doesn't try again"
    assert ids(spark, name) == list(range(5, 100))
    table.remove_files([one.path for one in replacements])
    assert len(files_below(table) - files) == 5  # Spark's own delete files
