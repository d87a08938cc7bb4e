"""The facts about programs that write files, and their evidence."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from bloomcli.model.file import Column
from bloomcli.rules.reader_types import Evidence

Version = tuple[int, ...]


class Part(StrEnum):
    """A part of a file's metadata from which readers conclude which values are there."""

    BOUNDS = "bounds of row groups"
    FILE_BOUNDS = "bounds of the file"
    """ORC: the footer's statistics. `inspect` shows them; nothing is skipped by them."""
    EXACT_BOUNDS = "bounds of row groups, as values"
    """A bound is taken for one of the row group's values: its filter must have it."""
    NULL_COUNT = "null counts of row groups"
    PAGE_BOUNDS = "column index"
    OFFSETS = "offset index"
    FILTER = "filters"


class Detection(StrEnum):
    """How the fault is recognized in a file."""

    WRITER = "the writer's name and version"
    CONTRADICTION = "a contradiction in the file, whoever wrote it"
    ALWAYS = "never relied on, whoever wrote it"


def every(column: Column) -> bool:
    """Whether a fault concerns a column: all of them."""
    del column
    return True


class WriterFault(NamedTuple):
    """One part of the metadata that a writer gets wrong."""

    writer: str
    """The usual spelling, for messages."""
    part: Part
    evidence: Evidence
    """`Evidence.version` has the versions that are known to be wrong; `Evidence.text` what is wrong."""
    detection: Detection
    created_by: str | None = None
    """A regular expression for the start of the file's created_by. Its groups, if any, are the version's numbers.
    None unless `detection` is WRITER."""
    before: Version | None = None
    """The first version without the fault; None: all versions, or the name has none."""
    columns: Callable[[Column], bool] = every
    """Whether the fault concerns a column."""
    which: str = "all"
    """The columns that it concerns, in words."""

    def made(self, created_by: str) -> bool:
        """Whether a version with the fault wrote a file."""
        found = None if self.created_by is None else re.match(self.created_by, created_by)
        if found is None:
            return False
        return self.before is None or tuple(int(number or 0) for number in found.groups()) < self.before
