"""From a file's magic bytes to its format's folder. Nothing else in bloomcli asks what format a file has."""

from __future__ import annotations

from bloomcli.errors import CorruptFile
from bloomcli.formats.base import FilterFile
from bloomcli.source import Source

_PARQUET = (b"PAR1", b"PARE")


def open_file(source: Source) -> FilterFile:
    """Open a file by its last bytes. Raises CorruptFile for what is no format that we know."""
    tail = source.read_at(max(source.size - 4, 0), min(source.size, 4))
    if tail in _PARQUET:
        from bloomcli.formats.parquet.file import ParquetFile

        return ParquetFile(source)
    head = source.read_at(0, min(source.size, 4))
    if head in _PARQUET:
        raise CorruptFile(
            f"a Parquet file that was cut off: it ends in {tail!r}, not b'PAR1'",
            path=source.path,
            offset=max(source.size - 4, 0),
            hint="a writer that was stopped leaves such a file; get it from its source again",
        )
    if source.size == 0:
        raise CorruptFile("the file is empty", path=source.path, offset=0)
    raise CorruptFile(
        "not a Parquet file: neither its first nor its last four bytes are b'PAR1'",
        path=source.path,
        offset=max(source.size - 4, 0),
        hint="bloom reads Parquet files",
    )
