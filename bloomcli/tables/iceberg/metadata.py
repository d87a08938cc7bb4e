"""Reads a snapshot of an Iceberg table from its metadata files, without Spark: through bloom's own stores.

    *.metadata.json -> snapshot -> manifest list -> manifests -> data files, each with the deletes that apply to it

Sources: Iceberg's specification, "Table Metadata", "Manifests", "Scan Planning", "Delete Formats" and "Sequence
Number Inheritance". PyIceberg finds tables in the catalogs of ``~/.pyiceberg.yaml`` and of
``PYICEBERG_CATALOG__NAME__...``. Its scans aren't used, because PyIceberg 0.12 refuses equality deletes, and reads
manifests of version 3 without the places of deletion vectors.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus
from uuid import UUID

from bloomcli.concurrency.threads import Threads
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.errors import UnreadableError, UnsupportedError, UsageError, install, needed
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.storage import table_files
from bloomcli.storage.registry import open_source, store_of
from bloomcli.tables.base import DataFile, Leaf, check_place, valid
from bloomcli.tables.deleted_rows import TableRows
from bloomcli.tables.iceberg.java import ENCRYPTION_KEY, VERSIONS
from bloomcli.tables.iceberg.reading import SELECTOR, IcebergSnapshot
from bloomcli.tables.iceberg.statistics import REWRITING, call, leaves_of, statistics_of

_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_HINT: Final = "version-hint.text"
_NUMBERED: Final = re.compile(r"v?(\d+)(?:-[0-9a-fA-F-]{36})?(?:\.gz)?\.metadata\.json(?:\.gz)?")
_AT_ONCE: Final = 16
"""Manifests that are read from a store at a time."""
_DELETED: Final = 2
"""The status of a manifest's entry for a file that the snapshot no longer has."""
_ADDED: Final = 1
_DATA, _POSITION, _EQUALITY = range(3)
_PATH_ID: Final = 2147483546
"""The field id of a position delete file's `file_path`."""
_EPOCH: Final = datetime(1970, 1, 1)
_MAPS: Final = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def newest_metadata(location: str) -> str:
    """The metadata file of a table's directory: the one that ``version-hint.text`` names, or that of a later version;
    without a hint that of the greatest number.

    Raises:
        UsageError: there is none, or several have the same number.
        UnreadableError: the directory can't be listed.
    """
    store = store_of(location)
    directory = store.join(location, "metadata")
    names = list(store.names(directory))
    numbers = {name: int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))}
    if _HINT in names:
        with open_source(store.join(directory, _HINT)) as source:
            hint = source.read_at(0, source.size).decode("utf-8", "replace").strip()
        if hint in numbers:
            return store.join(directory, hint)
        if hint.isdecimal():  # a commit writes the hint last, so that it may be older than the table
            numbers = {name: number for name, number in numbers.items() if number >= int(hint)}
    newest = [name for name, number in numbers.items() if number == max(numbers.values())]
    if len(newest) != 1:
        what = "several metadata files are the newest" if newest else "no metadata file has a version"
        example = store.join(directory, min(newest, default="00001-....metadata.json"))
        raise UsageError(
            what, path=directory, hint=f"name the file of the table's current version: --table {example}"
        )
    return store.join(directory, newest[0])


def parts_of(name: str) -> list[str]:
    """The parts of a table's name, without backticks."""
    return [(match[1] or match[2]).replace("``", "`") for match in _PART.finditer(name)]


def has_catalog(name: str) -> bool:
    """Whether PyIceberg is installed, and its configuration has the catalog of a table's name."""
    parts = parts_of(name)
    if len(parts) < 3 or find_spec("pyiceberg") is None:
        return False
    from pyiceberg.utils.config import Config

    return Config().get_catalog_config(parts[0]) is not None


