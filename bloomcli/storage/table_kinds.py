"""The kinds of tables whose metadata describe other files, and how a listing shows them."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

ICEBERG_METADATA: Final = (".metadata.json", ".metadata.json.gz")
"""Suffixes of Iceberg's metadata files. Old releases wrote compressed ones with the second (TableMetadataParser)."""


class TableKind(Enum):
    """The kinds of metadata that describe other files. A value is the name of a kind in texts."""

    DELTA = "a Delta table"
    ICEBERG = "an Iceberg table"
    HUDI = "a Hudi table"
    SUMMARY = "a summary of footers"


_RECORDS: Final = {
    TableKind.DELTA: "its log records each file's size",
    TableKind.ICEBERG: "its manifests record each file's size",
    TableKind.HUDI: "its commits record each file's size",
}
"""What the metadata of each kind of table record about its files."""


class ManagedTable(NamedTuple):
    """A table, or a summary of footers, that describes the files below a directory."""

    kind: TableKind
    path: str
    """The table's directory, or the summary's file."""

    @property
    def why_not_changed(self) -> str:
        """The reason not to change one of its files in place."""
        if self.kind is TableKind.SUMMARY:
            return f"{self.path} holds copies of the footers of the files below it"
        return f"{self.path} is {self.kind.value}: {_RECORDS[self.kind]}"

    @property
    def name(self) -> str | None:
        """The table's name for ``--table``; None for a summary, and for a table that `bloom` doesn't open.

        An Iceberg table's files don't contain its name, so the result is a template for the user to fill in.
        """
        if self.kind is TableKind.DELTA:
            root = self.path.replace("`", "``")
            return f"delta.`{root}`"
        return "CATALOG.DATABASE.TABLE" if self.kind is TableKind.ICEBERG else None


def root_of_mark(path: str) -> ManagedTable | None:
    """The table of which a listing shows a file of its metadata; None for another file."""
    for mark, kind in (("/_delta_log/", TableKind.DELTA), ("/.hoodie/", TableKind.HUDI)):
        root, found, _ = path.partition(mark)
        if found:
            return ManagedTable(kind, root)
    if path.endswith(ICEBERG_METADATA):
        directory, _, _ = path.rpartition("/")
        if directory.endswith("/metadata"):
            return ManagedTable(TableKind.ICEBERG, directory.removesuffix("/metadata"))
    return None
