"""The files that commands write their results to: additional reports (``--report FORM=FILE``), and a file of this
machine instead of standard output (``-o FILE``)."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, TextIO

from bloomcli.cli import grouped
from bloomcli.cli.options import Output
from bloomcli.commands.option import OUTPUT
from bloomcli.errors import BloomError, UnreadableError, UsageError, WriteError
from bloomcli.formats.registry import has_magic
from bloomcli.model.paths import shown
from bloomcli.storage.base import output_exists
from bloomcli.storage.listing import spelling
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import is_uri, usual_scheme
from bloomcli.storage.os_errors import convert_os_errors, is_directory, status
from bloomcli.storage.registry import open_source, store_of, write_file

_CHECKSUMS: Final = b"crc\0"
"""The first bytes of Hadoop's checksum files."""

_STREAMS: Final = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""Names of open streams, whatever these lead to: a file to which the shell redirects the output is appended to."""


Reports = Sequence[tuple[str, str]]
"""Values of ``--report``: forms and paths."""


def prepare(reports: Reports, others: Iterable[str | None] = ()) -> None:
    """Check, before the work starts, that the reports can be created and written. Raises: as `check`;
    UnsupportedError if the packages for a form aren't installed."""
    if any(form == "html" for form, _ in reports):
        from bloomcli.report.html import check_packages

        check_packages()
    if reports:
        check([path for _, path in reports], others)


def save_all(reports: Reports, write: Callable[[str, TextIO], None]) -> None:
    """Write the reports; `write` writes one form to a stream. Standard output is flushed first, because a report may
    fail."""
    if reports:
        sys.stdout.flush()
    for form, path in reports:
        stream = io.StringIO()
        write(form, stream)
        save(path, stream.getvalue())


@convert_os_errors()
def check(paths: Sequence[str], others: Iterable[str | None]) -> None:
    """Check, before the work starts, that the reports can be written and replace no file that isn't a report.

    Args:
        paths: the files of the reports.
        others: other files of the same run, such as its policy and baseline.

    Raises:
        UsageError: two reports go to the same file, or a report would replace a data file or another file of the run.
        WriteError: the directory doesn't exist or isn't writable.
    """
    targets = {_spelled(other) for other in others if other is not None}
    for path in paths:
        if path == "-":
            raise UsageError(
                "--report writes to files, not to standard output",
                hint="--format writes to standard output; ./- is a file of this name",
            )
        if is_stream(path):
            continue
        if is_uri(path):
            store_of(path).check_output(path, overwrite=True)
        else:
            _check_here(path)
        final = _spelled(path)
        if final in targets:
            raise UsageError(
                "the report would replace another file of this run", path=path, hint="choose another file for it"
            )
        targets.add(final)
        if _is_data(path):
            raise UsageError("the report would replace a data file", path=path, hint="choose another file for it")


def _check_here(path: str) -> None:
    folder = os.path.dirname(path) or "."  # noqa: PTH120  as the user spelled it
    exists = is_directory(folder)
    if not exists or not os.access(folder, os.W_OK | os.X_OK):
        raise WriteError(
            f"files can't be written to the directory {os.path.dirname(shown(path)) or '.'}",  # noqa: PTH120
            path=path,
            hint="check who may write to the directory" if exists else "create the directory first",
        )
    if is_directory(path):
        raise WriteError("the report can't be written: it is a directory", path=path, hint="name a file")


def _spelled(path: str) -> str:
    """The path with all links resolved, or the store's own name of an object, so that a file has one spelling."""
    return spelling()(path) if is_uri(path) else os.path.realpath(local_path(path))


def save(path: str, text: str) -> None:
    """Write a report: directly to a pipe or a device, atomically to a file."""
    data = text.encode("utf-8", "backslashreplace")
    if not is_stream(path):
        with convert_os_errors(path):
            write_file(path, data, overwrite=True)
        return
    with open_stream(path) as stream:
        stream.write(data)


@contextlib.contextmanager
def open_stream(path: str) -> Iterator[IO[bytes]]:
    """A pipe or a device, to write to. Raises WriteError, and BrokenPipeError if the pipe's reader ended."""
    try:
        with open(path, "ab") as stream:  # noqa: PTH123  a path as the user wrote it; appends to redirected output
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(error, path) from None


def unwritable(error: OSError, path: str | None = None) -> BloomError:
    """Return the error for a stream that the system can't write to."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "the disk is full; free some room, or write elsewhere" if full else "check where the output goes"
    return WriteError(f"can't be written: {(error.strerror or str(error)).lower()}", path=path, hint=hint)


def is_stream(path: str) -> bool:
    """Return whether the path is a pipe, a terminal or a device without blocks, or a name of standard output."""
    if path.startswith(_STREAMS):
        return True
    info = status(path)
    return info is not None and not any(kind(info.st_mode) for kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISBLK))


def _is_data(path: str) -> bool:
    """Whether a file has a known format, complete or truncated, or contains checksums. Such files are never
    replaced."""
    try:
        with open_source(path) as source:
            return source.read_at(0, min(source.size, len(_CHECKSUMS))) == _CHECKSUMS or has_magic(source)
    except (UnreadableError, ValueError):  # the write will report an unreadable file
        return False


_ANOTHER: Final = "name another file, or remove it"

output_option = grouped.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    type=Output(),
    help="Write there, and not to standard output.",
    group=OUTPUT,
    common=True,
)


def check_new_file(target: str) -> None:
    """Raise UsageError if the file exists, or is in a store."""
    if is_uri(target):
        raise UsageError("results are written to files of this machine", path=target, hint=_copying(target))
    if os.path.lexists(target) and not is_stream(target):
        raise output_exists(target, hint=_ANOTHER)


def _copying(target: str) -> str:
    """The hint how to copy the output to a store."""
    target = usual_scheme(shown(target))
    scheme, _, name = target.rpartition("/")
    file = shlex.quote(name.removesuffix("?...") or "hits")
    copy = {"s3": "aws s3 cp", "gs": "gcloud storage cp"}.get(scheme.partition(":")[0])
    if copy is None:
        return f"write it with -o {file}, and copy it there"
    return f"write it with -o {file}; `{copy} {file} {shlex.quote(target)}` copies it there"


@contextlib.contextmanager
def new_output(target: str | None, *, binary: bool) -> Iterator[Any]:
    """Standard output, a device or a pipe, or a new file that gets its name when it is complete. Raises UsageError,
    WriteError."""
    if target is None:
        yield sys.stdout
        return
    from bloomcli.storage.local.atomic import new_file

    if not os.path.isdir(os.path.dirname(target) or "."):  # noqa: PTH112, PTH120  text in, text out
        raise WriteError("can't be written: no such directory", path=target, hint="create the directory first")
    with open_stream(target) if is_stream(target) else new_file(Path(target), _ANOTHER) as stream:
        if binary:
            yield stream
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
        try:
            yield text
        finally:
            text.detach()  # it is flushed, and the file stays open
