"""The common part of the commands that change files: finds the target and the output's path, and writes the planned
file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import Enum, auto
from importlib import import_module
from typing import Final, NamedTuple, TypeVar

from bloomcli.commands.options import Name, WriteOptions, policy_path
from bloomcli.commands.progress import Meter, Progress, cores
from bloomcli.engine_filters.base import Rewrite
from bloomcli.engine_filters.registry import may_rewrite
from bloomcli.errors import BloomError, NoValues, UsageError
from bloomcli.formats.base import ChangeResult, FilterFile, Plan
from bloomcli.formats.registry import open_file
from bloomcli.model.change import ChangeReport
from bloomcli.model.schema import RowLineage
from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import KeptRange, Pieces, Source, Store, Verify
from bloomcli.storage.managed_tables import table_above, table_error
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import preload_writing, store_of
from bloomcli.storage.traffic import counted, current, with_traffic

preload_writing()  # worker processes of a dataset are forked after this import, and don't repeat it


OUTPUT_EXISTS: Final = "the output is there already"
"""The reason why a file isn't changed whose output an earlier run made by the same request."""


class Target(NamedTuple):
    """The target of a changed file, either `output` or `in_place` (a dry run may have neither), and how it is
    written."""

    output: str | os.PathLike[str] | None = None
    in_place: bool = False
    overwrite: bool = False
    dry_run: bool = False
    force: bool = False
    """Change files in place even if a table's log records them; in a store, see `Store.replace`."""
    no_table: bool = False
    """The file is known to belong to no table, so none is searched for."""
    mirrored: bool = False
    """The output is a path from `Store.mirrored`."""
    only_changed: bool = False
    """A file that needs no change isn't copied to the output."""
    command: str = "add"
    """The command that changes the file, for hints."""
    columns: Sequence[str] = ()
    """The columns that the command names, for hints."""
    threads: int | None = None
    """Column chunks that are read at a time; None: one for each core."""
    progress: Progress | None = None

    def resolve(self, path: str) -> str | None:
        """The path to write for a file; None in a dry run without a target. Raises UsageError, WriteError."""
        if self.output is not None and self.in_place:
            raise UsageError("--output and --in-place exclude each other", path=path, hint="leave one of them out")
        if self.in_place or (self.dry_run and self.output is None):
            table = None if self.force or self.no_table else table_above(store_of(path), path)
            if table is not None:
                raise table_error(path, table, self.command, self.columns)
            return path if self.in_place else None
        if self.output is None:
            raise UsageError(
                "nowhere to write to",
                path=path,
                hint="give -o FILE, or --in-place to replace the file, or --dry-run to only see what would be done",
            )
        output = os.fspath(self.output)
        store = store_of(output)
        return output if self.mirrored and store.remote else store.destination(output, path)


def no_filters(file: FilterFile) -> str:
    """The reason why the chosen columns of a file have nothing to remove or fold."""
    return "the columns have no filters" if file.filtered_columns() else "there are no filters"


