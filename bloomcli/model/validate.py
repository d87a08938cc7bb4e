"""The report of `validate`, and its findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bloomcli.model.file import Severity
from bloomcli.model.report import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of validate. Ids are stable: scripts can rely on them."""

    id: str
    severity: Severity
    message: str
    row_group: int | None = None
    column: str | None = None
    offset: int | None = None
    hint: str | None = None
    missing: tuple[str, ...] = ()
    """The first values that the filter misses, as text (``--deep``)."""
    stripe: int | None = None
    """ORC: the stripe; ``row_group`` then counts within it."""
    path: str | None = None
    """The file, in a report on many files."""
    off: str | None = None
    """Why the policy switches off the rule for this file or column; the finding then doesn't count."""
    known: bool = False
    """The finding is in the baseline, and therefore doesn't count."""
    places: str | None = None
    """All locations of a finding that has several: row groups (``0-3,7``), in ORC the row groups of each stripe
    (``0:0-3 2:1``), or stripes if the finding names no row group. `row_group` and `stripe` are those of the first."""

    @property
    def counts(self) -> bool:
        """Whether the finding makes `validate` fail: worse than a note, not switched off, not in the baseline."""
        return self.severity is not Severity.NOTE and self.off is None and not self.known


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ValidateReport(Rows):
    """The findings in one file, and how much of it was checked."""

    rows_in: ClassVar = (Finding, "findings")

    path: str
    format: str
    row_groups: int
    row_groups_read: int
    """Row groups whose values ``--deep`` looked up in the filters; 0 without ``--deep``."""
    filters_checked: int
    values_checked: int
    """Values that ``--deep`` looked up, each entry of a dictionary once; 0 without ``--deep``."""
    deep: bool
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """No finding counts. See `row_groups_read` for how much of the file was read."""
        return not any(f.counts for f in self.findings)
