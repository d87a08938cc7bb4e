"""Compares listed files with those of an index, by size, and by tag or modification time."""

from __future__ import annotations

from enum import Enum

from bloomcli.errors import BloomError
from bloomcli.index.reader import Index
from bloomcli.index.tables import Stamp
from bloomcli.model.index import IndexedFile
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import spelling
from bloomcli.storage.registry import store_of


class NoAnswer(Enum):
    """Why an index has no answer for a file."""

    UNKNOWN = "it doesn't have the file, or not with the column"
    CHANGED = "the file changed since"


class FreshnessCheck:
    """Compares listed files with an index. It caches directories: make one for each command."""

    def __init__(self, index: Index) -> None:
        self._files = index.files
        self._spell = spelling()

    def found(self, item: FileEntry) -> tuple[int, Stamp] | NoAnswer:
        """The position of a listed file in `Index.files` and its stamp, or why the index has no answer for it."""
        at = None if item.problem is not None or item.skipped else self._files.position(self._spell(item.path))
        if at is None:
            return NoAnswer.UNKNOWN
        stamp = self._files.stamp(at)
        return (at, stamp) if is_same(stamp, item) else NoAnswer.CHANGED


def is_same(indexed: IndexedFile | Stamp, item: FileEntry) -> bool:
    """Whether a listed file is the one that was indexed. Sends a request if the listing has neither time nor tag."""
    size, mtime_ns, tag = item.size, item.mtime_ns, item.tag
    if not mtime_ns and not tag:
        try:
            fingerprint = store_of(item.path).fingerprint(item.path)
        except BloomError:  # opening the file raises it
            return False
        if fingerprint is None:
            return False
        size, mtime_ns, tag = fingerprint.size, fingerprint.mtime_ns, fingerprint.tag
    if size != indexed.size or bool(tag) != bool(indexed.tag):
        return False
    return tag == indexed.tag if tag else mtime_ns == indexed.mtime_ns
