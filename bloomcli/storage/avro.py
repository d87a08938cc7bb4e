"""Avro files of tables' metadata, such as manifests. fastavro decodes them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import BloomError, CorruptFile

if TYPE_CHECKING:
    from typing import BinaryIO

_PACKED_MOST: Final = 1032
"""A byte of deflated data unpacks to at most this number of bytes; a record without fields needs none."""
_BLOCK_MOST: Final = 1 << 30
"""The largest block that zstd may unpack to."""


def records(data: bytes, path: str) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
    """The schema and the records of an Avro file.

    Args:
        data: the file's bytes.
        path: the file, for errors.

    Raises:
        CorruptFile: the file is damaged.
        ImportError: fastavro isn't installed (see `extras.needed`).
    """
    import fastavro
    from fastavro.read import BLOCK_READERS

    BLOCK_READERS["zstandard"] = _unpacked  # fastavro needs a package for it that bloom doesn't
    try:
        reader = fastavro.reader(io.BytesIO(data))
        schema: Any = reader.writer_schema
        most = len(data) * _PACKED_MOST
        rows: list[Any] = list(islice(reader, most))
        if len(rows) == most:
            raise ValueError("it has more records than its bytes can have")
    except Exception as error:
        if isinstance(error, BloomError | MemoryError):
            raise
        said = " ".join(str(error).split())[:200]
        raise CorruptFile(f"the manifest can't be read: {said}", path=path) from None
    return schema, rows


def _unpacked(file: BinaryIO) -> BinaryIO:
    """A block that zstd compressed."""
    import fastavro
    import zstandard

    packed: Any = fastavro.schemaless_reader(file, "bytes", None)
    with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        data = stream.read(_BLOCK_MOST)
        if len(data) == _BLOCK_MOST:
            raise ValueError("a block unpacks to 1 GiB or more")
    return io.BytesIO(data)
