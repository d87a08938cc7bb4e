"""Lists all that an Iceberg table reaches, by its snapshots and its folder, where files of expired snapshots may be.

Manifests are read as Avro, because Iceberg's readers leave out the entries of removed files, whose bounds stay in the
manifest. Measured with Iceberg 1.12: `rewrite_manifests` drops such entries, but leaves a manifest alone that is the
only one of its partition spec, and manifests of delete files; these end with a rewrite of the data files.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

from bloomcli.errors import UnreadableError, UnsupportedError
from bloomcli.model.schema import ColumnName, ColumnNames
from bloomcli.model.table_statistics import ColumnStatistics, Key
from bloomcli.tables.base import Leaf, valid
from bloomcli.tables.iceberg.java import NO_SUCH_FILE, PLAINTEXT, Java, class_names, manager, reading
from bloomcli.tables.iceberg.schema import NAME_MAPPING, column_names
from bloomcli.tables.iceberg.statistics import call, decode, leaves_of, statistics_of
from bloomcli.tables.java import java_errors
from bloomcli.tables.reachable import (
    Keeper,
    Kind,
    Reachable,
    ReachedBounds,
    ReachedFile,
    ReachedText,
    exactly,
    without_scheme,
)

T = TypeVar("T")

_KINDS: Final = (Kind.DATA, Kind.POSITION_DELETES, Kind.EQUALITY_DELETES)
_REMOVED: Final = 2
"""The status of an entry whose file a snapshot has removed."""
_COUNT: Final = re.compile(r"(added|deleted|removed|total|manifests)-|changed-partition-count$|entries-processed$")
_STATISTICS: Final = "partition-stats-"
"""The beginning of the names of statistics of partitions."""
_ROWS: Final = (".parquet", ".orc", ".avro")
_METADATA: Final = ".metadata.json"
_WITHOUT_VALUES: Final = (".crc", _METADATA, ".puffin", ".stats", "version-hint.text")
_NOT_LOOKED_AT: Final = (
    "what only expired snapshots had whose manifests or *.metadata.json are gone: files outside the table's folders"
    " (of add_files, an earlier write.data.path), and columns that had the name",
    "names of directories without files",
    "copies of deleted rows in position delete files, which some writers make (the column row)",
)
_NOTES: Final = ("remove_orphan_files only takes files that are older than three days",)
_EXACT: Final = ("identity", "day")
"""Transforms whose results are values, if they are compared."""
_VALUELESS: Final = ("bucket", "void")
"""Transforms of partitions whose results aren't values, or parts of them."""


