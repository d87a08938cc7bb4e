"""The commit that replaces data files, by Delta's own transaction.

Each attempt starts from the newest version, so that what other writers have added to an entry meanwhile (statistics,
row ids) carries over. Delta itself compares what the attempt reads with commits that come between, and repeats it
where they don't touch the same files: as nothing in the commit changes data, appends never do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bloomcli.errors import WriteError
from bloomcli.tables.base import CommitInfo, Conflict, Replacement, UnknownOutcome
from bloomcli.tables.delta.actions import record_of, removal, replacement
from bloomcli.tables.delta.features import check
from bloomcli.tables.delta.jvm import DELTA, Jvm, class_names, message
from bloomcli.tables.delta.snapshot import Snapshot
from bloomcli.tables.java import java_errors
from bloomcli.version import __version__
from bloomcli.words import counted

_TRIES: Final = 5
_LATE_SECONDS: Final = (0.5, 2.0, 5.0)
"""When to look again for a commit that may still arrive."""

_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_SETTINGS: Final = {
    # The check is for operations that make deletion vectors: it would refuse those that a table has kept from before
    # its property was switched off.
    "spark.databricks.delta.deletionVectors.skipCommitCheck": "false",
}
_ROW_TRACKING: Final = "delta.enableRowTracking"
_ROW_TRACKING_KEPT: Final = {"delta.rowTracking.preserved": "true"}

_ATOMIC_STORES: Final = ("file:", "hdfs:")
"""Where a commit that isn't there after an error can't come into being later: a rename is done or isn't."""

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
    """Replace data files; gives the new version.

    Args:
        target: the table.
        replacements: old files with a `Record` each, and new ones.
        new: paths of the new files' entries, by their full paths.
        info: what the history says of the commit.

    Raises:
        Conflict, Unknown, WriteError: as `Table.commit`.
    """
    modified = _modification_times(target, replacements)
    session = target.jvm.copy({**_SETTINGS, _USER_METADATA: _user_metadata(target.jvm, info)})
    last = ""
    for _ in range(_TRIES):
        try:
            with target.jvm.active(session):
                transaction = target.table.startTransaction(target.jvm.none)
            started = Snapshot(target.jvm, transaction.snapshot()).version
            prepared = _prepare(target, transaction, replacements, new, modified)
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
) -> tuple[Any, Any, Any]:
    """The actions, the operation and the tags of a commit. Raises Conflict, UnsupportedError, WriteError."""
    jvm = target.jvm
    snapshot = Snapshot(jvm, transaction.snapshot())
    if snapshot.version < 0:
        raise WriteError("there is no table any more", path=target.name)
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
    added = [replacement(entries[r.old.record.path], new[r.path], r.size, modified[r.path]) for r in replacements]
    actions.addAll(jvm.actions("addFile", added))
    tracked = snapshot.metadata["configuration"].get(_ROW_TRACKING, "false").lower() == "true"
    operation = getattr(jvm.type(f"{DELTA}.DeltaOperations$ManualUpdate$"), "MODULE$")
    return jvm.seq(actions), operation, jvm.map(_ROW_TRACKING_KEPT if tracked else {})


def _modification_times(target: Target, replacements: Sequence[Replacement]) -> dict[str, int]:
    """When the new files were written, in milliseconds, by path. All of them have to be there, with the sizes given.

    Raises:
        WriteError: one isn't.
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


def _user_metadata(jvm: Jvm, info: CommitInfo) -> str:
    """What ``DESCRIBE HISTORY`` shows of the commit: JSON, with what the session's own setting says."""
    said_by_user = jvm.spark.conf().getOption(_USER_METADATA)
    return json.dumps(
        {
            "tool": "bloom",
            "version": __version__,
            "command": info.command,
            "columns": list(info.columns),
            "run": info.run,
            "batch": info.batch,
            **({"userMetadata": said_by_user.get()} if said_by_user.isDefined() else {}),
        }
    )


def _outcome(target: Target, error: Exception, started: int, info: CommitInfo) -> int | None:
    """The version of a commit that has taken place in spite of an error; None if it is to be tried again.

    Args:
        target: the table.
        error: of the attempt.
        started: the version that the attempt started from.
        info: what the history says of the commit.

    Raises:
        WriteError: it hasn't taken place.
        Unknown: it can't be found out.
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
    """Whether an error is one that Delta or Spark raise before they write, or the store's for want of rights."""
    if any(name.endswith(_DENIED) for name in names):
        return True
    return "java.io.IOException" not in names and any(n.startswith((DELTA, "io.delta.", _SPARK)) for n in names)


def _version_of(target: Target, started: int, info: CommitInfo) -> int | None:
    """The version that a run's commit made after a version; None if there is none."""
    jvm = target.jvm
    log = target.table.deltaLog()
    for made in jvm.python(log.history().getHistory(started + 1, jvm.none, target.table.catalogTable())):
        try:
            metadata = json.loads(made.get("userMetadata") or "null")
        except ValueError:  # another writer's
            continue
        if isinstance(metadata, dict) and (metadata.get("run"), metadata.get("batch")) == (info.run, info.batch):
            version: int = made["version"]
            return version
    return None
