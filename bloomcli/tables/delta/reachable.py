"""Lists all that a Delta table reaches: by the files of its log, all of them, and its folder.

Measured with Delta 4.4: values are in `stats` of commits, checkpoints and checksum files (which repeat the entries of
small tables), and in the conditions that commits record (`DELETE ... WHERE id = 17`). The log's cleanup runs when a
checkpoint is written, and takes the files of days that are over (UTC).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from bloomcli.datasets.hadoop_paths import portable
from bloomcli.errors import UnreadableError, UnsupportedError
from bloomcli.model.schema import ColumnNames
from bloomcli.model.table_statistics import Kind as Type
from bloomcli.model.table_statistics import PartitionValue
from bloomcli.storage.names import partition_of
from bloomcli.tables.base import Leaf, valid
from bloomcli.tables.delta.jvm import Jvm
from bloomcli.tables.delta.log import actions_in
from bloomcli.tables.delta.schema import names_of
from bloomcli.tables.delta.snapshot import full_path
from bloomcli.tables.delta.statistics import has_no_zone, leaves_of, statistics_of
from bloomcli.tables.reachable import Keeper, Kind, Reachable, ReachedBounds, ReachedFile, ReachedText, exactly

_LOG: Final = "_delta_log/"
_CHANGES: Final = "_change_data/"
_NUMBERED: Final = re.compile(r"(\d{20})\.")
_ACTIONS: Final = ("add", "remove", "cdc")
_KINDS: Final = (*_ACTIONS, "metaData", "commitInfo")
_NOT_LOOKED_AT: Final = (
    "what only versions had that are no longer in the log: files in other folders, and columns that had the name",
    "names of directories without files",
)
_IN_ZONE: Final = "timestamps of partitions without a zone in another zone than the session's, {}"
_WITHOUT_VALUES: Final = (".crc", ".bin", "_last_checkpoint", "_last_vacuum_info")
_NOTES: Final = (
    "VACUUM ... RETAIN 0 HOURS harms running writers and readers: run it while nothing else uses the table, or run"
    " VACUUM alone when delta.deletedFileRetentionDuration is over",
    "Delta removes files of its log when their day (UTC) is over and it writes a checkpoint: change a property again"
    " then. Reset the properties afterwards",
)


class Entry(NamedTuple):
    """An entry of the log."""

    log: str
    """The log's file."""
    kind: str
    """``add``, ``remove``, ``cdc``, ``metaData`` or ``commitInfo``."""
    facts: Mapping[str, Any]


