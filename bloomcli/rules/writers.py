"""Decides which parts of a file's metadata are believed, by the program that wrote it.

`bloomcli.rules.writer_table` contains the facts about each writer. No other module knows writers by name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from bloomcli.model.file import Column
from bloomcli.rules.writer_table import DICTIONARIES_OF_VALUES, ROWS
from bloomcli.rules.writer_types import Part, WriterFault

_FILES_AT_A_TIME: Final = 64


@lru_cache(maxsize=_FILES_AT_A_TIME)
def faults(created_by: str | None) -> tuple[WriterFault, ...]:
    """Return the faults of the writer of a file, by the file's created_by."""
    return tuple(row for row in ROWS if row.made(created_by or ""))


def fault_of(created_by: str | None, part: Part, column: Column) -> WriterFault | None:
    """Return why a part of the metadata of a column isn't believed; None if it is."""
    return next((row for row in faults(created_by) if row.part is part and row.columns(column)), None)


def dictionaries_hold_values_only(created_by: str | None) -> bool:
    """Return whether every entry of a dictionary is a value of its chunk."""
    return any((created_by or "").startswith(start) for start in DICTIONARIES_OF_VALUES)
