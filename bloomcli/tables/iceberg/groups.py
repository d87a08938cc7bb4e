"""Groups data files that one rewrite can replace: Iceberg gives all of them one data sequence number.

An equality delete applies to data files with a smaller number than its own, a position delete to those with the same
or a smaller one. So files can share the smallest of their numbers if no equality delete has a number between
them: the same deletes still apply to each file. Without equality deletes, all files of a commit form one group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, TypeVar

from bloomcli.tables.iceberg.java import Java

T = TypeVar("T")


class EqualityNumbers:
    """The data sequence numbers of a snapshot's equality deletes, read from its manifests on first use."""

    def __init__(self, java: Java, table: Any) -> None:
        self._java = java
        self._table = table
        self._of: tuple[int, list[int]] | None = None

    def of(self, snapshot_id: int) -> list[int]:
        """The numbers, ascending."""
        if self._of is None or self._of[0] != snapshot_id:
            self._of = snapshot_id, self._read(snapshot_id)
        return self._of[1]

    def _read(self, snapshot_id: int) -> list[int]:
        io, found = self._table.io(), set()
        for manifest in self._java.items(self._table.snapshot(snapshot_id).deleteManifests(io)):
            reader = self._java.iceberg("ManifestFiles").readDeleteManifest(manifest, io, self._table.specs())
            try:
                files = reader.iterator()
                while files.hasNext():
                    file = files.next()  # the reader may reuse the object
                    if file.content().name() == "EQUALITY_DELETES":
                        found.add(int(file.dataSequenceNumber()))
            finally:
                reader.close()
        return sorted(found)


def grouped(items: Iterable[tuple[int, T]], numbers: Iterable[int]) -> list[tuple[int, list[T]]]:
    """Group items that can be rewritten together. Each group has the data sequence number to set, and its items.

    Args:
        items: each with the data sequence number of its data file.
        numbers: the equality deletes' numbers, ascending.
    """
    bounds = list(numbers)
    groups: dict[int, list[tuple[int, T]]] = {}
    for number, item in items:
        groups.setdefault(bisect_right(bounds, number), []).append((number, item))
    return [(min(number for number, _ in group), [item for _, item in group]) for _, group in sorted(groups.items())]
