"""Opens a file with the code of its format, which its magic bytes decide."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from bloomcli.errors import CorruptFile, UnknownFormat
from bloomcli.formats.base import FilterFile
from bloomcli.formats.format import Format, Magic, enumerated
from bloomcli.formats.records import formats, installed_formats, own_formats
from bloomcli.storage.base import Source


def known_suffix(path: str) -> bool:
    """Whether a file's name says that it is of a known format."""
    return any(path.lower().endswith(record.suffixes) for record in formats() if record.suffixes)


def preload(paths: Iterable[str], *, writing: bool) -> None:
    """Import what files of such names need: once, before processes are forked that each would have to.

    Formats that can't be imported are reported for each of their files.
    """
    endings = {path[path.rfind(".") :].lower() for path in paths}
    left = set(endings)
    for record in formats():
        if endings.isdisjoint(record.suffixes):
            continue
        for module in (record.opener.partition(":")[0], *(record.writers if writing else ())):
            with suppress(ImportError):
                import_module(module)
        left -= set(record.suffixes)
        if not left:
            return  # the formats that other packages add aren't needed


def open_file(source: Source) -> FilterFile:
    """Open a file by its magic bytes.

    Raises CorruptFile for a file that was cut off, UnknownFormat for one of no known format.
    """
    if source.size == 0:
        raise UnknownFormat("the file is empty", path=source.path, offset=0)
    for records in (own_formats, installed_formats):
        found = _by_magic(source, records())
        if found is not None:
            record, magic = found
            if not magic.alone:
                raise _cut_off(source, record)
            return _open(record, source)
        for record in records():
            if record.detector is not None and _load(record.detector)(source):
                return _open(record, source)
    known = [record for record in formats() if record.magics]
    titles = [record.title for record in known]
    raise UnknownFormat(
        f"no {enumerated(titles, 'or')} file: {_missing(known)}",
        path=source.path,
        offset=max(source.size - 4, 0),
        hint=f"bloom reads {enumerated(titles, 'and')} files",
    )


def has_magic(source: Source) -> bool:
    """Whether a file starts or ends as those of a known format do, whole or not."""
    return any(_by_magic(source, records()) is not None for records in (own_formats, installed_formats))


def _open(record: Format, source: Source) -> FilterFile:
    file: FilterFile = _load(record.opener)(source)
    return file


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _by_magic(source: Source, records: Iterable[Format]) -> tuple[Format, Magic] | None:
    """The format that a file's bytes show: the longest magic decides; of those as long, one at the file's end."""
    pairs = [(record, magic) for record in records for magic in record.magics]
    pairs.sort(key=lambda pair: (-len(pair[1].data), pair[1].at >= 0))
    head, tail = _window(pairs, at_end=False), _window(pairs, at_end=True)
    read: dict[bool, bytes] = {}
    for record, magic in pairs:
        at_end = magic.at < 0
        if at_end not in read:
            length = min(tail if at_end else head, source.size)
            read[at_end] = source.read_at(source.size - length if at_end else 0, length)
        window = read[at_end]
        start = len(window) + magic.at if at_end else magic.at
        if start >= 0 and window.startswith(magic.data, start):
            return record, magic
    return None


def _window(pairs: Iterable[tuple[Format, Magic]], *, at_end: bool) -> int:
    """Bytes from a file's start, or at its end, in which all magics lie."""
    sizes = (-magic.at if at_end else magic.at + len(magic.data) for _, magic in pairs if (magic.at < 0) == at_end)
    return max(sizes, default=0)


def _cut_off(source: Source, record: Format) -> CorruptFile:
    last = next(magic for magic in record.magics if magic.alone)
    start = max(source.size + last.at, 0)
    found = source.read_at(start, min(len(last.data), source.size))
    return CorruptFile(
        f"a {record.title} file that was cut off: it ends in {found!r}, not {last.data!r}",
        path=source.path,
        offset=start,
        hint="a writer that was stopped leaves such a file; get it from its source again",
    )


def _missing(records: Iterable[Format]) -> str:
    """The magics of formats and where a file lacks them: ``no b'ORC' or b'PAR1' at its start or end``."""
    ends: dict[bytes, set[str]] = {}
    for record in records:
        for magic in record.magics:
            ends.setdefault(magic.data, set()).add("end" if magic.at < 0 else "start")
    by_ends: dict[str, list[str]] = {}
    for data, where in ends.items():
        by_ends.setdefault(" or ".join(sorted(where, reverse=True)), []).append(repr(data))
    return ", ".join(f"no {enumerated(found, 'or')} at its {where}" for where, found in by_ends.items())