def metadata_location(name: str) -> str | None:
    """The metadata file of a table; None if the catalog has no such table.

    Args:
        name: ``catalog.db.table``, with a catalog of PyIceberg's configuration.

    Raises:
        UsageError: the catalog's configuration is invalid.
        UnreadableError: the catalog doesn't answer, or can't load the table.
    """
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
    from pyiceberg.utils.config import Config

    catalog, *identifier = parts_of(name)
    try:
        loaded = load_catalog(catalog, **(Config().get_catalog_config(catalog) or {}))  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001  each kind of catalog has errors of its own
        raise UsageError(f"PyIceberg can't use the catalog {catalog}: {_first_line(error)}", path=name) from None
    try:
        return str(loaded.load_table(tuple(identifier)).metadata_location)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # noqa: BLE001
        raise UnreadableError(f"the catalog can't load the table: {_first_line(error)}", path=name) from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _avro(path: str) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
    """The schema and the records of a manifest or a manifest list."""
    return table_files.records(portable(path), "Iceberg's manifests need", "iceberg")


class _File(NamedTuple):
    """An entry of a manifest."""

    facts: Mapping[str, Any]
    """The manifest's ``data_file``."""
    sequence: int
    """The data sequence number."""
    spec: int
    values: tuple[Any, ...]
    """The values of the partition, in the order of the spec's fields, in the form of JSON."""

    @property
    def path(self) -> str:
        return str(self.facts["file_path"])

    @property
    def key(self) -> tuple[int, str]:
        """The partition: files with equal keys are in the same one."""
        return self.spec, repr(self.values)

    def bound(self, name: str, number: int) -> bytes | None:
        return next((pair["value"] for pair in self.facts.get(name) or () if pair["key"] == number), None)

    @property
    def json(self) -> dict[str, Any]:
        """The entry as ContentFileParser writes it, as far as it is used."""
        facts = self.facts
        entry = {
            "spec-id": self.spec,
            "content": "equality" if facts.get("content") == _EQUALITY else "other",
            "file-path": self.path,
            "file-format": facts["file_format"],
            "file-size-in-bytes": facts["file_size_in_bytes"],
            "record-count": facts["record_count"],
            "partition": list(self.values),
            "split-offsets": facts.get("split_offsets"),
            "equality-ids": facts.get("equality_ids"),
            "content-offset": facts.get("content_offset"),
            "content-size-in-bytes": facts.get("content_size_in_bytes"),
        }
        for name in _MAPS:
            if (pairs := facts.get(name)) is not None:
                values = [pair["value"].hex() if "bounds" in name else pair["value"] for pair in pairs]
                entry[name.replace("_", "-")] = {"keys": [pair["key"] for pair in pairs], "values": values}
        return entry


class _Deletes:
    """The delete files of a snapshot, and which of them apply to a data file."""

    def __init__(self, files: Sequence[_File], unpartitioned: frozenset[int]) -> None:
        self._vectors: dict[str, list[_File]] = {}
        self._positions: dict[object, list[_File]] = {}
        """By the data file's path, or by the partition."""
        self._equalities: dict[object, list[_File]] = {}
        """By the partition; for files of all partitions if None."""
        for file in files:
            kind = file.facts["content"]
            low, high = (file.bound(name, _PATH_ID) for name in ("lower_bounds", "upper_bounds"))
            named = file.facts.get("referenced_data_file") or (
                low.decode("utf-8", "replace") if low and low == high else None
            )
            if str(file.facts["file_format"]).lower() == "puffin":
                self._vectors.setdefault(str(named), []).append(file)
            elif kind == _POSITION:
                self._positions.setdefault(named or file.key, []).append(file)
            else:
                self._equalities.setdefault(None if file.spec in unpartitioned else file.key, []).append(file)

    def of(self, file: _File) -> list[_File]:
        """The deletes that apply to a data file. A deletion vector replaces all position deletes."""
        deletes = [vector for vector in self._vectors.get(file.path, ()) if vector.sequence >= file.sequence]
        if not deletes:
            positions = (*self._positions.get(file.path, ()), *self._positions.get(file.key, ()))
            deletes = [delete for delete in positions if delete.sequence >= file.sequence]
        equalities = (*self._equalities.get(None, ()), *self._equalities.get(file.key, ()))
        return [*deletes, *(equality for equality in equalities if equality.sequence > file.sequence)]


