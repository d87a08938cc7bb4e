"""What is known of an engine that reads filters, and how it is known."""

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
"""A decimal's width is what its precision needs."""


class Kind(StrEnum):
    """How a fact is known."""

    MEASURED = "measured"
    """The engine was run, with the filter and without."""
    SOURCE = "source"
    """Read in the engine's source; it wasn't run."""
    THREAD = "thread"
    """Told in an issue or a pull request; neither run nor read here. A note at most."""


class Evidence(NamedTuple):
    """One fact about an engine."""

    kind: Kind
    version: str
    """The versions for which it is known."""
    text: str
    """What was seen, and where: a sentence without a period."""


_NOTHING: Final[Mapping[str, Evidence]] = {}
_NONE: Final[frozenset[str]] = frozenset()
_FORMATS: Final = frozenset({"parquet", "orc"})
_ISSUES_IN: Final = frozenset({"parquet"})
_NO_WIDTHS: Final[Mapping[str, str]] = {}


class Reader(NamedTuple):
    """One engine, as far as filters go."""

    name: str
    title: str
    """As people write it, for messages."""
    probes: frozenset[str]
    """Formats whose filters it looks values up in by itself; empty where it never does."""
    known: Evidence
    """What it looks up."""
    aliases: tuple[str, ...] = ()
    wrong_about: Mapping[str, Evidence] = _NOTHING
    """Rule id -> by what it is known that rows are lost. Never told in a thread alone."""
    refuses: Mapping[str, Evidence] = _NOTHING
    """Rule id -> by what it is known that it takes no such filter: it reads without, or not at all."""
    misreads: Mapping[str, Evidence] = _NOTHING
    """Rule id -> by what it is known that it looks values up wrongly in such a filter, which `add` never writes."""
    issues: tuple[Evidence, ...] = ()
    """Faults that no file shows: of some queries, of types that a query names; and what threads tell."""
    issues_in: frozenset[str] = _ISSUES_IN
    """Formats whose files they are about."""
    tables_only: bool = False
    """It reads files through a table's schema only."""
    superseded: bool = False
    """An old release: there is a newer one without these faults, or with fewer."""
    dictionary: bool = False
    """It skips row groups by reading the dictionary page of a chunk that is dictionary-encoded throughout."""
    zeros: frozenset[str] = _NONE
    """Types of which it hashes its literal's own zero only: FLOAT, DOUBLE, FLOAT16."""
    zeros_in: frozenset[str] = _FORMATS
    """Formats in which it does."""
    decimal_width: int | None = None
    """Bytes at which it hashes decimals stored as bytes; `BY_PRECISION`; None: the column's own, or not at all."""
    decimal_digits: int | None = None
    """Digits from beyond which it reads decimals that are stored as bytes as DOUBLE; None where it doesn't."""
    widths: Mapping[str, str] = _NO_WIDTHS
    """Table type -> physical type at which it hashes, where that isn't the file's; types left out aren't probed."""

    def loses_zeros(self, kind: str, file_format: str) -> bool:
        """Whether it looks only its literal's own zero up in columns of a kind."""
        return kind in self.zeros and file_format in self.zeros_in

    def issues_of(self, file_format: str) -> tuple[Evidence, ...]:
        """Its faults with files of a format that no file shows."""
        return self.issues if file_format in self.issues_in else ()
