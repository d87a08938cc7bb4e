"""Why an index tells nothing of a file. A module of its own: a search without an index imports no index."""

from __future__ import annotations

from enum import Enum


class NoAnswer(Enum):
    """Why an index tells nothing of a file."""

    UNKNOWN = "it doesn't have the file, or not with the column"
    CHANGED = "the file changed since"
