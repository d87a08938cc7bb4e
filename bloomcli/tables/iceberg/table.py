"""An open Iceberg table at a snapshot: its files, its columns, and the paths of new files."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar
from uuid import uuid4

from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.model.schema import ColumnNames, RowLineage
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.tables.base import DataFile, Table
from bloomcli.tables.deleted_rows import TableRows
from bloomcli.tables.iceberg.deletes import vector_body
from bloomcli.tables.iceberg.java import (
    ENCRYPTION_KEY,
    NO_SUCH_FILE,
    PLAINTEXT,
    VERSIONS,
    WITH_ROW_IDS,
    Java,
    class_names,
    format_version,
    manager,
    message,
    reading,
)
from bloomcli.tables.iceberg.reachable import reachable
from bloomcli.tables.iceberg.reading import IcebergSnapshot
from bloomcli.tables.iceberg.scans import Tasks
from bloomcli.tables.iceberg.statistics import leaves_of, read_statistics
from bloomcli.tables.java import java_errors, without_log
from bloomcli.tables.reachable import Reachable

_MAIN: Final = "main"
_STANDARD: Final = "StandardEncryptionManager"
_READ_ONLY: Final = "StaticTableOperations"
_CONVERTER: Final = "org.apache.spark.sql.execution.datasources.SparkExpressionConverter"
_OURS: Final = re.compile(r"-bloom-[0-9a-f]{32}$")
"""The suffix that an earlier change added to a file's name."""

_STEM_MAX: Final = 160
"""The most characters of the old name in the new one, which keep names within the 255 bytes of file systems."""

_CONDITIONS: Final = (
    "Iceberg plans by comparisons of columns with literals, IN lists, IS NULL, LIKE 'prefix%' and its partition"
    " transforms, joined by AND, OR and NOT; no subqueries and no other functions"
)


T = TypeVar("T")


def grouped(items: Iterable[tuple[int, T]], numbers: Iterable[int]) -> list[tuple[int, list[T]]]:
    """Group items that can be rewritten together. Each group has the data sequence number to set, and its items.

    An equality delete applies to data files with a smaller number than its own, a position delete to those with the
    same or a smaller one. So files can share the smallest of their numbers if no equality delete has a number between
    them: the same deletes still apply to each file. Without equality deletes, all items form one group.

    Args:
        items: each with the data sequence number of its data file.
        numbers: the equality deletes' numbers, ascending.
    """
    bounds = list(numbers)
    groups: dict[int, list[tuple[int, T]]] = {}
    for number, item in items:
        groups.setdefault(bisect_right(bounds, number), []).append((number, item))
    return [(min(number for number, _ in group), [item for _, item in group]) for _, group in sorted(groups.items())]


@dataclass(frozen=True)
class Record:
    """A data file of a planned scan. Java is called only when an attribute is read."""

    tasks: Any
    """Iceberg's FileScanTasks, in a Java List."""
    index: int
    """The file's position in it."""
    partition_spec: Any
    """The PartitionSpec that the file was written with."""
    snapshot: int
    """The id of the scanned snapshot."""

    @cached_property
    def task(self) -> Any:
        """Iceberg's FileScanTask."""
        return self.tasks.get(self.index)

    @cached_property
    def file(self) -> Any:
        """Iceberg's DataFile, with its metrics."""
        return self.task.file()

    @cached_property
    def sequence(self) -> int:
        """The data sequence number: 0 in format version 1."""
        number = self.file.dataSequenceNumber()
        return 0 if number is None else int(number)


