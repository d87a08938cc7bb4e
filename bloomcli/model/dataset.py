"""What a command did with many files: one row a file. Sizes are bytes, rates are probabilities in [0, 1]."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bloomcli.model.file import Finding, ValueTotals


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


def gravest(codes: Collection[int]) -> int:
    """The exit code of many: a bug, unreadable, not supported, usage, findings, fine."""
    return next((code for code in (70, 3, 4, 2, 1) if code in codes), 0)
