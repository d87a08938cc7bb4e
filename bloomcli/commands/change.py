"""The common part of the commands that change files: finds the target and the output's path, and writes the planned
file."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import Enum, auto
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from bloomcli.commands.options import Name, WriteOptions, policy_path
from bloomcli.concurrency.threads import Meter, Progress, cores
from bloomcli.engine_filters.base import Rewrite
from bloomcli.engine_filters.registry import may_rewrite
from bloomcli.errors import BloomError, NoValues, UsageError
from bloomcli.formats.base import ChangeResult, FilterFile, Plan
from bloomcli.formats.registry import open_file
from bloomcli.model.change import OUTPUT_EXISTS, ChangeReport
from bloomcli.model.schema import RowLineage
from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import KeptRange, Pieces, Source, Store, Verify
from bloomcli.storage.managed_tables import table_above, table_error
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import preload_writing, store_of
from bloomcli.storage.traffic import counted, current, with_traffic

preload_writing()  # worker processes of a dataset are forked after this import, and don't repeat it


class Target(NamedTuple):
    """What is known of one file and of its new version besides the options of the command."""

    output: str | None = None
    """The file to write, a path from `Store.mirrored`; None if the options say where the new file goes."""
    only_changed: bool = False
    """A file that needs no change isn't copied to the output."""
    no_table: bool = False
    """The file is known to belong to no table, so none is searched for."""
    lineage: RowLineage | None = None
    """The numbers of the rows, which the new file has to keep."""
    threads: int | None = None
    """Column chunks that are read at a time if the options don't set a number; one for each core if None."""
    progress: Progress | None = None


def no_filters(file: FilterFile) -> str:
    """The reason why the chosen columns of a file have nothing to remove or fold."""
    return "the columns have no filters" if file.filtered_columns() else "there are no filters"


class ChangeRequest(ABC):
    """A command and its options, applicable to any file: what add, remove, fold and repair do differently."""

    options: WriteOptions
    """Checked options."""
    why_idle: str | None = None
    """The reason why a plan that keeps everything isn't executed, except to write another file; None if it is."""
    only_where_needed: bool = False
    """A file that needs no change isn't written, even if it is the only file."""

    def __init__(self, options: WriteOptions) -> None:
        """Make the request for any file. Raises UsageError."""
        self.options = options.checked()

    @abstractmethod
    def plan(self, file: FilterFile) -> Plan:
        """The change of one file. Raises UsageError."""

    @abstractmethod
    def why_unchanged(self, file: FilterFile) -> str | None:
        """The reason why a file needs no change; None if it needs one, or if only a plan can decide."""

    @abstractmethod
    def is_result(self, file: FilterFile, output: FilterFile) -> bool:
        """Whether `output` is the result of the request for `file`, judged by metadata and filters."""

    def remarks(self, file: FilterFile) -> tuple[str, ...]:
        """Remarks for the report."""
        del file
        return ()

    def without(self, error: NoValues) -> ChangeRequest | None:
        """The same request without a column that can't have a filter, as only its pages show; None if it was named,
        and not matched by a glob."""
        del error
        return None

    def corrects(self, file: FilterFile, plan: Plan) -> tuple[str, ...]:
        """Remarks on what the commit corrects in the metadata of the file's table: then the file is written even if
        the plan keeps everything."""
        del file, plan
        return ()

    def rewrite(self, file: FilterFile) -> Rewrite | None:
        """The file of an engine's filters beside the file, which is written in place of the file itself; None without
        one."""
        del file
        return None

    def keeps_all(self, plan: Plan) -> bool:
        """Whether a plan keeps every filter and other structure, and need not be executed."""
        actions = {change.action for change in plan.estimate} | {structure.action for structure in plan.structures}
        return self.why_idle is not None and actions <= {"keep"}


def request_of(options: WriteOptions, **more: Any) -> ChangeRequest:
    """The request of the command whose options are given; `more`: what else the command's request takes. Raises
    UsageError."""
    kind: Callable[..., ChangeRequest] = import_module(f"bloomcli.commands.{options.command}").Request
    return kind(options, **more)


