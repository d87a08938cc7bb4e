"""Reads the JSON files of a table's metadata, which may be packed by gzip."""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from bloomcli.errors import CorruptFile
from bloomcli.storage.registry import open_source

_MOST: Final = 1 << 30
"""The largest file, and what it may unpack to, in bytes."""


def read_object(path: str) -> dict[str, Any]:
    """The object in a file. Raises CorruptFile, UnreadableError."""
    with open_source(path) as source:
        data = source.read_at(0, min(source.size, _MOST))
    try:
        if data[:2] == b"\x1f\x8b":
            unpacked = zlib.decompressobj(wbits=31)
            data = unpacked.decompress(data, _MOST)
            if not unpacked.eof:
                raise ValueError("it is cut off, or unpacks to more than 1 GiB")
        found = json.loads(data)
        if not isinstance(found, dict):
            raise TypeError("it isn't an object")
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        raise CorruptFile(f"the table's metadata can't be read: {error}", path=path) from None
    return found
