"""A Delta table of a Spark session, and the commit that replaces its data files by Delta's own transaction."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError, WriteError
from bloomcli.tables.base import (
    CommitInfo,
    Conflict,
    DataFile,
    Replacement,
    Table,
    TableChange,
    UnknownOutcome,
    valid,
)
from bloomcli.tables.delta import schema, statistics
from bloomcli.tables.delta.jvm import DELTA, Jvm, class_names, message, reading
from bloomcli.tables.delta.reachable import reachable
from bloomcli.tables.delta.reading import DeltaSnapshot
from bloomcli.tables.delta.snapshot import Snapshot, check, full_path, new_entry_path, record_of, removal, replacement
from bloomcli.tables.java import java_errors, library_hint
from bloomcli.tables.reachable import Reachable
from bloomcli.version import __version__
from bloomcli.words import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_V2: Final = f"{DELTA}.catalog.DeltaTableV2"
_BY_PATH: Final = "delta"
"""The first part of names by path, such as ``delta.`/path```."""

_NO_CATALOG: Final = "REQUIRES_SINGLE_PART_NAMESPACE"
"""Spark's error for a name whose first part isn't a catalog."""
_NO_SUCH_TABLE: Final = ("NoSuchTableException", "NoSuchNamespaceException", "NoSuchDatabaseException")
_BAD_CONDITION: Final = ("AnalysisException", "ParseException")
"""Errors of a condition that names an unknown column, or isn't valid SQL."""


def open_table(
    session: SparkSession, name: str, *, snapshot: int | None = None, as_of: datetime | None = None
) -> DeltaTable | None:
    """Open a Delta table by ``delta.`/path``` or its name in a catalog; None if the name isn't a Delta table.

    Args:
        session: a classic session with Delta.
        name: the table's name.
        snapshot: the version to open; the newest if None.
        as_of: open the version that was current at this time.

    Raises:
        UsageError: the name is invalid, or the version doesn't exist.
        UnsupportedError: a path, and the session has no Delta.
        UnreadableError: the table's log can't be read.
    """
    jvm = Jvm(session)
    with reading("the Delta table can't be opened", name):
        table = _find(jvm, name)
        if table is None:
            return None
        if table.hasPartitionFilters():
            raise UsageError(
                "the name is that of a partition", path=name, hint="name the table, and the partition in --where"
            )
        version = _version(jvm, name, table, snapshot, as_of)
        java_snapshot = table.update() if version is None else table.getSnapshotAt(version)
        return DeltaTable(name, jvm, table, Snapshot(jvm, java_snapshot), pinned=version is not None)


def _find(jvm: Jvm, name: str) -> Any:
    """Delta's ``DeltaTableV2`` of a name; None if it doesn't exist."""
    if not jvm.has(_V2):
        if name.lower().startswith((f"{_BY_PATH}.", f"`{_BY_PATH}`.")):
            raise UnsupportedError(
                "the Spark session has no Delta",
                path=name,
                hint=library_hint(jvm.session, "delta", name),
            )
        return None
    try:
        parts = jvm.python(jvm.spark.sessionState().sqlParser().parseMultipartIdentifier(name))
    except java_errors() as error:
        raise UsageError(f"not a table's name: {message(error)}", path=name) from None
    by_path = len(parts) == 2 and parts[0].lower() == _BY_PATH
    table = _in_catalog(jvm, parts)
    if table is None and by_path:
        table = _by_path(jvm, parts[1])
    return table if table is not None and table.deltaLog().tableExists() else None


