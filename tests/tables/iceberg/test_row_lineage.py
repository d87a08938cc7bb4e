"""Row ids of Iceberg v3 tables are kept: `bloom add --table` gives each new Parquet file the row lineage columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from support.iceberg_runs import append, make, opened, read_by_pyiceberg, row_delta, rows
from support.table_stages import stages

from bloomcli.commands.options import AddOptions, TableOptions
from bloomcli.datasets.engine import LocalEngine
from bloomcli.datasets.spark import SparkEngine
from bloomcli.model.dataset import DatasetReport
from bloomcli.tables.change import change_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

LINEAGE = ("id", "name", "_row_id", "_last_updated_sequence_number")


def add(spark: SparkSession, name: str, *, column: str = "id", new_row_ids: bool = False) -> DatasetReport:
    """`bloom add --table`, with its run loop. This process makes the files, as executors would."""
    which = TableOptions(table=name, new_row_ids=new_row_ids)
    return change_table(opened(spark, name), LocalEngine(jobs=1), AddOptions(columns=[column]), which)


def statuses(report: DatasetReport) -> list[str]:
    assert not [row.error for row in report.rows if row.error]
    return [row.status.value for row in report.rows]


def lineage(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).select(*LINEAGE).collect())


def changed(spark: SparkSession, label: str) -> str:
    """A v3 table with deleted rows, and with files in which Iceberg wrote the columns, partly without values."""
    name = make(spark, label, version="3", appends=3, **{"write.parquet.page-row-limit": "20"})
    spark.sql(f"delete from {name} where id % 10 = 3")
    spark.sql(f"update {name} set name = 'updated' where id % 50 = 4")
    return name


def test_row_ids_and_numbers_of_changes_are_equal_before_and_after(spark: SparkSession) -> None:
    name = changed(spark, "lineage")
    before = lineage(spark, name)
    assert len({row[3] for row in before}) == 4
    assert set(statuses(add(spark, name))) == {"done"}
    assert lineage(spark, name) == before
    spark.sql(f"alter table {name} set tblproperties ('read.parquet.vectorization.enabled' = 'false')")
    assert lineage(spark, name) == before, "by the reader of single rows"
    assert sorted(row["id"] for row in read_by_pyiceberg(opened(spark, name))) == [row[0] for row in before]


def test_rows_keep_their_ids_beside_commits_of_others_at_each_stage_of_a_run(spark: SparkSession) -> None:
    name, same = (make(spark, f"lineage_{label}", version="3", appends=3) for label in ("raced", "same"))
    others: dict[tuple[str, int], Callable[[str], object]] = {
        ("planned", 1): lambda table: spark.sql(f"delete from {table} where id in (3, 103)"),
        ("made", 1): lambda table: spark.sql(f"update {table} set name = 'updated' where id in (4, 204)"),
        ("committing", 1): lambda table: row_delta(spark, table, [("id", [5, 105, 205])]),
        ("refreshed", 2): lambda table: spark.sql(f"insert into {table} (id, name) values (500, 'new')"),
        ("committing", 3): lambda table: spark.sql(f"delete from {table} where id in (6, 106, 206)"),
    }
    waiting, before = dict(others), lineage(spark, name)

    def at(stage: str, count: int, paths: object) -> None:
        del paths
        if (change := waiting.pop((stage, count), None)) is not None:
            change(name)

    which = TableOptions(table=name, commit_every=1)
    with stages(at):
        report = change_table(opened(spark, name), SparkEngine(spark), AddOptions(columns=["id"]), which)
    assert not waiting
    assert len(report.commits) >= 3
    for change in others.values():
        change(same)
    assert rows(spark, name) == rows(spark, same)
    known, after = {row[0]: row for row in before}, lineage(spark, name)
    assert all(row == known[row[0]] for row in after if row[0] not in (4, 204, 500))
    assert {row[2] for row in after if row[0] in (4, 204)} == {known[4][2], known[204][2]}
    assert len({row[2] for row in after}) == len(after) == 300 - 8 + 1


def test_new_row_ids_are_unique_if_others_append_at_the_last_instant(spark: SparkSession) -> None:
    name = make(spark, "lineage_unique", version="3", appends=1)
    row_delta(spark, name, [("id", [5])])  # the files before it and after it are replaced by a snapshot each
    append(spark, name, 100)
    appended: list[int] = []

    def at(stage: str, count: int, paths: object) -> None:
        del count, paths
        if stage == "committing" and not appended:
            appended.append(200)
            append(spark, name, 200)

    with stages(at):
        report = add(spark, name, new_row_ids=True)
    assert statuses(report)[:2] == ["done", "done"]
    assert [commit.snapshots for commit in report.commits] == [2]
    after = lineage(spark, name)
    assert [row[0] for row in after] == [number for number in range(300) if number != 5]
    assert len({row[2] for row in after}) == len(after)


def test_without_the_columns_rows_get_new_ids(spark: SparkSession) -> None:
    name = changed(spark, "renumbered")
    before = lineage(spark, name)
    assert set(statuses(add(spark, name, new_row_ids=True))) == {"done"}
    after = lineage(spark, name)
    assert [row[:2] for row in after] == [row[:2] for row in before]
    assert [row[2] for row in after] != [row[2] for row in before]


def test_later_changes_and_compactions_keep_them(spark: SparkSession) -> None:
    name = changed(spark, "later")
    numbers = {row[0]: row[2] for row in lineage(spark, name)}
    add(spark, name)
    spark.sql(f"update {name} set name = 'again' where id % 50 = 6")
    spark.sql(f"merge into {name} t using (select 7 id) u on t.id = u.id when matched then delete")
    del numbers[7]
    add(spark, name, column="name")
    assert {row[0]: row[2] for row in lineage(spark, name)} == numbers
    spark.sql(f"call ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert {row[0]: row[2] for row in lineage(spark, name)} == numbers
    before = lineage(spark, name)
    assert set(statuses(add(spark, name, column="name"))) == {"done"}
    assert lineage(spark, name) == before


def test_files_whose_rows_would_get_new_ids_are_refused_by_name(spark: SparkSession) -> None:
    orc = make(spark, "in_orc", version="3", appends=1, **{"write.format.default": "orc"})
    mixed = make(spark, "mixed", version="3", appends=1, **{"write.merge.mode": "copy-on-write"})
    spark.sql(
        f"merge into {mixed} t using (select 7 id union select 700) u on t.id = u.id when matched then delete "
        "when not matched then insert (id) values (u.id)"
    )
    for name, reason in ((orc, "can't keep the row ids"), (mixed, "have no _row_id of their own")):
        before = lineage(spark, name)
        errors = [row.error for row in add(spark, name).rows]
        assert any(error is not None and reason in error for error in errors)
        assert lineage(spark, name) == before
        assert set(statuses(add(spark, name, new_row_ids=True))) == {"done"}


def test_rows_of_a_table_that_was_version_2_before_get_ids_by_the_next_commit(spark: SparkSession) -> None:
    name = make(spark, "was_2", version="2")
    spark.sql(f"alter table {name} set tblproperties ('format-version' = '3')")
    assert {row[2] for row in lineage(spark, name)} == {None}
    add(spark, name)
    assert sorted(row[2] for row in lineage(spark, name)) == list(range(200))


def test_variants_and_upserts_of_version_3_keep_rows_and_row_ids(spark: SparkSession) -> None:
    name = "ice.db.variants"
    spark.sql(
        f"create table {name} (id int, day date, name string, any variant) using iceberg tblproperties "
        "('format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')"
    )
    for start in (0, 100):
        spark.sql(
            f"insert into {name} select cast(id as int), null, concat('n', id), "
            f"parse_json(concat('{{\"a\":', id, '}}')) from range({start}, {start + 100}, 1, 1)"
        )
    row_delta(spark, name, [("id", [3, 104])])
    spark.sql(f"delete from {name} where id = 5")
    columns = ("id", "cast(any as string) v", "_row_id", "_last_updated_sequence_number")

    def found() -> list[Any]:
        return sorted(spark.table(name).selectExpr(*columns).collect())

    before = found()
    assert len(before) == 197
    assert set(statuses(add(spark, name))) == {"done"}
    assert found() == before
