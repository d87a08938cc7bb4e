"""The commit that replaces data files, by Delta's own transaction.

Each attempt starts from the newest version, so that what other writers have added to an entry (statistics, row ids)
carries over. Delta compares the files that the attempt reads with concurrent commits, and repeats the commit if they
touch other files. Appends never conflict, because the commit changes no data.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bloomcli.errors import WriteError
from bloomcli.tables.base import CommitInfo, Conflict, Replacement, TableChange, UnknownOutcome
from bloomcli.tables.delta import schema, statistics
from bloomcli.tables.delta.jvm import DELTA, Jvm, class_names, message
from bloomcli.tables.delta.snapshot import Snapshot, check, record_of, removal, replacement
from bloomcli.tables.java import java_errors
from bloomcli.version import __version__
from bloomcli.words import counted

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


@dataclass(frozen=True, slots=True)
class Target:
    """The table to commit to."""

    jvm: Jvm
    table: Any
    """Delta's ``DeltaTableV2``."""
    name: str
    """As the user named it."""
    location: str


def commit(target: Target, replacements: Sequence[Replacement], new: Mapping[str, str], info: CommitInfo) -> int:
    """Replace data files, and return the new version.

    Args:
        target: the table.
        replacements: the old files, which have a `Record`, and the new files.
        new: paths of the new files' entries, by their full paths.
        info: what the history records about the commit.

    Raises:
        Conflict, UnknownOutcome, WriteError: as `Table.commit`.
    """
    modified = _modification_times(target, replacements)
    session = target.jvm.copy({**_SETTINGS, _USER_METADATA: _user_metadata(target.jvm, replacements, info)})
    last = ""
    for _ in range(_TRIES):
        try:
            with target.jvm.active(session):
                transaction = target.table.startTransaction(target.jvm.none)
            started = Snapshot(target.jvm, transaction.snapshot()).version
            prepared = _prepare(target, transaction, replacements, new, modified, info)
        except java_errors() as error:
            raise WriteError(f"the transaction can't be started: {message(error)}", path=target.name) from None
        version: int | None
        try:
            with target.jvm.active(session):
                version = transaction.commit(*prepared)
        except java_errors() as error:
            last = message(error)
            version = _outcome(target, error, started, info)
        if version is not None:
            return version
    raise Conflict(f"other commits came between each of {_TRIES} attempts: {last}", path=target.name)


def _prepare(
    target: Target,
    transaction: Any,
    replacements: Sequence[Replacement],
    new: Mapping[str, str],
    modified: Mapping[str, int],
    info: CommitInfo,
) -> tuple[Any, Any, Any]:
    """The actions, the operation and the tags of a commit. Raises Conflict, UnsupportedError, WriteError."""
    jvm = target.jvm
    snapshot = Snapshot(jvm, transaction.snapshot())
    if snapshot.version < 0:
        raise WriteError("the table no longer exists", path=target.name)
    check(target.name, snapshot.protocol, snapshot.metadata)
    entries = snapshot.entries([r.old.record.path for r in replacements])
    removed = [
        r.old.path
        for r in replacements
        if (entry := entries.get(r.old.record.path)) is None or record_of(entry) != r.old.record
    ]
    if removed:
        raise Conflict("another commit has removed or changed files", path=target.name, paths=removed)
    now = time.time_ns() // 1_000_000
    transaction.trackFilesRead(jvm.seq(jvm.actions("addFile", list(entries.values()))))
    actions = jvm.actions("removeFile", [removal(entries[r.old.record.path], now) for r in replacements])
    leaves = statistics.leaves_of(snapshot.metadata)
    added = []
    for r in replacements:
        entry = entries[r.old.record.path]
        stats = None if r.right is None else statistics.corrected(entry.get("stats"), r.right, leaves)
        added.append(replacement(entry, new[r.path], r.size, modified[r.path], stats))
    actions.addAll(jvm.actions("addFile", added))
    tracked = snapshot.metadata["configuration"].get(_ROW_TRACKING, "false").lower() == "true"
    operation = _operation(jvm, snapshot.metadata, info)
    return jvm.seq(actions), operation, jvm.map(_ROW_TRACKING_KEPT if tracked else {})


def _operation(jvm: Jvm, metadata: Mapping[str, Any], info: CommitInfo) -> Any:
    """The operation that ``DESCRIBE HISTORY`` shows, such as ``BLOOM ADD``, with the columns as its parameters.

    Delta's list of operations is closed. This one takes any name, and columns; it has no metrics, so `_user_metadata`
    has those. After ``ManualUpdate``, the operation for other programs, Delta doesn't derive the next version's
    checksum from the last one's, and reads the whole state of the table again.
    """
    chosen = [(leaf.path, leaf.type) for leaf in schema.leaves_of(metadata) if leaf.path in info.columns]
    operation = jvm.type(f"{DELTA}.DeltaOperations$UpdateColumnMetadata")
    return operation(f"BLOOM {info.command.upper()}", jvm.columns(chosen))


