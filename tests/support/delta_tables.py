"""Helpers of the tests of Delta tables: replace data files, and read a table's rows, versions and history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import bloomcli
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.tables.base import CommitInfo, DataFile, Replacement
from bloomcli.tables.delta import DeltaTable, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """A Delta table in a folder."""

    def __init__(self, spark: SparkSession, folder: Path | str) -> None:
        self.spark = spark
        self.folder = folder
        self.name = f"delta.`{folder}`"

    def sql(self, statement: str) -> DataFrame:
        """Run a statement: ``{t}`` is the table."""
        return self.spark.sql(statement.replace("{t}", self.name))

    def create(self, columns: str, *, more: str = "", **properties: str) -> Lake:
        """Make the table; `properties` without ``delta.``, and with ``_`` instead of a dot."""
        listed = ", ".join(f"'delta.{key.replace('_', '.')}' = '{value}'" for key, value in properties.items())
        self.sql(
            f"create table {{t}} ({columns}) using delta {more}" + (f" tblproperties ({listed})" if listed else "")
        )
        return self

    def insert(self, select: str) -> Lake:
        """Append one file for each partition."""
        self.sql(f"insert into {{t}} select /*+ coalesce(1) */ {select}")
        return self

    def open(self, **version: Any) -> DeltaTable:
        """Open the table."""
        table = open_table(self.spark, self.name, **version)
        assert table is not None
        return table

    def rows(self, *columns: str, version: int | None = None, where: str = "true") -> list[str]:
        """The rows, as sorted JSON, so that any type can be compared."""
        at = "" if version is None else f" version as of {version}"
        chosen = ", ".join(columns) or "*"
        return sorted(
            row[0] for row in self.sql(f"select to_json(struct({chosen})) from {{t}}{at} where {where}").collect()
        )

    def read_files(self, where: str) -> int:
        """How many files a query with a condition reads."""
        return len(self.sql(f"select * from {{t}} where {where}").inputFiles())

    @property
    def version(self) -> int:
        """The newest version, of a table in a local folder."""
        return max(int(path.stem) for path in (self.folder / "_delta_log").glob("*.json"))

    def history(self) -> list[Any]:
        """The commits, the newest first."""
        return self.sql("describe history {t}").collect()

    def log(self, version: int) -> dict[str, list[dict[str, Any]]]:
        """The actions of a commit by their kinds."""
        found: dict[str, list[dict[str, Any]]] = {}
        for line in (self.folder / "_delta_log" / f"{version:020}.json").read_text().splitlines():
            ((kind, action),) = json.loads(line).items()
            found.setdefault(kind, []).append(action)
        return found

    def replace(self, columns: Sequence[str] = ("id",), where: str | None = None) -> int:
        """Replace all files by files with filters, in one commit. Returns the version."""
        table = self.open()
        table.check_changes()
        return table.commit(made(table, table.files(where), columns), info(columns))

    def filters(self, column: str) -> list[int]:
        """How many filters the newest version's files have on a column, in the order of their paths."""
        found = []
        for file in self.open().files():
            by_column = {c.column: c.filters for c in bloomcli.inspect(portable(file.path)).by_column}
            found.append(by_column[column])
        return found


def info(columns: Sequence[str] = ("id",), batch: int = 1) -> CommitInfo:
    """The history's entry for a commit of a new run."""
    return CommitInfo(run=str(uuid4()), batch=batch, command="add", columns=tuple(columns))


def made(table: DeltaTable, files: Sequence[DataFile], columns: Sequence[str] = ("id",)) -> list[Replacement]:
    """Replacements of files by files with filters."""
    replacements = []
    for file in files:
        path = table.new_path(file)
        report = bloomcli.add(portable(file.path), list(columns), output=portable(path), replace=True)
        replacements.append(Replacement(file, path, report.bytes_after))
    return replacements


def carried(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields that a new file's entry must keep from the old entry."""
    return {k: v for k, v in entry.items() if k not in {"path", "size", "modificationTime", "dataChange"}}
