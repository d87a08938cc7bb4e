"""Reads a version of a Delta table from its log, without Spark: through bloom's own stores.

    _delta_log/ -> the newest checkpoint before the version -> the commits after it -> entries that weren't removed

Sources: PROTOCOL.md, "Delta Log Entries", "Checkpoints" (classic, in parts, version 2 with sidecars), "Action
Reconciliation" and "In-Commit Timestamps". The package `deltalake` would read the log, too, but 1.6 doesn't return
deletion vectors as the log has them, only as a list of booleans of all rows; it reads no vectors of tables with type
widening; and it has no statistics as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bloomcli.concurrency.threads import Threads
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError, UsageError, needed
from bloomcli.formats.arrays import SourceStream
from bloomcli.storage.base import Store
from bloomcli.storage.registry import open_source, read_file, store_of
from bloomcli.tables.base import check_place, valid
from bloomcli.tables.delta.reading import DeltaSnapshot, deleted_of, shape_of
from bloomcli.tables.delta.schema import names_of, partition_columns
from bloomcli.tables.delta.snapshot import (
    LISTED,
    NEWEST_READER,
    REFUSED,
    deletion_vector_of,
    full_path,
    is_absolute,
    partition_of,
    unsupported,
)
from bloomcli.tables.delta.statistics import leaves_of, statistics_of

DIRECTORY: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9A-Fa-f-]{36})?\.(?:parquet|json)")
_SIDECARS: Final = "_sidecars"
_READ: Final = ("add", "metaData", "protocol", "sidecar")
_KEPT: Final = (*LISTED, "stats")
_IN_COMMIT: Final = "delta.enableInCommitTimestamps"
_SINCE: Final = "delta.inCommitTimestampEnablementVersion"
_AT_ONCE: Final = 16
"""Lookups in a store, and commits, at a time."""

Action = Mapping[str, Any]


class Log:
    """A version of a table's log.

    Args:
        location: the table's directory: a local path, or a URI of a store.
        name: the table's name, for errors.
        version: the version; the newest if None.
        as_of: the version that was current at this time, if `version` is None.

    Raises:
        UsageError: the table has no such version.
        UnsupportedError: a feature of the table that bloom doesn't know.
        UnreadableError: the store can't read the log.
        CorruptFile: the log is damaged or incomplete.
    """

    def __init__(self, location: str, name: str, version: int | None = None, as_of: datetime | None = None) -> None:
        self._location, self._name = location, name
        self._store: Store = store_of(location)
        self._directory = self._store.join(location, DIRECTORY)
        self._commits: set[int] = set()
        self._checkpoints: dict[int, list[list[str]]] = {}
        """For each version, its complete checkpoints, each a list of files."""
        self._list()
        if not self._commits and not self._checkpoints:
            raise UsageError("the directory's _delta_log has no version of a Delta table", path=name)
        self.version = max((*self._commits, *self._checkpoints))
        if as_of is not None or version is not None:
            self.version = self._at(as_of) if version is None and as_of is not None else self._checked(version or 0)
        self._protocol: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {}
        self._entries: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._replay()
        if not isinstance(self._metadata.get("schemaString"), str):
            raise CorruptFile("the table's metadata in the Delta log have no schema", path=self._directory)
        with valid("the table's metadata in the Delta log aren't valid", self._directory):
            names_of(self.metadata)
            shape_of(self.metadata)
            leaves_of(self.metadata)
            columns = partition_columns(self.metadata)
            str(self.metadata["format"]["provider"])
        for entry in self._entries.values():
            with valid("an entry of the Delta log isn't valid", self._directory):
                partition_of(entry, columns)
                deleted = deleted_of(entry, self._location)
                check_place(self._location, full_path(self._location, entry["path"]))
                for vector in () if deleted is None else deleted.vectors:
                    check_place(self._location, vector.path)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The log's ``metaData``."""
        configuration = self._metadata.get("configuration") or {}
        return {**self._metadata, "configuration": {name: str(value) for name, value in configuration.items()}}

    def listed(self, *more: str) -> list[dict[str, Any]]:
        """The entries of all data files, ordered by path. They have all fields that `more` can name."""
        del more
        return sorted(self._entries.values(), key=lambda entry: entry["path"])

    def _path(self, *names: str) -> str:
        path = self._directory
        for name in names:
            path = self._store.join(path, name)
        return path

    def _list(self) -> None:
        parts: dict[tuple[int, int], dict[int, str]] = {}
        for name in self._store.names(self._directory):
            if match := _COMMIT.fullmatch(name):
                self._commits.add(int(match[1]))
            elif match := _CHECKPOINT.fullmatch(name):
                number = int(match[1])
                if match[2] is None:
                    self._checkpoints.setdefault(number, []).append([name])
                else:
                    parts.setdefault((number, int(match[3])), {})[int(match[2])] = name
        for (number, count), files in parts.items():
            if len(files) == count == max(files) and min(files) == 1:
                self._checkpoints.setdefault(number, []).append([files[part] for part in sorted(files)])

    @cached_property
    def _readable(self) -> set[int]:
        """The versions that can be read: each follows a checkpoint, or the first commit, without a gap."""
        versions: set[int] = set()
        for number in sorted({*self._commits, *self._checkpoints}):
            if number in self._checkpoints or number == 0 or number - 1 in versions:
                versions.add(number)
        return versions

    def _checked(self, version: int) -> int:
        if version not in self._readable:
            span = f"it has {min(self._readable)} to {max(self._readable)}" if self._readable else "its log has gaps"
            raise UsageError(f"the table has no version {version} that can be read: {span}", path=self._name)
        return version

    def _at(self, time: datetime) -> int:
        """The version that was current at a time: by the times of commits, each later than the one before."""
        readable = sorted(self._readable & self._commits)
        newest = Log(self._location, self._name)
        settings = newest.metadata["configuration"]
        with valid("the table's properties aren't valid", self._directory):
            since = int(settings.get(_SINCE, 0)) if settings.get(_IN_COMMIT, "").lower() == "true" else None
        with Threads(_AT_ONCE if self._store.remote else 0, "bloom-delta") as threads:
            times = threads.map(lambda number: self._time(number, since), readable)
        wanted = int(time.timestamp() * 1000)
        version, last = None, 0
        for number, milliseconds in zip(readable, times, strict=True):
            last = max(milliseconds, last + 1)
            if last <= wanted:
                version = number
        if version is None:
            with valid("the commit's time isn't valid", self._directory):
                first = f"; the first one is of {_shown(times[0])}" if readable else ""
            raise UsageError(f"the table has no version of {time.isoformat()} or before{first}", path=self._name)
        return version

    def _time(self, version: int, since: int | None) -> int:
        """The time of a commit, in milliseconds."""
        path = self._path(f"{version:020}.json")
        if since is not None and version >= since:
            with valid("the commit's time isn't valid", path):
                for action in actions_in(path, ()):
                    if (of_commit := (action.get("commitInfo") or {}).get("inCommitTimestamp")) is not None:
                        return int(of_commit)
        fingerprint = self._store.fingerprint(path)
        return 0 if fingerprint is None else fingerprint.mtime_ns // 1_000_000

    def _replay(self) -> None:
        start = max((number for number in self._checkpoints if number <= self.version), default=-1)
        if self.version not in self._readable:
            missing = next(number for number in range(start + 1, self.version) if number not in self._commits)
            raise CorruptFile(f"the log has no version {missing}, and no checkpoint after it", path=self._directory)
        if start >= 0:
            self._checkpoint(self._checkpoints[start])
        paths = [self._path(f"{number:020}.json") for number in range(start + 1, self.version + 1)]
        with Threads(_AT_ONCE if self._store.remote else 0, "bloom-delta") as threads:
            for at in range(0, len(paths), _AT_ONCE):
                some = paths[at : at + _AT_ONCE]
                for path, data in zip(some, threads.map(_bytes, some), strict=True):
                    for action in _lines(path, data):
                        self._apply(action, path)
        if not self._protocol or not self._metadata:
            raise CorruptFile("the log has no protocol or no metadata of the table", path=self._directory)
        with valid("the table's protocol isn't valid", self._directory):
            self._check_features(self._protocol)

    def _checkpoint(self, copies: Sequence[Sequence[str]]) -> None:
        """Apply a checkpoint, of which there may be several copies."""
        for name in copies[0]:
            path, sidecars = self._path(name), []
            for action in actions_in(path, _READ):
                self._apply(action, path)
                with valid("a sidecar of the checkpoint isn't valid", path):
                    if action.get("sidecar") is not None:
                        sidecars.append(str(action["sidecar"]["path"]))
            for sidecar in sidecars:
                inner = full_path("", sidecar) if is_absolute(sidecar) else self._path(_SIDECARS, sidecar)
                check_place(self._location, inner)
                for action in actions_in(inner, _READ):
                    self._apply(action, inner)

    def _apply(self, action: Action, path: str) -> None:
        with valid("an action of the Delta log isn't valid", path):
            if (entry := action.get("add")) is not None:
                kept = {name: entry[name] for name in _KEPT if entry.get(name) is not None}
                values = dict(entry.get("partitionValues") or {})
                kept["partitionValues"] = {
                    name: None if value is None else str(value) for name, value in values.items()
                }
                kept["size"] = int(entry["size"])
                if not isinstance(kept.get("stats"), str):
                    kept["stats"] = None
                self._entries[self._key(entry)] = kept
            elif (entry := action.get("remove")) is not None:
                self._entries.pop(self._key(entry), None)
            elif (metadata := action.get("metaData")) is not None:
                self._metadata = dict(metadata)
            elif (protocol := action.get("protocol")) is not None:
                self._protocol = dict(protocol)

    def _key(self, entry: Action) -> tuple[Any, ...]:
        return full_path(self._location, entry["path"]), deletion_vector_of(entry)

    def _check_features(self, protocol: Action) -> None:
        reader = int(protocol.get("minReaderVersion", 0))
        writer = set(protocol.get("writerFeatures") or ())
        why = unsupported({*(protocol.get("readerFeatures") or ()), *(writer & REFUSED.keys())})
        if reader > NEWEST_READER:
            why = f"protocol version {reader} for readers: bloom doesn't know it"
        if why is not None:
            raise UnsupportedError(f"this Delta table can't be read: {why}", path=self._name)