class ChangeRequest(NamedTuple):
    """A command and its options, applicable to any file: the parts in which add, remove, fold and repair differ."""

    options: WriteOptions
    """Checked options."""
    plan: Callable[[FilterFile], Plan]
    why_unchanged: Callable[[FilterFile], str | None]
    """The reason why a file needs no change; None if it needs one, or if only a plan can decide."""
    is_result: Callable[[FilterFile, FilterFile], bool]
    """Whether the second file is the result of the request for the first, judged by metadata and filters."""
    remarks: Callable[[FilterFile], tuple[str, ...]] = lambda _: ()
    """Remarks for the report."""
    without: Callable[[NoValues], ChangeRequest | None] = lambda _: None
    """The same request without a column that can't have a filter, as only its pages show; None if it was named, and
    not matched by a glob."""
    only_where_needed: bool = False
    """A file that needs no change isn't written, even if it is the only file."""
    why_idle: str | None = None
    """The reason why a plan that keeps everything isn't executed, except to write another file; None if it is."""
    lineage: RowLineage | None = None
    """The numbers of the rows, which the new file has to keep."""
    corrects: Callable[[FilterFile, Plan], tuple[str, ...]] = lambda *_: ()
    """Remarks on what the commit corrects in the metadata of the file's table: then the file is written even if the
    plan keeps everything."""
    rewrite: Callable[[FilterFile], Rewrite | None] = lambda _: None
    """Makes the file of an engine's filters beside the file, which is written in place of the file itself; None
    without one."""

    def open(self, source: Source) -> FilterFile:
        """Open a file by the names and keys of the options."""
        return open_file(source, self.options.names, self.options.keys)

    def keeps_all(self, plan: Plan) -> bool:
        """Whether a plan keeps every filter and other structure, and need not be executed."""
        actions = {one.action for one in plan.estimate} | {one.action for one in plan.structures}
        return self.why_idle is not None and actions <= {"keep"}


@convert_os_errors_of_file
@counted
def change(path: str | os.PathLike[str], request: ChangeRequest, target: Target) -> ChangeReport:
    """Plan a change and, unless it is a dry run, carry it out."""
    report = _without_empty_columns(request, lambda other: _change_file(path, other, target))
    return replace(report, policy=policy_path(request.options))


_Report = TypeVar("_Report", ChangeReport, ChangeReport | str)


def _without_empty_columns(request: ChangeRequest, changed: Callable[[ChangeRequest], _Report]) -> _Report:
    """Carry out a change; if that finds a column that can't have a filter, again without the column."""
    while True:
        try:
            return changed(request)
        except NoValues as error:
            other = request.without(error)
            if other is None:
                raise
            request = other._replace(lineage=request.lineage)


def _change_file(path: str | os.PathLike[str], request: ChangeRequest, target: Target) -> ChangeReport:
    started = time.perf_counter()
    store = store_of(path)
    with store.open(os.fspath(path)) as source:
        beside = _change_beside(source, request, target, sweeps=True)
        if beside is not None:
            return replace(beside, seconds=time.perf_counter() - started)
        output = _output(store, source, target)
        remarks: tuple[str, ...] = ()
        if output is not None:
            # for a dataset, the engine does this once for all files
            remarks = tuple(store_of(output).sweep_for([output]).remarks)
        file = request.open(source)
        reason = request.why_unchanged(file) if request.only_where_needed else None
        if reason is not None and target.output is None:
            return _unchanged(source, file, request, target, reason)
        file.appends_only = _appends_only(source, target, output)
        plan = request.plan(file)
        if target.in_place and request.why_idle is not None and request.keeps_all(plan):
            idle = request.why_idle if plan.estimate or request.options.command == "repair" else no_filters(file)
            reason = request.why_unchanged(file) or idle
            return _unchanged(source, file, request, target, reason, plan)
        report = _change(source, file, plan, output, request, target)
    return replace(report, seconds=time.perf_counter() - started, remarks=report.remarks + remarks)


