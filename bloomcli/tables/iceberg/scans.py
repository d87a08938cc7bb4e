"""Facts about all data files of a scan, and the delete files that apply to them, before and after a commit.

Each fact takes a few calls into Java for all files, not for each file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.tables.iceberg.java import GUAVA, ICEBERG, Java, Methods

_OBJECT: Final = "java.lang.Object"
STRING: Final = "java.lang.String"
FILE: Final = f"{ICEBERG}.ContentFile"
_TASK: Final = f"{ICEBERG}.FileScanTask"
_STRUCT: Final = f"{ICEBERG}.StructLike"
_LIST: Final = "java.util.List"


class Tasks:
    """Iceberg's FileScanTasks in a Java List."""

    def __init__(self, java: Java, java_list: Any) -> None:
        self._java = java
        self._methods = Methods(java)
        self.java_list = java_list
        self._file = self._methods.unbound(_TASK, "file", FILE)

    @classmethod
    def planned(cls, java: Java, scan: Any) -> Tasks:
        """The tasks of a scan."""
        tasks = scan.planFiles()
        try:
            return cls(java, java.type(f"{GUAVA}.collect.Lists").newArrayList(tasks))
        finally:
            tasks.close()

    @classmethod
    def chosen(cls, java: Java, tasks: Iterable[Any]) -> Tasks:
        """Some tasks of a scan."""
        return cls(java, java.list_of(tasks))

    def of_files(self, handle: Any) -> list[str]:
        """The result of a handle for each data file, as text."""
        return self._methods.texts(self.java_list, self._methods.then(self._file, handle))

    def paths(self) -> list[str]:
        """Each data file's path."""
        return self._each("location", STRING)

    def sizes(self) -> list[int]:
        """Each data file's bytes."""
        return [int(text) for text in self._each("fileSizeInBytes", "long")]

    def formats(self) -> list[str]:
        """Each data file's format, such as ``parquet``."""
        return [text.lower() for text in self._each("format", f"{ICEBERG}.FileFormat")]

    def spec_ids(self) -> list[int]:
        """The id of the partition spec of each data file."""
        return [int(text) for text in self._each("specId", "int")]

    def first_row_ids(self) -> list[int | None]:
        """The id of each data file's first row; None if the table's metadata don't have it."""
        return [int(text) if text else None for text in self._each("firstRowId", "java.lang.Long")]

    def sequences(self) -> list[int | None]:
        """Each data file's data sequence number."""
        return [int(text) if text else None for text in self._each("dataSequenceNumber", "java.lang.Long")]

    def keys(self) -> list[tuple[bytes, bytes | None] | None]:
        """The key and the AAD prefix of each data file; None if the file isn't encrypted. Raises UnsupportedError."""
        methods, buffer, array = self._methods, "java.nio.ByteBuffer", "[B"
        to_array = methods.static(f"{ICEBERG}.util.ByteBuffers", "toByteArray", array, buffer)
        to_text = methods.static("java.util.Arrays", "toString", STRING, array)
        metadata = methods.unbound(FILE, "keyMetadata", buffer)
        texts = self.of_files(methods.then(metadata, methods.then(to_array, to_text)))
        contents = (json.loads(text) if text != "null" else None for text in texts)
        return [None if content is None else read_key(bytes(byte & 0xFF for byte in content)) for content in contents]

    def without_deletes(self) -> list[bool]:
        """Whether no delete file applies to each data file."""
        deletes = self._methods.unbound(_TASK, "deletes", _LIST)
        is_empty = self._methods.then(deletes, self._methods.unbound(_LIST, "isEmpty", "boolean"))
        return [text == "true" for text in self._methods.texts(self.java_list, is_empty)]

    def partitions(self, specs: Sequence[Any]) -> list[str]:
        """Each data file's partition, such as ``day=2026-11-01/region=eu``; empty in an unpartitioned spec.

        Args:
            specs: the PartitionSpec of each file.
        """
        texts = [""] * len(specs)
        for spec, own, tasks in self._by_spec(specs):
            to_path = self._methods.bound(spec, f"{ICEBERG}.PartitionSpec", "partitionToPath", STRING, _STRUCT)
            for index, text in zip(
                own, self._methods.texts(tasks, self._methods.then(self._partition, to_path)), strict=True
            ):
                texts[index] = text
        return texts

    def identities(self, specs: Sequence[Any]) -> list[dict[int, Any]]:
        """Each data file's values in the partition fields that are columns, by the columns' field ids.

        A value is parsed JSON, in the form of Iceberg's specification, "Appendix D: Single-value serialization".

        Args:
            specs: the PartitionSpec of each file.
        """
        values: list[dict[int, Any]] = [{} for _ in specs]
        for spec, own, tasks in self._by_spec(specs):
            types = self._java.items(spec.partitionType().fields())
            for position, field in enumerate(self._java.items(spec.fields())):
                if not field.transform().isIdentity():
                    continue
                to_json = self._value_to_json(position, types[position].type())
                for index, text in zip(own, self._methods.texts(tasks, to_json), strict=True):
                    values[index][int(field.sourceId())] = json.loads(text)
        return values

    def _value_to_json(self, position: int, kind: Any) -> Any:
        """A handle that returns a partition field of a task's data file as JSON."""
        get = self._methods.unbound(_STRUCT, "get", _OBJECT, "int", "java.lang.Class")
        get = self._methods.with_arguments(get, 1, position, self._methods.class_of(_OBJECT))
        to_json = self._methods.static(
            f"{ICEBERG}.SingleValueParser", "toJson", STRING, f"{ICEBERG}.types.Type", _OBJECT
        )
        value = self._methods.then(self._partition, get)
        return self._methods.then(value, to_json.bindTo(kind))

    @cached_property
    def _partition(self) -> Any:
        """A handle that returns the partition of a task's data file."""
        return self._methods.then(self._file, self._methods.unbound(FILE, "partition", _STRUCT))

    def _by_spec(self, specs: Sequence[Any]) -> Iterator[tuple[Any, list[int], Any]]:
        """Yield each spec with partition fields, the positions of its tasks, and the tasks in a Java List."""
        for spec in {id(spec): spec for spec in specs}.values():
            if not spec.isPartitioned():
                continue
            own = [index for index, other in enumerate(specs) if other is spec]
            alone = len(own) == len(specs)
            yield spec, own, self.java_list if alone else self._java.list_of(map(self.java_list.get, own))

    def _each(self, method: str, returns: str) -> list[str]:
        return self.of_files(self._methods.unbound(FILE, method, returns))