def actions_in(path: str, kinds: Collection[str]) -> Iterator[Action]:
    """Yield the actions of a file of a table's log. Statistics are texts, as in commits.

    Args:
        path: a commit, checkpoint, sidecar or checksum file: Parquet, or lines of JSON.
        kinds: the kinds of actions to read of Parquet, such as ``add``.

    Raises:
        CorruptFile: the file is damaged.
        UnreadableError: the store can't read it.
    """
    return _rows(path, kinds) if path.endswith(".parquet") else _lines(path, _bytes(path))


def _lines(path: str, data: bytes) -> Iterator[Action]:
    """Yield the actions of a file of JSON."""
    try:
        for line in data.split(b"\n"):  # texts in JSON may have other line breaks
            if line.strip():
                action = json.loads(line)
                if not isinstance(action, dict):
                    raise TypeError("a line isn't an action")
                yield action
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptFile(f"the Delta log can't be read: {error}", path=path) from None


def _bytes(path: str) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise CorruptFile(f"the Delta log can't be read: {error.strerror}", path=path) from None


def _rows(path: str, kinds: Collection[str]) -> Iterator[Action]:
    """Yield the actions of a Parquet file."""
    try:
        with open_source(path) as source:
            file = pq.ParquetFile(pa.PythonFile(SourceStream(source), "r"), coerce_int96_timestamp_unit="us")
            columns = [name for name in file.schema_arrow.names if name in kinds]
            for batch in file.iter_batches(columns=columns, use_threads=False):
                for row in batch.to_pylist(maps_as_pydicts="strict"):
                    action = {name: value for name, value in row.items() if value is not None}
                    if (entry := action.get("add")) and entry.get("stats") is None and entry.get("stats_parsed"):
                        entry["stats"] = json.dumps(entry["stats_parsed"], default=_plain)
                    yield action
    except BloomError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CorruptFile(f"the checkpoint can't be read: {reason}", path=path) from None