def _change_beside(
    source: Source, request: ChangeRequest, target: Target, *, sweeps: bool = False
) -> ChangeReport | None:
    """Write a file of an engine's filters that lies beside a file of a table, in place. None if there is none, or if
    the file itself is to be changed. With `sweeps`, temporary files of killed runs are removed first."""
    in_place = target.in_place or target.dry_run
    if target.output is not None or not in_place or target.force or target.no_table or not may_rewrite(source.path):
        return None
    store = store_of(source.path)
    remarks: tuple[str, ...] = ()
    if sweeps and not target.dry_run:
        remarks = tuple(store.sweep_for([store.link_target(source.path) or source.path]).remarks)
    file = request.open(source)
    found = request.rewrite(file)
    if found is None:
        return None
    store.check_changes(found.path)
    idle = all(change.action == "keep" for change in found.changes)
    remarks += (str(request.why_idle) if idle else "the data file isn't changed: filters beside it are",)
    size = len(found.data)
    if not idle and not target.dry_run:

        def whole() -> Pieces:
            yield found.data

        def verify(written: Source) -> None:
            found.verify(written)
            source.check_unchanged()

        with ExitStack() as stack:
            before = source
            if found.fingerprint is not None:
                before = stack.enter_context(store.open(found.path))
                if before.fingerprint != found.fingerprint:
                    raise before.changed("changed")
            size = store.replace(store.normal(found.path), whole(), source=before, overwrite=True, verify=verify)
    return replace(
        _report(source, file, request, target),
        output=None if idle or target.dry_run else found.path,
        bytes_before=found.size,
        bytes_after=size,
        bytes_decoded=found.decoded,
        changes=found.changes,
        remarks=remarks,
    )


@convert_os_errors_of_file
def change_where_needed(path: str | os.PathLike[str], request: ChangeRequest, target: Target) -> ChangeReport | str:
    """Like `change`, but a file that needs no change is only copied, if at all. Returns the reason in this case.

    An existing output is kept if the same request made it from this file, and made again if another request did, or
    if the file has changed since. `overwrite` is needed to replace anything but a file of the same format. With
    `only_changed`, an existing output comes from an earlier attempt of this run, and its report is returned.
    """
    return _without_empty_columns(request, lambda other: _change_file_where_needed(path, other, target))


def _change_file_where_needed(
    path: str | os.PathLike[str], request: ChangeRequest, target: Target
) -> ChangeReport | str:
    started = time.perf_counter()
    store = store_of(path)
    with store.open(os.fspath(path)) as source:
        beside = _change_beside(source, request, target)
        if beside is not None:
            if all(change.action == "keep" for change in beside.changes):
                return str(request.why_idle)
            return replace(beside, seconds=time.perf_counter() - started)
        file = request.open(source)
        if request.lineage is not None and request.why_unchanged(file) is None:
            file = _with_lineage(file, request.lineage, request, target)
        if target.output is not None and not target.overwrite:
            state = _state(file, request, os.fspath(target.output))
            if state is _OutputState.MADE:
                if target.only_changed:
                    return _report_of_earlier_run(source, file, request, target)
                return OUTPUT_EXISTS
            target = target._replace(overwrite=state is _OutputState.STALE)
        file.appends_only = _appends_only(source, target, target.output)
        reason, plan = request.why_unchanged(file), None
        corrected: tuple[str, ...] = ()
        if reason is None and request.why_idle is not None:
            plan = request.plan(file)
            corrected = request.corrects(file, plan)
            reason = request.why_idle if request.keeps_all(plan) and not corrected else None
        if reason is not None:
            if target.output is None or target.only_changed:
                return reason
            if target.dry_run:
                _output(store, source, target, makes_directories=True)
                return f"{reason}; would be copied"
            copy = os.fspath(target.output)
            with _companion(file, copy, target) as put:
                _copy_whole(source, copy, target, verify=lambda _: put())
            return "; ".join((reason, "copied", *current().remarks))
        output = _output(store, source, target, makes_directories=True)
        report = _change(source, file, plan or request.plan(file), output, request, target)
    return replace(report, seconds=time.perf_counter() - started, remarks=report.remarks + corrected)


def _with_lineage(file: FilterFile, lineage: RowLineage, request: ChangeRequest, target: Target) -> FilterFile:
    """The file with columns that number its rows. Raises UnsupportedError if the format can't store them."""
    file.appends_only = _appends_only(file.source, target, target.output)
    extended = file.with_lineage(lineage)
    return file if extended is None else request.open(extended)


def _appends_only(source: Source, target: Target, output: str | os.PathLike[str] | None) -> bool:
    """Whether the new file should begin with the whole source."""
    path = source.path if output is None or target.in_place else os.fspath(output)
    return store_of(path).appends_only(source, path)


