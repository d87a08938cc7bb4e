"""An open Iceberg table at a snapshot: its files, its columns, and the paths of new files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from bloomcli.errors import CorruptFile, UsageError
from bloomcli.model.schema import ColumnNames, RowLineage
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.tables.base import CommitInfo, DataFile, FilterRequest, Replacement, Table, TableChange
from bloomcli.tables.deleted_rows import TableRows
from bloomcli.tables.iceberg import checks, commit, properties
from bloomcli.tables.iceberg.commit import EqualityNumbers, Record, grouped
from bloomcli.tables.iceberg.deletes import vector_body
from bloomcli.tables.iceberg.java import NO_SUCH_FILE, Java, class_names, message, reading
from bloomcli.tables.iceberg.reachable import reachable
from bloomcli.tables.iceberg.rows import rows_of
from bloomcli.tables.iceberg.scans import Tasks
from bloomcli.tables.iceberg.schema import NAME_MAPPING, column_names
from bloomcli.tables.iceberg.statistics import read_statistics
from bloomcli.tables.java import java_errors, without_log
from bloomcli.tables.reachable import Reachable

_MAIN: Final = "main"
_CONVERTER: Final = "org.apache.spark.sql.execution.datasources.SparkExpressionConverter"
SELECTED: Final = re.compile(r"\.`?(tag_.+|snapshot_id_\d+|at_timestamp_\d+)`?$")
"""The selector of a snapshot at the end of a table's name."""
_OURS: Final = re.compile(r"-bloom-[0-9a-f]{32}$")
"""The suffix that an earlier change added to a file's name."""

_STEM_MAX: Final = 160
"""The most characters of the old name in the new one, which keep names within the 255 bytes of file systems."""

_CONDITIONS: Final = (
    "Iceberg plans by comparisons of columns with literals, IN lists, IS NULL, LIKE 'prefix%' and its partition"
    " transforms, joined by AND, OR and NOT; no subqueries and no other functions"
)


