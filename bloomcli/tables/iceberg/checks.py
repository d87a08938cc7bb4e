"""What makes an Iceberg table one whose files can't be replaced, or not without loss."""

from __future__ import annotations

from typing import Any, Final

from bloomcli.errors import UnsupportedError, UsageError

_VERSIONS: Final = (1, 2, 3)
WITH_ROW_IDS: Final = 3
"""The first format version that numbers rows."""
_READ_ONLY: Final = ("StaticTableOperations",)
_KEY: Final = "encryption.key-id"


def check_changes(table: Any, name: str, *, fixed: int | None) -> None:
    """Raise an error that names what keeps files from being replaced.

    Args:
        table: Iceberg's Table.
        name: the table's, for errors.
        fixed: the id of the snapshot that the table was opened at, where it isn't the newest of a branch.

    Raises:
        UsageError: the table was opened at an older snapshot or a tag.
        UnsupportedError: a format version, encryption, or a catalog that can't commit.
    """
    if fixed is not None:
        raise UsageError("an older snapshot or a tag can't be changed", path=name, hint="name the table or a branch")
    version = format_version(table)
    if version not in _VERSIONS:
        raise UnsupportedError(f"Iceberg format version {version}: bloom knows versions 1 to 3", path=name)
    manager = str(table.encryption().getClass().getSimpleName())
    if manager != "PlaintextEncryptionManager" or table.properties().get(_KEY) is not None:
        raise UnsupportedError("the table is encrypted: its files can't be copied without its keys", path=name)
    operations = str(table.operations().getClass().getSimpleName())
    if operations in _READ_ONLY:
        raise UnsupportedError("the catalog only reads this table", path=name)


def check_file(file: Any, path: str) -> None:
    """Raise UnsupportedError for a data file that is encrypted."""
    if file.keyMetadata() is not None:
        raise UnsupportedError("the data file is encrypted: the table's metadata hold a key for it", path=path)


def format_version(table: Any) -> int:
    """A table's format version."""
    return int(table.operations().current().formatVersion())
