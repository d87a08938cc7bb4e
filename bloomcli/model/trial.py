"""The report of `trial`: rows that installed readers return, and data that they read, with and without filters.

Sizes are bytes, times are seconds, and a ratio is the time with filters divided by the time without.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomcli.model.reader_use import ReaderUse
from bloomcli.model.report import Brief, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Quartiles:
    """The median and the quartiles of repeated measurements."""

    low: float
    """The lower quartile."""
    median: float
    high: float
    """The upper quartile."""
    count: int
    """The number of measurements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLookups:
    """The lookups of one column's values by one reader, in all files that were tried."""

    column: str
    kind: str
    """``present`` or ``absent``: whether the file has the values."""
    lookups: int
    unequal: int
    """Lookups that returned other rows with filters than without."""
    not_found: int
    """Lookups of present values that returned no row without filters either. The reader decodes the value
    differently, so such a lookup proves nothing."""
    rows_without: int
    """Rows that all lookups returned without filters."""
    rows_with: int
    row_groups: int
    """Row groups of the files, added up over all lookups."""
    row_groups_without: int | None
    """Row groups that the reader read without filters, by its own metrics; None if it doesn't count them."""
    row_groups_with: int | None
    rows_read_without: int | None
    """Rows that the reader decoded without filters, before its own comparison, by its own metrics: all rows of each
    row group that it doesn't skip; None if it doesn't count them."""
    rows_read_with: int | None
    bytes_without: int | None
    """Bytes that the reader read without filters, by its own metrics; None if it doesn't count them."""
    bytes_with: int | None
    seconds_without: Quartiles | None
    """Time of one lookup; None if no lookup was timed."""
    seconds_with: Quartiles | None
    ratio: Quartiles | None
    """Ratio of pairs of lookups of the same value, one with filters and one without, directly after each other."""
    variant_path: str | None = None
    """The path of a VARIANT whose values of one type the column has: ``v:$.user.id``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """A lookup that returned other rows with filters than without: the reader loses rows, or invents some."""

    path: str
    column: str
    value: str
    """The value as `bloom probe` takes it."""
    rows_without: int
    rows_with: int | None
    """Equal to `rows_without` if the rows' contents differ; None if the reader failed with filters only."""
    rule: str | None
    """The id of the rule about this fault, if the table of readers contains it."""
    message: str
    """What happened, in one sentence, with the reader and its version."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReaderTrial(Brief):
    """The results of one reader."""

    reader: str
    """The name, as `--readers` takes it."""
    title: str
    """The product's name."""
    version: str | None
    """The installed version; None if it isn't installed."""
    status: str
    """One of ``equal`` (all lookups returned the same rows), ``unequal``, ``not-installed``, ``unsupported`` (it can
    read neither the files nor the columns, with filters or without), ``failed`` (it crashed, or didn't answer),
    ``not-run`` (no reader is named, and it never looks at filters)."""
    uses_filters: bool
    """Whether the reader looks up values in filters at all."""
    uses: tuple[ReaderUse, ...]
    """What filters of the columns do for the reader, by the facts about it; the lookups are the proof."""
    comparison: str | None = None
    """The meaning of "without filters": ``switch`` (the same file, with the reader's option for filters off),
    ``added`` (the file itself; the filters are in a copy), ``removed`` (a copy without the file's filters), ``mixed``
    (several files, compared in different ways). None if nothing was compared."""
    switch: str | None = None
    """The option of the reader that switches filters off."""
    reason: str | None = None
    """Why nothing was compared, or why not everything was; the reader's own error if it failed."""
    hint: str | None = None
    """A remedy, such as the command that installs the reader."""
    lookups: tuple[TrialLookups, ...] = ()
    """By column, in the order of the options, and by kind."""
    differences: tuple[RowDifference, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrialReport(Report):
    """The trial of a file, or of a sample of the files of a dataset."""

    paths: tuple[str, ...]
    """The paths as the user named them."""
    files: int
    """Files that were found."""
    tried: tuple[str, ...]
    """Files that were tried: the sample, without those that failed."""
    rows: int
    """Rows of the tried files."""
    row_groups: int
    """Row groups of the tried files; in ORC stripes."""
    columns: tuple[str, ...]
    values: int
    """Number of values of each kind that were requested for each column and file."""
    within: float | None
    """Seconds after which readers began no further lookup; None if a number of values was requested, and all of them
    were looked up."""
    queries: tuple[str, ...]
    """The logs of queries from which the values come; empty if they were sampled from the files."""
    seed: int
    fpp: float
    """The rate of the filters in temporary copies."""
    runs: int
    """Timed runs of each lookup."""
    sample: str | None
    """The requested part of the files: ``5%``, ``4``."""
    readers: tuple[ReaderTrial, ...]
    """In the order of the options."""
    failed: tuple[tuple[str, str], ...] = ()
    """Files that couldn't be tried, each with the reason."""
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def differences(self) -> tuple[RowDifference, ...]:
        """The findings of all readers."""
        return tuple(difference for reader in self.readers for difference in reader.differences)

    @property
    def exit_code(self) -> int:
        """1 if a reader returned other rows with filters than without; 3 if a file or a reader failed; else 0."""
        if self.differences:
            return 1
        return 3 if self.failed or any(reader.status == "failed" for reader in self.readers) else 0
