"""What a format's folder offers to the commands: one `FilterFile` a format, found by the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bloomcli.literals import Literal
from bloomcli.model import BitTrail, Column, FilterChange, FilterDump, FilterFacts, Finding
from bloomcli.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one unit's filter (in Parquet: one row group's) says of one literal."""

    presence_known: bool
    """False when there is no filter, or one that can't tell."""
    present: bool
    has_filter: bool
    stats_skip: bool | None
    reason: str | None = None
    trail: tuple[BitTrail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAnswers:
    """One unit's answers, one a literal. Bytes are compressed bytes."""

    row_group: int
    rows: int
    chunk_bytes: int
    row_group_bytes: int
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRule:
    """How big filters are made: by measurement against `fpp`, or by formula for `ndv` distinct values."""

    fpp: float
    ndv: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepCheck:
    """The outcome of looking up every value of one filter's column chunk."""

    values: int
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The part of the new file that follows what is copied, and what it changes."""

    tail: tuple[bytes | bytearray, ...]
    changes: tuple[FilterChange, ...]
    bytes_decoded: int
    verify: Callable[[Source], None]
    """Re-reads the finished file; raises WriteError when it isn't what was planned."""


Tick = Callable[[int], None]
"""Called with a number of bytes that were just done."""


class Draft(Protocol):
    """A change to a file that was planned from its metadata alone."""

    keep: tuple[tuple[int, int], ...]
    """(offset, length) of what the new file takes over, in order."""
    estimate: tuple[FilterChange, ...]
    """What would be changed; sizes are upper bounds."""
    bytes_to_decode: int
    tail_bound: int
    """Upper bound of the bytes that follow what is copied."""

    def build(self, threads: int, tick: Tick) -> Built:
        """Read columns where the change needs it, and give the rest of the file."""


class FilterFile(Protocol):
    """An open file with filters, or one that could have them."""

    format: str
    source: Source
    rows: int
    row_group_count: int
    column_count: int
    created_by: str | None

    @property
    def columns(self) -> Sequence[Column]:
        """Leaf columns in schema order."""

    def filtered_columns(self) -> set[int]:
        """Ordinals of the columns that have a filter anywhere."""

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns (None: all), in row-group then schema order."""

    def dump(self, column: Column, row_group: int) -> FilterDump:
        """One filter's bits."""

    def ask(self, column: Column, literals: Sequence[Literal], *, explain: bool) -> Iterator[UnitAnswers]:
        """Each unit's answers."""

    def total_bytes(self) -> int:
        """Compressed bytes of all units."""

    def structure(self, columns: set[int] | None) -> Iterator[Finding]:
        """What is wrong with the filters and where they lie, without reading a column."""

    def without_filter(self, column: Column) -> list[int]:
        """Row groups in which a column has no filter."""

    def deep(self, columns: set[int] | None, tick: Tick) -> Iterator[DeepCheck]:
        """Look up every value of every filter's chunk."""

    def deep_bytes(self, columns: set[int] | None) -> int:
        """Compressed bytes that `deep` reads, at most."""

    def draft_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool) -> Draft:
        """Plan to add filters; raises where they can't be."""

    def draft_remove(self, columns: set[int] | None) -> Draft:
        """Plan to remove filters."""

    def draft_fold(self, columns: set[int] | None, rule: SizeRule) -> Draft:
        """Plan to shrink filters to the smallest size that meets the rule."""
