"""Converts paths to paths relative to the working directory, and to URI references (RFC 3986)."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import join, normpath
from typing import Final
from urllib.parse import quote

from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import is_uri

_PATH_SAFE: Final = "/@!$&'()*+,;=~"
"""Characters that need no encoding in any segment of a path. A colon in the first segment would look like a
scheme."""

_URI_SAFE: Final = _PATH_SAFE + ":?%"
"""Characters that need no encoding in a URI from the command line, which is assumed to be encoded already."""

_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def relative_path(path: str, folder: str | None = None) -> str | None:
    """Return a local path relative to the working directory (or `folder`); None if the path is outside of it.

    Only the text of the path matters: links are not followed, and the file needn't exist.
    """
    base = folder if folder is not None else str(Path.cwd())
    whole = normpath(join(base, local_path(path)))
    start = base.rstrip("/") + "/"
    return whole[len(start) :] if whole.startswith(start) else None


def uri_reference(path: str, folder: str | None = None) -> tuple[str, bool]:
    """Return the path as a URI reference, and whether it is relative to the working directory (or `folder`).

    Bytes of a name that aren't text are percent-encoded, and so are percent signs in local names.
    """
    if is_uri(path):
        return quote(_bytes(_LONE_PERCENT.sub("%25", path)), safe=_URI_SAFE), False
    relative = relative_path(path, folder)
    if relative is not None:
        return quote(_bytes(relative), safe=_PATH_SAFE), True
    base = folder if folder is not None else str(Path.cwd())
    whole = normpath(join(base, local_path(path)))
    return "file:///" + quote(_bytes(whole.lstrip("/")), safe=_PATH_SAFE), False


def _bytes(path: str) -> bytes:
    """Return a file name's bytes; a surrogate that represents no byte (in a name from another system) is kept."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")
