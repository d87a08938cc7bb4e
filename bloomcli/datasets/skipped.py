"""Why files that were found in directories are skipped, whatever the command."""

from __future__ import annotations

from typing import Final

OTHER_KIND: Final = "not a file of a known format"
"""Of a file."""

LINKED: Final = "a link to a directory: these are followed only where they are named"
"""Of a link."""