def _in_catalog(jvm: Jvm, parts: Sequence[str]) -> Any:
    """A catalog's ``DeltaTableV2``; None if the catalog has no Delta table of this name."""
    manager = jvm.spark.sessionState().catalogManager()
    if len(parts) > 1 and manager.isCatalogRegistered(parts[0]):
        catalog, namespace = manager.catalog(parts[0]), parts[1:-1]
    else:
        catalog = manager.currentCatalog()
        namespace = parts[:-1] or jvm.python(manager.currentNamespace())
    identifier = jvm.type("org.apache.spark.sql.connector.catalog.Identifier")
    try:
        table = catalog.loadTable(identifier.of(jvm.strings(namespace), parts[-1]))
    except java_errors() as error:
        if any(kind.endswith(_NO_SUCH_TABLE) for kind in class_names(error)) or _NO_CATALOG in message(error):
            return None
        raise
    kind = table.getClass().getName()
    if kind == _V2:
        return table
    if not kind.endswith(".V1Table"):
        return None
    v1 = table.v1Table()  # a session catalog that isn't Delta's
    if not (v1.provider().isDefined() and v1.provider().get().lower() == _BY_PATH):
        return None
    return _v2(jvm, jvm.type("org.apache.hadoop.fs.Path")(v1.location()), jvm.type("scala.Option").apply(v1))


def _by_path(jvm: Jvm, path: str) -> Any:
    return _v2(jvm, jvm.hadoop_path(path), jvm.none)


def _v2(jvm: Jvm, path: Any, catalog_table: Any) -> Any:
    # the constructor: `apply` takes the last two in another order
    return jvm.type(_V2)(jvm.spark, path, catalog_table, jvm.none, jvm.none, jvm.map({}))


def _version(jvm: Jvm, name: str, table: Any, snapshot: int | None, as_of: datetime | None) -> int | None:
    """The version to open; None for the newest. Raises UsageError if it doesn't exist."""
    if snapshot is None and as_of is None:
        return None
    if snapshot is not None and as_of is not None:
        raise UsageError("a snapshot and a time at once", path=name)
    history = table.deltaLog().history()
    try:
        if snapshot is not None:
            history.checkVersionExists(snapshot, table.catalogTable(), True, False)
            return snapshot
        at = jvm.type("java.sql.Timestamp")(int((as_of or datetime.now()).timestamp() * 1000))
        version: int = history.getActiveCommitAtTime(at, table.catalogTable(), True, True, False).version()
    except java_errors() as error:
        raise UsageError(message(error), path=name) from None
    return version


_S3_STORE: Final = "S3SingleDriverLogStore"
_ONE_DRIVER: Final = (
    f"the session's log store ({_S3_STORE}) keeps commits apart only within one Spark driver: where another one"
    " writes to the table meanwhile, a commit may be lost; see docs/tables.md"
)


_TRIES: Final = 5
_LATE_SECONDS: Final = (0.5, 2.0, 5.0)
"""When to look again for a commit that may still take place."""

_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_SETTINGS: Final = {
    # The check is for operations that write deletion vectors. It would refuse vectors that were written before the
    # table's property was switched off.
    "spark.databricks.delta.deletionVectors.skipCommitCheck": "false",
}
_ROW_TRACKING: Final = "delta.enableRowTracking"
_ROW_TRACKING_KEPT: Final = {"delta.rowTracking.preserved": "true"}

_ATOMIC_STORES: Final = ("file:", "hdfs:")
"""File systems in which a commit that is missing after an error can't appear later: a rename is atomic."""

_SPARK: Final = "org.apache.spark."
_DENIED: Final = ("AccessControlException", "AccessDeniedException")


