"""Reasons why every command skips a listed file or directory."""

from __future__ import annotations

from typing import Final

from bloomcli.storage.base import FileEntry

OTHER_KIND: Final = "not a file of a known format"
"""For a file."""

EMPTY: Final = "a directory without files"
"""For a directory that the user named."""

LINKED: Final = "a link to a directory: these are followed only where they are named"
"""For a symbolic link."""


def skip_reason(item: FileEntry) -> str:
    """Why a listed item is skipped without being opened."""
    return EMPTY if item.empty else LINKED