def reachable(jvm: Jvm, name: str, column: str, location: str, current: AbstractSet[str], conf: Any) -> Reachable:
    """List what a table reaches.

    Args:
        jvm: the session's JVM.
        name: the table's name in SQL.
        column: the table's path of a leaf column.
        location: the table's directory, as Hadoop spells it.
        current: the full paths of the newest version's files.
        conf: Hadoop's configuration for the table.

    Raises:
        UnsupportedError: the column is, or was, a partition column of a type that bloom doesn't know.
        CorruptFile, UnreadableError: a file of the log can't be read.
        Errors of Java: the folder can't be listed.
    """
    sizes = _listed(jvm, location, conf)
    log = {path: size for path, size in sizes.items() if path.startswith(f"{location}/{_LOG}")}
    entries = [entry for path in sorted(log) for entry in _entries(path)]
    columns = _columns([entry.facts for entry in entries if entry.kind == "metaData"], column, name)
    vacuum = ("SET spark.databricks.delta.retentionDurationCheck.enabled = false", f"VACUUM {name} RETAIN 0 HOURS")
    cleanup = (
        f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 0 hours',"
        " 'delta.deletedFileRetentionDuration' = 'interval 0 hours', 'delta.enableExpiredLogCleanup' = 'true',"
        " 'delta.checkpointInterval' = '1')"
    )
    logged = Keeper(("the log, until delta.logRetentionDuration is over",), (cleanup,))
    newest = Keeper(("the newest version",), (f"REORG TABLE {name} APPLY (PURGE)", *vacuum), (name,))
    removed = {
        full_path(location, entry.facts["path"]): _until(entry.facts) for entry in entries if entry.kind == "remove"
    }
    named = {full_path(location, entry.facts["path"]): entry.kind for entry in entries if entry.kind in _ACTIONS}

    def keeper(path: str) -> Keeper:
        if path in current:
            return newest
        if not path.startswith(f"{location}/"):
            return Keeper(("the log's older versions, in another table's folder",), (cleanup,))
        changes = _kind(path, location, named) is Kind.CHANGES
        kept = "the change data feed, until VACUUM takes it" if changes else "nothing: no version has it"
        return Keeper((removed.get(path, kept),), vacuum)

    files = [
        ReachedFile(path, size, _kind(path, location, named), keeper(path))
        for path, size in sizes.items()
        if path in named or (path.endswith(".parquet") and path not in log and not _name(path).startswith("."))
    ]
    opened = {file.path for file in files} | {path for path in log if _is_read(_name(path))}
    elsewhere = {path for path in (*current, *named) if not path.startswith(f"{location}/")}
    missing = {path for path in current if path not in sizes} | {p for p in elsewhere if _exists(jvm, p, conf)}
    files += [ReachedFile(path, -1, Kind.DATA, keeper(path)) for path in sorted(missing)]
    leaves = [leaf for _, leaf in columns]
    bounds = [*_of_statistics(entries, leaves, location, logged)]
    partitions = [*_in_log(entries, leaves, location, logged)]
    partitions += _in_directories((path for path in sizes if path not in log), leaves, location, keeper)
    local = _in_session_zone(jvm, {part.text for part in partitions if has_no_zone(part.leaf, part.text)})
    bounds += [
        ReachedBounds(part.path, part.kind, part.data_file, exactly(value), part.keeper, whole=True)
        for part in partitions
        if (value := _value(part.leaf, part.text, local)) is not None
    ]
    numbers = {int(match[1]) for path in log if (match := _NUMBERED.match(_name(path)))}
    return Reachable(
        location=location,
        names=tuple(names for names, _ in columns),
        files=files,
        bounds=bounds,
        texts=[ReachedText(entry.log, _text(entry.facts), logged) for entry in entries if entry.kind == "commitInfo"],
        metadata_files=len(log),
        versions=tuple(sorted(numbers)),
        notes=_NOTES,
        not_looked_at=(*_NOT_LOOKED_AT, *([_IN_ZONE.format(_zone(jvm))] if local else ())),
        not_opened=tuple(path for path in sizes if path not in opened and not path.endswith(_WITHOUT_VALUES)),
    )


class _Partition(NamedTuple):
    """A text that gives the column's value to all rows of a file."""

    path: str
    kind: Kind
    data_file: str
    leaf: Leaf
    text: str
    keeper: Keeper


def _of_statistics(
    entries: Sequence[Entry], leaves: Sequence[Leaf], location: str, keeper: Keeper
) -> Iterator[ReachedBounds]:
    for entry in entries:
        for leaf in leaves if entry.facts.get("stats") else ():
            columns = statistics_of({"stats": entry.facts["stats"]}, [leaf], ()).columns
            path = full_path(location, entry.facts["path"])
            yield from (ReachedBounds(entry.log, Kind.LOG, path, column, keeper) for column in columns)


def _in_log(entries: Sequence[Entry], leaves: Sequence[Leaf], location: str, keeper: Keeper) -> Iterator[_Partition]:
    for entry in entries:
        path = full_path(location, entry.facts["path"]) if "path" in entry.facts else ""
        for leaf, text in _of_column(entry.facts.get("partitionValues") or {}, leaves):
            yield _Partition(entry.log, Kind.LOG, path, leaf, text, keeper)


def _in_directories(
    paths: Iterable[str], leaves: Sequence[Leaf], location: str, keeper: Callable[[str], Keeper]
) -> Iterator[_Partition]:
    for path in paths:
        for leaf, text in _of_column(partition_of(path.removeprefix(location)), leaves):
            yield _Partition(path, Kind.DIRECTORY, path, leaf, text, keeper(path))


def _of_column(values: Mapping[str, str | None], leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, str]]:
    """Yield the column's value in the partition values of an entry or of directories."""
    for leaf in leaves:
        text = next((str(values[name]) for name in (*leaf.names[:1], leaf.path) if values.get(name)), None)
        if text is not None and leaf.names:
            yield leaf, text