def _plain(value: Any) -> Any:
    """A value of statistics as the log's JSON has it."""
    if isinstance(value, datetime):  # a time with a zone or in INT96 is an instant
        part = "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
        return value.replace(tzinfo=None).isoformat(timespec=part) + ("Z" if value.tzinfo else "")
    return (
        value.isoformat() if isinstance(value, date) else format(value, "f") if isinstance(value, Decimal) else None
    )


def _shown(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


class DeltaLogTable(DeltaSnapshot):
    """A Delta table at one version, read from its log.

    Args:
        name: as `--table` takes it in SQL.
        location: the table's directory.
        snapshot: the version; the newest if None.
        as_of: the version that was current at this time.

    Raises: as `Log`.
    """

    def __init__(
        self, name: str, location: str, *, snapshot: int | None = None, as_of: datetime | None = None
    ) -> None:
        super().__init__(name, location, Log(location, name, snapshot, as_of))
        self.origin = f"the Delta log of {location}"

    def _chosen(self, where: str) -> set[str]:
        with needed("--where without Spark needs", "advice"):
            from bloomcli.tables.conditions import Condition
        leaves, partitions = leaves_of(self._snapshot.metadata), self._snapshot.metadata["partitionColumns"]
        condition = Condition(where, self, leaves)
        named = [leaf for leaf in leaves if leaf.path in condition.columns]
        return {
            path
            for path, entry in self._entries("stats").items()  # with a deletion vector, statistics may be of its rows
            if condition.may_be_met(statistics_of({**entry, "deletionVector": None}, named, partitions))
        }