class ReadTable(IcebergSnapshot, Table):
    """A table of an Iceberg catalog of the session: all but its commits, which `commit.IcebergTable` makes.

    Attributes:
        java: the session's Java.
        table: Iceberg's own table.
        branch: the branch that is read and changed; None for ``main``.
        full_name: the name in SQL with the catalog, and without a branch or snapshot.
        new_row_ids: the user accepts new row ids.
    """

    def __init__(
        self, java: Java, name: str, table: Any, *, branch: str | None, fixed: int | None, full_name: str
    ) -> None:
        self.java = java
        self.name = name
        self.table = table
        self.branch = branch
        self.full_name = full_name
        self._fixed = fixed
        self._version = fixed if fixed is not None else self._head()
        self.new_row_ids = False
        self._locations = table.locationProvider()
        self._numbers: dict[int, list[int]] = {}
        """The data sequence numbers of a snapshot's equality deletes, ascending, once they have been read."""

    @property
    def version(self) -> int | None:
        """The id of the snapshot that `files` lists."""
        return self._version

    def _head(self) -> int | None:
        snapshot = self.table.snapshot(self.branch or _MAIN)
        return None if snapshot is None else int(snapshot.snapshotId())

    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return {
            str(entry.getKey()): str(entry.getValue())
            for entry in self.java.items(self.table.properties().entrySet())
        }

    def schema(self) -> dict[str, Any]:
        """The current schema, or the snapshot's if the table was opened at one, in the JSON of SchemaParser."""
        if self._fixed is None:
            return self._json(self.table.schema())
        return self._json(self.java.iceberg("util.SnapshotUtil").schemaFor(self.table, self._fixed))

    def schemas(self) -> list[dict[str, Any]]:
        """All schemas of the table, the newest first."""
        schemas = self.java.items(self.table.schemas().values())
        return [self._json(schema) for schema in sorted(schemas, key=lambda schema: -schema.schemaId())]

    def _json(self, schema: Any) -> dict[str, Any]:
        """The JSON of an ``org.apache.iceberg.Schema``."""
        document: dict[str, Any] = json.loads(self.java.iceberg("SchemaParser").toJson(schema))
        return document

    def names(self) -> ColumnNames:
        """The leaf columns of the schema, with their names in files."""
        with reading("the table's schema can't be read", self.name):
            return super().names()

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """The snapshot's columns, and the delete files and deletion vectors of its data files."""
        with reading("the table's deletes can't be read", self.name):
            return self.rows_with(*self._of_files(files))

    def _of_files(
        self, files: Sequence[DataFile]
    ) -> tuple[dict[str, dict[int, Any]], Iterator[tuple[str, list[Any]]]]:
        """The partition values and the delete files of data files, as `rows_of` takes them."""
        if not files:
            return {}, iter(())
        tasks = Tasks(self.java, files[0].record.tasks)
        specs = [file.record.partition_spec for file in sorted(files, key=lambda file: file.record.index)]
        values, without = tasks.identities(specs), tasks.without_deletes()
        identities = {file.path: values[file.record.index] for file in files}
        deletes = (
            (file.path, self._delete_files(file.record.task)) for file in files if not without[file.record.index]
        )
        return identities, deletes

    def _delete_files(self, task: Any) -> list[dict[str, Any]]:
        """The delete files of a FileScanTask as parsed JSON; encrypted deletion vectors with their `body`."""
        files: list[dict[str, Any]] = json.loads(self.java.iceberg("ScanTaskParser").toJson(task))["delete-files"]
        for position, file in enumerate(files):
            if "key-metadata" in file and file["file-format"].lower() == "puffin":
                file["body"] = vector_body(self.java, self.table, task.deletes().get(position))
        return files

    def listed(self, where: str | None) -> list[DataFile]:
        """The data files of the snapshot."""
        if self._version is None:
            return []
        condition = None if where is None else self._condition(where)
        with reading("the table's manifests can't be read", self.name):
            return list(self._scanned(condition))

    def _scanned(self, condition: Any) -> Iterator[DataFile]:
        """Yield the snapshot's data files, in no order."""
        scan = self.table.newScan()
        if self._fixed is not None:
            scan = scan.useSnapshot(self._fixed)
        elif self.branch is not None:
            scan = scan.useRef(self.branch)
        snapshot = scan.snapshot()
        if snapshot is None:
            return
        self._version = int(snapshot.snapshotId())
        if condition is not None:
            case_sensitive = self.java.session.conf.get("spark.sql.caseSensitive") == "true"
            scan = scan.caseSensitive(case_sensitive).filter(condition)
        tasks = Tasks.planned(self.java, scan.includeColumnStats().ignoreResiduals())
        numbers = tasks.spec_ids()
        by_number = {number: self.table.specs().get(number) for number in set(numbers)}
        specs = [by_number[number] for number in numbers]
        partitions = tasks.partitions(specs)
        encrypted = manager(self.table) != PLAINTEXT
        keys = tasks.keys() if encrypted else [None] * tasks.java_list.size()
        facts = zip(tasks.paths(), tasks.sizes(), tasks.formats(), self._lineages(tasks), keys, strict=True)
        for index, (path, size, kind, lineage, key) in enumerate(facts):
            record = Record(tasks.java_list, index, specs[index], self._version)
            yield DataFile(
                path=path,
                size=size,
                format=kind,
                partition=partitions[index],
                lineage=lineage,
                key=key,
                record=record,
            )

    @property
    def keeps_row_ids(self) -> bool:
        """Whether the table has row ids, and the user hasn't accepted new ones."""
        return not self.new_row_ids and format_version(self.table) >= WITH_ROW_IDS

    def _lineages(self, tasks: Tasks) -> list[RowLineage | None]:
        """The row lineage of each file; None if the user accepts new row ids, or the table has none."""
        if not self.keeps_row_ids:
            return [None] * tasks.java_list.size()
        numbers = zip(tasks.first_row_ids(), tasks.sequences(), strict=True)
        return [None if first is None else RowLineage(first, sequence or 0) for first, sequence in numbers]

    def lineage_changed(self, file: DataFile) -> bool:
        """Whether a file's rows got ids since it was listed: its copy doesn't have them."""
        now = None
        if self.keeps_row_ids and (first := file.record.file.firstRowId()) is not None:
            now = RowLineage(int(first), int(file.record.file.dataSequenceNumber()))
        return now != file.lineage

    def _condition(self, where: str) -> Any:
        """Convert a condition to Iceberg's expression, as Iceberg's own procedures do. Raises UsageError."""
        converter, spark = self.java.type(_CONVERTER), self.java.spark
        try:
            with without_log(), self._relation() as relation:
                expression = converter.collectResolvedSparkExpression(spark, relation, where)
                return converter.convertToIcebergExpression(expression)
        except java_errors() as error:
            raise UsageError(
                f"--where can't be used for this table: {message(error)}", path=self.name, hint=_CONDITIONS
            ) from None

    @contextmanager
    def _relation(self) -> Iterator[str]:
        """A relation of Spark with the columns of the snapshot's schema, to resolve a condition."""
        if self._fixed is None:
            yield self.name
            return
        view, session = f"bloom_{uuid4().hex}", self.java.session
        session.read.option("versionAsOf", self._fixed).table(self.full_name).createTempView(view)
        try:
            yield view
        finally:
            session.catalog.dropTempView(view)

    def statistics(self, files: Sequence[DataFile]) -> Iterator[FileStatistics]:
        """The statistics in the manifests."""
        with reading("the table's statistics can't be read", self.name):
            yield from read_statistics(self.java, leaves_of(self.schema()), files, self.full_name)

    def reachable(self, column: str) -> Reachable:
        """What the snapshots, the older metadata files and the table's folder have."""
        if self.branch is not None or self._fixed is not None:
            raise UsageError("--reachable looks in all branches and snapshots", path=self.name, hint="name the table")
        with reading("what the table reaches can't be listed", self.name):
            return reachable(self.java, self.table, self.full_name, column)

    def check_changes(self, *, new_row_ids: bool = False) -> None:
        """Raise an error that names the reason why files can't be replaced without loss.

        Raises:
            UsageError: the table was opened at an older snapshot or a tag.
            UnsupportedError: the format version, encryption, or a read-only catalog.
        """
        name = self.name
        with reading("the table's metadata can't be read", name):
            if self._fixed is not None:
                raise UsageError(
                    "an older snapshot or a tag can't be changed", path=name, hint="name the table or a branch"
                )
            version = format_version(self.table)
            if version not in VERSIONS:
                raise UnsupportedError(f"Iceberg format version {version}: bloom knows versions 1 to 3", path=name)
            named, encryption = self.table.properties().get(ENCRYPTION_KEY) is not None, manager(self.table)
            if named and encryption == PLAINTEXT:
                raise UnsupportedError(
                    f"the table is encrypted by its property {ENCRYPTION_KEY}, and its catalog has no keys",
                    path=name,
                    hint="in Iceberg 1.12, Hive's catalogs have keys: with encryption.kms-type or"
                    " encryption.kms-impl",
                )
            if encryption not in {PLAINTEXT, _STANDARD}:
                raise UnsupportedError(f"the table is encrypted by its own {encryption}", path=name)
            if str(self.table.operations().getClass().getSimpleName()) == _READ_ONLY:
                raise UnsupportedError("the catalog only reads this table", path=name)
        self.new_row_ids = new_row_ids

    def new_path(self, file: DataFile) -> str:
        """A path from the table's location provider: the old file's name, followed by a UUID."""
        with reading("the table's location provider fails", self.name):
            stem, dot, suffix = file.path.rpartition("/")[2].rpartition(".")
            stem, suffix = (stem, dot + suffix) if dot else (suffix, "")
            name = f"{_OURS.sub('', stem)[:_STEM_MAX]}-bloom-{uuid4().hex}{suffix}"
            spec = file.record.partition_spec
            if file.partition:
                return str(self._locations.newDataLocation(spec, file.record.file.partition(), name))
            return str(self._locations.newDataLocation(name))

    def snapshots(self, files: Sequence[DataFile]) -> int:
        """The number of snapshots that one commit adds: several if equality deletes lie between files' numbers."""
        return len(self.groups(files, self._version)) if files else 0

    def groups(self, files: Sequence[DataFile], snapshot: int | None) -> list[tuple[int, list[DataFile]]]:
        """Data files in groups that can be rewritten together, with the data sequence number of each group."""
        numbered = [(file.record.sequence, file) for file in files]
        if any(
            file.lineage is not None for file in files
        ):  # rows may inherit the number of their last change from their file
            return grouped(numbered, sorted({number for number, _ in numbered}))
        if snapshot is None or len({number for number, _ in numbered}) == 1:
            return grouped(numbered, ())
        if snapshot not in self._numbers:
            self._numbers = {snapshot: self._equality_numbers(snapshot)}
        return grouped(numbered, self._numbers[snapshot])

    def _equality_numbers(self, snapshot: int) -> list[int]:
        """The data sequence numbers of a snapshot's equality deletes, ascending, from its manifests."""
        io, numbers = self.table.io(), set()
        for manifest in self.java.items(self.table.snapshot(snapshot).deleteManifests(io)):
            reader = self.java.iceberg("ManifestFiles").readDeleteManifest(manifest, io, self.table.specs())
            try:
                files = reader.iterator()
                while files.hasNext():
                    file = files.next()  # the reader may reuse the object
                    if file.content().name() == "EQUALITY_DELETES":
                        numbers.add(int(file.dataSequenceNumber()))
            finally:
                reader.close()
        return sorted(numbers)

    def refresh(self) -> None:
        """Move to the newest snapshot of the branch. A table that was opened at a snapshot stays there."""
        with reading("the table's metadata can't be read", self.name):
            self.table.refresh()
            self._locations = self.table.locationProvider()
            if self._fixed is None:
                self._version = self._head()

    def remove_files(self, paths: Collection[str]) -> list[str]:
        """Remove new files that weren't committed, and return the paths of those that couldn't be removed."""
        try:
            io, left = self.table.io(), []
        except java_errors():
            return sorted(paths)
        for path in paths:
            try:
                io.deleteFile(path)
            except java_errors() as error:
                if not class_names(error) & NO_SUCH_FILE:
                    left.append(path)
        return left
