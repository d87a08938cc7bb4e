"""Refuses Iceberg tables whose files can't be replaced without loss."""

from __future__ import annotations

from typing import Any, Final

from bloomcli.errors import UnsupportedError, UsageError

VERSIONS: Final = (1, 2, 3)
WITH_ROW_IDS: Final = 3
"""The first format version with row ids."""
_READ_ONLY: Final = ("StaticTableOperations",)
ENCRYPTION_KEY: Final = "encryption.key-id"


def check_changes(table: Any, name: str, *, fixed: int | None) -> None:
    """Raise an error that names the reason why files can't be replaced.

    Args:
        table: Iceberg's Table.
        name: the table's name, for errors.
        fixed: the id of the snapshot that the table was opened at; None: the newest of a branch.

    Raises:
        UsageError: the table was opened at an older snapshot or a tag.
        UnsupportedError: the format version, encryption, or a read-only catalog.
    """
    if fixed is not None:
        raise UsageError("an older snapshot or a tag can't be changed", path=name, hint="name the table or a branch")
    version = format_version(table)
    if version not in VERSIONS:
        raise UnsupportedError(f"Iceberg format version {version}: bloom knows versions 1 to 3", path=name)
    manager = str(table.encryption().getClass().getSimpleName())
    if manager != "PlaintextEncryptionManager" or table.properties().get(ENCRYPTION_KEY) is not None:
        raise UnsupportedError("the table is encrypted: its files can't be copied without its keys", path=name)
    operations = str(table.operations().getClass().getSimpleName())
    if operations in _READ_ONLY:
        raise UnsupportedError("the catalog only reads this table", path=name)


def check_file(file: Any, path: str) -> None:
    """Raise UnsupportedError for an encrypted data file."""
    if file.keyMetadata() is not None:
        raise UnsupportedError("the data file is encrypted: the table's metadata hold a key for it", path=path)


def format_version(table: Any) -> int:
    """A table's format version."""
    return int(table.operations().current().formatVersion())
