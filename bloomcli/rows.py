"""What a command did with many files: one row a file. Sizes are bytes, rates are probabilities in [0, 1]."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bloomcli.model import Finding, Severity, ValueTotals


class Status(StrEnum):
    """What became of one file of a dataset."""

    DONE = "done"
    SKIPPED = "skipped"
    """There was nothing to do, or it isn't a file with filters."""
    FOUND = "found"
    """validate: something worse than a note was found."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSeen:
    """One column of a file and its filters, for a policy that is to be written."""

    column: str
    filters: int
    everywhere: bool
    """Every row group with values has one. False for groups of columns (in ORC structs), which can't be required."""
    unreadable: int
    bitset_bytes: int
    """Bytes of all bitsets together."""
    max_fpp: float | None = None
    """The highest measured false-positive rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyReport:
    """A file and which of its columns have filters."""

    path: str
    format: str
    row_groups: int
    file_bytes: int
    seen: tuple[ColumnSeen, ...]
    """Columns with a filter; of a file without rows all, for none of them lacks one."""
    findings: tuple[Finding, ...] = ()
    """What makes `validate` fail without any limit: the file's policy can't help that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file of a dataset, and what a command did with it."""

    path: str
    status: Status
    format: str | None = None
    output: str | None = None
    row_groups: int | None = None
    columns: int | None = None
    """Columns with filters: that are there, or that were changed."""
    filters: int | None = None
    """Filters that are there, were changed, or were checked."""
    filter_bytes: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    max_fpp: float | None = None
    """The highest measured false-positive rate."""
    values_checked: int | None = None
    row_groups_read: int | None = None
    """validate: row groups whose values were looked up."""
    seconds: float = 0.0
    reason: str | None = None
    """Why it was skipped; of a file that `add` changed, which columns were left out and why, and its remarks."""
    error: str | None = None
    """What failed, with path, field path and byte offset."""
    hint: str | None = None
    exit_code: int = 0
    """What the command would have exited with for this file alone."""
    findings: tuple[Finding, ...] = ()
    totals: tuple[ValueTotals, ...] = ()
    """probe: what a reader may skip for each value."""
    seen: tuple[ColumnSeen, ...] = ()
    """validate --init: the columns with filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetReport:
    """What a command did with many files."""

    command: str
    engine: str
    jobs: int
    seconds: float
    rows: tuple[FileRow, ...]
    """In the order in which the files were named."""
    remarks: tuple[str, ...] = ()
    """What the caller should know of the run: fewer processes than were asked for."""

    @property
    def files(self) -> int:
        """Files in all."""
        return len(self.rows)

    @property
    def done(self) -> int:
        """Files that were worked on."""
        return sum(r.status in (Status.DONE, Status.FOUND) for r in self.rows)

    @property
    def skipped(self) -> int:
        """Files with nothing to do."""
        return sum(r.status is Status.SKIPPED for r in self.rows)

    @property
    def failed(self) -> int:
        """Files that failed."""
        return sum(r.status is Status.FAILED for r in self.rows)

    @property
    def exit_code(self) -> int:
        """The gravest file's: a bug, unreadable, not supported, usage, findings; absent only if all are."""
        codes = {r.exit_code for r in self.rows}
        if self.command == "probe":
            answers = {r.exit_code for r in self.rows if r.status is Status.DONE}
            codes = {r.exit_code for r in self.rows if r.status is Status.FAILED} | (
                answers if answers == {1} else set()
            )
        return gravest(codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What part of a dataset was meant to be looked at."""

    seed: int
    """The same seed takes the same part of the same files."""
    files: str | None = None
    """As asked: ``5%`` or a number of files; None for all."""
    row_groups: str | None = None
    """As asked, of each file's row groups, for ``--deep``; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """What `validate` says of files: the findings, one by one, and what was looked at."""

    engine: str
    jobs: int
    seconds: float
    policy: str | None = None
    """The policy file."""
    baseline: str | None = None
    """The file of known findings."""
    gone: int = 0
    """Findings of the baseline that are no longer there, in the files that were looked at."""
    columns: tuple[str, ...] = ()
    """Names and globs of the columns that the check was limited to; none means all."""
    excluded_columns: tuple[str, ...] = ()
    """Names and globs of the columns that it left out."""
    deep: bool = False
    sample: Sample | None = None
    files_found: int
    """Files that were named or found and not excluded, looked at or not."""
    excluded: int = 0
    """Files that were named or found and that the policy excludes: none of them was looked at."""
    findings: tuple[Finding, ...]
    """The most severe first, then by rule and path; switched-off and known ones too. Each has its path."""
    rows: tuple[FileRow, ...]
    """The files that were looked at, without their findings."""
    remarks: tuple[str, ...] = ()
    """What the caller should know of the run: fewer processes than were asked for."""

    @property
    def files(self) -> int:
        """Files that were looked at: found to be of a known format, or failed."""
        return sum(r.status is not Status.SKIPPED for r in self.rows)

    @property
    def failed(self) -> int:
        """Files that could not be checked."""
        return sum(r.status is Status.FAILED for r in self.rows)

    @property
    def errors(self) -> int:
        """Findings that count, of severity error."""
        return sum(f.counts and f.severity is Severity.ERROR for f in self.findings)

    @property
    def warnings(self) -> int:
        """Findings that count, of severity warning."""
        return sum(f.counts and f.severity is Severity.WARNING for f in self.findings)

    @property
    def notes(self) -> int:
        """Findings of severity note that are neither switched off nor known."""
        return sum(f.severity is Severity.NOTE and f.off is None and not f.known for f in self.findings)

    @property
    def off(self) -> int:
        """Findings whose rule the policy switches off."""
        return sum(f.off is not None for f in self.findings)

    @property
    def known(self) -> int:
        """Findings that the baseline has."""
        return sum(f.known and f.off is None for f in self.findings)

    @property
    def row_groups(self) -> int:
        """Row groups of the files that were looked at."""
        return sum(r.row_groups or 0 for r in self.rows)

    @property
    def row_groups_read(self) -> int:
        """Row groups whose values were looked up (``--deep``)."""
        return sum(r.row_groups_read or 0 for r in self.rows)

    @property
    def filters_checked(self) -> int:
        """Filters that were checked."""
        return sum(r.filters or 0 for r in self.rows)

    @property
    def values_checked(self) -> int:
        """Values that were looked up (``--deep``)."""
        return sum(r.values_checked or 0 for r in self.rows)

    @property
    def complete(self) -> bool:
        """Every file was looked at and, with ``--deep``, every row group: no sampling left any out.

        Files that the policy excludes are not meant to be looked at: see `excluded`.
        """
        return self.files_found == len(self.rows) and (
            self.sample is None or self.sample.row_groups is None or self.row_groups == self.row_groups_read
        )

    @property
    def ok(self) -> bool:
        """Nothing was found that counts, and no file failed. Of what was looked at: see `complete`."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The gravest file's: a bug, unreadable, not supported, usage; 1 where a finding counts; else 0."""
        codes = {r.exit_code for r in self.rows if r.status is Status.FAILED}
        if any(f.counts for f in self.findings):
            codes.add(1)
        return gravest(codes)


def gravest(codes: Collection[int]) -> int:
    """The exit code of many: a bug, unreadable, not supported, usage, findings, fine."""
    return next((code for code in (70, 3, 4, 2, 1) if code in codes), 0)