def _modification_times(target: Target, replacements: Sequence[Replacement]) -> dict[str, int]:
    """The modification times of the new files in milliseconds, by path. All files must exist with the expected size.

    Raises:
        WriteError: a file is missing or has another size.
    """
    from pyspark.sql.functions import col, unix_millis

    jvm, sizes = target.jvm, {r.path: r.size for r in replacements}
    reader = jvm.spark.read().format("binaryFile").option("globPaths", "false").option("recursiveFileLookup", "true")
    try:
        files = jvm.frame(reader.load(jvm.strings(list(sizes))))
        rows = files.select("path", "length", unix_millis(col("modificationTime"))).collect()
    except java_errors() as error:
        raise WriteError(f"new files can't be found: {message(error)}", path=target.name) from None
    found = {path: (length, modified) for path, length, modified in rows}
    for path, size in sizes.items():
        if path not in found:
            raise WriteError("the new file isn't there", path=path)
        if found[path][0] != size:
            raise WriteError(
                f"the new file has {counted(found[path][0], 'byte')}, and {size} were written", path=path
            )
    return {path: modified for path, (_, modified) in found.items()}


def _user_metadata(jvm: Jvm, replacements: Sequence[Replacement], info: CommitInfo) -> str:
    """The JSON that ``DESCRIBE HISTORY`` shows for the commit. It includes the session's own setting."""
    said_by_user = jvm.spark.conf().getOption(_USER_METADATA)
    return json.dumps(
        {
            "tool": "bloom",
            "version": __version__,
            "command": info.command,
            "columns": list(info.columns),
            "run": info.run,
            "batch": info.batch,
            "files": len(replacements),
            "bytes_before": sum(one.old.size for one in replacements),
            "bytes_after": sum(one.size for one in replacements),
            **({"userMetadata": said_by_user.get()} if said_by_user.isDefined() else {}),
        }
    )


def _outcome(target: Target, error: Exception, started: int, info: CommitInfo) -> int | None:
    """The version of a commit that took place in spite of an error; None: try again.

    Args:
        target: the table.
        error: the attempt's error.
        started: the version that the attempt started from.
        info: what the history records about the commit.

    Raises:
        WriteError: it didn't take place.
        UnknownOutcome: it can't be determined.
    """
    names = class_names(error)
    decided = _is_decided(names) or target.location.startswith(_ATOMIC_STORES)
    for seconds in (0.0,) if names and decided else (0.0, *_LATE_SECONDS):
        time.sleep(seconds)
        try:
            version = _version_of(target, started, info)
        except java_errors() as failed:
            raise UnknownOutcome(
                f"whether the commit has taken place can't be found out: {message(error)}; {message(failed)}",
                path=target.name,
            ) from None
        if version is not None:
            return version
    if "java.util.ConcurrentModificationException" in names or "DELTA_MAX_COMMIT_RETRIES_EXCEEDED" in str(error):
        return None
    if names and decided:
        raise WriteError(f"the commit failed: {message(error)}", path=target.name)
    raise UnknownOutcome(f"the commit may still take place: {message(error)}", path=target.name)


def _is_decided(names: Sequence[str]) -> bool:
    """Whether Delta or Spark raised an error before they wrote, or the store denied access."""
    if any(name.endswith(_DENIED) for name in names):
        return True
    return "java.io.IOException" not in names and any(n.startswith((DELTA, "io.delta.", _SPARK)) for n in names)


def _version_of(target: Target, started: int, info: CommitInfo) -> int | None:
    """The version after `started` that a run's commit made; None if it made none."""
    for version, _, metadata in _history(target, started + 1):
        if (metadata.get("run"), metadata.get("batch")) == (info.run, info.batch):
            return version
    return None


def changes(target: Target, after: int) -> list[TableChange]:
    """The commits after a version, the oldest first."""
    return sorted(
        TableChange(version, operation, metadata.get("run") if metadata.get("tool") == "bloom" else None)
        for version, operation, metadata in _history(target, after + 1)
    )


def _history(target: Target, first: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the versions from `first` on: each with its operation, and the metadata that its writer added."""
    jvm = target.jvm
    log = target.table.deltaLog()
    for made in jvm.python(log.history().getHistory(first, jvm.none, target.table.catalogTable())):
        try:
            metadata = json.loads(made.get("userMetadata") or "null")
        except ValueError:  # another writer's
            metadata = None
        yield made["version"], str(made.get("operation")), metadata if isinstance(metadata, dict) else {}
