"""Packages that only some commands need, and that bloom's extras install."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from bloomcli.errors import UnsupportedError


def install(extra: str, package: str = "") -> str:
    """The command that installs the packages of an extra, as the installed metadata of bloomcli name them.

    The name ``bloomcli[extra]`` would need an index that has bloomcli. It is used only if there are no metadata.

    Args:
        extra: bloomcli's extra.
        package: one of its packages, to install that alone; by default all.
    """
    from importlib import metadata

    try:
        found = metadata.requires("bloomcli") or []
    except metadata.PackageNotFoundError:
        found = []
    of_extra = re.compile(rf"""(?P<requirement>{package}[^;]*);\s*extra\s*==\s*["']{extra}["']""")
    names = [match["requirement"].strip() for one in found if (match := of_extra.fullmatch(one))]
    return shlex.join(["pip", "install", *(names or [f"bloomcli[{extra}]"])])


@contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Convert the ImportError for a missing package to an UnsupportedError that names the extra.

    Args:
        what: the beginning of the sentence: "Azure's blobs need".
        extra: bloomcli's extra that installs the package.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").startswith("bloomcli"):
            raise
        raise UnsupportedError(f"{what} packages that aren't installed ({error.name})", hint=install(extra)) from None
