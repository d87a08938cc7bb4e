"""The delete files that apply to data files, as Iceberg plans a scan: before a commit, in it, and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from bloomcli.tables.iceberg.java import ICEBERG, Java
from bloomcli.tables.iceberg.methods import GUAVA, Methods
from bloomcli.tables.iceberg.scans import Tasks

_FILE: Final = f"{ICEBERG}.ContentFile"
_TASK: Final = f"{ICEBERG}.FileScanTask"
_LIST: Final = "java.util.List"


class AppliedDelete(NamedTuple):
    """A delete file, or a deletion vector in a file, that applies to a data file."""

    location: str
    offset: str
    """Where a deletion vector starts in the file; empty for delete files."""
    is_equality: bool
    sequence: int
    """The data sequence number."""


class Applied:
    """The delete files that apply to each of some data files.

    Attributes:
        of: the delete files of each task, in the tasks' order.
    """

    def __init__(self, java: Java, tasks: Iterable[Any]) -> None:
        """`tasks` are Iceberg's FileScanTasks."""
        methods = Methods(java)
        listed = java.type("java.util.ArrayList")()
        for task in tasks:
            listed.add(task)
        lists = methods.unbound(_TASK, "deletes", _LIST)
        size = methods.then(lists, methods.unbound(_LIST, "size", "int"))
        sizes = [int(text) for text in methods.texts(listed, size)]
        each = java.type(f"{GUAVA}.collect.Lists").transform(
            listed, methods.as_interface(f"{GUAVA}.base.Function", lists)
        )
        self._files = java.type(f"{GUAVA}.collect.Lists").newArrayList(
            java.type(f"{GUAVA}.collect.Iterables").concat(each)
        )
        facts = zip(
            methods.texts(self._files, methods.unbound(_FILE, "location", "java.lang.String")),
            methods.texts(self._files, methods.unbound(f"{ICEBERG}.DeleteFile", "contentOffset", "java.lang.Long")),
            methods.texts(self._files, methods.unbound(_FILE, "content", f"{ICEBERG}.FileContent")),
            methods.texts(self._files, methods.unbound(_FILE, "dataSequenceNumber", "java.lang.Long")),
            strict=True,
        )
        found = (
            AppliedDelete(location, offset, content == "EQUALITY_DELETES", int(sequence))
            for location, offset, content, sequence in facts
        )
        self.of = [list(islice(found, number)) for number in sizes]

    def equality_files(self) -> Iterator[tuple[AppliedDelete, Any]]:
        """Yield each equality delete file once, with Iceberg's DeleteFile."""
        seen = set()
        for index, one in enumerate(one for deletes in self.of for one in deletes):
            if one.is_equality and one.location not in seen:
                seen.add(one.location)
                yield one, self._files.get(index)


def applied_in(java: Java, table: Any, snapshot_id: int, paths: Iterable[str]) -> dict[str, list[AppliedDelete]]:
    """The delete files that apply to data files in a snapshot, by the data files' paths.

    Args:
        java: the Java of the session.
        table: an ``org.apache.iceberg.Table``.
        snapshot_id: the snapshot.
        paths: the data files. Those that the snapshot doesn't have are left out.
    """
    tasks = Tasks.planned(java, table.newScan().useSnapshot(snapshot_id))
    wanted = set(paths)
    chosen = [(path, index) for index, path in enumerate(tasks.paths()) if path in wanted]
    found = Applied(java, (tasks.java_list.get(index) for _, index in chosen))
    return dict(zip((path for path, _ in chosen), found.of, strict=True))


def has_deletes(table: Any, snapshot_id: int) -> bool:
    """Whether a snapshot has delete files."""
    return not table.snapshot(snapshot_id).deleteManifests(table.io()).isEmpty()
