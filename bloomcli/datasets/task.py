"""The task for one file of a dataset: picklable, and run to a row of the report. All engines run the same tasks.

A task doesn't raise errors of its file or of the request: they become a row, so that one bad file stops neither a run
nor a Spark stage. Tasks can run again: work that is already done is skipped.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from bloomcli.commands.advise_options import ExtentOptions, UnitOptions
from bloomcli.commands.options import (
    AddOptions,
    IndexOptions,
    InspectOptions,
    Options,
    ProbeOptions,
    RepairOptions,
    SurveyOptions,
    ValidateOptions,
    WriteOptions,
)
from bloomcli.concurrency.threads import Progress
from bloomcli.errors import BloomError, UnknownFormat
from bloomcli.formats.registry import known_suffix
from bloomcli.hints import completed
from bloomcli.model.dataset import ColumnFilters, CorrectedRow, FileRow, Status
from bloomcli.model.file import ColumnSummary, EngineFilterFacts, FilterFacts
from bloomcli.model.inspect import InspectReport
from bloomcli.model.paths import shown
from bloomcli.model.schema import RowLineage
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.model.traffic import traffic_of
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import store_of
from bloomcli.storage.traffic import Meter, counted_by, with_traffic

if TYPE_CHECKING:
    from bloomcli.model.change import ChangeReport
    from bloomcli.model.probe import ProbeReport
    from bloomcli.model.validate import ValidateReport


OnRow = Callable[[FileRow], None]
"""Called in the caller's thread with each file's row, in the order in which files finish."""


class DryRunRequests(Enum):
    """Which requests the row of a dry run counts."""

    CHANGE = auto()
    """An estimate for the change."""
    CHECK = auto()
    """The dry run's own: it is the check of a file before the first change."""
    CHANGE_AND_CHECK = auto()
    """An estimate for the check and the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One file, and the options of a command."""

    options: Options
    """Checked options, the same object for all files of a run."""
    path: str
    size: int
    """Bytes, for planning; -1 if unknown."""
    walked: bool = False
    """The file was found in a directory, or is one of several and has a hidden name: it is skipped if its format is
    unknown."""
    output: str | None = None
    """The file to write, if the command doesn't replace `path`."""
    only_changed: bool = False
    """A file that needs no change isn't copied to `output`."""
    threads: int | None = None
    """Threads to use if the options don't set a number."""
    no_table: bool = False
    """The file is known to belong to no table."""
    lineage: RowLineage | None = None
    """The row ids that a new file has to keep."""
    statistics: bytes | None = None
    """validate, repair: what the file's table says about it, as `FileStatistics.packed`."""
    row: FileRow | None = None
    """The file's row, if it is decided before the task runs."""
    dry_run_requests: DryRunRequests = DryRunRequests.CHANGE
    """The requests that the row of a dry run counts."""

    @property
    def command(self) -> str:
        """The command's name."""
        return self.options.command

    @property
    def table(self) -> FileStatistics | None:
        """What the file's table says about it."""
        return None if self.statistics is None else FileStatistics.unpacked(self.statistics)

    @property
    def dry_run(self) -> bool:
        """The command only reports what it would do."""
        return isinstance(self.options, WriteOptions) and self.options.dry_run

    @property
    def is_light(self) -> bool:
        """The command reads only metadata and filters: files can be processed in threads."""
        options = self.options
        if isinstance(options, ValidateOptions):
            return not options.deep
        return isinstance(options, ExtentOptions | InspectOptions | ProbeOptions | SurveyOptions)

    @property
    def target(self) -> str | None:
        """The file that the command writes; None in a dry run, and if it writes none."""
        if not isinstance(self.options, WriteOptions) or self.options.dry_run:
            return None
        return self.output or (self.path if self.options.in_place else None)


def run(task: Task, progress: Progress | None = None) -> FileRow:
    """Run one task and return its row. Only a stop from outside raises."""
    if task.row is not None:
        return task.row
    started, meter = time.perf_counter(), Meter()
    with counted_by(meter):
        row = _row(task, progress)
    if task.dry_run_requests is DryRunRequests.CHECK:
        row = replace(row, requests=None)
    elif task.dry_run_requests is DryRunRequests.CHANGE_AND_CHECK and (change := traffic_of(row)) is not None:
        row = with_traffic(replace(row, requests=None), change + meter.total)
    return replace(with_traffic(row, meter.total), seconds=time.perf_counter() - started)


def _row(task: Task, progress: Progress | None) -> FileRow:
    try:
        with convert_os_errors(task.path):
            return _run(task, progress)
    except UnknownFormat as error:
        if task.walked and not known_suffix(task.path):
            return FileRow(path=task.path, status=Status.SKIPPED, reason=OTHER_KIND)
        return failed_row(task.path, error)
    except BloomError as error:
        return failed_row(task.path, error)
    except Exception as error:  # noqa: BLE001  a bug in one file's handling must not stop the others
        return FileRow(
            path=task.path,
            status=Status.FAILED,
            error=f"{shown(task.path)}: a bug: {type(error).__name__}: {error}",
            exit_code=70,
        )


def failed_row(path: str, error: BloomError) -> FileRow:
    """The row of a file that failed."""
    return FileRow(
        path=path,
        status=Status.FAILED,
        error=error.message,
        hint=completed(error.hint, path),
        exit_code=error.exit_code,
        findings=error.findings,
    )


