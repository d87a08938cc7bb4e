"""Recognises a file's format by magic bytes, and opens the file with the format's code.

The file's end is compared first, and its start only if the end has no magic: the request that opens an object also
reads its end, and reading its start takes another request.

A format is a folder next to this module with a module ``format``, whose ``FORMATS`` are its records. Other packages
add formats by entry points of the group ``bloomcli.formats``; each refers to a tuple of records. They are looked up
only if none of bloom's own formats matches, because reading the metadata of installed packages takes longer than
opening a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import CorruptFile, UnknownFormat, UnsupportedError
from bloomcli.formats.base import FilterFile, HashedValues
from bloomcli.formats.format import Format, Magic, enumerated
from bloomcli.formats.keys import Keys
from bloomcli.storage.base import Source
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.model.file import Column
    from bloomcli.model.schema import ColumnNames


def known_suffix(path: str) -> bool:
    """Whether a file's name has a known format's suffix."""
    return any(path.lower().endswith(record.suffixes) for record in formats() if record.suffixes)


def of_known_format(path: str) -> bool:
    """Whether a file has a known format, or can't be read: the task that reads it reports that fault."""
    try:
        with open_source(path) as source:
            open_file(source)
    except UnknownFormat:
        return False
    except Exception:  # noqa: BLE001  the file's own task raises it again, and reports it
        return True
    return True


def preload(paths: Iterable[str], *, writing: bool) -> None:
    """Import the code for files of these names, once, before processes are forked.

    A format that can't be imported is reported later, for each of its files.
    """
    endings = {path[path.rfind(".") :].lower() for path in paths}
    remaining = set(endings)
    for record in formats():
        if endings.isdisjoint(record.suffixes):
            continue
        for module in (record.opener.partition(":")[0], *(record.writers if writing else ())):
            with suppress(ImportError):
                import_module(module)
        remaining -= set(record.suffixes)
        if not remaining:
            return  # the formats that other packages add aren't needed


def hash_for_index(texts: pa.LargeBinaryArray, column: Column) -> HashedValues:
    """Hash values for looking them up in an index's column. Raises LiteralError."""
    record = next(record for record in own_formats() if record.indexed_values is not None)
    hashes: HashedValues = _load(record.indexed_values or "")(texts, column)
    return hashes


def open_file(source: Source, names: ColumnNames | None = None, keys: Keys | None = None) -> FilterFile:
    """Open a file by its magic bytes.

    Args:
        source: the file's bytes.
        names: column names of the table that the file belongs to. The columns get the table's paths.
        keys: the keys of encrypted files.

    Raises:
        CorruptFile: the file was cut off, or several of its columns have one of the table's field ids.
        UnknownFormat: the file has no known format.
        UnsupportedError: the format doesn't support a table's names, or they don't identify the file's columns.
    """
    file = _open_file(source, keys)
    if names is not None:
        file.use_names(names)
    return file


def _open_file(source: Source, keys: Keys | None) -> FilterFile:
    if source.size == 0:
        raise UnknownFormat(
            "the file is empty",
            path=source.path,
            offset=0,
            hint="a writer that was stopped leaves such a file; get it from its source again",
        )
    for records in (own_formats, installed_formats):
        match = _by_magic(source, records())
        if match is not None:
            record, magic = match
            return _open_by(source, record, magic, records(), keys)
        for record in records():
            if record.detector is not None and _load(record.detector)(source):
                return _open(record, source, keys)
    magic_formats = [record for record in formats() if record.magics]
    titles = [record.title for record in magic_formats]
    raise UnknownFormat(
        f"no {enumerated(titles, 'or')} file: {_missing(magic_formats)}",
        path=source.path,
        offset=max(source.size - 4, 0),
        hint=f"bloom reads {enumerated(titles, 'and')} files",
    )


def has_magic(source: Source) -> bool:
    """Whether a file, whole or not, starts or ends with a known format's magic."""
    return any(_by_magic(source, records()) is not None for records in (own_formats, installed_formats))


