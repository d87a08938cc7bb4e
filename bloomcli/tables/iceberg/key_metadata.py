"""Reads the key metadata that an encrypted Iceberg table has for each of its files.

    0x01 | Avro: encryption_key bytes | aad_prefix null or bytes | file_length null or long

A data file in Parquet has one key for its footer and all columns, and doesn't store the AAD prefix.

Source: Iceberg's StandardKeyMetadata.
"""

from __future__ import annotations

from typing import Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError

_VERSION: Final = 1
_KEY_SIZES: Final = (16, 24, 32)


def read_key(metadata: bytes) -> tuple[bytes, bytes | None]:
    """The key and the AAD prefix.

    Raises UnsupportedError: the metadata are of another version, or of another EncryptionManager.
    """
    try:
        if metadata[0] != _VERSION:
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