class IcebergFiles(IcebergSnapshot):
    """An Iceberg table at one snapshot, read from a metadata file.

    Args:
        name: as `--table` takes it.
        path: the metadata file.
        ref: a branch, or a tag.
        snapshot: the snapshot's id; the newest of the branch if None.
        as_of: the snapshot that was current at this time.

    Raises:
        UsageError: the table has no such snapshot.
        UnsupportedError: a version of the format that bloom doesn't know, or an encrypted table.
        UnreadableError, CorruptFile: the file can't be read, or is damaged.
    """

    def __init__(
        self,
        name: str,
        path: str,
        *,
        ref: str | None = None,
        snapshot: int | None = None,
        as_of: datetime | None = None,
    ) -> None:
        self.name = name
        self.origin = f"the Iceberg metadata file {path}"
        self._path = path
        self._metadata = table_files.read_object(path)
        with valid("the table's metadata aren't valid", path):
            version = self._metadata["format-version"]
            if version not in VERSIONS:
                raise UnsupportedError(f"Iceberg format version {version}: bloom knows versions 1 to 3", path=name)
            if ENCRYPTION_KEY in self.properties():
                raise UnsupportedError(
                    "the table is encrypted, and only Spark gets its keys",
                    path=name,
                    hint="add --engine spark, with a session that has the table's catalog",
                )
            self._snapshot, self._fixed = self._chosen(ref, snapshot, as_of)
            self._specs: dict[int, list[dict[str, Any]]] = {}
            for spec in self._all("partition-specs", "partition-spec"):
                fields = [
                    {**field, **{key: str(field[key]) for key in ("name", "transform")}} for field in spec["fields"]
                ]
                self._specs[spec["spec-id"]] = fields
            self.names()
            self.rows_with({}, ())
            self._types  # noqa: B018  computed once, here

    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self._metadata.get("properties") or {}

    def _all(self, several: str, singular: str) -> list[dict[str, Any]]:
        """The schemas or the partition specs. Metadata of version 1 may have only one."""
        entries: list[dict[str, Any]] = self._metadata.get(several) or []
        single = self._metadata.get(singular)
        if not entries and isinstance(single, list):
            return [{"spec-id": 0, "fields": single}]
        return entries or ([] if single is None else [single])

    def _chosen(
        self, ref: str | None, snapshot: int | None, as_of: datetime | None
    ) -> tuple[dict[str, Any] | None, bool]:
        """The snapshot, and whether it is fixed: not the newest of a branch."""
        snapshots = {entry["snapshot-id"]: entry for entry in self._metadata.get("snapshots") or ()}
        wanted, fixed = snapshot, True
        if as_of is not None:
            wanted = self._at(round(as_of.timestamp() * 1000))
        elif ref is not None:
            reference = (self._metadata.get("refs") or {}).get(ref)
            if reference is None:
                names = ", ".join(self._metadata.get("refs") or {}) or "none"
                raise UsageError(f"the table has no branch or tag {ref}; it has {names}", path=self.name)
            wanted, fixed = reference["snapshot-id"], reference["type"] == "tag"
        elif snapshot is None:
            wanted, fixed = self._metadata.get("current-snapshot-id"), False
            if wanted in {None, -1}:
                return None, False
        if wanted not in snapshots:
            few = ", ".join(map(str, list(snapshots)[-3:]))
            raise UsageError(f"the table has no snapshot {wanted}", path=self.name, hint=f"the newest ones: {few}")
        return snapshots[wanted], fixed

    def _at(self, milliseconds: int) -> int:
        log = self._metadata.get("snapshot-log") or []
        ids = [entry["snapshot-id"] for entry in log if entry["timestamp-ms"] <= milliseconds]
        if not ids:
            time = _EPOCH + timedelta(milliseconds=milliseconds)
            raise UsageError(f"the table has no snapshot of {time} or before", path=self.name)
        return int(ids[-1])

    @property
    def name_in_sql(self) -> str:
        """The name, or a template if the table was named by its path."""
        return "CATALOG.DATABASE.TABLE" if os.sep in self.name and "`" not in self.name else self.name

    @property
    def version(self) -> int | None:
        """The id of the snapshot that `files` lists."""
        return None if self._snapshot is None else int(self._snapshot["snapshot-id"])

    def schema(self) -> dict[str, Any]:
        """The current schema, or that of a fixed snapshot."""
        number = self._metadata.get("current-schema-id")
        if self._fixed and self._snapshot is not None:
            number = self._snapshot.get("schema-id", number)
        schemas = self._all("schemas", "schema")
        return [schema for schema in schemas if number is None or schema.get("schema-id", number) == number][-1]

    def schemas(self) -> list[dict[str, Any]]:
        """All schemas of the table, the newest first."""
        return sorted(self._all("schemas", "schema"), key=lambda schema: -schema.get("schema-id", 0))

    @cached_property
    def _files(self) -> tuple[list[_File], list[_File]]:
        """The data files and the delete files of the snapshot."""
        if self._snapshot is None:
            return [], []
        if (listed := self._snapshot.get("manifest-list")) is not None:
            check_place(self._path, str(listed))
            manifests = _avro(str(listed))[1]
        else:
            manifests = [{"manifest_path": path} for path in self._snapshot.get("manifests") or ()]
        files: tuple[list[_File], list[_File]] = [], []
        with valid("the list of manifests isn't valid", self._path):
            paths = [str(manifest["manifest_path"]) for manifest in manifests]
            for path in paths:
                check_place(self._path, path)
        if any(manifest.get("key_metadata") is not None for manifest in manifests):
            raise UnsupportedError("a manifest is encrypted: its table's keys are needed", path=self.name)
        remote = any(store_of(portable(path)).remote for path in paths[:1])
        with Threads(_AT_ONCE if remote else 0, "bloom-iceberg") as threads:
            for path, manifest, (schema, entries) in zip(paths, manifests, threads.map(_avro, paths), strict=True):
                with valid("an entry of the manifest isn't valid", path):
                    of_partition = _partition_ids(schema)
                    for entry in entries:
                        if entry["status"] != _DELETED:
                            file = self._file(entry, manifest, of_partition)
                            check_place(self._path, file.path)
                            files[(file.facts.get("content") or _DATA) != _DATA].append(file)
        return files

    def _file(self, entry: Mapping[str, Any], manifest: Mapping[str, Any], of_partition: Mapping[int, str]) -> _File:
        facts = entry["data_file"]
        facts["file_size_in_bytes"], facts["record_count"], facts["file_format"], facts["file_path"]
        sequence = entry.get("sequence_number")
        if sequence is None:
            sequence = (manifest.get("sequence_number") or 0) if entry["status"] == _ADDED else 0
        spec = manifest.get("partition_spec_id") or 0
        partition = facts.get("partition") or {}
        values = []
        for at, field in enumerate(self._specs[spec]):
            name = of_partition.get(field.get("field-id", 1000 + at), field["name"])
            values.append(_plain(partition.get(name), self._result_type(field)))
        return _File(facts, sequence, spec, tuple(values))

    def _result_type(self, field: Mapping[str, Any]) -> str:
        """The type of a partition field's values: that of its column, or of what the transform makes of it."""
        transform = field["transform"]
        if transform == "identity" or transform.startswith("truncate"):
            return str(self._types.get(field.get("source-id", 0), ""))
        return "date" if transform == "day" else "int"

    @cached_property
    def _types(self) -> dict[int, str]:
        """The types of the leaf columns of all schemas, by field id."""
        return {number: leaf.type for schema in self.schemas()[::-1] for number, leaf in leaves_of(schema).items()}

    def listed(self, where: str | None) -> list[DataFile]:
        """The data files of the snapshot."""
        del where  # `files` chooses
        with valid("an entry of a manifest isn't valid", self._path):
            return [
                DataFile(
                    path=file.path,
                    size=file.facts["file_size_in_bytes"],
                    format=str(file.facts["file_format"]).lower(),
                    partition=self._partition(file),
                    record=file,
                )
                for file in self._files[0]
            ]

    def files(self, where: str | None = None) -> list[DataFile]:
        """The data files of the snapshot, by path: all, or those whose rows may meet a condition."""
        files = super().files()
        return files if where is None else self._meeting(where, files)

    def _meeting(self, where: str, files: Sequence[DataFile]) -> list[DataFile]:
        """The files whose rows may meet a condition."""
        with needed("--where without Spark needs", "advice"):
            from bloomcli.tables.conditions import Condition
        leaves = leaves_of(self.schema())
        condition = Condition(where, self, leaves.values())
        named = {number: leaf for number, leaf in leaves.items() if leaf.path in condition.columns}
        with valid("an entry of a manifest isn't valid", self._path):
            return [file for file in files if condition.may_be_met(self._statistics(file, named))]

    def _statistics(self, file: DataFile, leaves: Mapping[int, Leaf]) -> FileStatistics:
        """What the manifest says about a file."""
        return statistics_of(file.record.json, leaves, self._specs[file.record.spec])

    def _partition(self, file: _File) -> str:
        """A file's partition, such as ``day=2026-11-01/region=eu``."""
        pairs = zip(self._specs[file.spec], file.values, strict=True)
        return "/".join(
            f"{_encoded(field['name'])}={_encoded(_human(value, field['transform'], self._result_type(field)))}"
            for field, value in pairs
        )

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """The snapshot's columns, and the delete files and deletion vectors of its data files."""
        unpartitioned = frozenset(
            number for number, fields in self._specs.items() if all(field["transform"] == "void" for field in fields)
        )
        index = _Deletes(self._files[1], unpartitioned)
        identities = {
            file.path: {
                field["source-id"]: value
                for field, value in zip(self._specs[file.record.spec], file.record.values, strict=True)
                if field["transform"] == "identity"
            }
            for file in files
        }
        deletes = ((file.path, [d.json for d in of_file]) for file in files if (of_file := index.of(file.record)))
        with valid("the table's schemas or the entries of delete files aren't valid", self._path):
            return self.rows_with(identities, deletes)

    def statistics(self, files: Sequence[DataFile]) -> Iterator[FileStatistics]:
        """The statistics in the manifests."""
        leaves = leaves_of(self.schema())
        for file in files:
            yield replace(self._statistics(file, leaves), rewriting=call(self.name_in_sql, *REWRITING))


