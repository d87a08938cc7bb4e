"""A Delta table of a Spark session."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError
from bloomcli.tables.base import CommitInfo, DataFile, Replacement, Table, TableChange, valid
from bloomcli.tables.delta import commits
from bloomcli.tables.delta.jvm import DELTA, Jvm, class_names, message, reading
from bloomcli.tables.delta.reachable import reachable
from bloomcli.tables.delta.reading import DeltaSnapshot
from bloomcli.tables.delta.snapshot import Snapshot, check, full_path, new_entry_path
from bloomcli.tables.java import java_errors
from bloomcli.tables.libraries import library_hint
from bloomcli.tables.reachable import Reachable

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
        snapshot: the version to open; None: the newest.
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
        found = table.update() if version is None else table.getSnapshotAt(version)
        return DeltaTable(name, jvm, table, Snapshot(jvm, found), pinned=version is not None)


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
    known = table.v1Table()  # a session catalog that isn't Delta's
    if not (known.provider().isDefined() and known.provider().get().lower() == _BY_PATH):
        return None
    return _v2(jvm, jvm.type("org.apache.hadoop.fs.Path")(known.location()), jvm.type("scala.Option").apply(known))


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
        """Replace data files in one commit that changes no data, and return the new version."""
        return commits.commit(self._target(), replacements, self._entry_paths, info)

    def _target(self) -> commits.Target:
        return commits.Target(self._jvm, self._table, self.name, self._location)

    def changes(self, after: int | None) -> list[TableChange]:
        """The commits after a version."""
        if after is None or after >= self.version:
            return []
        with reading("the table's history can't be read", self.name):
            return commits.changes(self._target(), after)

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