def run(path: Name, options: WriteOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file by the command whose options are given. Raises: as the function of that name."""
    request = request_of(options)
    return replace(_run(path, request, Target(progress=progress)), policy=policy_path(request.options))


@convert_os_errors_of_file
@counted
def _run(path: Name, request: ChangeRequest, target: Target) -> ChangeReport:
    return _without_empty_columns(path, request, target, _Change.of_one_file)


@convert_os_errors_of_file
def change_where_needed(path: Name, request: ChangeRequest, target: Target) -> ChangeReport | str:
    """Change one of many files. A file that needs no change is only copied, if at all: then the reason is returned.

    An existing output is kept if the same request made it from this file, and made again if another request did, or
    if the file has changed since. `overwrite` is needed to replace anything but a file of the same format. With
    `only_changed`, an existing output comes from an earlier attempt of this run, and its report is returned.
    """
    return _without_empty_columns(path, request, target, _Change.where_needed)


_Report = TypeVar("_Report", ChangeReport, ChangeReport | str)


def _without_empty_columns(
    path: Name, request: ChangeRequest, target: Target, changed: Callable[[_Change], _Report]
) -> _Report:
    """Carry out a change; if that finds a column that can't have a filter, again without the column."""
    while True:
        started = time.perf_counter()
        try:
            store = store_of(path)
            with store.open(os.fspath(path)) as source:
                return changed(_Change(started, store, source, request, target))
        except NoValues as error:
            other = request.without(error)
            if other is None:
                raise
            request = other


class _OutputState(Enum):
    """The state of an output's path."""

    MADE = auto()
    """It is the file that the request would write."""
    STALE = auto()
    """It is another file of the same format."""
    OTHER = auto()
    """It doesn't exist, or no request wrote it."""


class _Change:
    """The change of one open file."""

    def __init__(self, started: float, store: Store, source: Source, request: ChangeRequest, target: Target) -> None:
        """`started`: the time before `store` opened the file."""
        self._started, self._store, self._source = started, store, source
        self._request, self._target = request, target
        self._options = options = request.options
        output = options.output if target.output is None else target.output
        self._out_path = None if output is None else os.fspath(output)
        """The output that the task or the options name, which may be a directory."""
        self._overwrite = options.overwrite
        # not all commands read columns
        self._threads = getattr(options, "threads", None) or target.threads or cores()

    @cached_property
    def _file(self) -> FilterFile:
        """The file by the names and keys of the options."""
        return open_file(self._source, self._options.names, self._options.keys)

    def of_one_file(self) -> ChangeReport:
        """Plan the change and, unless it is a dry run, carry it out."""
        request, in_place = self._request, self._options.in_place
        beside = self._beside(sweeps=True)
        if beside is not None:
            return beside
        output = self._output()
        # for a dataset, the engine does this once for all files
        remarks = () if output is None else tuple(store_of(output).sweep_for([output]).remarks)
        reason = request.why_unchanged(self._file) if request.only_where_needed else None
        if reason is not None and self._out_path is None:
            return self._unchanged(reason)
        self._file.appends_only = self._appends_only(output)
        plan = request.plan(self._file)
        if in_place and request.why_idle is not None and request.keeps_all(plan):
            idle = request.why_idle if plan.estimate or self._options.command == "repair" else no_filters(self._file)
            return self._unchanged(request.why_unchanged(self._file) or idle, plan)
        report = self._carried_out(plan, output)
        return replace(report, seconds=time.perf_counter() - self._started, remarks=report.remarks + remarks)

    def where_needed(self) -> ChangeReport | str:
        """Do the same for one of many files; see `change_where_needed`."""
        request, target = self._request, self._target
        beside = self._beside()
        if beside is not None:
            return str(request.why_idle) if all(change.action == "keep" for change in beside.changes) else beside
        if target.lineage is not None and request.why_unchanged(self._file) is None:
            self._keep_lineage(target.lineage)
        if self._out_path is not None and not self._overwrite:
            state = self._state(self._out_path)
            if state is _OutputState.MADE:
                return self._report_of_earlier_run(self._out_path) if target.only_changed else OUTPUT_EXISTS
            self._overwrite = state is _OutputState.STALE
        self._file.appends_only = self._appends_only(self._out_path)
        reason, plan = request.why_unchanged(self._file), None
        corrected: tuple[str, ...] = ()
        if reason is None and request.why_idle is not None:
            plan = request.plan(self._file)
            corrected = request.corrects(self._file, plan)
            reason = request.why_idle if request.keeps_all(plan) and not corrected else None
        if reason is not None:
            return reason if self._out_path is None or target.only_changed else self._copied(reason, self._out_path)
        output = self._output(makes_directories=True)
        report = self._carried_out(plan or request.plan(self._file), output)
        return replace(report, seconds=time.perf_counter() - self._started, remarks=report.remarks + corrected)

    def _beside(self, *, sweeps: bool = False) -> ChangeReport | None:
        """Write a file of an engine's filters that lies beside a file of a table, in place. None if there is none, or
        if the file itself is to be changed. With `sweeps`, temporary files of killed runs are removed first."""
        source, options, store = self._source, self._options, self._store
        in_place = (options.in_place or options.dry_run) and self._out_path is None
        if not in_place or options.force or self._target.no_table or not may_rewrite(source.path):
            return None
        remarks: tuple[str, ...] = ()
        if sweeps and not options.dry_run:
            remarks = tuple(store.sweep_for([store.link_target(source.path) or source.path]).remarks)
        rewrite = self._request.rewrite(self._file)
        if rewrite is None:
            return None
        store.check_changes(rewrite.path)
        idle = all(change.action == "keep" for change in rewrite.changes)
        remarks += (str(self._request.why_idle) if idle else "the data file isn't changed: filters beside it are",)
        written = not idle and not options.dry_run
        return replace(
            self._report(),
            output=rewrite.path if written else None,
            bytes_before=rewrite.size,
            bytes_after=self._rewrite(rewrite) if written else len(rewrite.data),
            bytes_decoded=rewrite.decoded,
            seconds=time.perf_counter() - self._started,
            changes=rewrite.changes,
            remarks=remarks,
        )

    def _rewrite(self, rewrite: Rewrite) -> int:
        """Write the file of an engine's filters, and return its size. Raises SourceChanged."""
        source, store = self._source, self._store

        def whole() -> Pieces:
            yield rewrite.data

        def verify(written: Source) -> None:
            rewrite.verify(written)
            source.check_unchanged()

        with ExitStack() as stack:
            before = source
            if rewrite.fingerprint is not None:
                before = stack.enter_context(store.open(rewrite.path))
                if before.fingerprint != rewrite.fingerprint:
                    raise before.changed("changed")
            return store.replace(store.normal(rewrite.path), whole(), source=before, overwrite=True, verify=verify)

    def _keep_lineage(self, lineage: RowLineage) -> None:
        """Add columns that number the rows to the file. Raises UnsupportedError if the format can't store them."""
        self._file.appends_only = self._appends_only(self._out_path)
        extended = self._file.with_lineage(lineage)
        if extended is not None:
            self._file = open_file(extended, self._options.names, self._options.keys)

    def _appends_only(self, output: str | None) -> bool:
        """Whether the new file should begin with the whole source."""
        path = self._source.path if output is None or self._options.in_place else output
        return store_of(path).appends_only(self._source, path)

    def _state(self, output: str) -> _OutputState:
        file, options = self._file, self._options
        origin = file.source
        changed_until = origin.fingerprint.mtime_ns + store_of(origin.path).mtime_step_ns - 1
        try:
            with store_of(output).open(output) as source:
                out = open_file(source, options.names, options.keys and options.keys.of_file(origin.path))
                if out.format != file.format:
                    return _OutputState.OTHER
                try:
                    newer = source.fingerprint.mtime_ns >= changed_until
                    return _OutputState.MADE if newer and self._request.is_result(file, out) else _OutputState.STALE
                except BloomError:
                    return _OutputState.STALE  # if the input is at fault, the change reports it
        except (BloomError, OSError):
            return _OutputState.OTHER

    def _output(self, *, makes_directories: bool = False) -> str | None:
        """The path to write; None in a dry run, which reports the same errors as a write at its start. Raises
        UsageError, WriteError."""
        options = self._options
        if options.in_place:
            self._store.check_changes(self._source.path)
        output = self._resolved(self._store.normal(self._source.path))
        if not options.dry_run or output is None:
            return output
        store_of(output).check_output(
            output,
            overwrite=self._overwrite or options.in_place,
            makes_directories=makes_directories,
            force=options.force,
        )
        return None

    def _resolved(self, path: str) -> str | None:
        """The path to write; None in a dry run without a target. Raises UsageError, WriteError."""
        options, output = self._options, self._out_path
        if output is not None and options.in_place:
            raise UsageError("--output and --in-place exclude each other", path=path, hint="leave one of them out")
        if options.in_place or (options.dry_run and output is None):
            table = None if options.force or self._target.no_table else table_above(store_of(path), path)
            if table is not None:
                raise table_error(path, table, options.command, tuple(options.columns))
            return path if options.in_place else None
        if output is None:
            raise UsageError(
                "nowhere to write to",
                path=path,
                hint="give -o FILE, or --in-place to replace the file, or --dry-run to only see what would be done",
            )
        store = store_of(output)
        mirrored = self._target.output is not None and store.remote
        return output if mirrored else store.destination(output, path)

    def _carried_out(self, plan: Plan, output: str | None) -> ChangeReport:
        """Write the new file to `output`, or only estimate the change, and return the report."""
        file, request = self._file, self._request
        if output is None:
            report = replace(
                self._report(plan),
                bytes_after=plan.bytes_to_copy + plan.new_bytes_bound,
                bytes_decoded=plan.bytes_to_decode,
                bytes_copied=plan.bytes_to_copy,
                remarks=plan.remarks + request.remarks(file),
            )
            return with_traffic(report, self._estimated_traffic(plan))
        with self._companion(output) as put:
            built, size = self._written(plan, output, put)
        return replace(
            self._report(),  # without the plan's estimates, for which Mosaic reads dictionaries
            output=output,
            bytes_after=size,
            bytes_decoded=built.bytes_decoded,
            bytes_copied=plan.bytes_to_copy,
            changes=tuple(built.changes),
            bytes_unreclaimed=built.bytes_unreclaimed,
            remarks=(*plan.remarks, *built.remarks, *current().remarks, *request.remarks(file)),
            structures=built.structures,
        )

    def _estimated_traffic(self, plan: Plan) -> Traffic:
        """An estimate of the traffic of a change: reading for its plan, reading columns, and writing the new file."""
        source = self._file.source
        output = source.path if self._out_path is None else self._out_path
        writing = store_of(output).estimate(output, source.outline(plan.outline()), source=source.stored)
        return current().total + source.estimate(plan.reads()) + writing

    def _unchanged(self, reason: str, plan: Plan | None = None) -> ChangeReport:
        """The report on a file that needs no change and was not written."""
        report = self._report(plan)
        return replace(report, remarks=(reason, *report.remarks))

    def _report_of_earlier_run(self, output: str) -> ChangeReport:
        """The report on a file whose output an earlier attempt made. Rates and decoded bytes are no longer known."""
        plan = self._request.plan(self._file)
        with store_of(output).open(output) as source:
            size = source.size
        return replace(
            self._report(plan),
            output=None if self._options.dry_run else output,
            bytes_after=size,
            bytes_copied=plan.bytes_to_copy,
            remarks=plan.remarks + self._request.corrects(self._file, plan),
        )

    def _report(self, plan: Plan | None = None) -> ChangeReport:
        """The report on a file, with what a plan estimates, before anything is written."""
        size = self._source.size
        return ChangeReport(
            path=self._source.path,
            format=self._file.format,
            command=self._options.command,
            output=None,
            dry_run=self._options.dry_run,
            bytes_before=size,
            bytes_after=size,
            bytes_decoded=0,
            bytes_copied=0,
            seconds=0.0,
            changes=() if plan is None else tuple(plan.estimate),
            remarks=() if plan is None else plan.remarks,
            structures=() if plan is None else plan.structures,
        )

    def _copied(self, reason: str, output: str) -> str:
        """Copy a file that needs no change, unless it is a dry run. Returns the reason, and what was done."""
        if self._options.dry_run:
            self._output(makes_directories=True)
            return f"{reason}; would be copied"
        with self._companion(output) as put:
            self._copy_whole(self._source, output, self._overwrite, verify=lambda _: put())
        return "; ".join((reason, "copied", *current().remarks))

    def _copy_whole(self, source: Source, output: str, overwrite: bool, verify: Verify | None = None) -> None:
        """Copy a file as atomically as a changed one is written."""

        def whole() -> Pieces:
            yield KeptRange(0, source.size)

        store, force = store_of(output), self._options.force
        store.replace(store.normal(output), whole(), source=source, overwrite=overwrite, verify=verify, force=force)

    @contextmanager
    def _companion(self, output: str) -> Iterator[Callable[[], None]]:
        """Yields what copies the file that readers need next to the new one: the keys of an encrypted file.

        It is called when the new file is complete, and just before it is put in place, so that no file stands without
        its keys. If the new file isn't put in place, the file at `output` gets its own keys back.
        """
        pair = self._file.companion(output)
        if pair is None or pair[0] == pair[1]:
            yield lambda: None
            return
        origin, copy = pair
        store, kept = store_of(output), []
        before = store.fingerprint(output)

        def put() -> None:
            if before is not None and store.kind(copy) is not None:
                with store.open(copy) as own:
                    kept.append(own.read_at(0, own.size))
            with store_of(origin).open(origin) as source:
                self._copy_whole(source, copy, overwrite=True)

        try:
            yield put
        except BaseException:
            if kept and store.fingerprint(output) == before:
                store.write_file(copy, kept[0], overwrite=True)
            raise

    def _written(self, plan: Plan, output: str, put: Callable[[], None]) -> tuple[ChangeResult, int]:
        """Write the plan's pieces while other threads read its columns. Returns the result and the new file's size.

        `put` is called when the new file is verified, before it gets its path.
        """
        source, options = self._file.source, self._options
        copied = Meter(self._target.progress, "copy", plan.bytes_to_copy)
        decoded = Meter(self._target.progress, "decode", plan.bytes_to_decode)

        def verify(written: Source) -> None:
            plan.result().verify(written)
            put()

        size = store_of(output).replace(
            output,
            source.pieces(plan.pieces(self._threads, decoded.tick)),
            source=source.stored,
            overwrite=self._overwrite or options.in_place,
            verify=verify,
            cancelled=plan.failed,
            progress=copied.tick,
            force=options.force,
        )
        return plan.result(), size