def open_in_catalog(name: str, snapshot: int | None, as_of: datetime | None) -> IcebergFiles:
    """Open a table of a catalog that PyIceberg knows.

    Args:
        name: ``catalog.db.table``, which may end in the selector of a snapshot.
        snapshot: the snapshot's id; the newest if None.
        as_of: read the snapshot that was current at this time.

    Raises: as `metadata_location` and `IcebergFiles`; UsageError: the catalog has no such table.
    """
    if not has_catalog(name):
        raise UsageError(
            "without Spark, a table is named by its directory, or by a catalog of PyIceberg's configuration",
            path=name,
            hint=f"name the directory; or `{install('iceberg')}` and set PYICEBERG_CATALOG__NAME__URI;"
            f" other commands than trial find it with --engine spark (`{install('spark')}`)",
        )
    location, selector = metadata_location(name), None
    if location is None:
        whole, selector = split(name)
        location = None if selector is None else metadata_location(whole)
    if location is None:
        raise UsageError("the catalog has no such table", path=name)
    return open_metadata(name, portable(location), selector, snapshot, as_of)


def split(name: str) -> tuple[str, str | None]:
    """A table's name without the selector of a snapshot at its end, and the selector."""
    table, _, last = name.rpartition(".")
    return (table, last) if table and SELECTOR.fullmatch(last) else (name, None)