class _Statements:
    """The statements that end what a table reaches."""

    def __init__(self, name: str, metadata: Mapping[str, Any]) -> None:
        self._name = name
        self._keepers: dict[tuple[frozenset[int], str], Keeper] = {}
        current = metadata.get("current-snapshot-id")
        main = {} if current in {None, -1} else {"main": {"snapshot-id": current, "type": "branch"}}
        self.refs: Mapping[str, Mapping[str, Any]] = metadata.get("refs") or main
        self._times = {
            snapshot["snapshot-id"]: int(snapshot["timestamp-ms"]) for snapshot in metadata.get("snapshots", ())
        }
        self._own_retention = any(ref.get("min-snapshots-to-keep") or ref.get("max-snapshot-age-ms")
                                  for ref in self.refs.values() if ref["type"] == "branch")  # fmt: skip

    def keeper(self, snapshots: Iterable[int], rewriting: str) -> Keeper:
        """What keeps something that snapshots of the table reach.

        Args:
            snapshots: their ids.
            rewriting: the statement that makes the next snapshot of the main branch no longer reach it.
        """
        key = frozenset(snapshots), rewriting
        if key not in self._keepers:
            self._keepers[key] = self._keeper(*key)
        return self._keepers[key]

    def _keeper(self, snapshots: frozenset[int], rewriting: str) -> Keeper:
        ids = sorted(snapshots, key=lambda number: self._times[number])
        heads = {name: ref for name, ref in self.refs.items() if ref["snapshot-id"] in ids}
        kept, ends = [], []
        for name, ref in heads.items():
            kept.append(f"{ref['type']} {name} (snapshot {ref['snapshot-id']})")
            if name == "main":
                ends.append(rewriting)
            else:
                ends.append(f"ALTER TABLE {self._name} DROP {ref['type'].upper()} `{name}`")
        older = [number for number in ids if number not in {ref["snapshot-id"] for ref in heads.values()}]
        kept += [f"snapshot {number} of {_time(self._times[number])}" for number in older]
        argument = f", snapshot_ids => ARRAY({', '.join(map(str, older))})" if self._own_retention and older else ""
        until = f"older_than => TIMESTAMP '{_time(self._times[ids[-1]] + 1)}', retain_last => 1"
        ends.append(call(self._name, "expire_snapshots", until + argument))
        branches = [name for name, ref in heads.items() if ref["type"] == "branch"]
        tables = (self._name if name == "main" else f"{self._name}.`branch_{name}`" for name in branches)
        return Keeper(tuple(kept), tuple(ends), tuple(tables))

    def rewriting(self, kind: Kind, *, every: bool = False) -> str:
        """The statement that writes the files of the main branch again; `every`: also those without deletes."""
        if kind is Kind.POSITION_DELETES:
            return call(self._name, "rewrite_position_delete_files", "options => map('rewrite-all', 'true')")
        which = "'rewrite-all', 'true'" if every else "'delete-file-threshold', '1'"
        return call(self._name, "rewrite_data_files", f"options => map({which}, 'remove-dangling-deletes', 'true')")

    @property
    def rewriting_manifests(self) -> str:
        """The statement that drops the entries of removed files."""
        return call(self._name, "rewrite_manifests")

    @property
    def outside(self) -> Keeper:
        """What keeps a file that no snapshot reaches."""
        return Keeper(
            ("no snapshot: a failed or unfinished write, or an incomplete expiry",),
            (call(self._name, "remove_orphan_files"),),
        )

    @property
    def elsewhere(self) -> Keeper:
        """What keeps a file in another folder that only expired snapshots had."""
        return Keeper(("no snapshot, in another folder: Iceberg has no statement that removes it",), ())

    def older(self, *, logged: bool) -> Keeper:
        """What keeps an older metadata file; `logged`: the current one names it."""
        if not logged:
            return self.outside
        cleanup = (
            f"ALTER TABLE {self._name} SET TBLPROPERTIES ('write.metadata.delete-after-commit.enabled' = 'true',"
            " 'write.metadata.previous-versions-max' = '1')"
        )
        return Keeper(("the log of metadata files",), (cleanup,))


def _time(milliseconds: int) -> str:
    time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{time:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03} UTC"


def reachable(java: Java, table: Any, name: str, column: str) -> Reachable:
    """List what a table reaches.

    Args:
        java: the session's Java.
        table: an ``org.apache.iceberg.Table``.
        name: its name in SQL, without a branch or snapshot.
        column: the table's path of a leaf column.

    Raises:
        UnsupportedError: the table is encrypted.
        Errors of Java: the metadata can't be read.
    """
    return _Listing(java, table, name, column).run()


