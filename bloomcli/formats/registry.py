"""From a file's magic bytes to its format's folder. Nothing else in bloomcli asks what format a file has."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module

from bloomcli.errors import CorruptFile, UnknownFormat
from bloomcli.formats.base import FilterFile
from bloomcli.storage.source import Source

_PARQUET = (b"PAR1", b"PARE")
_ORC = b"ORC"
_MOSAIC = b"MOSA"


_SUFFIXES = {".parquet": "parquet", ".parq": "parquet", ".pq": "parquet", ".orc": "orc", ".mosaic": "mosaic"}


def known_suffix(path: str) -> bool:
    """Whether a file's name says that it is of a format that we know."""
    return path.lower().endswith(tuple(_SUFFIXES))


def preload(paths: Iterable[str], *, writing: bool) -> None:
    """Import what files of such names need: once, before processes are forked that each would have to.

    What can't be imported is left to be told by each file.
    """
    endings = {path[path.rfind(".") :].lower() for path in paths}
    for name in sorted({_SUFFIXES[ending] for ending in endings & _SUFFIXES.keys()}):
        for module in ("file", *(["change"] if writing else [])):
            with suppress(ImportError):
                import_module(f"bloomcli.formats.{name}.{module}")


def open_file(source: Source) -> FilterFile:
    """Open a file by its last bytes. Raises CorruptFile for what is no format that we know."""
    tail = source.read_at(max(source.size - 4, 0), min(source.size, 4))
    if tail in _PARQUET:
        from bloomcli.formats.parquet.file import ParquetFile

        return ParquetFile(source)
    if tail == _MOSAIC:
        from bloomcli.formats.mosaic.file import MosaicFile

        return MosaicFile(source)
    head = source.read_at(0, min(source.size, 4))
    if head in _PARQUET:
        raise CorruptFile(
            f"a Parquet file that was cut off: it ends in {tail!r}, not b'PAR1'",
            path=source.path,
            offset=max(source.size - 4, 0),
            hint="a writer that was stopped leaves such a file; get it from its source again",
        )
    if tail[:3] == _ORC or head[:3] == _ORC:
        from bloomcli.formats.orc.file import OrcFile

        return OrcFile(source)
    if source.size:
        from bloomcli.formats.parquet.bare_filter import BareFilter, is_bare

        if is_bare(source):
            return BareFilter(source)
    if source.size == 0:
        raise UnknownFormat("the file is empty", path=source.path, offset=0)
    raise UnknownFormat(
        "neither a Parquet nor an ORC file, nor a Mosaic one: no b'PAR1' or b'ORC' at its start or end, "
        "no b'MOSA' at its end",
        path=source.path,
        offset=max(source.size - 4, 0),
        hint="bloom reads Parquet, ORC and Mosaic files",
    )