class DeltaTable(DeltaSnapshot, Table):
    """A Delta table at one version, in a Spark session."""

    _snapshot: Snapshot

    def __init__(self, name: str, jvm: Jvm, table: Any, snapshot: Snapshot, *, pinned: bool) -> None:
        """`table` is Delta's own ``DeltaTableV2``; `pinned` means that the user chose the version."""
        super().__init__(name, table.deltaLog().dataPath().toString(), snapshot)
        self._jvm = jvm
        self._table = table
        self._pinned = pinned
        self._entry_paths: dict[str, str] = {}
        """The paths of new entries, by the full paths of the files."""

    def _chosen(self, where: str) -> set[str]:
        """The full paths of the files that a query with a condition reads. Raises UsageError."""
        version = self._jvm.map({"versionAsOf": str(self.version)})
        try:
            frame = self._table.withOptions(version).toDf(self._jvm.spark).where(where)
            return set(self._jvm.python(frame.inputFiles()))
        except java_errors() as error:
            if not any(kind.endswith(_BAD_CONDITION) for kind in class_names(error)):
                raise UnreadableError(
                    f"the table's files can't be listed: {message(error)}", path=self.name
                ) from None
            raise UsageError(f"--where {where!r}: {message(error)}", path=self.name) from None

    def reachable(self, column: str) -> Reachable:
        """What the log, all of its files, and the table's folder have."""
        if self._pinned:
            raise UsageError("--reachable looks in all versions", path=self.name, hint="leave out the version")
        current = {file.path for file in self.files()}
        with reading("the table's files can't be listed", self.name):
            conf = self._table.deltaLog().newDeltaHadoopConf()
            with valid("the Delta log isn't valid", self._location):
                return reachable(self._jvm, self.name, column, self._location, current, conf)

    def check_changes(self, *, new_row_ids: bool = False) -> None:
        """Raise UnsupportedError, with the feature's name, if files of this table can't be replaced without loss.

        Raises:
            UsageError: the user chose a version to read.
        """
        del new_row_ids  # row ids are kept
        if self._pinned:
            raise UsageError("only the newest version of a table can be changed", path=self.name)
        check(self.name, self._snapshot.protocol, self._snapshot.metadata)

    def cautions(self) -> list[str]:
        """A remark if the session's log store for S3 doesn't protect commits from those of other drivers."""
        with reading("the Delta table can't be read", self.name):
            log = self._table.deltaLog()
            store = log.store()
            if (kind := store.getClass().getName()).endswith(
                ".DelegatingLogStore"
            ):  # it chooses a store by the URI's scheme
                store = store.getDelegate(log.logPath())
                kind = store.getClass().getName()
            if kind.endswith(".LogStoreAdaptor"):
                kind = store.logStoreImpl().getClass().getName()
        return [_ONE_DRIVER] if kind.endswith(_S3_STORE) else []

    def new_path(self, file: DataFile) -> str:
        """A path for the file that replaces `file`: in its directory, with another UUID in its name."""
        entry_path = new_entry_path(file.record.path)
        path = full_path(self._location, entry_path)
        self._entry_paths[path] = entry_path
        return path

    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        """Replace data files in one commit that changes no data, and return the new version.

        Each attempt starts from the newest version, so that what other writers have added to an entry (statistics,
        row ids) carries over. Delta compares the files that the attempt reads with concurrent commits, and repeats
        the commit if they touch other files. Appends never conflict, because the commit changes no data.
        """
        modified = self._modification_times(replacements)
        session = self._jvm.copy({**_SETTINGS, _USER_METADATA: self._user_metadata(replacements, info)})
        last = ""
        for _ in range(_TRIES):
            try:
                with self._jvm.active(session):
                    transaction = self._table.startTransaction(self._jvm.none)
                started = Snapshot(self._jvm, transaction.snapshot()).version
                prepared = self._prepare(transaction, replacements, modified, info)
            except java_errors() as error:
                raise WriteError(f"the transaction can't be started: {message(error)}", path=self.name) from None
            version: int | None
            try:
                with self._jvm.active(session):
                    version = transaction.commit(*prepared)
            except java_errors() as error:
                last = message(error)
                version = self._outcome(error, started, info)
            if version is not None:
                return version
        raise Conflict(f"other commits came between each of {_TRIES} attempts: {last}", path=self.name)

    def _prepare(
        self, transaction: Any, replacements: Sequence[Replacement], modified: Mapping[str, int], info: CommitInfo
    ) -> tuple[Any, Any, Any]:
        """The actions, the operation and the tags of a commit. Raises Conflict, UnsupportedError, WriteError."""
        jvm = self._jvm
        snapshot = Snapshot(jvm, transaction.snapshot())
        if snapshot.version < 0:
            raise WriteError("the table no longer exists", path=self.name)
        check(self.name, snapshot.protocol, snapshot.metadata)
        entries = snapshot.entries([r.old.record.path for r in replacements])
        removed = [
            r.old.path
            for r in replacements
            if (entry := entries.get(r.old.record.path)) is None or record_of(entry) != r.old.record
        ]
        if removed:
            raise Conflict("another commit has removed or changed files", path=self.name, paths=removed)
        now = time.time_ns() // 1_000_000
        transaction.trackFilesRead(jvm.seq(jvm.actions("addFile", list(entries.values()))))
        actions = jvm.actions("removeFile", [removal(entries[r.old.record.path], now) for r in replacements])
        leaves = statistics.leaves_of(snapshot.metadata)
        added = []
        for r in replacements:
            entry = entries[r.old.record.path]
            stats = None if r.right is None else statistics.corrected(entry.get("stats"), r.right, leaves)
            added.append(replacement(entry, self._entry_paths[r.path], r.size, modified[r.path], stats))
        actions.addAll(jvm.actions("addFile", added))
        tracked = snapshot.metadata["configuration"].get(_ROW_TRACKING, "false").lower() == "true"
        operation = self._operation(snapshot.metadata, info)
        return jvm.seq(actions), operation, jvm.map(_ROW_TRACKING_KEPT if tracked else {})

    def _operation(self, metadata: Mapping[str, Any], info: CommitInfo) -> Any:
        """The operation that ``DESCRIBE HISTORY`` shows, such as ``BLOOM ADD``, with the columns as its parameters.

        Delta's list of operations is closed. This one takes any name, and columns; it has no metrics, so
        `_user_metadata` has those. After ``ManualUpdate``, the operation for other programs, Delta doesn't derive the
        next version's checksum from the last one's, and reads the whole state of the table again.
        """
        chosen = [(leaf.path, leaf.type) for leaf in schema.leaves_of(metadata) if leaf.path in info.columns]
        operation = self._jvm.type(f"{DELTA}.DeltaOperations$UpdateColumnMetadata")
        return operation(f"BLOOM {info.command.upper()}", self._jvm.columns(chosen))

    def _modification_times(self, replacements: Sequence[Replacement]) -> dict[str, int]:
        """The modification times of the new files in milliseconds, by path. All must have the expected size.

        Raises:
            WriteError: a file is missing or has another size.
        """
        from pyspark.sql.functions import col, unix_millis

        jvm, sizes = self._jvm, {r.path: r.size for r in replacements}
        reader = (
            jvm.spark.read().format("binaryFile").option("globPaths", "false").option("recursiveFileLookup", "true")
        )
        try:
            files = jvm.frame(reader.load(jvm.strings(list(sizes))))
            rows = files.select("path", "length", unix_millis(col("modificationTime"))).collect()
        except java_errors() as error:
            raise WriteError(f"new files can't be found: {message(error)}", path=self.name) from None
        facts = {path: (length, modified) for path, length, modified in rows}
        for path, size in sizes.items():
            if path not in facts:
                raise WriteError("the new file isn't there", path=path)
            if facts[path][0] != size:
                raise WriteError(
                    f"the new file has {counted(facts[path][0], 'byte')}, and {size} were written", path=path
                )
        return {path: modified for path, (_, modified) in facts.items()}

    def _user_metadata(self, replacements: Sequence[Replacement], info: CommitInfo) -> str:
        """The JSON that ``DESCRIBE HISTORY`` shows for the commit. It includes the session's own setting."""
        said_by_user = self._jvm.spark.conf().getOption(_USER_METADATA)
        return json.dumps(
            {
                "tool": "bloom",
                "version": __version__,
                "command": info.command,
                "columns": list(info.columns),
                "run": info.run,
                "batch": info.batch,
                "files": len(replacements),
                "bytes_before": sum(r.old.size for r in replacements),
                "bytes_after": sum(r.size for r in replacements),
                **({"userMetadata": said_by_user.get()} if said_by_user.isDefined() else {}),
            }
        )

    def _outcome(self, error: Exception, started: int, info: CommitInfo) -> int | None:
        """The version of a commit that took place in spite of an error; None if it has to be tried again.

        Args:
            error: the attempt's error.
            started: the version that the attempt started from.
            info: what the history records about the commit.

        Raises:
            WriteError: it didn't take place.
            UnknownOutcome: it can't be determined.
        """
        names = class_names(error)
        decided = _is_decided(names) or self._location.startswith(_ATOMIC_STORES)
        for seconds in (0.0,) if names and decided else (0.0, *_LATE_SECONDS):
            time.sleep(seconds)
            try:
                version = self._version_of(started, info)
            except java_errors() as failed:
                raise UnknownOutcome(
                    f"whether the commit has taken place can't be found out: {message(error)}; {message(failed)}",
                    path=self.name,
                ) from None
            if version is not None:
                return version
        if "java.util.ConcurrentModificationException" in names or "DELTA_MAX_COMMIT_RETRIES_EXCEEDED" in str(error):
            return None
        if names and decided:
            raise WriteError(f"the commit failed: {message(error)}", path=self.name)
        raise UnknownOutcome(f"the commit may still take place: {message(error)}", path=self.name)

    def _version_of(self, started: int, info: CommitInfo) -> int | None:
        """The version after `started` that a run's commit made; None if it made none."""
        for version, _, metadata in self._history(started + 1):
            if (metadata.get("run"), metadata.get("batch")) == (info.run, info.batch):
                return version
        return None

    def changes(self, after: int | None) -> list[TableChange]:
        """The commits after a version."""
        if after is None or after >= self.version:
            return []
        with reading("the table's history can't be read", self.name):
            return sorted(
                TableChange(version, operation, metadata.get("run") if metadata.get("tool") == "bloom" else None)
                for version, operation, metadata in self._history(after + 1)
            )

    def _history(self, first: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield the versions from `first` on: each with its operation, and the metadata that its writer added."""
        jvm, history = self._jvm, self._table.deltaLog().history()
        for commit in jvm.python(history.getHistory(first, jvm.none, self._table.catalogTable())):
            try:
                metadata = json.loads(commit.get("userMetadata") or "null")
            except ValueError:  # another writer's
                metadata = None
            yield commit["version"], str(commit.get("operation")), metadata if isinstance(metadata, dict) else {}

    def refresh(self) -> None:
        """Move to the table's newest version."""
        with reading("the Delta table can't be read", self.name):
            snapshot = Snapshot(self._jvm, self._table.update())
        if snapshot.version < 0:
            raise UnreadableError("the table no longer exists", path=self.name)
        self._snapshot = snapshot

    def remove_files(self, paths: Collection[str]) -> list[str]:
        """Remove new files that weren't committed, and return the paths of those that couldn't be removed.

        A file of the table's newest version stays, and counts as not removed.
        """
        mine = {path: self._entry_paths[path] for path in paths if path in self._entry_paths}
        left = [path for path in paths if path not in mine]
        try:
            committed = Snapshot(self._jvm, self._table.update()).entries(list(mine.values()))
            conf = self._table.deltaLog().newDeltaHadoopConf()
        except java_errors():
            return sorted(paths)
        for path, entry_path in mine.items():
            try:
                file = self._jvm.hadoop_path(path)
                system = file.getFileSystem(conf)
                if entry_path in committed or not (system.delete(file, False) or not system.exists(file)):
                    left.append(path)
            except java_errors():
                left.append(path)
        return sorted(left)


def _is_decided(names: Sequence[str]) -> bool:
    """Whether Delta or Spark raised an error before they wrote, or the store denied access."""
    if any(name.endswith(_DENIED) for name in names):
        return True
    return "java.io.IOException" not in names and any(n.startswith((DELTA, "io.delta.", _SPARK)) for n in names)
