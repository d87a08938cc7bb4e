"""Small Iceberg and Delta tables with deletes, and the checks that hold after any failure of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import bloomcli
from bloomcli.commands.options import AddOptions, TableOptions
from bloomcli.datasets.engine import LocalEngine
from bloomcli.tables.change import change_table
from bloomcli.tables.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 3
FILES = 2 * PARTITIONS
"""Files, two in each partition."""
ROWS = 120
DELETED = 7
"""The remainder modulo 20 of the ids of deleted rows."""

Rows = dict[int, tuple[int, str]]
"""Partition and name by id."""


class LakeTable:
    """A table of the columns id, p (the partition) and name."""

    format: str
    name: str
    """Its name in SQL."""
    root: Path

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.columns = {"id": "id", "name": "name"}
        """The current names of the columns."""

    def sql(self, text: str) -> Any:
        """The rows of a statement: ``{t}`` is the table."""
        return self.spark.sql(text.format(t=self.name, **self.columns)).collect()

    def add(self) -> list[str]:
        """Add filters on the column id, as `bloom add --table` does, in this process. Returns the files' statuses."""
        options, which = AddOptions(columns=[self.columns["id"]]), TableOptions(table=self.name)
        report = change_table(open_table(self.spark, self.name), LocalEngine(jobs=1), options, which)
        return [row.status.value for row in report.rows]

    def fill(self) -> None:
        """Write two files in each partition, and deletes outside the data files."""
        self.sql(
            f"insert into {{t}} select id, cast(id % {PARTITIONS} as int), concat('n', id)"
            f" from range(0, {ROWS}, 1, 2)"
        )
        self.sql(f"delete from {{t}} where id % 20 = {DELETED}")

    def rows(self, version: int | None = None) -> Rows:
        """The rows of the newest version, or of one before any column was renamed. Checks that ids are unique."""
        if version is None:
            found = self.sql("select {id}, p, {name} from {t}")
        else:
            found = self.sql(f"select id, p, name from {{t}} version as of {version}")
        assert len({row[0] for row in found}) == len(found), "a row is there twice"
        return {row[0]: (row[1], row[2]) for row in found}

    def point(self, key: int) -> list[str]:
        """The names of rows by a query for which Spark uses filters."""
        return [row[0] for row in self.sql(f"select {{name}} from {{t}} where {{id}} = {key}")]

    def version(self) -> int:
        """The newest version."""
        raise NotImplementedError

    def live(self) -> list[Path]:
        """The data files of the newest version."""
        raise NotImplementedError

    def known(self) -> set[Path]:
        """The data and delete files of all versions."""
        raise NotImplementedError

    def on_disk(self) -> Iterator[Path]:
        """All files with rows or deletes, and temporary files."""
        for path in self.root.rglob("*"):
            metadata = {"metadata", "_delta_log"} & set(path.relative_to(self.root).parts)
            if not metadata and path.is_file() and path.suffix in (".parquet", ".bin", ".puffin", ".tmp"):
                yield path

    def orphans(self) -> set[Path]:
        """Files that are in no version."""
        return set(self.on_disk()) - self.known()

    def lacking(self) -> list[Path]:
        """Live files without filters."""
        return [path for path in self.live() if not bloomcli.inspect(path).filters]


class Iceberg(LakeTable):
    """An Iceberg v2 table with position deletes."""

    format = "iceberg"

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.short = f"db.t{uuid4().hex[:8]}"
        self.name = f"ice.{self.short}"
        modes = ",".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("delete", "update", "merge"))
        self.sql(
            "create table {t} (id bigint, p int, name string) using iceberg partitioned by (p) tblproperties"
            f" ('format-version' = '2', {modes}, 'write.distribution-mode' = 'none',"
            " 'write.spark.fanout.enabled' = 'true')"
        )
        self.root = _warehouse(spark).joinpath(*self.short.split("."))
        self.fill()

    def version(self) -> int:
        found: int = self.sql("select snapshot_id from {t}.refs where name = 'main'")[0][0]
        return found

    def live(self) -> list[Path]:
        return [_path(row[0]) for row in self.sql("select file_path from {t}.files where content = 0")]

    def known(self) -> set[Path]:
        return {_path(row[0]) for row in self.sql("select file_path from {t}.all_files")}

    def compact(self, partition: int) -> None:
        """Rewrite a partition's files into one."""
        self.sql(
            f"call ice.system.rewrite_data_files(table => '{self.short}', where => 'p = {partition}',"
            " options => map('rewrite-all', 'true'))"
        )


class Delta(LakeTable):
    """A Delta table with deletion vectors and column mapping."""

    format = "delta"

    def __init__(self, spark: SparkSession, root: Path) -> None:
        super().__init__(spark)
        self.root = root
        self.name = f"delta.`{root}`"
        first = _warehouse(spark).with_name("first-delta")
        if first.exists():  # the log names files by relative paths: a copy is a table
            shutil.copytree(first, root)
            return
        self.sql(
            "create table {t} (id bigint, p int, name string) using delta partitioned by (p) tblproperties"
            " ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
        )
        self.fill()
        shutil.copytree(root, first)

    def version(self) -> int:
        return max(int(path.stem) for path in (self.root / "_delta_log").glob("*.json"))

    def live(self) -> list[Path]:
        return [_path(path) for path in self.spark.table(self.name).inputFiles()]

    def known(self) -> set[Path]:
        found = set(
            self.root.glob("deletion_vector_*.bin")
        )  # all of them: reading the table shows whether a needed one is missing
        for entry in (self.root / "_delta_log").glob("*.json"):
            for line in entry.read_text().splitlines():
                action = json.loads(line)
                if "add" in action:
                    found.add(self.root / unquote(action["add"]["path"]))
        return found

    def compact(self, partition: int) -> None:
        """Rewrite a partition's files into one."""
        self.sql(f"optimize {{t}} where p = {partition}")


def _warehouse(spark: SparkSession) -> Path:
    """The folder of the Iceberg tables."""
    return Path(spark.conf.get("spark.sql.catalog.ice.warehouse") or "")


def _path(name: str) -> Path:
    """A local path of a URI or a path."""
    return Path(unquote(urlsplit(name).path)) if name.startswith("file:") else Path(name)