class IcebergTable(Table):
    """A table of an Iceberg catalog of the session.

    Attributes:
        java: the session's Java.
        table: Iceberg's own table.
        branch: the branch that is read and changed; None for ``main``.
    """

    format = "iceberg"

    def __init__(self, java: Java, name: str, table: Any, *, branch: str | None, fixed: int | None) -> None:
        self.java = java
        self.name = name
        self.table = table
        self.branch = branch
        self._fixed = fixed
        self._version = fixed if fixed is not None else self._head()
        self._new_row_ids = False
        self._specs: dict[int, Any] = {}
        self._locations = table.locationProvider()
        self._equality_numbers = EqualityNumbers(java, table)

    @property
    def version(self) -> int | None:
        """The id of the snapshot that `files` lists."""
        return self._version

    def _head(self) -> int | None:
        snapshot = self.table.snapshot(self.branch or _MAIN)
        return None if snapshot is None else int(snapshot.snapshotId())

    def names(self) -> ColumnNames:
        """The leaf columns of the current schema, or of the snapshot's if the table was opened at one."""
        with reading("the table's schema can't be read", self.name):
            return column_names(self._json(self._schema()), self._mapping())

    def _schema(self) -> Any:
        if self._fixed is None:
            return self.table.schema()
        return self.java.iceberg("util.SnapshotUtil").schemaFor(self.table, self._fixed)

    def _mapping(self) -> list[Any] | None:
        text = self.table.properties().get(NAME_MAPPING)
        found: list[Any] | None = None if text is None else json.loads(text)
        return found

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """The snapshot's columns, and the delete files and deletion vectors of its data files."""
        with reading("the table's deletes can't be read", self.name):
            return rows_of(self._json(self._schema()), self._schemas, self._mapping(), *self._of_files(files))

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
        found: list[dict[str, Any]] = json.loads(self.java.iceberg("ScanTaskParser").toJson(task))["delete-files"]
        for position, one in enumerate(found):
            if "key-metadata" in one and one["file-format"].lower() == "puffin":
                one["body"] = vector_body(self.java, self.table, task.deletes().get(position))
        return found

    def _json(self, schema: Any) -> dict[str, Any]:
        """The JSON of an ``org.apache.iceberg.Schema``."""
        found: dict[str, Any] = json.loads(self.java.iceberg("SchemaParser").toJson(schema))
        return found

    def _schemas(self) -> list[dict[str, Any]]:
        """All schemas of the table, the newest first."""
        schemas = self.java.items(self.table.schemas().values())
        return [self._json(one) for one in sorted(schemas, key=lambda schema: -schema.schemaId())]

    def files(self, where: str | None = None) -> list[DataFile]:
        """The data files of the snapshot, by path."""
        if self._version is None:
            return []
        condition = None if where is None else self._condition(where)
        with reading("the table's manifests can't be read", self.name):
            found = sorted(self._scanned(condition), key=lambda file: file.path)
        twice = [path for path, count in Counter(file.path for file in found).items() if count > 1]
        if twice:
            raise CorruptFile("the snapshot lists this data file twice", path=twice[0])
        return found

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
        specs = [self._spec(number) for number in tasks.spec_ids()]
        partitions = tasks.partitions(specs)
        encrypted = checks.manager(self.table) != checks.PLAINTEXT
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
        return not self._new_row_ids and checks.format_version(self.table) >= checks.WITH_ROW_IDS

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

    def _spec(self, number: int) -> Any:
        if number not in self._specs:
            self._specs[number] = self.table.specs().get(number)
        return self._specs[number]

    def _condition(self, where: str) -> Any:
        """Convert a condition to Iceberg's expression, as Iceberg's own procedures do. Raises UsageError."""
        converter, spark = self.java.type(_CONVERTER), self.java.spark
        try:
            with without_log(), self._relation() as relation:
                found = converter.collectResolvedSparkExpression(spark, relation, where)
                return converter.convertToIcebergExpression(found)
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
        own_name = SELECTED.sub("", self.name)
        session.read.option("versionAsOf", self._fixed).table(own_name).createTempView(view)
        try:
            yield view
        finally:
            session.catalog.dropTempView(view)

    def statistics(self, files: Sequence[DataFile]) -> Iterator[FileStatistics]:
        """The statistics in the manifests."""
        with reading("the table's statistics can't be read", self.name):
            yield from read_statistics(self.java, self._schema(), files, self.name)

    def reachable(self, column: str) -> Reachable:
        """What the snapshots, the older metadata files and the table's folder have."""
        if self.branch is not None or self._fixed is not None:
            raise UsageError("--reachable looks in all branches and snapshots", path=self.name, hint="name the table")
        name = self.name if self.name.count(".") > 1 else str(self.table.name())
        with reading("what the table reaches can't be listed", self.name):
            return reachable(self.java, self.table, name, column)

    def filter_requests(self) -> Sequence[FilterRequest]:
        """The filters that the properties request, for Parquet and for ORC files."""
        found = self.java.items(self.table.properties().entrySet())
        return properties.filter_requests({str(one.getKey()): str(one.getValue()) for one in found}, self.name)

    def check_changes(self, *, new_row_ids: bool = False) -> None:
        """Raise UnsupportedError or UsageError if files can't be replaced; see `checks`."""
        with reading("the table's metadata can't be read", self.name):
            checks.check_changes(self.table, self.name, fixed=self._fixed)
        self._new_row_ids = new_row_ids

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
        return grouped(numbered, self._equality_numbers.of(snapshot))

    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        """Replace data files with their deletes in one atomic commit; see `commit`."""
        return commit.commit(self, replacements, info)

    def check_again(self) -> None:
        """Refresh the table, and repeat `check_changes`: the format version may have changed."""
        self.refresh()
        self.check_changes(new_row_ids=self._new_row_ids)

    def refresh(self) -> None:
        """Move to the newest snapshot of the branch. A table that was opened at a snapshot stays there."""
        with reading("the table's metadata can't be read", self.name):
            self.table.refresh()
            self._locations = self.table.locationProvider()
            if self._fixed is None:
                self._version = self._head()

    def changes(self, after: int | None) -> list[TableChange]:
        """The snapshots of the branch's history, without those that aren't newer than `after`."""
        with reading("the table's snapshots can't be read", self.name):
            found: list[TableChange] = []
            oldest = None if after is None else self.table.snapshot(after)
            snapshot = None if self._version is None else self.table.snapshot(self._version)
            while snapshot is not None and (oldest is None or commit.age(snapshot) > commit.age(oldest)):
                run = commit.run_of(snapshot)
                found.append(TableChange(int(snapshot.snapshotId()), str(snapshot.operation()), run))
                parent = snapshot.parentId()
                snapshot = None if parent is None else self.table.snapshot(parent)
            return found[::-1]

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
