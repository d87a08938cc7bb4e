"""Why an index has no answer for a file. A separate module, which a search without an index imports."""

from __future__ import annotations

from enum import Enum


class NoAnswer(Enum):
    """Why an index has no answer for a file."""

    UNKNOWN = "it doesn't have the file, or not with the column"
    CHANGED = "the file changed since"
