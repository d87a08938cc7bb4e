"""Reports in files beside the one on standard output: ``--report FORM=FILE``."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from bloomcli.errors import BloomError, UnreadableError, UsageError, WriteError
from bloomcli.formats.registry import has_magic
from bloomcli.storage.local.atomic import place
from bloomcli.storage.os_errors import is_directory, refused, status
from bloomcli.storage.source import open_source

_CHECKSUMS: Final = b"crc\0"
"""How Hadoop's checksum files start."""

_STREAMS: Final = ("/dev/", "/proc/self/fd/")


def check(paths: Sequence[str], others: Iterable[str | None]) -> None:
    """Tell before the work, not after it, which reports can't be written or would replace what is no report.

    Args:
        paths: where the reports are to go.
        others: other files of the same run, such as its policy and baseline.

    Raises:
        UsageError: two reports for one file, or one in the place of another file of the run or of data.
        WriteError: the folder isn't there or may not be written to.
    """
    with refused():
        _check(paths, others)


def _check(paths: Sequence[str], others: Iterable[str | None]) -> None:
    taken = {os.path.realpath(other) for other in others if other is not None}
    for path in paths:
        if _is_stream(path):
            continue
        folder = os.path.dirname(path) or "."  # noqa: PTH120  as the user spelled it
        if not is_directory(folder) or not os.access(folder, os.W_OK | os.X_OK):
            raise WriteError(
                f"reports can't be written to the folder {folder}", path=path, hint="make the folder first"
            )
        if is_directory(path):
            raise WriteError("the report can't be written: it is a directory", path=path, hint="name a file")
        final = os.path.realpath(path)
        if final in taken:
            raise UsageError(
                "the report would replace another file of this run", path=path, hint="name another file for it"
            )
        taken.add(final)
        if _is_data(path):
            raise UsageError("the report would replace a data file", path=path, hint="name another file for it")


def save(path: str, text: str) -> None:
    """Write a report: into a pipe or a device as it is, else a file that is there whole or not at all."""
    data = text.encode("utf-8", "backslashreplace")
    if not _is_stream(path):
        with refused(path):
            place(Path(path), data, overwrite=True)
        return
    try:
        with open(path, "ab") as stream:  # noqa: PTH123  as the user spelled it; behind what stands there
            stream.write(data)
    except OSError as error:
        raise unwritable(error, path) from None


def unwritable(error: OSError, path: str | None = None) -> BloomError:
    """What the system says when a stream doesn't take what is written to it."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "the disk is full; free some room, or write elsewhere" if full else "check where the output goes"
    return WriteError(f"can't be written: {(error.strerror or str(error)).lower()}", path=path, hint=hint)


def _is_stream(path: str) -> bool:
    """A pipe, a terminal, a device; standard output by its name too, wherever that goes."""
    if path.startswith(_STREAMS):
        return True
    info = status(path)
    return info is not None and not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode)


def _is_data(path: str) -> bool:
    """A file of a known format, whole or cut off, or its checksums: what looks like one is never replaced."""
    try:
        with open_source(os.path.realpath(path)) as source:
            return source.read_at(0, min(source.size, len(_CHECKSUMS))) == _CHECKSUMS or has_magic(source)
    except (UnreadableError, ValueError):  # what can't be read, the write will tell
        return False
