"""Files that mustn't change in place, because something else records their length or copies their footer.

Delta      _delta_log/ beside or above          each add action has the file's size
Iceberg    metadata/*.metadata.json above       manifests have file_size_in_bytes and split offsets
Hudi       .hoodie/ above                       commit metadata has the file's size
_metadata  beside or above                      a summary file copies the footers of the files below

Above means: above the path as it was named, above what it leads to, and above each link on the way. A summary called
_common_metadata holds the schema only, which doesn't change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bloomcli.errors import UnreadableError
from bloomcli.storage.os_errors import is_directory, is_file, is_link
from bloomcli.storage.os_errors import reason as told

_LEVELS: Final = 16
"""How far up a table's root is looked for: partitions don't nest deeper."""

_NAMES: Final = 40
"""Names of one file that are looked at, at most; the system follows as many links."""

_ICEBERG: Final = (".metadata.json", ".metadata.json.gz")
"""How its metadata files end; the second is the compressed form of old releases (TableMetadataParser)."""


def _directory_reason(directory: Path) -> str | None:
    """Why files below this directory belong to somebody else. Looked up anew each time: tables come into being."""
    if is_directory(directory / "_delta_log"):
        return f"{directory} is a Delta table: its log records each file's size"
    if is_directory(directory / ".hoodie"):
        return f"{directory} is a Hudi table: its commits record each file's size"
    metadata = directory / "metadata"
    if is_directory(metadata) and any(name.endswith(_ICEBERG) for name in _names_in(metadata)):
        return f"{directory} is an Iceberg table: its manifests record each file's size"
    summary = directory / "_metadata"
    if is_file(summary):
        return f"{summary} holds copies of the footers of the files below it"
    return None


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208  names do
    except OSError as error:
        raise UnreadableError(
            f"the directory can't be read, so it isn't known whether it is an Iceberg table's: {told(error)}",
            path=str(directory),
            hint="check who may read it; --force changes files all the same",
        ) from None


def _names(path: Path) -> Iterator[Path]:
    """The file's absolute names: as it was named, with each link on the way followed, and with all of them."""
    waiting = [Path(os.path.abspath(path))]  # noqa: PTH100  Path.absolute leaves .. in
    seen: set[Path] = set()
    while waiting and len(seen) < _NAMES:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        for part in (name, *name.parents):
            if is_link(part):
                led = os.path.normpath(part.parent.resolve() / part.readlink())
                waiting.append(Path(led, name.relative_to(part)))
    yield path.resolve()


def reason_against(path: Path) -> str | None:
    """Why a file must not be changed in place; None where nothing speaks against it."""
    seen: set[Path] = set()
    for name in _names(path):
        for parent in list(name.parents)[:_LEVELS]:
            if parent in seen:
                continue
            seen.add(parent)
            try:
                reason = _directory_reason(parent)
            except UnreadableError as error:
                if not isinstance(error.__cause__, PermissionError) or os.access(parent, os.X_OK):
                    raise  # whether there is a table isn't known: it must not be taken for none
                continue  # a directory that may not be searched, above one that was; the other names are left
            if reason is not None:
                return reason
    return None
