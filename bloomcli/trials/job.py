"""The job of a reader's process, and the messages that it sends back. All classes can be pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bloomcli.model.file import Column
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
    """The two versions of a file in which one reader looks up values."""

    path: str
    """As the user named it."""
    format: str
    row_groups: int
    with_filters: str
    """The local file with filters."""
    without_filters: str
    """The local file without filters; the same file if an option of the reader switches filters off."""
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
    """A message: the reader has started (empty text), or begins the lookup that the text describes."""

    text: str


class Outcome(NamedTuple):
    """A message: the result of one lookup. If the reader failed, the result is its error."""

    file: int
    column: int
    value: int
    """Positions in `Job.files`, `TrialFile.columns` and `TrialColumn.values`."""
    without: LookupResult | str
    with_filters: LookupResult | str | None
    """None if the lookup failed even without filters."""
    seconds: tuple[tuple[float, float], ...] = ()
    """For each timed run: seconds without filters, seconds with filters."""
    counted: str | None = None
    """The reader's error because of which rows were only counted, although the value isn't frequent."""


class Completion(NamedTuple):
    """The last message: all lookups are done, or `error` says why not, and `hint` what to do."""

    error: str | None = None
    hint: str | None = None


Message = Progress | Outcome | Completion