_CONTENT: Final = f"{ICEBERG}.FileContent"
_READ_AT_ONCE: Final = 20_000
"""Delete files that are read from Java at a time, unless a single data file has more."""


class AppliedDelete(NamedTuple):
    """A delete file, or a deletion vector in a file, that applies to a data file."""

    location: str
    offset: str
    """Where a deletion vector starts in the file; empty for delete files."""
    is_equality: bool
    sequence: int
    """The data sequence number."""


class Applied:
    """The delete files that apply to each of some data files, in the data files' order.

    Each iteration reads them from Java again, a part at a time: a thousand data files may have a thousand equality
    deletes each.
    """

    def __init__(self, java: Java, tasks: Iterable[Any]) -> None:
        """`tasks` are Iceberg's FileScanTasks."""
        self._methods = Methods(java)
        self._lists = java.type(f"{GUAVA}.collect.Lists")
        self._iterables = java.type(f"{GUAVA}.collect.Iterables")
        self._tasks = java.list_of(tasks)
        self._deletes = self._methods.unbound(_TASK, "deletes", _LIST)
        size = self._methods.then(self._deletes, self._methods.unbound(_LIST, "size", "int"))
        self._sizes = [int(text) for text in self._methods.texts(self._tasks, size)]

    def __bool__(self) -> bool:
        """Whether any delete file applies."""
        return any(self._sizes)

    def __iter__(self) -> Iterator[list[AppliedDelete]]:
        """Yield the delete files of each data file."""
        for _, each in self._parts():
            yield from each

    def equality_files(self) -> Iterator[tuple[AppliedDelete, Any]]:
        """Yield each equality delete file once, with Iceberg's DeleteFile."""
        locations = set()
        for files, each in self._parts():
            for index, delete in enumerate(chain.from_iterable(each)):
                if delete.is_equality and delete.location not in locations:
                    locations.add(delete.location)
                    yield delete, files.get(index)

    def _parts(self) -> Iterator[tuple[Any, list[list[AppliedDelete]]]]:
        """Yield the delete files of some of the data files at a time: a Java List of all, and a list for each."""
        kind, methods = f"{ICEBERG}.DeleteFile", self._methods
        get = methods.as_interface(f"{GUAVA}.base.Function", self._deletes)
        for start, end in self._bounds():
            lists = self._lists.transform(self._tasks.subList(start, end), get)
            files = self._lists.newArrayList(self._iterables.concat(lists))
            facts = zip(
                methods.texts(files, methods.unbound(FILE, "location", "java.lang.String")),
                methods.texts(files, methods.unbound(kind, "contentOffset", "java.lang.Long")),
                methods.texts(files, methods.unbound(FILE, "content", _CONTENT)),
                methods.texts(files, methods.unbound(FILE, "dataSequenceNumber", "java.lang.Long")),
                strict=True,
            )
            deletes = (
                AppliedDelete(location, offset, content == "EQUALITY_DELETES", int(sequence))
                for location, offset, content, sequence in facts
            )
            yield files, [list(islice(deletes, size)) for size in self._sizes[start:end]]

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of data files whose delete files are read at a time."""
        start = read = 0
        for index, size in enumerate(self._sizes):
            if index > start and read + size > _READ_AT_ONCE:
                yield start, index
                start, read = index, 0
            read += size
        if self._sizes:
            yield start, len(self._sizes)


def tasks_in(java: Java, table: Any, snapshot_id: int, paths: Iterable[str]) -> dict[str, Any]:
    """The FileScanTasks of data files in a snapshot, by path.

    Args:
        java: the Java of the session.
        table: an ``org.apache.iceberg.Table``.
        snapshot_id: the snapshot.
        paths: the data files. Those that the snapshot doesn't have are left out.
    """
    tasks = Tasks.planned(java, table.newScan().useSnapshot(snapshot_id))
    wanted = set(paths)
    return {path: tasks.java_list.get(index) for index, path in enumerate(tasks.paths()) if path in wanted}


def position_deletes(java: Java, tasks: Iterable[Any]) -> list[list[Any]]:
    """The position delete files, or the deletion vector, that apply to the data file of each FileScanTask."""
    methods = Methods(java)
    kind = java.iceberg("FileContent").POSITION_DELETES
    equals = methods.bound(kind, "java.lang.Object", "equals", "boolean", "java.lang.Object")
    content = methods.unbound(FILE, "content", _CONTENT)
    chosen = methods.then(content, methods.taking(equals, "boolean", _CONTENT))
    predicate = methods.as_interface(f"{GUAVA}.base.Predicate", chosen)
    iterables = java.type(f"{GUAVA}.collect.Iterables")
    return [java.items(iterables.filter(task.deletes(), predicate)) for task in tasks]


def has_deletes(table: Any, snapshot_id: int) -> bool:
    """Whether a snapshot has delete files."""
    return not table.snapshot(snapshot_id).deleteManifests(table.io()).isEmpty()


_KEY_VERSION: Final = 1
_KEY_SIZES: Final = (16, 24, 32)


def read_key(metadata: bytes) -> tuple[bytes, bytes | None]:
    """The key and the AAD prefix in the key metadata of a data file, which Iceberg's StandardKeyMetadata writes.

        0x01 | Avro: encryption_key bytes | aad_prefix null or bytes | file_length null or long

    A data file in Parquet has one key for its footer and all columns, and doesn't store the AAD prefix.

    Raises UnsupportedError: the metadata are of another version, or of another EncryptionManager.
    """
    try:
        if metadata[0] != _KEY_VERSION:
            raise ValueError
        key, at = _bytes(metadata, 1)
        number, at = _long(metadata, at)
        prefix = _bytes(metadata, at)[0] if number else None
        if number not in {0, 1} or len(key) not in _KEY_SIZES:
            raise ValueError
    except (IndexError, ValueError):
        raise UnsupportedError(
            "a data file's key metadata aren't those of Iceberg's standard encryption, of version 1"
        ) from None
    return key, prefix


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError
    return data[at : at + size], at + size


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Avro's long, and where it ends: a zigzag varint. Raises ValueError."""
    value, end = kernels.varint(data, at)
    return value >> 1 ^ -(value & 1), end
