"""What `validate` found over many files: the gate's report."""

from __future__ import annotations

from dataclasses import dataclass

from bloomcli.model.dataset import FileRow, Status, gravest
from bloomcli.model.file import Finding, Severity


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
