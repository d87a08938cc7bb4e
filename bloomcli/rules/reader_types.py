"""The facts about an engine that reads filters, and their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

NEGATIVE_ZERO: Final = "reader-negative-zero"
MILLIS: Final = "reader-millis"
DECIMAL_WIDTH: Final = "reader-decimal-width"
WIDENED: Final = "reader-widened"
FLOAT16: Final = "reader-float16"
SINGLE_BLOCK: Final = "reader-single-block"
INTERVAL: Final = "reader-interval"
ISSUE: Final = "reader-issue"
ALGORITHM: Final = "filter-algorithm"
HASH: Final = "filter-hash"
COMPRESSION: Final = "filter-compression"
NOT_POWER_OF_TWO: Final = "filter-not-power-of-two"
NO_LENGTH: Final = "filter-no-length"
TOO_LARGE: Final = "filter-too-large"

BY_PRECISION: Final = 0
"""The width of a decimal follows from its precision."""


class Kind(StrEnum):
    """The kind of evidence for a fact."""

    MEASURED = "measured"
    """The engine ran on files with and without the filter."""
    SOURCE = "source"
    """The engine's source shows it; the engine didn't run."""
    THREAD = "thread"
    """An issue or a pull request reports it; it was not verified. Results in a note at most."""


class Evidence(NamedTuple):
    """One fact about an engine."""

    kind: Kind
    version: str
    """The versions that the fact applies to."""
    text: str
    """The observation and its source, as a sentence without a period."""


def measured(version: str, text: str) -> Evidence:
    """A fact that was measured."""
    return Evidence(Kind.MEASURED, version, text)


def source(version: str, text: str) -> Evidence:
    """A fact that was read in the source."""
    return Evidence(Kind.SOURCE, version, text)


def thread(version: str, text: str) -> Evidence:
    """A fact that was reported in a thread."""
    return Evidence(Kind.THREAD, version, text)


_NOTHING: Final[Mapping[str, Evidence]] = {}
_NONE: Final[frozenset[str]] = frozenset()
_FORMATS: Final = frozenset({"parquet", "orc"})
_ISSUES_IN: Final = frozenset({"parquet"})
_NO_WIDTHS: Final[Mapping[str, str]] = {}


class Reader(NamedTuple):
    """One engine and its use of filters."""

    name: str
    title: str
    """The usual spelling, for messages."""
    probes: frozenset[str]
    """The formats in whose filters it looks up values by itself; empty if it doesn't."""
    known: Evidence
    """The values that it looks up."""
    aliases: tuple[str, ...] = ()
    wrong_about: Mapping[str, Evidence] = _NOTHING
    """Rule id -> evidence that rows are lost. A thread alone isn't enough."""
    refuses: Mapping[str, Evidence] = _NOTHING
    """Rule id -> evidence that it rejects such a filter: it ignores the filter or fails."""
    any_size: Evidence | None = None
    """Evidence that it accepts Parquet filters of any number of blocks; None if it refuses or misreads some, if that
    is unknown, or if it doesn't use filters."""
    misreads: Mapping[str, Evidence] = _NOTHING
    """Rule id -> evidence that it looks up values wrongly in such a filter. `add` never writes such filters."""
    issues: tuple[Evidence, ...] = ()
    """Faults that can't be detected in files: faults of some queries or of types in a query, and reports in
    threads."""
    issues_in: frozenset[str] = _ISSUES_IN
    """The formats that `issues` apply to."""
    tables_only: bool = False
    """It reads files only through a table's schema."""
    superseded: bool = False
    """An old release: a newer one has fewer of these bugs, or none."""
    dictionary: bool = False
    """It skips row groups by the dictionary page of a chunk whose pages are all dictionary-encoded."""
    zeros: frozenset[str] = _NONE
    """Types for which it looks up a zero only with the literal's sign: FLOAT, DOUBLE, FLOAT16."""
    zeros_in: frozenset[str] = _FORMATS
    """The formats that `zeros` applies to."""
    decimal_width: int | None = None
    """The width in bytes at which it hashes decimals that are stored as bytes, or `BY_PRECISION`; None for the
    column's own width or no lookup."""
    decimal_digits: int | None = None
    """It reads decimals that are stored as bytes and have more digits than this as DOUBLE; None if it doesn't."""
    widths: Mapping[str, str] = _NO_WIDTHS
    """Table type -> physical type at which it hashes, if that isn't the file's. It doesn't look up other types."""

    def loses_zeros(self, kind: str, file_format: str) -> bool:
        """Return whether it looks up a zero only with the literal's sign in columns of this kind."""
        return kind in self.zeros and file_format in self.zeros_in

    def issues_of(self, file_format: str) -> tuple[Evidence, ...]:
        """Return its faults in a format that can't be detected in files."""
        return self.issues if file_format in self.issues_in else ()
