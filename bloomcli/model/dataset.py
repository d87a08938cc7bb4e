"""The report of a command on many files: a row for each file, totals of their columns, the table, and the exit code.

Sizes are bytes, rates are probabilities in [0, 1].
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar

from bloomcli.model.file import EngineFilterFacts, FilterFacts
from bloomcli.model.paths import shown
from bloomcli.model.probe import ValueTotals
from bloomcli.model.report import Brief, Rows
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.model.traffic import Traffic, traffic_of
from bloomcli.model.validate import Finding


def gravest(codes: Collection[int]) -> int:
    """Return the gravest of several exit codes: a bug, unreadable, not supported, usage, findings, success."""
    return next((code for code in (70, 3, 4, 2, 1) if code in codes), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFilters:
    """One column of one file, and its filters."""

    column: str
    type: str
    """The logical type, or the physical one if there is none."""
    row_groups_with_filter: int
    row_groups_without_filter: int
    filters: int
    """Filters that can be read."""
    unreadable: int
    bitset_bytes: int
    max_fpp: float | None = None
    """The highest measured false-positive rate."""
    engine_filters: int = 0
    """Filters of the whole file that engines keep, and that are no part of the other figures."""

    @property
    def coverage(self) -> str:
        """``all``, ``some`` or ``none`` of the row groups have a filter; ``empty`` without row groups."""
        if self.row_groups_with_filter:
            return "some" if self.row_groups_without_filter else "all"
        return "none" if self.row_groups_without_filter else "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOverFiles:
    """Totals of one column over all files."""

    column: str
    types: tuple[str, ...]
    """More than one if the files differ."""
    files: int
    """Files that have the column."""
    files_with_filter: int
    """Files in which every row group has a filter of the column."""
    files_partly: int
    """Files in which some row groups have a filter and some don't."""
    files_without_filter: int
    """Files with row groups and without a filter of the column."""
    filters: int
    unreadable: int
    bitset_bytes: int
    max_fpp: float | None = None
    """The highest measured false-positive rate."""
    engine_filters: int = 0
    """Filters of whole files that engines keep, and that are no part of the other figures."""