class _OutputState(Enum):
    """The state of an output's path."""

    MADE = auto()
    """It is the file that the request would write."""
    STALE = auto()
    """It is another file of the same format."""
    OTHER = auto()
    """It doesn't exist, or no request wrote it."""


def _state(file: FilterFile, request: ChangeRequest, output: str) -> _OutputState:
    origin, options = file.source, request.options
    changed_until = origin.fingerprint.mtime_ns + store_of(origin.path).mtime_step_ns - 1
    try:
        with store_of(output).open(output) as source:
            made = open_file(source, options.names, options.keys and options.keys.of_file(origin.path))
            if made.format != file.format:
                return _OutputState.OTHER
            try:
                newer = source.fingerprint.mtime_ns >= changed_until
                return _OutputState.MADE if newer and request.is_result(file, made) else _OutputState.STALE
            except BloomError:
                return _OutputState.STALE  # if the input is at fault, the change reports it
    except (BloomError, OSError):
        return _OutputState.OTHER


def _output(store: Store, source: Source, target: Target, *, makes_directories: bool = False) -> str | None:
    """The path to write; None in a dry run, which reports the same errors as a write at its start. Raises UsageError,
    WriteError."""
    if target.in_place:
        store.check_changes(source.path)
    output = target.resolve(store.normal(source.path))
    if not target.dry_run or output is None:
        return output
    overwrite = target.overwrite or target.in_place
    store_of(output).check_output(
        output, overwrite=overwrite, makes_directories=makes_directories, force=target.force
    )
    return None


def _change(
    source: Source, file: FilterFile, plan: Plan, output: str | None, request: ChangeRequest, target: Target
) -> ChangeReport:
    if output is None:
        report = replace(
            _report(source, file, request, target, plan),
            bytes_after=plan.bytes_to_copy + plan.new_bytes_bound,
            bytes_decoded=plan.bytes_to_decode,
            bytes_copied=plan.bytes_to_copy,
            remarks=plan.remarks + request.remarks(file),
        )
        return with_traffic(report, _estimated_traffic(file.source, plan, target))
    with _companion(file, output, target) as put:
        built, size = _carry_out(file.source, output, target, plan, put)
    return replace(
        _report(source, file, request, target),  # without the plan's estimates, for which Mosaic reads dictionaries
        output=output,
        bytes_after=size,
        bytes_decoded=built.bytes_decoded,
        bytes_copied=plan.bytes_to_copy,
        changes=tuple(built.changes),
        bytes_unreclaimed=built.bytes_unreclaimed,
        remarks=(*plan.remarks, *built.remarks, *current().remarks, *request.remarks(file)),
        structures=built.structures,
    )


def _estimated_traffic(source: Source, plan: Plan, target: Target) -> Traffic:
    """An estimate of the traffic of a change: reading for its plan, reading columns, and writing the new file."""
    output = source.path if target.output is None else os.fspath(target.output)
    writing = store_of(output).estimate(output, source.outline(plan.outline()), source=source.stored)
    return current().total + source.estimate(plan.reads()) + writing


def _unchanged(
    source: Source, file: FilterFile, request: ChangeRequest, target: Target, reason: str, plan: Plan | None = None
) -> ChangeReport:
    """The report on a file that needs no change and was not written."""
    report = _report(source, file, request, target, plan)
    return replace(report, remarks=(reason, *report.remarks))


def _report_of_earlier_run(source: Source, file: FilterFile, request: ChangeRequest, target: Target) -> ChangeReport:
    """The report on a file whose output an earlier attempt made. Rates and decoded bytes are no longer known."""
    plan, output = request.plan(file), os.fspath(target.output or "")
    with store_of(output).open(output) as made:
        size = made.size
    return replace(
        _report(source, file, request, target, plan),
        output=None if target.dry_run else output,
        bytes_after=size,
        bytes_copied=plan.bytes_to_copy,
        remarks=plan.remarks + request.corrects(file, plan),
    )