def _run(task: Task, progress: Progress | None) -> FileRow:
    """Run the command. Its module is imported here, so that reading commands don't import the code that writes."""
    options, module = task.options, module_of(task.command)
    match options:
        case WriteOptions():
            return _change(task, options, progress)
        case InspectOptions():
            return inspect_row(module.run(task.path, options), every=options.every)
        case ProbeOptions():
            return _probe_row(module.run(task.path, options))
        case ValidateOptions():
            report = module.run(task.path, options, table=task.table, threads=task.threads, progress=progress)
            return validate_row(report)
    works = {IndexOptions: "run", SurveyOptions: "run", ExtentOptions: "extents", UnitOptions: "units"}
    row: FileRow = getattr(module, works[type(options)])(task.path, options)
    return row


def _probe_row(report: ProbeReport) -> FileRow:
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        row_groups=report.row_groups,
        columns=1,
        bytes_before=report.total_bytes,
        totals=report.totals,
        reason=report.unverified,
        exit_code=1 if report.absent_everywhere else 0,
    )


def validate_row(report: ValidateReport) -> FileRow:
    """The row of a validated file."""
    return FileRow(
        path=report.path,
        status=Status.DONE if report.ok else Status.FOUND,
        format=report.format,
        row_groups=report.row_groups,
        row_groups_read=report.row_groups_read,
        filters=report.filters_checked,
        values_checked=report.values_checked,
        findings=report.findings,
        seconds=report.seconds,
        exit_code=0 if report.ok else 1,
    )


def _change(task: Task, options: WriteOptions, progress: Progress | None) -> FileRow:
    from bloomcli.commands.change import Target, change_where_needed, request_of

    if task.output is not None and not options.dry_run:
        store_of(task.output).make_directory(task.output)
    more: dict[str, object] = {}
    if isinstance(options, AddOptions):
        more = {"where_missing": True}
    elif isinstance(options, RepairOptions):
        more = {"table": task.table}
    request = request_of(options, **more)
    target = Target(
        output=task.output,
        only_changed=task.only_changed,
        no_table=task.no_table,
        lineage=task.lineage,
        threads=task.threads,
        progress=progress,
    )
    done = change_where_needed(task.path, request, target)
    if isinstance(done, str):
        output = None if task.only_changed else task.output
        return FileRow(path=task.path, status=Status.SKIPPED, output=output, reason=done)
    row, right = _change_row(done), getattr(request, "right", None)  # only `repair` compares a table's metadata
    return row if right is None else CorrectedRow.of(row, right)


def module_of(command: str) -> ModuleType:
    """Import a command's module."""
    return import_module(f"bloomcli.commands.{command}")


def _change_row(report: ChangeReport) -> FileRow:
    touched = [c for c in report.changes if c.action != "keep"]
    structures = [s for s in report.structures if s.action != "keep"]
    row = FileRow(
        path=report.path,
        status=Status.PLANNED if report.dry_run else Status.DONE,
        format=report.format,
        output=report.output,
        columns=len({c.column for c in touched} | {s.column for s in structures if s.column is not None}),
        structures=len(structures) if report.command == "repair" else None,
        filters=sum(c.filters for c in touched),
        filter_bytes=sum((c.bitset_bytes or 0) * c.filters for c in touched),
        bytes_before=report.bytes_before,
        bytes_after=report.bytes_after,
        bytes_decoded=report.bytes_decoded,
        bytes_copied=report.bytes_copied,
        max_fpp=max((c.fpp for c in touched if c.fpp is not None), default=None),
        reason=_remarks(report),
    )
    return with_traffic(row, traffic_of(report))


def _remarks(report: ChangeReport) -> str | None:
    """The columns that were left out, and remarks, without evidence: the rules' pages have it."""
    left_out: dict[str, list[str]] = {}
    for change in report.changes:
        if change.reason is not None:
            left_out.setdefault(_brief(change.reason), []).append(change.column)
    texts = [f"left out: {', '.join(columns)}, {reason}" for reason, columns in left_out.items()]
    return "; ".join([*texts, *map(_brief, report.remarks)]) or None


def _brief(text: str) -> str:
    """Cut a text after the rule in brackets."""
    brief, rule, _ = text.partition("] (")
    return brief + rule[:1]


def inspect_row(report: InspectReport, *, every: bool) -> FileRow:
    """The row of an inspected file; with all its filters if `every` is true."""
    of_engines = Counter(f.column for f in report.engine_filters if f.problem is None)
    every_filter: tuple[FilterFacts | EngineFilterFacts, ...] = (*report.filters, *report.engine_filters)
    broken = [f"unreadable: {f.problem}" for f in report.filters if f.problem is not None]
    broken += [f"of an engine not used: {f.problem}" for f in report.engine_filters if f.problem is not None]
    reasons = [f"{len(broken)} {reason}" for reason in broken[:1]]
    reasons += [] if report.unverified is None else [report.unverified]
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        row_groups=report.row_groups,
        columns=len({f.column for f in every_filter}),
        filters=len(every_filter),
        filter_bytes=sum(f.bitset_bytes or 0 for f in report.filters)
        + sum(f.length or 0 for f in report.engine_filters),
        bytes_before=report.file_bytes,
        max_fpp=max((f.fpp for f in every_filter if f.fpp is not None), default=None),
        reason="; ".join(reasons) or None,
        created_by=report.created_by,
        by_column=tuple(_filters_of(column, of_engines[column.column]) for column in report.by_column),
        filter_facts=report.filters if every else (),
        engine_filters=report.engine_filters if every else (),
    )


def _filters_of(column: ColumnSummary, of_engines: int) -> ColumnFilters:
    return ColumnFilters(
        column=column.column,
        type=column.logical or column.physical,
        row_groups_with_filter=column.row_groups_with_filter,
        row_groups_without_filter=column.row_groups_without_filter,
        filters=column.filters,
        unreadable=column.unreadable,
        bitset_bytes=column.bitset_bytes,
        max_fpp=column.max_fpp,
        engine_filters=of_engines,
    )


OTHER_KIND: Final = "not a file of a known format"
"""Why a file is skipped."""
