"""The delete files that apply to data files, as Iceberg plans a scan: before a commit, in it, and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from bloomcli.tables.iceberg.java import ICEBERG, Java
from bloomcli.tables.iceberg.methods import GUAVA, Methods
from bloomcli.tables.iceberg.scans import Tasks

_FILE: Final = f"{ICEBERG}.ContentFile"
_TASK: Final = f"{ICEBERG}.FileScanTask"
_CONTENT: Final = f"{ICEBERG}.FileContent"
_LIST: Final = "java.util.List"
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
        self._tasks = java.type("java.util.ArrayList")()
        for task in tasks:
            self._tasks.add(task)
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
        seen = set()
        for files, each in self._parts():
            for index, one in enumerate(chain.from_iterable(each)):
                if one.is_equality and one.location not in seen:
                    seen.add(one.location)
                    yield one, files.get(index)

    def _parts(self) -> Iterator[tuple[Any, list[list[AppliedDelete]]]]:
        """Yield the delete files of some of the data files at a time: a Java List of all, and a list for each."""
        kind, methods = f"{ICEBERG}.DeleteFile", self._methods
        get = methods.as_interface(f"{GUAVA}.base.Function", self._deletes)
        for start, end in self._bounds():
            lists = self._lists.transform(self._tasks.subList(start, end), get)
            files = self._lists.newArrayList(self._iterables.concat(lists))
            facts = zip(
                methods.texts(files, methods.unbound(_FILE, "location", "java.lang.String")),
                methods.texts(files, methods.unbound(kind, "contentOffset", "java.lang.Long")),
                methods.texts(files, methods.unbound(_FILE, "content", _CONTENT)),
                methods.texts(files, methods.unbound(_FILE, "dataSequenceNumber", "java.lang.Long")),
                strict=True,
            )
            found = (
                AppliedDelete(location, offset, content == "EQUALITY_DELETES", int(sequence))
                for location, offset, content, sequence in facts
            )
            yield files, [list(islice(found, size)) for size in self._sizes[start:end]]

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
    content = methods.unbound(_FILE, "content", _CONTENT)
    chosen = methods.then(content, methods.taking(equals, "boolean", _CONTENT))
    predicate = methods.as_interface(f"{GUAVA}.base.Predicate", chosen)
    iterables = java.type(f"{GUAVA}.collect.Iterables")
    return [java.items(iterables.filter(task.deletes(), predicate)) for task in tasks]


def has_deletes(table: Any, snapshot_id: int) -> bool:
    """Whether a snapshot has delete files."""
    return not table.snapshot(snapshot_id).deleteManifests(table.io()).isEmpty()
