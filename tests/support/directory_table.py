"""A small table format for tests: a directory of Parquet files, and a log of numbered versions.

Version N is the file ``_log/N.json``, which lists the data files with their sizes, partitions and deleted
positions. A commit creates the file of the next number, which only one writer can do. It fails with a conflict if the
files that it replaces differ between the newest version and the version that it has read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq

from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.model.schema import ColumnName, ColumnNames
from bloomcli.tables.base import CommitInfo, Conflict, DataFile, FilterRequest, Replacement, Table, TableChange


@dataclass
class Entry:
    """A data file in a version."""

    path: str
    size: int
    partition: str = ""
    deleted: tuple[int, ...] = ()
    """Positions of deleted rows."""


class DirectoryTable(Table):
    """A directory of Parquet files with a log."""

    format = "directory"

    def __init__(self, root: Path, *, version: int | None = None) -> None:
        self.name = f"directory.{root.name}"
        self.root = root
        self._version = self.newest() if version is None else version

    @classmethod
    def create(cls, root: Path, files: Sequence[tuple[str, str]] = (), **properties: Any) -> DirectoryTable:
        """A table of files that exist: pairs of a path below `root` and a partition."""
        (root / "_log").mkdir(parents=True)
        entries = [Entry(path, (root / path).stat().st_size, partition) for path, partition in files]
        cls._write(root, 0, entries, {"properties": properties})
        return cls(root)

    def newest(self) -> int:
        """The newest version's number."""
        return max(int(path.stem) for path in (self.root / "_log").glob("*.json"))

    @staticmethod
    def _write(root: Path, version: int, entries: Sequence[Entry], rest: dict[str, Any]) -> None:
        """Create a version, unless another writer has. Raises FileExistsError."""
        log = root / "_log"
        temporary = log / f".{uuid4()}"
        temporary.write_text(json.dumps({"files": [vars(entry) for entry in entries], **rest}))
        try:
            os.link(temporary, log / f"{version}.json")
        finally:
            temporary.unlink()

    def read(self, version: int | None = None) -> dict[str, Any]:
        """A version's content."""
        number = self._version if version is None else version
        content: dict[str, Any] = json.loads((self.root / "_log" / f"{number}.json").read_text())
        return content

    def entries(self, version: int | None = None) -> dict[str, Entry]:
        """A version's files by path."""
        found = (Entry(**{**item, "deleted": tuple(item["deleted"])}) for item in self.read(version)["files"])
        return {entry.path: entry for entry in found}

    def write(self, entries: Sequence[Entry], **rest: Any) -> int:
        """Commit as another writer, on top of the newest version."""
        version = self.newest() + 1
        self._write(self.root, version, entries, {"properties": self.read(version - 1)["properties"], **rest})
        return version

    @property
    def version(self) -> int:
        return self._version

    def names(self) -> ColumnNames:
        entry = next(iter(self.entries().values()), None)
        schema = None if entry is None else pq.read_schema(self.root / entry.path)
        names = () if schema is None else tuple(ColumnName(path=name) for name in schema.names)
        return ColumnNames(columns=names)

    def files(self, where: str | None = None) -> list[DataFile]:
        if where is not None and "=" not in where:
            raise UsageError(f"{where!r} is no condition", path=self.name)
        return [
            DataFile(
                path=f"file:{self.root / entry.path}",
                size=entry.size,
                format=Path(entry.path).suffix.removeprefix("."),
                partition=entry.partition,
                record=entry,
            )
            for entry in self.entries().values()
            if where is None or entry.partition == where
        ]

    def filter_requests(self) -> Sequence[FilterRequest]:
        asked = self.read()["properties"].get("filters", {})
        return [FilterRequest(column=column, fpp=fpp) for column, fpp in asked.items()]

    def check_changes(self, *, new_row_ids: bool = False) -> None:
        if self.read()["properties"].get("row_ids") and not new_row_ids:
            raise UnsupportedError("the table has row ids", path=self.name, hint="--new-row-ids")

    def new_path(self, file: DataFile) -> str:
        old = Path(file.path)
        return str(old.with_name(f"{uuid4()}{old.suffix}"))

    def relative(self, path: str) -> str:
        """A full path in the form of the log."""
        return str(Path(path.removeprefix("file:")).relative_to(self.root))

    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        newest = self.newest()
        entries = self.entries(newest)
        changed = [r.old.path for r in replacements if entries.get(r.old.record.path) != r.old.record]
        if changed:
            raise Conflict("another commit has changed files", path=self.name, paths=changed)
        new = {
            r.old.record.path: Entry(self.relative(r.path), r.size, r.old.partition, r.old.record.deleted)
            for r in replacements
        }
        for entry in new.values():
            assert (self.root / entry.path).stat().st_size == entry.size
        rest = {"properties": self.read(newest)["properties"], "commit": [info.run, info.batch, *info.columns]}
        try:
            self._write(self.root, newest + 1, [new.get(path, entry) for path, entry in entries.items()], rest)
        except FileExistsError:  # another commit came first
            return self.commit(replacements, info)
        return newest + 1

    def refresh(self) -> None:
        self._version = self.newest()

    def changes(self, after: int | None) -> list[TableChange]:
        runs = [(number, self.read(number).get("commit")) for number in range((after or 0) + 1, self._version + 1)]
        return [TableChange(number, "commit", run[0] if run else None) for number, run in runs]

    def remove_files(self, paths: Collection[str]) -> list[str]:
        left = []
        for path in paths:
            try:
                (self.root / self.relative(path)).unlink(missing_ok=True)
            except OSError:
                left.append(path)
        return left

    def rows(self, version: int | None = None) -> list[dict[str, Any]]:
        """The rows of a version, without deleted ones."""
        found: list[dict[str, Any]] = []
        for entry in self.entries(version).values():
            rows = pq.ParquetFile(self.root / entry.path).read().to_pylist()
            found += [row for position, row in enumerate(rows) if position not in entry.deleted]
        return found