def _value(leaf: Leaf, text: str, local: Mapping[str, int]) -> PartitionValue | None:
    """A partition's value, as Spark reads it; None for a text that isn't one."""
    if has_no_zone(leaf, text) and text not in local:
        return None
    (value,) = statistics_of({"partitionValues": {leaf.names[0]: text}}, [leaf], [leaf.path]).partition
    if leaf.type == "binary":
        return replace(value, value=text.encode("utf-8", "replace"))
    return replace(value, value=local.get(text, value.value) if has_no_zone(leaf, text) else value.value)


def _zone(jvm: Jvm) -> str:
    return str(jvm.session.conf.get("spark.sql.session.timeZone"))


def _in_session_zone(jvm: Jvm, texts: AbstractSet[str]) -> dict[str, int]:
    """The nanoseconds since 1970 of timestamps without a zone, which Spark reads in the session's zone."""
    if not texts:
        return {}
    frame = jvm.session.createDataFrame([(text,) for text in sorted(texts)], "text string")
    rows = frame.selectExpr("text", "unix_micros(try_cast(text as timestamp)) as micros").collect()
    return {row.text: row.micros * 1000 for row in rows if row.micros is not None}


def _listed(jvm: Jvm, location: str, conf: Any) -> dict[str, int]:
    """The sizes of all files in the table's folder, by path."""
    folder = jvm.hadoop_path(location)
    sizes, files = {}, folder.getFileSystem(conf).listFiles(folder, True)
    while files.hasNext():
        status = files.next()
        sizes[str(status.getPath().toString())] = int(status.getLen())
    return sizes


def _exists(jvm: Jvm, path: str, conf: Any) -> bool:
    file = jvm.hadoop_path(path)
    return bool(file.getFileSystem(conf).exists(file))


def _kind(path: str, location: str, named: Mapping[str, str]) -> Kind:
    if path.startswith(f"{location}/{_CHANGES}") or named.get(path) == "cdc":
        return Kind.CHANGES
    return Kind.DATA if path in named else Kind.OUTSIDE


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_read(name: str) -> bool:
    """Whether a file of the log is read, by its name."""
    return not name.startswith((".", "_")) and name.endswith((".parquet", ".json", ".crc"))


def _until(removal: Mapping[str, Any]) -> str:
    """What keeps a removed file."""
    time = datetime.fromtimestamp((removal.get("deletionTimestamp") or 0) / 1000, UTC)
    return f"older versions, until VACUUM takes it: it was removed at {time:%Y-%m-%d %H:%M} UTC"


def _text(info: Mapping[str, Any]) -> str:
    """The conditions of a commit, and what its writer adds. Properties of the table aren't values of a column.

    Delta's protocol leaves the form of all of it to the writer.
    """
    fields = info.get("operationParameters") or {}
    texts = [text for key, text in fields.items() if key != "properties"] if isinstance(fields, dict) else [fields]
    return json.dumps([*texts, info.get("userMetadata") or ""], ensure_ascii=False)


def _entries(path: str) -> Iterator[Entry]:
    """Yield the entries of a file of the log. Raises CorruptFile, UnreadableError."""
    if not _is_read(_name(path)):
        return
    try:
        with valid("the Delta log isn't valid", portable(path)):
            for action in actions_in(portable(path), _KINDS):
                some = [(kind, action[kind]) for kind in _KINDS if action.get(kind) is not None]
                for kind, facts in (*some, *(("add", facts) for facts in action.get("allFiles") or ())):
                    yield Entry(path, kind, {**facts, "path": str(facts["path"])} if kind in _ACTIONS else {**facts})
    except UnreadableError as error:
        error.add_to_hint(["if the file is damaged and the table can be read without it, remove it"])
        raise


def _columns(metadata: Sequence[Mapping[str, Any]], column: str, name: str) -> list[tuple[ColumnNames, Leaf]]:
    """The columns that the name has or had, each with the facts of its bounds. Raises UnsupportedError."""
    columns: dict[object, tuple[ColumnNames, Leaf]] = {}
    for action in metadata:
        action = {**action, "configuration": action.get("configuration") or {}}
        names = names_of(action)
        leaf = next((leaf for leaf in leaves_of(action) if leaf.path == column), Leaf(column, "string", Type.TEXT))
        if column in action["partitionColumns"] and not leaf.names:
            raise UnsupportedError(f"{column} is, or was, a partition column of a type that isn't known", path=name)
        for own in names.columns:
            if own.path == column:
                columns[own] = names, leaf
    return list(columns.values())
