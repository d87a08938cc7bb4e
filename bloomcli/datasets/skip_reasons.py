"""Why files that were found in directories are skipped, whatever the command."""

from __future__ import annotations

from typing import Final

from bloomcli.storage.base import FileEntry

OTHER_KIND: Final = "not a file of a known format"
"""Of a file."""

EMPTY: Final = "a directory without files"
"""Of a directory that is named."""

LINKED: Final = "a link to a directory: these are followed only where they are named"
"""Of a link."""


def skip_reason(item: FileEntry) -> str:
    """Why something that was listed is skipped without being opened."""
    return EMPTY if item.empty else LINKED