class _Listing:
    def __init__(self, java: Java, table: Any, name: str, column: str) -> None:
        self._java, self._table, self._name, self._column = java, table, name, column
        self._io = table.io()
        self._parser = java.iceberg("TableMetadataParser")
        self._metadata: dict[str, Any] = json.loads(self._parser.toJson(table.operations().current()))
        self._current = {snapshot["snapshot-id"] for snapshot in self._metadata.get("snapshots") or ()}
        logged = [str(entry["metadata-file"]) for entry in self._metadata.get("metadata-log") or ()]
        self._logged = {without_scheme(path): path for path in logged}
        self._statements = _Statements(name, self._metadata)
        self._files: dict[str, ReachedFile] = {}
        self._bounds: list[ReachedBounds] = []
        self._texts: list[ReachedText] = []
        self._others: list[str] = []
        self._listed, self._unlisted = self._list()
        self._schemas: list[Mapping[str, Any]] = self._metadata.get("schemas") or [self._metadata["schema"]]
        self._specs = {spec["spec-id"]: spec["fields"] for spec in self._metadata.get("partition-specs") or ()}
        self._expired: dict[int, Any] = {}
        """Snapshots that only older metadata files have, by id."""
        self._older = [path for path in self._older_metadata() if self._read_older(path)]
        self._names, self._leaves = self._columns()
        now = leaves_of(json.loads(java.iceberg("SchemaParser").toJson(table.schema())))
        self._dropped = not self._leaves.keys() <= now.keys()
        """Whether files that aren't written again may have values of a column that had the name."""
        fields = chain.from_iterable(self._specs.values())
        self._fields = {field["name"]: field for field in sorted(fields, key=lambda one: one["transform"] != "void")}
        """The fields of all partition specs by name, as statistics of partitions have them."""
        self._of_partitions = tuple(
            ColumnNames((ColumnName(self._column, physical=(f"partition.{field['name']}",)),))
            for field in chain.from_iterable(self._specs.values())
            if (leaf := self._leaves.get(field.get("source-id")))
            and field["transform"] in _EXACT
            and _is_compared(field, leaf)
        )
        if manager(table) != PLAINTEXT:
            raise UnsupportedError("the table is encrypted: its files can't be searched without its keys", path=name)

    def run(self) -> Reachable:
        """List everything."""
        own: dict[str, tuple[Any, set[int]]] = {}
        for snapshot in self._java.items(self._table.snapshots()):
            for manifest in self._manifests(snapshot):
                own.setdefault(str(manifest.path()), (manifest, set()))[1].add(int(snapshot.snapshotId()))
        main = self._statements.refs.get("main", {}).get("snapshot-id")
        spec = int(self._table.spec().specId())
        alike = {path for path, (manifest, ids) in own.items() if main in ids and _is_of_data(manifest, spec)}
        reached: defaultdict[tuple[str, int, Kind], set[int]] = defaultdict(set)
        for path, (_, snapshots) in own.items():
            for entry, file, kind in self._entries(path):
                removed = entry["status"] == _REMOVED
                ending = self._statements.rewriting(kind, every=removed or self._dropped)
                if removed and path in alike and len(alike) > 1:
                    ending = self._statements.rewriting_manifests
                self._add_bounds(path, file, self._statements.keeper(snapshots, ending))
                if not removed:
                    reached[file["file_path"], file["file_size_in_bytes"], kind] |= snapshots
        defaults = [*self._defaults()]
        for (path, size, kind), snapshots in reached.items():
            keeper = self._statements.keeper(snapshots, self._statements.rewriting(kind, every=self._dropped))
            self._files[path] = ReachedFile(path, size, kind, keeper)
            for default in defaults if kind is Kind.DATA else ():
                self._bounds.append(ReachedBounds(path, Kind.DEFAULT, path, default, keeper, whole=True))
        for statistics_file in (self._metadata.get("partition-statistics") or ()) if self._of_partitions else ():
            if (number := statistics_file["snapshot-id"]) in self._current:
                keeper = self._statements.keeper([number], self._statements.rewriting(Kind.DATA, every=True))
                path, size = statistics_file["statistics-path"], statistics_file["file-size-in-bytes"]
                if path.endswith(".avro"):
                    own[path] = None, {number}
                    for _, file, _ in self._entries(path):
                        self._add_bounds(path, file, keeper)
                else:
                    self._files[path] = ReachedFile(path, size, Kind.PARTITIONS, keeper)
        lists = (snapshot.get("manifest-list") or "" for snapshot in self._metadata.get("snapshots") or ())
        self._add_outside({without_scheme(path) for path in (*own, *self._files, *lists)})
        not_looked_at = [*self._unlisted, *self._partial()]
        if blobs := len(self._metadata.get("statistics") or ()):
            not_looked_at.append(f"{blobs} statistics files (Puffin): sketches of distinct values have hashes only")
        listed = self._metadata.get("snapshots") or []
        return Reachable(
            location=str(self._table.location()),
            names=self._names,
            of_partitions=self._of_partitions,
            files=list(self._files.values()),
            bounds=self._bounds,
            texts=[*map(self._summary, listed), *self._texts],
            metadata_files=len(own) + len(self._older),
            versions=tuple(snapshot["snapshot-id"] for snapshot in listed),
            refs=tuple(f"{ref['type']} {name}" for name, ref in self._statements.refs.items()),
            notes=_NOTES,
            not_looked_at=(*not_looked_at, *_NOT_LOOKED_AT),
            not_opened=tuple(self._others),
        )

    def _columns(self) -> tuple[tuple[ColumnNames, ...], dict[int, Leaf]]:
        """The columns that the name has or had, and the facts of their bounds."""
        mapping = (self._metadata.get("properties") or {}).get(NAME_MAPPING)
        columns: dict[int | None, ColumnNames] = {}
        leaves: dict[int, Leaf] = {}
        for schema in self._schemas:
            names = column_names(schema, None if mapping is None else json.loads(mapping))
            for column in names.columns:
                if column.path == self._column:
                    columns[column.field_id] = names
            leaves |= {number: leaf for number, leaf in leaves_of(schema).items() if leaf.path == self._column}
        return tuple(columns.values()), leaves

    def _defaults(self) -> Iterator[ColumnStatistics]:
        """Yield the column's values in files from before it was added."""
        for number, leaf in self._leaves.items():
            entry = {"record-count": -1, "partition": [leaf.default]}
            fields = [{"source-id": number, "transform": "identity"}]
            if leaf.default is not None:
                yield from map(exactly, statistics_of(entry, {number: leaf}, fields).partition)

    def _partial(self) -> list[str]:
        """The partition fields whose values are parts of values, which aren't compared."""
        transforms = {
            field["transform"]
            for field in chain.from_iterable(self._specs.values())
            if (leaf := self._leaves.get(field.get("source-id"))) and not _is_compared(field, leaf)
        }
        parts = sorted(name for name in transforms if not name.startswith(_VALUELESS))
        return [f"the {name} of the column in manifests and paths, by which files are partitioned" for name in parts]

    def _entries(self, path: str) -> Iterator[tuple[dict[str, Any], dict[str, Any], Kind]]:
        """Yield the entries of a manifest, a list of manifests or statistics of partitions, with files and kinds."""
        reader = self._java.type("org.apache.avro.generic.GenericDatumReader")()
        opened = self._io.newInputFile(path).newStream()
        try:
            with reading("the manifest can't be read", path), valid("the manifest isn't valid", path):
                stream = self._java.type("org.apache.avro.file.DataFileStream")(opened, reader)
                fields = json.loads(stream.getMetaString("partition-spec") or "[]")
                while stream.hasNext():
                    entry = json.loads(stream.next().toString())
                    file = entry.get("data_file") or self._ranges(path, entry)
                    kind = _KINDS[file.get("content") or 0]
                    values = file.get("partition") or {}
                    fields = fields or [self._fields.get(name, {}) for name in values]  # statistics of partitions
                    file["partition"] = list(zip(fields, values.values(), strict=True))
                    yield entry, file, Kind.VECTORS if file["file_format"].lower() == "puffin" else kind
        finally:
            opened.close()

    def _ranges(self, path: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A manifest's entry in a list of manifests, or a partition's in statistics, as the entry of a file."""
        fields = self._specs.get(entry.get("partition_spec_id"), ())
        summaries = [
            (field["source-id"], summary)
            for field, summary in zip(fields, entry.get("partitions") or (), strict=False)
            if (leaf := self._leaves.get(field.get("source-id"))) and _is_compared(field, leaf)
        ]
        file: dict[str, Any] = {"file_path": path, "file_format": "avro", "partition": entry.get("partition")}
        for end in ("lower", "upper"):
            values = ((number, summary[f"{end}_bound"]) for number, summary in summaries)
            file[f"{end}_bounds"] = [{"key": key, "value": value} for key, value in values if value is not None]
        return file

    def _add_bounds(self, path: str, file: Mapping[str, Any], keeper: Keeper) -> None:
        """Add the column's bounds in an entry of a manifest."""
        ends: defaultdict[int, dict[str, Key | None]] = defaultdict(dict)
        for end in ("lower", "upper"):
            for pair in file.get(f"{end}_bounds") or ():
                if (leaf := self._leaves.get(pair["key"])) is not None:
                    ends[pair["key"]][end] = decode(_bytes(pair["value"]), leaf)
        partition = [
            (field["source-id"], {"lower": decode(_of_partition(value, leaf), leaf)}, field["transform"] in _EXACT)
            for field, value in file["partition"]
            if (leaf := self._leaves.get(field.get("source-id"))) and value is not None and _is_compared(field, leaf)
        ]
        kind = Kind.PARTITIONS if path.rpartition("/")[2].startswith(_STATISTICS) else Kind.MANIFEST
        for number, keys, whole in (*((number, keys, False) for number, keys in ends.items()), *partition):
            leaf = self._leaves[number]
            if leaf.kind is not None:
                bounds = ColumnStatistics(
                    path=leaf.path, kind=leaf.kind, low=keys.get("lower"), high=keys.get("upper")
                )
                self._bounds.append(ReachedBounds(path, kind, file["file_path"], bounds, keeper, whole))

    def _list(self) -> tuple[dict[str, int], list[str]]:
        """The sizes of the files in the table's folders, by path; and what can't be listed."""
        properties = self._metadata.get("properties") or {}
        own = (properties.get(f"write.{what}.path") for what in ("data", "metadata"))
        listed: dict[str, int] = {}
        unlisted = []
        for folder in dict.fromkeys((str(self._table.location()), *(path for path in own if path))):
            try:
                files = self._java.items(self._io.listPrefix(folder.rstrip("/") + "/"))
                listed |= {str(file.location()): int(file.size()) for file in files}
            except java_errors():
                unlisted.append(f"files in {folder} that no snapshot reaches: it can't be listed")
        return listed, unlisted

    def _older_metadata(self) -> list[str]:
        """The paths of older metadata files: those in the table's folders, and those that the current one names."""
        paths = {without_scheme(path): path for path in self._listed if path.endswith(_METADATA)} | self._logged
        paths.pop(without_scheme(str(self._table.operations().current().metadataFileLocation())), None)
        return list(paths.values())

    def _read_older(self, path: str) -> bool:
        """Read the schemas, the partition specs and the expired snapshots of a metadata file, if it still exists."""
        if (table_metadata := self._unless_gone(partial(self._parser.read, self._io, path))) is None:
            return False
        metadata: dict[str, Any] = json.loads(self._parser.toJson(table_metadata))
        self._schemas[:0] = [schema for schema in metadata.get("schemas") or () if schema not in self._schemas]
        self._specs |= {spec["spec-id"]: spec["fields"] for spec in metadata.get("partition-specs") or ()}
        keeper = self._statements.older(logged=without_scheme(path) in self._logged)
        for snapshot in metadata.get("snapshots") or ():
            if (number := snapshot["snapshot-id"]) not in self._current:
                self._texts.append(ReachedText(path, _text(snapshot), keeper))
                self._expired.setdefault(number, table_metadata.snapshot(number))
        return True

    def _unless_gone(self, call: Callable[[], T]) -> T | None:
        """The result of a call into Java; None if the file that it reads doesn't exist."""
        try:
            return call()
        except java_errors() as error:
            if class_names(error) & NO_SUCH_FILE:
                return None
            raise

    def _add_outside(self, paths: set[str]) -> None:
        """Add what no snapshot reaches: files in the table's folders, and what manifests of expired ones name."""
        outside = self._statements.outside
        manifests = []
        for path, size in self._listed.items():
            name = path.rpartition("/")[2]
            if name.endswith(_WITHOUT_VALUES) or without_scheme(path) in paths:
                continue
            paths.add(without_scheme(path))
            if name.startswith(".") or not name.endswith(_ROWS):
                self._others.append(path)
            elif path.endswith(".avro") and "/metadata/" in path:
                manifests.append((path, outside))
            else:
                kind = Kind.PARTITIONS if self._of_partitions and name.startswith(_STATISTICS) else Kind.OUTSIDE
                self._files[path] = ReachedFile(path, size, kind, outside)
        for snapshot in self._expired.values():
            for manifest in self._unless_gone(partial(self._manifests, snapshot)) or ():
                path = str(manifest.path())
                if without_scheme(path) not in paths and self._exists(path):
                    paths.add(without_scheme(path))
                    manifests.append((path, self._statements.elsewhere))
        for path, keeper in manifests:
            for _, file, kind in self._outside_entries(path, keeper):
                self._add_bounds(path, file, keeper)
                named = file["file_path"]
                if kind is not Kind.VECTORS and without_scheme(named) not in paths and self._exists(named):
                    paths.add(without_scheme(named))
                    size = file["file_size_in_bytes"]
                    self._files[named] = ReachedFile(named, size, Kind.OUTSIDE, self._statements.elsewhere)

    def _outside_entries(self, path: str, keeper: Keeper) -> Iterator[tuple[dict[str, Any], dict[str, Any], Kind]]:
        """Yield the entries of a file that no snapshot reaches; an error says what removes the file."""
        try:
            yield from self._entries(path)
        except UnreadableError as error:
            if keeper.ends:
                error.add_to_hint([f"no snapshot reaches the file; if it is damaged, remove it: {keeper.ends[0]}"])
            raise

    def _manifests(self, snapshot: Any) -> list[Any]:
        return self._java.items(snapshot.allManifests(self._io))

    def _exists(self, path: str) -> bool:
        return bool(self._io.newInputFile(path).exists())

    def _summary(self, snapshot: Mapping[str, Any]) -> ReachedText:
        keeper = self._statements.keeper([snapshot["snapshot-id"]], self._statements.rewriting(Kind.DATA, every=True))
        return ReachedText(f"snapshot {snapshot['snapshot-id']}", _text(snapshot), keeper)


def _text(snapshot: Mapping[str, Any]) -> str:
    """The summary of a snapshot without Iceberg's own counts, which aren't values of a column."""
    summary: Mapping[str, Any] = snapshot.get("summary") or {}
    texts = {key: value for key, value in summary.items() if not _COUNT.match(key)}
    partitions = [unquote_plus(key) for key in texts if key.startswith("partitions.")]
    return json.dumps([texts, partitions], ensure_ascii=False)


def _is_of_data(manifest: Any, spec: int) -> bool:
    """Whether `rewrite_manifests` rewrites a manifest, if it isn't the only one."""
    return str(manifest.content().name()) == "DATA" and int(manifest.partitionSpecId()) == spec


def _is_compared(field: Mapping[str, Any], leaf: Leaf) -> bool:
    """Whether a partition field has the values of its column, or their beginnings."""
    transform = field["transform"]
    is_beginning = transform.startswith("truncate") and leaf.type in {"string", "binary"}
    return transform == "identity" or is_beginning or (transform == "day" and leaf.type == "date")


def _of_partition(value: Any, leaf: Leaf) -> bytes:
    """A partition's value in Avro's JSON as the bytes of a bound."""
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int) and leaf.type not in {"float", "double"}:
        return value.to_bytes(4 if leaf.type in {"int", "date"} else 8, "little", signed=True)
    if isinstance(value, int | float):
        return struct.pack("<d", value)
    return str(value).encode() if leaf.type == "string" else _bytes(value)


def _bytes(value: Any) -> bytes:
    """Bytes in Avro's JSON, which some of its versions have in an object."""
    text: str = value["bytes"] if isinstance(value, dict) else value
    return text.encode("latin-1")
