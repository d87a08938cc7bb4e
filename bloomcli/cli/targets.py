"""The file of this machine that a command writes its result to instead of standard output (``-o FILE``)."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bloomcli.cli import grouped
from bloomcli.cli.options import Output
from bloomcli.commands.option import OUTPUT
from bloomcli.errors import UsageError, WriteError
from bloomcli.model.paths import shown
from bloomcli.storage.base import output_exists
from bloomcli.storage.names import is_uri

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
    from bloomcli.cli.reports import is_stream

    if os.path.lexists(target) and not is_stream(target):
        raise output_exists(target, hint=_ANOTHER)


def _copying(target: str) -> str:
    """The hint how to copy the output to a store."""
    target = shown(target)
    scheme, _, name = target.rpartition("/")
    file = shlex.quote(name.removesuffix("?...") or "hits")
    copy = {"s3": "aws s3 cp", "s3a": "aws s3 cp", "gs": "gcloud storage cp"}.get(scheme.partition(":")[0])
    if copy is None:
        return f"write it with -o {file}, and copy it there"
    place = shlex.quote(target.replace("s3a://", "s3://", 1))
    return f"write it with -o {file}; `{copy} {file} {place}` copies it there"


@contextlib.contextmanager
def new_output(target: str | None, *, binary: bool) -> Iterator[Any]:
    """Standard output, a device or a pipe, or a new file that gets its name when it is complete. Raises UsageError,
    WriteError."""
    if target is None:
        yield sys.stdout
        return
    from bloomcli.cli.reports import is_stream, open_stream
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
