"""Paths as other programs want them: below the working folder, or as URI references (RFC 3986)."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import join, normpath
from typing import Final
from urllib.parse import quote

from bloomcli.storage.listing import is_uri, local_path

_PATH_SAFE: Final = "/@!$&'()*+,;=~"
"""What may stand in any segment of a path as it is; a colon in the first one would look like a scheme."""

_URI_SAFE: Final = _PATH_SAFE + ":?%"
"""A URI that a person typed is taken to be encoded already."""

_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def below(path: str, folder: str | None = None) -> str | None:
    """A local path relative to the working folder (or `folder`); None where it lies elsewhere.

    Only the text of the path is looked at: links are not followed, nothing needs to be there.
    """
    base = folder if folder is not None else str(Path.cwd())
    whole = normpath(join(base, local_path(path)))
    start = base.rstrip("/") + "/"
    return whole[len(start) :] if whole.startswith(start) else None


def uri_reference(path: str, folder: str | None = None) -> tuple[str, bool]:
    """The path as a URI reference, and whether it is relative to the working folder (or `folder`).

    A name's bytes that are no text are encoded as they are; so is a percent sign of a local name.
    """
    if is_uri(path):
        return quote(_bytes(_LONE_PERCENT.sub("%25", path)), safe=_URI_SAFE), False
    relative = below(path, folder)
    if relative is not None:
        return quote(_bytes(relative), safe=_PATH_SAFE), True
    base = folder if folder is not None else str(Path.cwd())
    whole = normpath(join(base, local_path(path)))
    return "file:///" + quote(_bytes(whole.lstrip("/")), safe=_PATH_SAFE), False


def _bytes(path: str) -> bytes:
    """A file name's bytes; a surrogate that stands for no byte (a name from elsewhere) is kept as it is."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")
