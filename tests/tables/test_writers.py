"""Writes of others to a table at each stage of a run: none is lost, undone or repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from support.lake_tables import PARTITIONS, Delta, Iceberg, LakeTable, Rows
from support.table_stages import stages

import bloomcli
from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STAGES = {
    "iceberg": {("planned", 1), ("writing", 1), ("made", 2), ("refreshed", 2), ("committing", 3), ("committed", 3)},
    "delta": {("writing", 1), ("refreshed", 1), ("committing", 2), ("committed", 2)},
}
"""When others write: at two stages of each of a run's first batches. What comes before a batch is committed is the
same to Delta, whose statements take seconds: there it comes once."""


class Writer:
    """Writes to a partition, and keeps the rows that the table must have then."""

    def __init__(self, table: LakeTable) -> None:
        self.table = table
        self.rows: Rows = table.rows()
        self.first: Rows = dict(self.rows)
        self.next = 1000
        self.turn = 0

    def _ids(self, partition: int) -> list[int]:
        return sorted(key for key, row in self.rows.items() if row[0] == partition)

    def append(self, partition: int) -> None:
        """Append a row."""
        self.next += 1
        self.table.sql(f"insert into {{t}} ({{id}}, p, {{name}}) values ({self.next}, {partition}, 'new')")
        self.rows[self.next] = (partition, "new")

    def delete(self, partition: int) -> None:
        """Delete a row of each of a partition's files."""
        ids = self._ids(partition)
        for key in (ids[0], ids[-1]):
            del self.rows[key]
        self.table.sql(f"delete from {{t}} where {{id}} in ({ids[0]}, {ids[-1]})")

    def update(self, partition: int) -> None:
        """Update a row."""
        key = self._ids(partition)[1]
        self.rows[key] = (partition, f"updated {key}")
        self.table.sql(f"update {{t}} set {{name}} = 'updated {key}' where {{id}} = {key}")

    def merge(self, partition: int) -> None:
        """Delete a row, update one and insert one."""
        gone, changed = self._ids(partition)[2:4]
        self.next += 1
        del self.rows[gone]
        self.rows |= {changed: (partition, "merged"), self.next: (partition, "merged")}
        self.table.sql(
            f"merge into {{t}} t using (select explode(array({gone}, {changed}, {self.next})) k) s on t.{{id}} = s.k"
            f" when matched and s.k = {gone} then delete when matched then update set {{name}} = 'merged'"
            f" when not matched then insert ({{id}}, p, {{name}}) values (s.k, {partition}, 'merged')"
        )

    def compact(self, partition: int) -> None:
        """Rewrite a partition's files into one."""
        self.table.compact(partition)

    def schema(self) -> None:
        """Add a column, and rename one."""
        which = ("id", "name")[self.turn // 2 % 2]
        self.table.sql(f"alter table {{t}} add column c{self.turn} int")
        self.table.sql(f"alter table {{t}} rename column {{{which}}} to {which}{self.turn}")
        self.table.columns[which] = f"{which}{self.turn}"

    def change(self, partition: int) -> None:
        """Delete, update and insert by one commit; by another one append, delete or update, in turns; and change the
        schema. Delta has a commit tried again that a change of the schema comes between, whatever else does: within a
        commit of Delta, only rows change."""
        self.turn += 1
        self.merge(partition)
        (self.append, self.delete, self.update)[self.turn % 3](partition)
        if self.table.format == "iceberg" or self.turn % 2 == 0:
            self.schema()


WRITERS: dict[str, Callable[[Writer, int], None]] = {
    "rows and schema": Writer.change,
    "compaction": Writer.compact,
}


def partition_of(path: str) -> int:
    """The partition of a file of the first rows. Its path doesn't show it if columns are mapped."""
    lowest: int = min(pq.ParquetFile(path).read().column(0).to_pylist())
    return lowest % PARTITIONS


@pytest.mark.parametrize(
    ("kind", "writes"),
    # compactions of Delta tables are in tests/tables/delta
    [*(("iceberg", writes) for writes in WRITERS), ("delta", "rows and schema")],
)
def test_what_others_write_at_each_stage_of_a_run_stays(
    spark: SparkSession, tmp_path: Path, kind: str, writes: str
) -> None:
    table: LakeTable = Iceberg(spark) if kind == "iceberg" else Delta(spark, tmp_path / "lake")
    writer, version = Writer(table), table.version()
    come = set()

    def at(stage: str, count: int, paths: Sequence[str]) -> None:
        if (stage, count) in STAGES[kind] - come:
            come.add((stage, count))
            WRITERS[writes](writer, partition_of(paths[0]))

    with stages(at):
        found = bloom_spark.add_to_table(spark, table.name, ["id"], commit_every=2).collect()
    assert come == STAGES[kind]
    problems = [(row.path, row.error) for row in found if row.status == "failed"]
    assert not problems
    assert table.rows() == writer.rows
    assert not table.orphans()
    assert set(table.add()) <= {"done", "skipped"}
    assert not table.lacking()
    assert table.rows() == writer.rows
    assert table.rows(version) == writer.first
    key = max(writer.rows)
    assert table.point(key) == [writer.rows[key][1]]


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_two_runs_at_once_give_each_file_the_filters_of_both(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table: LakeTable = Iceberg(spark) if kind == "iceberg" else Delta(spark, tmp_path / "lake")
    rows, version = table.rows(), table.version()

    def run(column: str) -> list[str]:
        found = bloom_spark.add_to_table(spark, table.name, [column], commit_every=3)
        return [row.status for row in found.collect()]

    with ThreadPoolExecutor(2) as threads:
        statuses = {status for found in threads.map(run, ("id", "name")) for status in found}
    assert statuses <= {"done", "skipped"}
    assert (table.rows(), table.rows(version)) == (rows, rows)
    assert {len(bloomcli.inspect(path).filters) for path in table.live()} == {2}
    assert not table.orphans()
