"""Files that mustn't change in place, because something else records their length or copies their footer.

Delta      _delta_log/ beside or above          each add action has the file's size
Iceberg    metadata/*.metadata.json above       manifests have file_size_in_bytes and split offsets
Hudi       .hoodie/ above                       commit metadata has the file's size
_metadata  beside or above                      a summary file copies the footers of the files below
"""

from __future__ import annotations

from pathlib import Path

_LEVELS = 16
"""How far up a table's root is looked for: partitions don't nest deeper."""


def _directory_reason(directory: Path) -> str | None:
    """Why files below this directory belong to somebody else. Looked up anew each time: tables come into being."""
    if (directory / "_delta_log").is_dir():
        return f"{directory} is a Delta table: its log records each file's size"
    if (directory / ".hoodie").is_dir():
        return f"{directory} is a Hudi table: its commits record each file's size"
    metadata = directory / "metadata"
    if metadata.is_dir() and next(metadata.glob("*.metadata.json"), None) is not None:
        return f"{directory} is an Iceberg table: its manifests record each file's size"
    for name in ("_metadata", "_common_metadata"):
        if (directory / name).is_file():
            return f"{directory / name} holds copies of the footers of the files below it"
    return None


def reason_against(path: Path) -> str | None:
    """Why a file must not be changed in place; None where nothing speaks against it."""
    for parent in list(path.resolve().parents)[:_LEVELS]:
        reason = _directory_reason(parent)
        if reason is not None:
            return reason
    return None