def _report(
    source: Source, file: FilterFile, request: ChangeRequest, target: Target, plan: Plan | None = None
) -> ChangeReport:
    """The report on a file, with what a plan estimates, before anything is written."""
    return ChangeReport(
        path=source.path,
        format=file.format,
        command=request.options.command,
        output=None,
        dry_run=target.dry_run,
        bytes_before=source.size,
        bytes_after=source.size,
        bytes_decoded=0,
        bytes_copied=0,
        seconds=0.0,
        changes=() if plan is None else tuple(plan.estimate),
        remarks=() if plan is None else plan.remarks,
        structures=() if plan is None else plan.structures,
    )


def _copy_whole(source: Source, output: str, target: Target, verify: Verify | None = None) -> None:
    """Copy a file that needs no change, as atomically as a changed one."""

    def whole() -> Pieces:
        yield KeptRange(0, source.size)

    store = store_of(output)
    store.replace(
        store.normal(output),
        whole(),
        source=source,
        overwrite=target.overwrite,
        verify=verify,
        force=target.force,
    )


@contextmanager
def _companion(file: FilterFile, output: str, target: Target) -> Iterator[Callable[[], None]]:
    """Yields what copies the file that readers need next to the new one: the keys of an encrypted file.

    It is called when the new file is complete, and just before it is put in place, so that no file stands without its
    keys. If the new file isn't put in place, the file at `output` gets its own keys back.
    """
    found = file.companion(output)
    if found is None or found[0] == found[1]:
        yield lambda: None
        return
    origin, copy = found
    store, kept = store_of(output), []
    before = store.fingerprint(output)

    def put() -> None:
        if before is not None and store.kind(copy) is not None:
            with store.open(copy) as own:
                kept.append(own.read_at(0, own.size))
        with store_of(origin).open(origin) as source:
            _copy_whole(source, copy, target._replace(overwrite=True))

    try:
        yield put
    except BaseException:
        if kept and store.fingerprint(output) == before:
            store.write_file(copy, kept[0], overwrite=True)
        raise


def _carry_out(
    source: Source, output: str, target: Target, plan: Plan, put: Callable[[], None]
) -> tuple[ChangeResult, int]:
    """Write the plan's pieces while other threads read its columns. Returns the result and the new file's size.

    `put` is called when the new file is verified, before it gets its path.
    """
    copied = Meter(target.progress, "copy", plan.bytes_to_copy)
    decoded = Meter(target.progress, "decode", plan.bytes_to_decode)

    def verify(written: Source) -> None:
        plan.result().verify(written)
        put()

    size = store_of(output).replace(
        output,
        source.pieces(plan.pieces(target.threads or cores(), decoded.tick)),
        source=source.stored,
        overwrite=target.overwrite or target.in_place,
        verify=verify,
        cancelled=plan.failed,
        progress=copied.tick,
        force=target.force,
    )
    return plan.result(), size


def run(path: Name, options: WriteOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file by the command whose options are given. Raises: as the function of that name."""
    request: Callable[[WriteOptions], ChangeRequest] = import_module(f"bloomcli.commands.{options.command}").request
    return change(path, request(options), target_of(options, progress=progress))


def target_of(
    options: WriteOptions,
    *,
    output: Name | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Target:
    """Return the target of a file: `output` if given, else the target in the options. `threads` are used if the
    options don't set a number."""
    return Target(
        output=options.output if output is None else output,
        in_place=options.in_place,
        overwrite=options.overwrite,
        dry_run=options.dry_run,
        force=options.force,
        mirrored=output is not None,
        command=options.command,
        columns=tuple(options.columns),
        threads=getattr(options, "threads", None) or threads,  # not all commands read columns
        progress=progress,
    )
