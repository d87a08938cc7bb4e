"""Parses paths of any store: URIs, wildcards, hidden names, lists of paths."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

_NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
_WILDCARDS: Final = frozenset("*?[")
_SAME_STORE: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
"""Schemes by which Hadoop and other programs name a store, and the usual one."""


def is_uri(path: str) -> bool:
    """Whether a path begins with a scheme other than ``file:``, as ``s3://...`` does."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.isidentifier() and len(scheme) > 1 and scheme != "file"


def usual_scheme(path: str) -> str:
    """A URI with the usual scheme of its store: ``s3://b/x`` for ``s3a://b/x``. Other paths are unchanged."""
    scheme, separator, rest = path.partition("://")
    return f"{_SAME_STORE[scheme]}{separator}{rest}" if separator and scheme in _SAME_STORE else path


def folder_of(path: str) -> str:
    """The directory of a file: an absolute path, or the part of a URI before its last slash."""
    if is_uri(path):
        return path.rpartition("/")[0]
    return os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120  Path.absolute keeps `..`


def partition_of(path: str) -> dict[str, str | None]:
    """The columns in the directories above a file, up to the first that isn't NAME=VALUE; None is null."""
    columns: dict[str, str | None] = {}
    rest = folder_of(path)
    while True:
        rest, _, directory = rest.rpartition("/")
        name, _, value = directory.partition("=")
        if not name or not value:
            return dict(reversed(columns.items()))
        columns.setdefault(decoded(name), None if value == _NULL_DIRECTORY else decoded(value))


def decoded(text: str) -> str:
    """The text of an escaped part of a directory's name."""
    raw = unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def has_wildcard(path: str) -> bool:
    """Whether a path contains a wildcard."""
    return not _WILDCARDS.isdisjoint(path)


def is_hidden(name: str) -> bool:
    """Whether listings of directories leave out a name: ``.name`` and ``_name``, but not ``_name=value``."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def read_list(lines: Iterable[str], before: Iterable[str] = ()) -> list[str]:
    """The paths of `before`, then those of a list with one path per line. Skips empty lines."""
    return [*before, *(text for line in lines if (text := line.rstrip("\r\n")))]
