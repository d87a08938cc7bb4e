"""Reads a version of a Delta table from its metadata and its entries, whoever has read these from the log."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from bloomcli.errors import UnreadableError
from bloomcli.model.schema import ColumnNames
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.tables.base import DataFile, FilterRequest, TableSnapshot
from bloomcli.tables.deleted_rows import TableRows
from bloomcli.tables.delta import rows, schema, statistics
from bloomcli.tables.delta.snapshot import full_path, partition_of, record_of


class Version(Protocol):
    """A version of a table's log."""

    version: int

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The log's ``metaData``."""

    def listed(self, *more: str) -> list[dict[str, Any]]:
        """The entries of all data files, ordered by path, with the fields that identify the file, and `more`. Raises
        UnreadableError."""


class DeltaSnapshot(TableSnapshot):
    """A Delta table at one version.

    Args:
        name: as `--table` takes it.
        location: the table's directory.
        snapshot: the version.
    """

    format = "delta"

    def __init__(self, name: str, location: str, snapshot: Version) -> None:
        self.name = name
        self._location = location
        self._snapshot = snapshot

    @property
    def version(self) -> int:
        """The version that `files` lists."""
        return self._snapshot.version

    def names(self) -> ColumnNames:
        """The leaf columns of the version's schema, and their names in files."""
        return schema.names_of(self._snapshot.metadata)

    def files(self, where: str | None = None) -> list[DataFile]:
        """The version's data files by path: all, or those that data skipping keeps for a condition."""
        chosen = None if where is None else self._chosen(where)
        columns = schema.partition_columns(self._snapshot.metadata)
        provider = self._snapshot.metadata["format"]["provider"]
        found = []
        for path, entry in self._entries().items():
            if chosen is None or path in chosen:
                partition = partition_of(entry, columns)
                record = record_of(entry)
                found.append(
                    DataFile(path=path, size=entry["size"], format=provider, partition=partition, record=record)
                )
        return found

    def _entries(self, *more: str) -> dict[str, dict[str, Any]]:
        """The entries by the full paths of their files."""
        try:
            return {full_path(self._location, entry["path"]): entry for entry in self._snapshot.listed(*more)}
        except UnreadableError as error:
            error.path = error.path or self.name
            raise

    @abstractmethod
    def _chosen(self, where: str) -> set[str]:
        """The full paths of the files that a query with a condition reads. Raises UsageError."""

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """The version's columns, its deletion vectors, and the values of its partitions."""
        mine = {file.path for file in files}
        entries = {path: entry for path, entry in self._entries().items() if path in mine}
        names = schema.partition_columns(self._snapshot.metadata)
        found = {path: rows.deleted_of(entry, self._location) for path, entry in entries.items()}
        return TableRows(
            shape=rows.shape_of(self._snapshot.metadata),
            deleted={path: one for path, one in found.items() if one is not None},
            constants={path: rows.constants_of(entry, names) for path, entry in entries.items()} if names else {},
        )

    def statistics(self, files: Sequence[DataFile]) -> Iterator[FileStatistics]:
        """The statistics in the log or its checkpoint."""
        entries = self._entries("stats")
        leaves = statistics.leaves_of(self._snapshot.metadata)
        partitions = self._snapshot.metadata["partitionColumns"]
        column = next((leaf.path for leaf in leaves if leaf.path not in partitions), "COLUMN")
        rewriting = f"UPDATE {self.name} SET {column} = {column}"  # noqa: S608  a hint
        for file in files:
            yield replace(statistics.statistics_of(entries[file.path], leaves, partitions), rewriting=rewriting)

    def filter_requests(self) -> list[FilterRequest]:
        """The filters that the table properties ``parquet.bloom.filter.*`` request."""
        return schema.filter_requests_of(self._snapshot.metadata)
