"""The report of `probe`: the answers of filters for values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bloomcli.model.file import Presence
from bloomcli.model.report import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BitTrail:
    """The bits that one hash selects in one filter (``probe --explain``)."""

    hashed: bytes
    """The bytes that were hashed (PLAIN encoding)."""
    hash: int
    block: int | None
    """Index of the 32-byte block; None for filters without blocks."""
    bits: tuple[int, ...]
    """The selected bits: one (0 to 31) for each of the block's 8 words; k bit numbers for filters without blocks."""
    present: tuple[bool, ...]
    """For each of `bits`, whether it is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer of one row group for one value."""

    row_group: int
    value: str
    presence: Presence
    """The answer of the filter alone."""
    answer: Presence
    """The combined answer of filter, min/max statistics, dictionary and filters that engines keep: ABSENT if one of
    them rules out the value. Statistics that the filter contradicts are ignored."""
    rows: int
    chunk_bytes: int
    """Compressed bytes of the column chunk."""
    row_group_bytes: int
    """Compressed bytes of the whole row group."""
    stats_skip: bool | None
    """Whether min/max statistics alone rule out the value; None without statistics."""
    reason: str | None = None
    trail: tuple[BitTrail, ...] = ()
    stripe: int | None = None
    """ORC: the stripe; ``row_group`` then counts within it."""
    dictionary_skip: bool | None = None
    """Whether the column's dictionary rules out the value; None if it wasn't read. It is read where neither filter
    nor statistics rule out the value, and every value of the row group is an entry of the dictionary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """The answer of a filter that an engine keeps for the whole file, for one value."""

    kind: str
    value: str
    presence: Presence
    reason: str | None = None
    trail: tuple[BitTrail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTotals:
    """The row groups and bytes of a file that a reader can skip for one value."""

    value: str
    presence: Presence
    """The answer of the filters alone: ABSENT if all of them say so, else the weakest answer."""
    answer: Presence
    """The combined answer of filters, min/max statistics and dictionaries: ABSENT if it is ABSENT for every row
    group, else the weakest answer."""
    absent_row_groups: int
    """Row groups that filters, statistics and dictionaries together rule out."""
    absent_bytes: int
    """Compressed bytes of those row groups."""
    row_groups: int
    skipped_row_groups: int
    """Row groups that the filters alone rule out."""
    skipped_bytes: int
    """Compressed bytes of those row groups."""
    stats_skipped_row_groups: int
    """Row groups that min/max statistics alone rule out."""
    gain_row_groups: int
    """Row groups that the filters rule out and the statistics don't."""
    gain_bytes: int
    reason: str | None = None
    dictionary_skipped_row_groups: int = 0
    """Row groups that neither filters nor statistics rule out, but dictionaries do."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbeReport(Rows):
    """The answers of one file's filters for the values that were looked up."""

    rows_in: ClassVar = (Verdict, "verdicts")

    path: str
    format: str
    column: str
    physical: str
    logical: str | None
    row_groups: int
    total_bytes: int
    """Compressed bytes of all row groups."""
    verdicts: tuple[Verdict, ...]
    totals: tuple[ValueTotals, ...]
    engine_filters: tuple[EngineAnswer, ...] = ()
    """The answers of filters that engines keep themselves."""
    requests: int | None = None
    """Requests to the object store, retries included; None for local files."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the store."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the store."""
    bytes_copied_by_store: int | None = None
    """Bytes that the store copied from object to object, and that didn't pass through this machine."""
    variant_path: str | None = None
    """The path of a VARIANT that was looked up, ``v:$.user.id``; `column` has its values of one type."""
    unverified: str | None = None
    """`UNVERIFIED`, if the file's footer is signed, and its key isn't given."""

    @property
    def absent_everywhere(self) -> bool:
        """Whether filters, min/max statistics and dictionaries together rule out every value in every row group."""
        return all(t.answer is Presence.ABSENT for t in self.totals)
