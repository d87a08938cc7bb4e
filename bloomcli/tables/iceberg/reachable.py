"""Lists all that an Iceberg table reaches, by its snapshots and its folder, where files of expired snapshots may be.

Manifests are read as Avro, because Iceberg's readers leave out the entries of removed files, whose bounds stay in the
manifest. Measured with Iceberg 1.12: `rewrite_manifests` drops such entries, but leaves a manifest alone that is the
only one of its partition spec, and manifests of delete files; these end with a rewrite of the data files.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from bloomcli.errors import UnsupportedError
from bloomcli.model.schema import ColumnNames
from bloomcli.model.table_statistics import ColumnStatistics, Key
from bloomcli.tables.iceberg.java import Java
from bloomcli.tables.iceberg.schema import NAME_MAPPING, column_names
from bloomcli.tables.iceberg.statistics import Leaf, decode, leaves_of
from bloomcli.tables.java import java_errors
from bloomcli.tables.reachable import Keeper, Kind, Reachable, ReachedBounds, ReachedFile, ReachedText, without_scheme

_KINDS: Final = (Kind.DATA, Kind.POSITION_DELETES, Kind.EQUALITY_DELETES)
_REMOVED: Final = 2
"""The status of an entry whose file a snapshot has removed."""
_LIST: Final = "snap-"
"""The beginning of the names of manifest lists, which have no values."""
_ROWS: Final = (".parquet", ".orc", ".avro")
_WITHOUT_VALUES: Final = (".crc", ".metadata.json", ".puffin", ".stats", "version-hint.text")
_NOT_LOOKED_AT: Final = (
    "what only expired snapshots had: files outside the table's folders (of add_files, an earlier write.data.path),"
    " and the summaries in older *.metadata.json",
    "columns that had the name only in schemas that the table's metadata no longer have",
    "copies of deleted rows in position delete files, which some writers make (the column row)",
)
_NOTES: Final = ("remove_orphan_files only takes files that are older than three days",)
_VALUELESS: Final = ("bucket", "void")
"""Transforms of partitions whose results aren't values, or parts of them."""