def _open_by(
    source: Source, record: Format, magic: Magic, records: Iterable[Format], keys: Keys | None
) -> FilterFile:
    """Open a file by a magic. If that fails, a longer magic at the file's start decides."""
    if not magic.alone:
        raise _cut_off(source, record)
    try:
        return _open(record, source, keys)
    except CorruptFile:
        first = _at(source, records, at_end=False) if magic.at < 0 else None
        if first is None or len(first[1].data) <= len(magic.data):
            raise
    return _open_by(source, *first, records, keys)


def _open(record: Format, source: Source, keys: Keys | None) -> FilterFile:
    file: FilterFile = _load(record.opener)(source, *((keys,) if record.takes_keys else ()))
    return file


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _by_magic(source: Source, records: Iterable[Format]) -> tuple[Format, Magic] | None:
    """The format whose magic is at the file's end, else the one whose magic is at its start."""
    records = tuple(records)
    return _at(source, records, at_end=True) or _at(source, records, at_end=False)


def _at(source: Source, records: Iterable[Format], *, at_end: bool) -> tuple[Format, Magic] | None:
    """The format with the longest magic that is at a file's end, or at its start."""
    pairs = [(record, m) for record in records for m in record.magics if (m.at < 0) == at_end]
    most = max((-magic.at if at_end else magic.at + len(magic.data) for _, magic in pairs), default=0)
    length = min(most, source.size)
    window = source.read_at(source.size - length if at_end else 0, length)
    for record, magic in sorted(pairs, key=lambda pair: -len(pair[1].data)):
        start = length + magic.at if at_end else magic.at
        if start >= 0 and window.startswith(magic.data, start):
            return record, magic
    return None


def _cut_off(source: Source, record: Format) -> CorruptFile:
    last = next(magic for magic in record.magics if magic.alone)
    start = max(source.size + last.at, 0)
    tail = source.read_at(start, min(len(last.data), source.size))
    return CorruptFile(
        f"a {record.title} file that was cut off: it ends in {tail!r}, not {last.data!r}",
        path=source.path,
        offset=start,
        hint="a writer that was stopped leaves such a file; get it from its source again",
    )


def _missing(records: Iterable[Format]) -> str:
    """The formats' magics that a file doesn't have, and where: ``no b'ORC' or b'PAR1' at its start or end``."""
    ends: dict[bytes, set[str]] = {}
    for record in records:
        for magic in record.magics:
            ends.setdefault(magic.data, set()).add("end" if magic.at < 0 else "start")
    by_ends: dict[str, list[str]] = {}
    for data, where in ends.items():
        by_ends.setdefault(" or ".join(sorted(where, reverse=True)), []).append(repr(data))
    return ", ".join(f"no {enumerated(magics, 'or')} at its {where}" for where, magics in by_ends.items())


ENTRY_POINTS: Final = "bloomcli.formats"
"""The group of entry points by which other packages add formats."""


@cache
def own_formats() -> tuple[Format, ...]:
    """The formats of the folders next to this module, by the folders' names."""
    home = Path(__file__).parent
    folders = sorted(file.parent.name for file in home.glob("*/format.py"))
    records = (import_module(f"{__package__}.{folder}.format").FORMATS for folder in folders)
    return tuple(chain.from_iterable(records))


@cache
def installed_formats() -> tuple[Format, ...]:
    """The formats that other packages add, in the order of their entry points' names.

    Raises UnsupportedError where an entry point doesn't lead to records.
    """
    from importlib.metadata import entry_points

    all_records: list[Format] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            records = tuple(point.load())
        except (ImportError, AttributeError, TypeError) as error:
            raise UnsupportedError(
                f"the format {point.name!r}, which another package adds as {point.value}, can't be loaded: {error}",
                hint="install that package again, or uninstall it",
            ) from error
        if not all(isinstance(record, Format) for record in records):
            raise UnsupportedError(
                f"the format {point.name!r}, which another package adds as {point.value}, is not a tuple of formats",
                hint="install a release of that package for this release of bloom, or uninstall it",
            )
        all_records.extend(records)
    return tuple(all_records)


def formats() -> Iterator[Format]:
    """Every format, bloom's own first. Entry points are read after bloom's own formats are consumed."""
    yield from own_formats()
    yield from installed_formats()


def format_named(name: str) -> Format:
    """The format whose open files have this `FilterFile.format`. Raises KeyError."""
    for record in formats():
        if record.name == name:
            return record
    raise KeyError(name)
