"""What a reader's process gets to do, and what it answers. All of it can be pickled."""

from __future__ import annotations

from dataclasses import dataclass

from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple
from bloomcli.trials.readers.base import LookupResult
from bloomcli.trials.values import LookupValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialColumn:
    """A column, and the values to look up in it."""

    column: Column
    names: tuple[str, ...]
    values: tuple[LookupValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFile:
    """A file as one reader looks values up in it."""

    path: str
    """As the user named it."""
    format: str
    row_groups: int
    with_filters: str
    """The local file that has the filters."""
    without_filters: str
    """The local file that hasn't; the same one if the reader's option switches them off."""
    comparison: str
    """``switch``, ``added`` or ``removed``, as in `ReaderTrial.comparison`."""
    columns: tuple[TrialColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The lookups of one reader."""

    reader: str
    files: tuple[TrialFile, ...]
    runs: int
    """Timed runs of each lookup."""


class Progress(NamedTuple):
    """The reader has started, or goes on to the lookup that the text describes."""

    text: str


class Outcome(NamedTuple):
    """One lookup. An error of the reader stands in place of its rows."""

    file: int
    column: int
    value: int
    """The positions of what was looked up."""
    without: LookupResult | str
    with_filters: LookupResult | str | None
    """None if the lookup failed without filters already."""
    seconds: tuple[tuple[float, float], ...] = ()
    """Of each timed run: without filters, and with them."""
    counted: str | None = None
    """Why rows were only counted, although the value isn't frequent: the reader's error."""


class Completion(NamedTuple):
    """All lookups are done, or the reader doesn't start: then why, and what to do."""

    error: str | None = None
    hint: str | None = None


Message = Progress | Outcome | Completion