class _Statements:
    """The statements that end what a table reaches."""

    def __init__(self, name: str, metadata: Mapping[str, Any]) -> None:
        catalog, _, short = name.partition(".")
        quoted = short.replace("'", "\\'")
        self._name, self._call, self._table = name, f"CALL {catalog}.system.", f"table => '{quoted}'"
        self._keepers: dict[tuple[frozenset[int], str], Keeper] = {}
        current = metadata.get("current-snapshot-id")
        main = {} if current in {None, -1} else {"main": {"snapshot-id": current, "type": "branch"}}
        self.refs: Mapping[str, Mapping[str, Any]] = metadata.get("refs") or main
        self._times = {one["snapshot-id"]: int(one["timestamp-ms"]) for one in metadata.get("snapshots", ())}
        self._own_retention = any(one.get("min-snapshots-to-keep") or one.get("max-snapshot-age-ms")
                                  for one in self.refs.values() if one["type"] == "branch")  # fmt: skip

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
        ids = sorted(snapshots, key=lambda one: self._times[one])
        heads = {name: ref for name, ref in self.refs.items() if ref["snapshot-id"] in ids}
        kept, ends = [], []
        for name, ref in heads.items():
            kept.append(f"{ref['type']} {name} (snapshot {ref['snapshot-id']})")
            if name == "main":
                ends.append(rewriting)
            else:
                ends.append(f"ALTER TABLE {self._name} DROP {ref['type'].upper()} `{name}`")
        older = [one for one in ids if one not in {ref["snapshot-id"] for ref in heads.values()}]
        kept += [f"snapshot {one} of {_time(self._times[one])}" for one in older]
        given = f", snapshot_ids => ARRAY({', '.join(map(str, older))})" if self._own_retention and older else ""
        until = _time(self._times[ids[-1]] + 1)
        ends.append(f"{self._call}expire_snapshots({self._table}, older_than => TIMESTAMP '{until}', retain_last => 1"
                    f"{given})")  # fmt: skip
        branches = [name for name, ref in heads.items() if ref["type"] == "branch"]
        tables = (self._name if name == "main" else f"{self._name}.`branch_{name}`" for name in branches)
        return Keeper(tuple(kept), tuple(ends), tuple(tables))

    def rewriting(self, kind: Kind, *, every: bool = False) -> str:
        """The statement that writes the files of the main branch again; `every`: also those without deletes."""
        if kind is Kind.POSITION_DELETES:
            return f"{self._call}rewrite_position_delete_files({self._table}, options => map('rewrite-all', 'true'))"
        which = "'rewrite-all', 'true'" if every else "'delete-file-threshold', '1'"
        options = f"map({which}, 'remove-dangling-deletes', 'true')"
        return f"{self._call}rewrite_data_files({self._table}, options => {options})"

    @property
    def rewriting_manifests(self) -> str:
        """The statement that drops the entries of removed files."""
        return f"{self._call}rewrite_manifests({self._table})"

    @property
    def outside(self) -> Keeper:
        """What keeps a file that no snapshot reaches."""
        return Keeper(
            ("no snapshot: a failed or unfinished write, or an incomplete expiry",),
            (f"{self._call}remove_orphan_files({self._table})",),
        )


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
        UnsupportedError: values of the column are partition values, or the table is encrypted.
        Errors of Java: the metadata can't be read.
    """
    return _Listing(java, table, name, column).run()


class _Listing:
    def __init__(self, java: Java, table: Any, name: str, column: str) -> None:
        self._java, self._table, self._name, self._column = java, table, name, column
        self._io = table.io()
        parser = java.iceberg("TableMetadataParser")
        self._metadata: dict[str, Any] = json.loads(parser.toJson(table.operations().current()))
        self._statements = _Statements(name, self._metadata)
        self._files: dict[str, ReachedFile] = {}
        self._bounds: list[ReachedBounds] = []
        self._others: list[str] = []
        self._names, self._leaves = self._columns()
        self._check_partitions()
        if str(table.encryption().getClass().getSimpleName()) != "PlaintextEncryptionManager":
            raise UnsupportedError("the table is encrypted: its files can't be searched without its keys", path=name)

    def run(self) -> Reachable:
        """List everything."""
        own: dict[str, tuple[Any, set[int]]] = {}
        for snapshot in self._java.items(self._table.snapshots()):
            for manifest in self._java.items(snapshot.allManifests(self._io)):
                own.setdefault(str(manifest.path()), (manifest, set()))[1].add(int(snapshot.snapshotId()))
        main = self._statements.refs.get("main", {}).get("snapshot-id")
        spec = int(self._table.spec().specId())
        alike = {path for path, (one, ids) in own.items() if main in ids and _is_of_data(one, spec)}
        reached: defaultdict[tuple[str, int, Kind], set[int]] = defaultdict(set)
        for path, (_, snapshots) in own.items():
            for entry, file, kind in self._entries(path):
                removed = entry["status"] == _REMOVED
                ending = self._statements.rewriting(kind, every=removed)
                if removed and path in alike and len(alike) > 1:
                    ending = self._statements.rewriting_manifests
                self._add_bounds(path, file, self._statements.keeper(snapshots, ending))
                if not removed:
                    reached[file["file_path"], file["file_size_in_bytes"], kind] |= snapshots
        for (path, size, kind), snapshots in reached.items():
            keeper = self._statements.keeper(snapshots, self._statements.rewriting(kind))
            self._files[path] = ReachedFile(path, size, kind, keeper)
        not_looked_at = self._add_outside({without_scheme(path) for path in (*own, *self._files)})
        if blobs := len(self._metadata.get("statistics") or ()):
            not_looked_at.append(f"{blobs} statistics files (Puffin): sketches of distinct values have hashes only")
        listed = self._metadata.get("snapshots") or []
        return Reachable(
            location=str(self._table.location()),
            names=self._names,
            files=list(self._files.values()),
            bounds=self._bounds,
            texts=[self._summary(one) for one in listed],
            metadata_files=len(own),
            versions=tuple(one["snapshot-id"] for one in listed),
            refs=tuple(f"{ref['type']} {name}" for name, ref in self._statements.refs.items()),
            notes=_NOTES,
            not_looked_at=(*not_looked_at, *_NOT_LOOKED_AT),
            not_opened=tuple(self._others),
        )

    def _columns(self) -> tuple[tuple[ColumnNames, ...], dict[int, Leaf]]:
        """The columns that the name has or had, and the facts of their bounds."""
        mapping = (self._metadata.get("properties") or {}).get(NAME_MAPPING)
        found: dict[int | None, ColumnNames] = {}
        leaves: dict[int, Leaf] = {}
        for schema in self._metadata.get("schemas") or [self._metadata["schema"]]:
            names = column_names(schema, None if mapping is None else json.loads(mapping))
            for one in names.columns:
                if one.path == self._column:
                    found[one.field_id] = names
            leaves |= {number: leaf for number, leaf in leaves_of(schema).items() if leaf.path == self._column}
        return tuple(found.values()), leaves

    def _check_partitions(self) -> None:
        ids = {one.field_id for names in self._names for one in names.columns if one.path == self._column}
        for spec in self._metadata.get("partition-specs") or []:
            for field in spec["fields"]:
                if field.get("source-id") in ids and not field["transform"].startswith(_VALUELESS):
                    raise UnsupportedError(
                        f"the table is, or was, partitioned by {field['transform']} of {self._column}: its values are"
                        " in manifests and paths, where --reachable doesn't look",
                        path=self._name,
                    )

    def _entries(self, path: str) -> Iterator[tuple[dict[str, Any], dict[str, Any], Kind]]:
        """Yield the entries of a manifest, their files, and the files' kinds."""
        reader = self._java.type("org.apache.avro.generic.GenericDatumReader")()
        opened = self._io.newInputFile(path).newStream()
        stream = self._java.type("org.apache.avro.file.DataFileStream")(opened, reader)
        try:
            while stream.hasNext():
                entry = json.loads(stream.next().toString())
                if (file := entry.get("data_file")) is not None:
                    kind = _KINDS[file.get("content") or 0]
                    yield entry, file, Kind.VECTORS if file["file_format"].lower() == "puffin" else kind
        finally:
            stream.close()

    def _add_bounds(self, path: str, file: Mapping[str, Any], keeper: Keeper) -> None:
        """Add the column's bounds in an entry of a manifest."""
        found: defaultdict[int, dict[str, Key | None]] = defaultdict(dict)
        for end in ("lower", "upper"):
            for one in file.get(f"{end}_bounds") or ():
                if (leaf := self._leaves.get(one["key"])) is not None:
                    found[one["key"]][end] = decode(_bytes(one["value"]), leaf)
        for number, keys in found.items():
            leaf = self._leaves[number]
            if leaf.kind is not None:
                bounds = ColumnStatistics(
                    path=leaf.path, kind=leaf.kind, low=keys.get("lower"), high=keys.get("upper")
                )
                self._bounds.append(ReachedBounds(path, Kind.MANIFEST, file["file_path"], bounds, keeper))

    def _add_outside(self, known: set[str]) -> list[str]:
        """Add the files of the table's folders that no snapshot reaches. Returns what wasn't looked at."""
        properties, outside = self._metadata.get("properties") or {}, self._statements.outside
        own = (properties.get(f"write.{what}.path") for what in ("data", "metadata"))
        unlisted = []
        for folder in dict.fromkeys((str(self._table.location()), *(one for one in own if one))):
            try:
                listed = self._java.items(self._io.listPrefix(folder.rstrip("/") + "/"))
            except java_errors():
                unlisted.append(f"files in {folder} that no snapshot reaches: it can't be listed")
                continue
            for file in listed:
                path = str(file.location())
                name = path.rpartition("/")[2]
                if name.startswith(_LIST) or name.endswith(_WITHOUT_VALUES) or without_scheme(path) in known:
                    continue
                known.add(without_scheme(path))
                if name.startswith(".") or not name.endswith(_ROWS):
                    self._others.append(path)
                elif path.endswith(".avro") and "/metadata/" in path:
                    for _, found, _ in self._entries(path):
                        self._add_bounds(path, found, outside)
                else:
                    self._files[path] = ReachedFile(path, int(file.size()), Kind.OUTSIDE, outside)
        return unlisted

    def _summary(self, snapshot: Mapping[str, Any]) -> ReachedText:
        keeper = self._statements.keeper([snapshot["snapshot-id"]], self._statements.rewriting(Kind.DATA, every=True))
        text = json.dumps(snapshot.get("summary") or {}, ensure_ascii=False)
        return ReachedText(f"snapshot {snapshot['snapshot-id']}", text, keeper)


def _is_of_data(manifest: Any, spec: int) -> bool:
    """Whether `rewrite_manifests` rewrites a manifest, if it isn't the only one."""
    return str(manifest.content().name()) == "DATA" and int(manifest.partitionSpecId()) == spec


def _bytes(value: Any) -> bytes:
    """Bytes in Avro's JSON, which some of its versions have in an object."""
    text: str = value["bytes"] if isinstance(value, dict) else value
    return text.encode("latin-1")
