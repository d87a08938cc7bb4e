"""The data files of a Paimon table, and where their indexes lie: ``snapshot/`` -> manifest lists -> manifests.

An entry of a manifest adds a data file or deletes one. It names the file's index among its extra files, or contains
the index; it names the schema of the file's columns, too. Sources: Paimon's specification, DataFileMeta, FileEntry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import Any, Final, NamedTuple

from bloomcli.errors import CorruptFile
from bloomcli.storage import table_files
from bloomcli.storage.base import Kind
from bloomcli.storage.lookups import once_per_run, one_call
from bloomcli.storage.managed_tables import PAIMON_FOLDERS
from bloomcli.storage.registry import store_of

_LEVELS: Final = 16
_BUCKET: Final = re.compile(r"bucket-(?:\d+|postpone)")
_SNAPSHOT: Final = re.compile(r"snapshot-(\d{1,19})")
_FOLDERS: Final = dict.fromkeys(PAIMON_FOLDERS, Kind.DIRECTORY)
_SUFFIX: Final = ".index"
_ADD: Final = 0


class Schema(NamedTuple):
    """A schema of the table."""

    types: Mapping[str, Any] = MappingProxyType({})
    """The type that it declares for each column."""
    options: Mapping[str, Any] = MappingProxyType({})


class DataFile(NamedTuple):
    """A data file of the newest snapshot."""

    schema: Schema
    """The schema that the file was written with."""
    index_names: tuple[str, ...]
    """The names of its index files, beside it. Readers fail if there are several."""
    embedded: bytes | None
    """The index in the manifest."""
    manifest: str
    """The manifest."""


class _Entry(NamedTuple):
    schema: int
    extra: tuple[str, ...]
    embedded: bytes | None
    manifest: str


def is_bucket(directory: str) -> bool:
    """Whether a directory may have data files, by its name: ``bucket-0`` and so on."""
    return _BUCKET.fullmatch(directory.rstrip("/").rpartition("/")[2]) is not None


def table_of(path: str) -> str | None:
    """The directory of the Paimon table above a data file; None without one. Raises UnreadableError."""
    above = store_of(path).directories_above(path, _LEVELS)
    return next((directory for directory in above if not is_bucket(directory) and _is_table(directory)), None)


@once_per_run
def _is_table(directory: str) -> bool:
    return len(store_of(directory).existing(directory, _FOLDERS)) == len(_FOLDERS)


@once_per_run
def _newest(table: str) -> tuple[str, ...] | None:
    """The manifest lists of the newest snapshot; None without one."""
    store = store_of(table)
    folder = store.join(table, "snapshot")
    numbers = [int(match[1]) for name in store.names(folder) if (match := _SNAPSHOT.fullmatch(name))]
    if not numbers:
        return None
    snapshot = store.join(folder, f"snapshot-{max(numbers)}")
    metadata = table_files.read_object(snapshot)
    base, delta = metadata.get("baseManifestList"), metadata.get("deltaManifestList")
    if not isinstance(base, str) or not isinstance(delta, str):
        raise CorruptFile("the snapshot doesn't name its manifest lists", path=snapshot)
    return base, delta


def data_file(path: str) -> DataFile | None:
    """The facts about a data file in the newest snapshot of its table; None if there is no table, or its snapshot
    doesn't have the file.

    Raises:
        CorruptFile: the table's metadata are damaged.
        UnreadableError: they can't be read.
        UnsupportedError: fastavro isn't installed.
    """
    store, table = store_of(path), table_of(path)
    lists = None if table is None else _newest(table)
    if table is None or lists is None:
        return None
    if not store.remote:  # it may be named from within its directory, or by a link to that
        path = store.spelling()(store.normal(path))
    bucket = store.directory(path).rstrip("/").rpartition("/")[2]
    entry = _entries(table, lists).get((bucket, path.rpartition("/")[2]))
    if entry is None:
        return None
    names = tuple(name for name in entry.extra if name.endswith(_SUFFIX))
    if any("/" in name or "\\" in name or "\0" in name for name in names):
        raise CorruptFile("the name of an index file isn't a name", path=entry.manifest, field="_EXTRA_FILES")
    return DataFile(_schema(table, entry.schema), names, entry.embedded, entry.manifest)


@one_call(4)
def _entries(table: str, lists: tuple[str, ...]) -> Mapping[tuple[str, str], _Entry]:
    """The data files by directory and name. Manifest lists are never changed, so that many files share the result."""
    files: dict[tuple[Any, ...], tuple[tuple[str, str], _Entry]] = {}
    folder = store_of(table).join(table, "manifest")
    for listing in lists:
        for listed in _records(folder, listing):
            name = _field(listed, "_FILE_NAME", str, listing)
            for record in _records(folder, name):
                facts = _field(record, "_FILE", dict, name)
                extra = tuple(map(str, _field(facts, "_EXTRA_FILES", list, name)))
                embedded = _field(facts, "_EMBEDDED_FILE_INDEX", bytes | None, name)
                entry = _Entry(
                    _field(facts, "_SCHEMA_ID", int, name), extra, embedded, store_of(table).join(folder, name)
                )
                bucket = _field(record, "_BUCKET", int, name)
                place = (
                    f"bucket-{bucket}" if bucket >= 0 else "bucket-postpone",
                    _field(facts, "_FILE_NAME", str, name),
                )
                key = (place, record.get("_PARTITION"), facts.get("_LEVEL"), extra, embedded)
                if _field(record, "_KIND", int, name) == _ADD:
                    files[key] = place, entry
                else:
                    files.pop(key, None)
    return dict(files.values())


@one_call(64)
def _schema(table: str, number: int) -> Schema:
    """A schema, which is never changed."""
    store = store_of(table)
    path = store.join(store.join(table, "schema"), f"schema-{number}")
    metadata = table_files.read_object(path)
    fields, options = metadata.get("fields"), metadata.get("options", {})
    if not isinstance(options, dict) or not isinstance(fields, list):
        raise CorruptFile("the schema has no list of fields, or no options", path=path)
    if not all(isinstance(field, dict) and "name" in field for field in fields):
        raise CorruptFile("a field of the schema has no name", path=path)
    return Schema({str(field["name"]): field.get("type") for field in fields}, options)


def _records(folder: str, name: str) -> Iterator[dict[str, Any]]:
    if "/" in name or "\0" in name:
        raise CorruptFile(f"the name of a manifest isn't a name: {name}", path=folder)
    yield from table_files.records(store_of(folder).join(folder, name), "Paimon's manifests need", "avro")[1]


def _field(record: Mapping[str, Any], name: str, kind: type | UnionType, path: str) -> Any:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise CorruptFile(f"a manifest without {name}", path=path, field=name)
    return value