class _Sum:
    """Running totals of one column."""

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.coverage: Counter[str] = Counter()
        self.filters = self.unreadable = self.bitset_bytes = self.engine_filters = 0
        self.max_fpp: float | None = None

    def add(self, column: ColumnFilters) -> None:
        self.types[column.type] = None
        self.coverage[column.coverage] += 1
        self.filters += column.filters
        self.unreadable += column.unreadable
        self.bitset_bytes += column.bitset_bytes
        self.engine_filters += column.engine_filters
        if column.max_fpp is not None:
            self.max_fpp = column.max_fpp if self.max_fpp is None else max(self.max_fpp, column.max_fpp)

    def over_files(self, name: str) -> ColumnOverFiles:
        return ColumnOverFiles(
            column=name,
            types=tuple(self.types),
            files=self.coverage.total(),
            files_with_filter=self.coverage["all"],
            files_partly=self.coverage["some"],
            files_without_filter=self.coverage["none"],
            filters=self.filters,
            unreadable=self.unreadable,
            bitset_bytes=self.bitset_bytes,
            max_fpp=self.max_fpp,
            engine_filters=self.engine_filters,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """The name and format of a table."""

    name: str
    """As the user named it."""
    format: str
    """``iceberg`` or ``delta``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """A commit that replaced data files of a table, or that a dry run would make."""

    version: int | None
    """The new snapshot's id (Iceberg) or the new version (Delta); None in a dry run."""
    files: int
    """Data files that the commit replaced."""
    bytes_before: int
    """Bytes of these files."""
    bytes_after: int
    """Bytes of the new files; in a dry run an upper bound."""
    snapshots: int = 1
    """Number of snapshots or versions that the commit adds to the table's history. In Iceberg several, if equality
    deletes lie between the files."""


class Status(StrEnum):
    """The outcome of a command for one file of a dataset."""

    DONE = "done"
    PLANNED = "planned"
    """A dry run of add, remove, fold or repair: the command would change the file, and wrote nothing."""
    SKIPPED = "skipped"
    """The command had nothing to do, or the file is of a format without filters."""
    FOUND = "found"
    """validate: the file has findings worse than a note."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedColumn:
    """One column of a file and its filters, from which `validate --init` writes a policy."""

    column: str
    filters: int = 0
    everywhere: bool = False
    """Every row group with values has a filter. False for a group of columns (an ORC struct), which can't be
    required."""
    unreadable: int = 0
    bitset_bytes: int = 0
    """Bytes of all bitsets together."""
    max_fpp: float | None = None
    """The highest measured false-positive rate."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileRow(Brief):
    """The result of a command for one file of a dataset."""

    path: str
    status: Status
    format: str | None = None
    output: str | None = None
    row_groups: int | None = None
    columns: int | None = None
    """Columns with filters; after a change, the columns that it changed."""
    filters: int | None = None
    """Filters that the file has, or that the command changed or checked."""
    filter_bytes: int | None = None
    """Bytes of these filters' bitsets, without headers; 0 for filters that were removed."""
    bytes_before: int | None = None
    bytes_after: int | None = None
    max_fpp: float | None = None
    """The highest measured false-positive rate."""
    values_checked: int | None = None
    row_groups_read: int | None = None
    """validate: row groups whose values were looked up in the filters."""
    seconds: float = 0.0
    reason: str | None = None
    """Why the file was skipped. For a file that `add` changed: the columns that it left out, with reasons, and its
    remarks. probe: `UNVERIFIED`, if it is."""
    error: str | None = None
    """The error, with path, field path and byte offset."""
    hint: str | None = None
    exit_code: int = 0
    """The exit code of the command for this file on its own."""
    findings: tuple[Finding, ...] = ()
    totals: tuple[ValueTotals, ...] = ()
    """probe: what a reader may skip for each value."""
    seen: tuple[SurveyedColumn, ...] = ()
    """validate --init: the columns with a filter; in a file without filters, the columns that can have one; in a file
    without rows, all columns, because none of them needs one."""
    requests: int | None = None
    """Requests to the object store, retries included; None for local files. In a dry run of a change, this and the
    following fields are estimates."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the store."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the store."""
    bytes_copied_by_store: int | None = None
    """Bytes that the store copied from object to object, and that didn't pass through this machine."""
    bytes_decoded: int | None = None
    """add, remove, fold, repair: compressed bytes of the chunks that were decoded; in a dry run an upper bound."""
    bytes_copied: int | None = None
    """add, remove, fold, repair: bytes of the file that were copied unchanged."""
    created_by: str | None = None
    """inspect: the writer's name and version, as the file has them."""
    by_column: tuple[ColumnFilters, ...] = ()
    """inspect: the columns and their filters."""
    filter_facts: tuple[FilterFacts, ...] = ()
    """inspect --all: every filter of the file's format."""
    engine_filters: tuple[EngineFilterFacts, ...] = ()
    """inspect --all: every filter that an engine keeps for the file."""
    structures: int | None = None
    """repair: statistics and page indexes that the command changed."""

    def reported(self) -> FileRow:
        """The row as reports keep it, without the fields that are only for the caller of `on_row`."""
        return self

    def __post_init__(self) -> None:
        for name in ("path", "output"):
            path = getattr(self, name)
            if path is not None:
                object.__setattr__(self, name, shown(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRow(FileRow):
    """A file of a table, about which the table's metadata are wrong."""

    right: FileStatistics = field(repr=False)
    """What the commit has to say instead."""

    @classmethod
    def of(cls, row: FileRow, right: FileStatistics) -> CorrectedRow:
        """The row with what the commit has to say."""
        return cls(**_values(row), right=right)

    def reported(self) -> FileRow:
        """The row without it."""
        return FileRow(**_values(self))


def _values(row: FileRow) -> dict[str, Any]:
    return {row_field.name: getattr(row, row_field.name) for row_field in fields(FileRow)}


class RowTotals:
    """Totals of all rows for a report's properties, computed in one pass."""

    def __init__(self, rows: Iterable[FileRow]) -> None:
        self.statuses: Counter[Status] = Counter()
        self.codes: dict[Status, set[int]] = {}
        """Exit codes of the files, by status."""
        self.row_groups = self.row_groups_read = self.filters = self.values_checked = 0
        self.traffic: Traffic | None = None
        """The requests of all rows; None if all files are local."""
        columns: defaultdict[str, _Sum] = defaultdict(_Sum)
        for row in rows:
            self.statuses[row.status] += 1
            self.codes.setdefault(row.status, set()).add(row.exit_code)
            self.row_groups += row.row_groups or 0
            self.row_groups_read += row.row_groups_read or 0
            self.filters += row.filters or 0
            self.values_checked += row.values_checked or 0
            for column in row.by_column:
                columns[column.column].add(column)
            if (traffic := traffic_of(row)) is not None:
                self.traffic = traffic if self.traffic is None else self.traffic + traffic
        self.by_column = tuple(total.over_files(name) for name, total in columns.items())
        """The totals of each column, in the order in which columns first appeared."""


class ReportOnFiles:
    """A report with a row for each file."""

    __slots__ = ("_totals",)

    besides: Traffic | None
    """The traffic that belongs to no row."""
    rows: Sequence[FileRow]
    _totals: RowTotals

    def row_totals(self) -> RowTotals:
        """The totals of all rows, computed once."""
        if not hasattr(self, "_totals"):
            object.__setattr__(self, "_totals", RowTotals(self.rows))
        return self._totals

    def _traffic(self) -> Traffic | None:
        total = self.row_totals().traffic
        if self.besides is None:
            return total
        return self.besides if total is None else total + self.besides

    @property
    def requests(self) -> int | None:
        """Requests to object stores, retries included: those of `rows` and of `besides`; None if all files are local.
        In a dry run of a change, this and the following properties are estimates."""
        total = self._traffic()
        return None if total is None else total.requests

    @property
    def bytes_downloaded(self) -> int | None:
        """Bytes of objects that came from the stores."""
        total = self._traffic()
        return None if total is None else total.bytes_downloaded

    @property
    def bytes_uploaded(self) -> int | None:
        """Bytes of objects that went to the stores."""
        total = self._traffic()
        return None if total is None else total.bytes_uploaded

    @property
    def bytes_copied_by_store(self) -> int | None:
        """Bytes that the stores copied from object to object, and that didn't pass through this machine."""
        total = self._traffic()
        return None if total is None else total.bytes_copied_by_store


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DatasetReport(ReportOnFiles, Rows):
    """The report of a command on many files."""

    rows_in: ClassVar = (FileRow, "rows")

    command: str
    engine: str
    jobs: int
    seconds: float
    rows: Sequence[FileRow]
    """One row per file, in the order of the arguments."""
    remarks: tuple[str, ...] = ()
    """Notes on the run, such as fewer processes than requested."""
    not_started: int = 0
    """Files without a row: --fail-fast ended the run before they were started or finished. They are unchanged."""
    dry_run: bool = False
    """Nothing was written: the rows show what the command would do, and sizes after it are upper bounds."""
    besides: Traffic | None = None
    """Requests to object stores that belong to no row: listing, looking for tables and unfinished uploads, and the
    check of all files before the first change. None if there were none."""
    table: TableFacts | None = None
    """The table that the data files belong to; None for files that were named by path."""
    version_before: int | None = None
    """Of a table: the id of the files' snapshot (Iceberg) or their version (Delta)."""
    commits: tuple[TableCommit, ...] = ()
    """Of a table: the commits of this run, in order; in a dry run, the commits that it would make."""
    policy: str | None = None
    """The policy file that applied to `add`; None without one."""

    @property
    def by_column(self) -> tuple[ColumnOverFiles, ...]:
        """inspect: the columns over all files."""
        return self.row_totals().by_column

    @property
    def files(self) -> int:
        """The number of files."""
        return len(self.rows)

    @property
    def done(self) -> int:
        """Files that the command processed; 0 in a dry run."""
        statuses = self.row_totals().statuses
        return statuses[Status.DONE] + statuses[Status.FOUND]

    @property
    def planned(self) -> int:
        """Files that a dry run would change."""
        return self.row_totals().statuses[Status.PLANNED]

    @property
    def skipped(self) -> int:
        """Files with nothing to do."""
        return self.row_totals().statuses[Status.SKIPPED]

    @property
    def failed(self) -> int:
        """Files that failed."""
        return self.row_totals().statuses[Status.FAILED]

    @property
    def exit_code(self) -> int:
        """The gravest exit code of all files: a bug, unreadable, not supported, usage, findings.

        For `probe`, 1 (absent) only if the values are absent in all files.
        """
        codes = self.row_totals().codes
        if self.command == "probe":
            answers = codes.get(Status.DONE, set())
            return gravest(codes.get(Status.FAILED, set()) | (answers if answers == {1} else set()))
        return gravest(set().union(*codes.values()))
