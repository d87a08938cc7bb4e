"""The report of `validate` on many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bloomcli.model.dataset import FileRow, ReportOnFiles, Status, TableFacts, gravest
from bloomcli.model.file import Severity
from bloomcli.model.report import Rows
from bloomcli.model.traffic import Traffic
from bloomcli.model.validate import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The part of a dataset to check."""

    seed: int
    """The same seed selects the same part of the same files."""
    files: str | None = None
    """The part that was requested: ``5%`` or a number of files; None for all."""
    row_groups: str | None = None
    """The part of each file's row groups that was requested for ``--deep``; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateReport(ReportOnFiles, Rows):
    """The findings of `validate`, and the files that it checked."""

    rows_in: ClassVar = (Finding, "findings")

    engine: str
    jobs: int
    seconds: float
    policy: str | None = None
    """The policy file."""
    baseline: str | None = None
    """The baseline file, which lists known findings."""
    gone: int = 0
    """Findings of the baseline that the checked files no longer have."""
    columns: tuple[str, ...] = ()
    """Names and globs of the columns that were checked; empty means all."""
    excluded_columns: tuple[str, ...] = ()
    """Names and globs of the columns that were not checked."""
    deep: bool = False
    sample: Sample | None = None
    files_found: int
    """Files that the arguments name or contain, checked or not, without excluded files."""
    excluded: int = 0
    """Files that the arguments name or contain and the policy excludes. None of them was checked."""
    findings: tuple[Finding, ...]
    """The most severe first, then by rule and path, including switched-off and known findings. Each has its path."""
    rows: Sequence[FileRow]
    """The checked files, without their findings."""
    remarks: tuple[str, ...] = ()
    """Notes on the run, such as fewer processes than requested."""
    besides: Traffic | None = None
    """Requests to object stores that belong to no row, such as listing. None if there were none."""
    table: TableFacts | None = None
    """The table that the checked files belong to; None for files that were named by path."""
    version: int | None = None
    """Of a table: the id of the checked snapshot (Iceberg) or the checked version (Delta)."""

    @property
    def files(self) -> int:
        """Files that were checked: those of a known format, and those that failed."""
        return len(self.rows) - self.row_totals().statuses[Status.SKIPPED]

    @property
    def failed(self) -> int:
        """Files that could not be checked."""
        return self.row_totals().statuses[Status.FAILED]

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
        """Findings that are in the baseline."""
        return sum(f.known and f.off is None for f in self.findings)

    @property
    def row_groups(self) -> int:
        """Row groups of the checked files."""
        return self.row_totals().row_groups

    @property
    def row_groups_read(self) -> int:
        """Row groups whose values were looked up (``--deep``)."""
        return self.row_totals().row_groups_read

    @property
    def filters_checked(self) -> int:
        """Filters that were checked."""
        return self.row_totals().filters

    @property
    def values_checked(self) -> int:
        """Values that were looked up (``--deep``)."""
        return self.row_totals().values_checked

    @property
    def complete(self) -> bool:
        """Every file was checked and, with ``--deep``, every row group: sampling left none out.

        Files that the policy excludes don't matter here: see `excluded`.
        """
        return self.files_found == len(self.rows) and (
            self.sample is None or self.sample.row_groups is None or self.row_groups == self.row_groups_read
        )

    @property
    def ok(self) -> bool:
        """No finding counts, and no file failed. See `complete` for whether everything was checked."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The gravest exit code of all files: a bug, unreadable, not supported, usage; 1 if a finding counts; else
        0."""
        codes = set(self.row_totals().codes.get(Status.FAILED, ()))
        if any(f.counts for f in self.findings):
            codes.add(1)
        return gravest(codes)