def open_metadata(
    name: str, metadata: str, selector: str | None, snapshot: int | None, as_of: datetime | None
) -> IcebergFiles:
    """Open an Iceberg table at a metadata file.

    Args:
        name: the table's name.
        metadata: the metadata file.
        selector: the end of a name that selects a snapshot, as `split` returns it.
        snapshot: the snapshot's id; the newest if None.
        as_of: read the snapshot that was current at this time.

    Raises: as `IcebergFiles`; UsageError: several snapshots are named.
    """
    match = None if selector is None else SELECTOR.fullmatch(selector)
    if match is None:
        return IcebergFiles(name, metadata, snapshot=snapshot, as_of=as_of)
    if snapshot is not None or as_of is not None:
        raise UsageError("a table is read at one snapshot or branch, and several are named", path=name)
    _, ref, unit, number = match.groups()
    if ref is not None:
        return IcebergFiles(name, metadata, ref=ref)
    if unit == "snapshot_id":
        return IcebergFiles(name, metadata, snapshot=int(number))
    return IcebergFiles(name, metadata, as_of=datetime.fromtimestamp(int(number) / 1000, UTC))


def _partition_ids(schema: Mapping[str, Any]) -> dict[int, str]:
    """The names of the partition's fields in a manifest, by their field ids."""
    of_entry = {field["name"]: field["type"] for field in _fields(schema)}
    partition = {field["name"]: field["type"] for field in _fields(of_entry["data_file"])}["partition"]
    return {field["field-id"]: field["name"] for field in _fields(partition) if "field-id" in field}


