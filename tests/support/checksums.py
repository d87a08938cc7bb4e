"""The expected content of Hadoop's checksum files, calculated independently of bloomcli."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Final


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, from its polynomial."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


ALGORITHMS: Final[dict[str, Callable[[bytes], int]]] = {"CRC32": zlib.crc32, "CRC32C": crc32c}


def checksums(data: bytes, size: int, algorithm: str = "CRC32") -> bytes:
    """The content of the checksum file of `data`."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"crc\0" + struct.pack(f">I{len(parts)}I", size, *map(ALGORITHMS[algorithm], parts))
