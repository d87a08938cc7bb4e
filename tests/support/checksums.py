"""The expected content of Hadoop's checksum files, calculated independently of bloomcli."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Final

import google_crc32c

ALGORITHMS: Final[dict[str, Callable[[bytes], int]]] = {"CRC32": zlib.crc32, "CRC32C": google_crc32c.value}


def checksums(data: bytes, size: int, algorithm: str = "CRC32") -> bytes:
    """The content of the checksum file of `data`."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"crc\0" + struct.pack(f">I{len(parts)}I", size, *map(ALGORITHMS[algorithm], parts))