def _fields(kind: Any) -> Sequence[Any]:
    """The fields of a record in an Avro schema. BigQuery writes each type as a union with null."""
    (record,) = [branch for branch in kind if branch != "null"] if isinstance(kind, list) else [kind]
    fields: Sequence[Any] = record["fields"]
    return fields


def _plain(value: Any, kind: str) -> Any:
    """A value of a partition as the specification's JSON has it ("Appendix D: Single-value serialization")."""
    if isinstance(value, int) and not isinstance(value, bool):  # without Avro's logical type
        if kind == "date":
            value = (_EPOCH + timedelta(days=value)).date()
        elif kind in {"timestamp", "timestamptz"}:
            value = _EPOCH + timedelta(microseconds=value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + ("+00:00" if kind == "timestamptz" else "")
    if isinstance(value, date | clock):
        return value.isoformat()
    if isinstance(value, bytes):
        return str(UUID(bytes=value)) if kind == "uuid" else value.hex().upper()
    return str(value) if isinstance(value, Decimal | UUID) else value


def _human(value: Any, transform: str, kind: str) -> str:
    """A partition's value as the names of directories have it: Iceberg's ``Transform.toHumanString``."""
    if value is None or transform == "void":
        return "null"
    if transform == "year":
        return f"{1970 + value:04}"
    if transform == "month":
        return f"{1970 + value // 12:04}-{value % 12 + 1:02}"
    if transform == "hour":
        return (_EPOCH + timedelta(hours=value)).strftime("%Y-%m-%d-%H")
    if kind in {"binary", "fixed"}:
        return base64.b64encode(bytes.fromhex(value)).decode()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _encoded(text: str) -> str:
    """Text as Java's URLEncoder writes it."""
    return quote_plus(text, safe="*").replace("~", "%7E")
