"""Refuses Iceberg tables whose files can't be replaced without loss."""

from __future__ import annotations

from typing import Any, Final

from bloomcli.errors import UnsupportedError, UsageError

VERSIONS: Final = (1, 2, 3)
WITH_ROW_IDS: Final = 3
"""The first format version with row ids."""
_READ_ONLY: Final = ("StaticTableOperations",)
ENCRYPTION_KEY: Final = "encryption.key-id"
PLAINTEXT: Final = "PlaintextEncryptionManager"
STANDARD: Final = "StandardEncryptionManager"


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
    named, found = table.properties().get(ENCRYPTION_KEY) is not None, manager(table)
    if named and found == PLAINTEXT:
        raise UnsupportedError(
            f"the table is encrypted by its property {ENCRYPTION_KEY}, and its catalog has no keys",
            path=name,
            hint="in Iceberg 1.12, Hive's catalogs have keys: with encryption.kms-type or encryption.kms-impl",
        )
    if found not in {PLAINTEXT, STANDARD}:
        raise UnsupportedError(f"the table is encrypted by its own {found}", path=name)
    operations = str(table.operations().getClass().getSimpleName())
    if operations in _READ_ONLY:
        raise UnsupportedError("the catalog only reads this table", path=name)


def manager(table: Any) -> str:
    """The class of the table's EncryptionManager."""
    return str(table.encryption().getClass().getSimpleName())


def format_version(table: Any) -> int:
    """A table's format version."""
    return int(table.operations().current().formatVersion())
