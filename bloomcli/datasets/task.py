"""One file of a dataset: a picklable task in, a row of the report out. What every engine runs.

A task never raises for what is wrong with its file or the request: that becomes a row with its error, so that
one bad file stops neither a run nor a Spark stage. Tasks may be run again: what is done already is skipped.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from bloomcli.commands.progress import Progress
from bloomcli.errors import BloomError, UnknownFormat, UsageError, WriteError
from bloomcli.formats.registry import known_suffix
from bloomcli.model.dataset import FileRow, Status, SurveyReport
from bloomcli.model.file import ChangeReport, FilterFacts, InspectReport, ProbeReport, ValidateReport
from bloomcli.storage.listing import Listed, spelling
from bloomcli.storage.os_errors import hint, reason, refused

if TYPE_CHECKING:
    from bloomcli.commands.change import ChangeRequest

CHANGING: Final = ("add", "remove", "fold")
"""Commands that write."""

OTHER_KIND: Final = "not a file of a known format"
"""Why a file that was found in a directory is skipped whatever is to be done."""

LINKED: Final = "a link to a directory: these are followed only where they are named"
"""Why a link that was found in a directory is skipped."""

_URI: Final = re.compile(r"[a-z][a-z0-9+.-]+:/")
"""A URI, also as `Path` spells it."""

COMMANDS: Final = ("add", "fold", "inspect", "probe", "remove", "survey", "validate")
"""Commands that work on datasets, each a function in the module of its name."""

_NOT_OF_ORDERS: Final = ("dry_run", "force", "overwrite", "threads")
"""Options of commands that write which say where and how, not what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One file, a command and its options."""

    command: str
    path: str
    size: int
    """Bytes, for planning; -1 where it isn't known."""
    walked: bool = False
    """It was found in a directory, or is a hidden name beside others: other kinds of files are skipped there."""
    options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the command's function."""
    output: str | None = None
    in_place: bool = False
    threads: int | None = None
    row: FileRow | None = None
    """The file's row, where there is nothing to do to know it."""


def plan(
    command: str,
    listed: Iterable[Listed],
    options: dict[str, Any],
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> list[Task]:
    """Tasks for files, with their outputs below `output`, where a changing command mirrors the tree.

    Raises:
        UsageError: contradicting or missing targets, two files with the same output, an order that no file can meet.
    """
    with refused():
        return _plan(command, list(listed), options, output, in_place)


def _plan(
    command: str,
    listed: list[Listed],
    options: dict[str, Any],
    output: str | os.PathLike[str] | None,
    in_place: bool,
) -> list[Task]:
    if command not in COMMANDS:
        raise UsageError(f"no command {command!r} for datasets", hint=", ".join(COMMANDS))
    changing = command in CHANGING
    if changing and output is not None and in_place:
        raise UsageError("--output and --in-place exclude each other")
    if changing and output is None and not in_place and not options.get("dry_run"):
        raise UsageError(
            "nowhere to write to",
            hint="give -o DIRECTORY, or --in-place to replace the files, or --dry-run to only see what would be done",
        )
    if changing and output is not None and _URI.match(os.fspath(output)):
        raise UsageError("outputs are written to this machine only", path=os.fspath(output), hint="-o DIRECTORY")
    if changing:
        _order(command, options)
    home = "" if output is None else os.path.realpath(output)
    spell = spelling()
    tasks: list[Task] = []
    outputs: dict[str, str] = {}
    for item in listed:
        if item.problem is not None or item.linked:
            tasks.append(Task(command=command, path=item.path, size=item.size, row=_known(item)))
            continue
        target = None
        if changing and output is not None:
            target = str(Path(output) / item.relative)
            place = spell(item.path)
            if place == spell(target):
                raise UsageError("the output is the input", path=item.path, hint="--in-place replaces files safely")
            if (item.walked or item.matched) and _is_output(place, item.relative, home):
                continue
            other = outputs.setdefault(target, item.path)
            if other != item.path:
                raise UsageError(
                    f"{other} and {item.path} would both become {target}", hint="name the directory above them"
                )
        tasks.append(
            Task(
                command=command,
                path=item.path,
                size=item.size,
                walked=item.walked or (len(listed) > 1 and Path(item.path).name.startswith((".", "_"))),
                options=options,
                output=target,
                in_place=changing and in_place,
            )
        )
    return _each_once(tasks) if changing and in_place else tasks


def _each_once(tasks: list[Task]) -> list[Task]:
    """Of several names of one file, by symbolic links, the file's own is worked on, or else the first."""
    spell = spelling()
    links = [os.path.islink(t.path) for t in tasks]  # noqa: PTH114  unlike Path.is_symlink it never raises
    taken = {spell(t.path): t.path for t, link in zip(tasks, links, strict=True) if not link}
    once: list[Task] = []
    for task, link in zip(tasks, links, strict=True):
        other = task.path
        if link and task.row is None:
            other = taken.setdefault(os.path.realpath(task.path), task.path)
        if other != task.path:
            row = FileRow(path=task.path, status=Status.SKIPPED, reason=f"a link to the same file as {other}")
            task = replace(task, row=row)
        once.append(task)
    return once


def _known(item: Listed) -> FileRow:
    """The row of what was listed though it is no file."""
    if item.problem is not None:
        return failed(item.path, item.problem)
    return FileRow(path=item.path, status=Status.SKIPPED, reason=LINKED)


def _is_output(place: str, relative: str, home: str) -> bool:
    """The file was made by an earlier run, whose output lies below the directory that is read."""
    return home.startswith(place.removesuffix(relative)) and place.startswith(home + os.sep)


def run(task: Task, progress: Progress | None = None) -> FileRow:
    """Do one task. Gives a row whatever happens to the file; only a stop from outside gets through."""
    if task.row is not None:
        return task.row
    started = time.perf_counter()
    try:
        with refused(task.path):
            row = _run(task, progress)
    except UnknownFormat as error:
        if task.walked and not known_suffix(task.path):
            row = FileRow(path=task.path, status=Status.SKIPPED, reason=OTHER_KIND)
        else:
            row = failed(task.path, error)
    except BloomError as error:
        row = failed(task.path, error)
    except Exception as error:  # noqa: BLE001  a bug in one file's handling must not stop the others
        row = FileRow(
            path=task.path,
            status=Status.FAILED,
            error=f"{task.path}: a bug: {type(error).__name__}: {error}",
            exit_code=70,
        )
    return replace(row, seconds=time.perf_counter() - started)


def failed(path: str, error: BloomError) -> FileRow:
    """The row of a file that couldn't be worked on."""
    return FileRow(
        path=path,
        status=Status.FAILED,
        error=str(error),
        hint=error.hint,
        exit_code=error.exit_code,
        findings=error.findings,
    )


def _run(task: Task, progress: Progress | None) -> FileRow:
    if task.command in CHANGING:
        return _change(task, progress)
    options = dict(task.options)
    if task.command == "validate":
        options["progress"] = progress
        options["threads"] = task.threads
    report = getattr(module_of(task.command), task.command)(task.path, **options)
    if isinstance(report, InspectReport):
        return _inspected(report)
    if isinstance(report, ProbeReport):
        return _probed(report)
    if isinstance(report, SurveyReport):
        return _surveyed(report)
    return validated(report)


def _worst(facts: Iterable[FilterFacts]) -> float | None:
    return max((f.fpp for f in facts if f.fpp is not None), default=None)


def _inspected(report: InspectReport) -> FileRow:
    broken = [f for f in report.filters if f.problem is not None]
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        row_groups=report.row_groups,
        columns=len({f.column for f in report.filters}),
        filters=len(report.filters),
        filter_bytes=report.filter_bytes,
        bytes_before=report.file_bytes,
        max_fpp=_worst(report.filters),
        reason=f"{len(broken)} unreadable: {broken[0].problem}" if broken else None,
    )


def _probed(report: ProbeReport) -> FileRow:
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        row_groups=report.row_groups,
        columns=1,
        bytes_before=report.total_bytes,
        totals=report.totals,
        exit_code=1 if report.absent_everywhere else 0,
    )


def _surveyed(report: SurveyReport) -> FileRow:
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        row_groups=report.row_groups,
        columns=sum(column.filters > 0 for column in report.seen),
        filters=sum(column.filters for column in report.seen),
        bytes_before=report.file_bytes,
        max_fpp=max((column.max_fpp for column in report.seen if column.max_fpp is not None), default=None),
        seen=report.seen,
        findings=report.findings,
    )


def validated(report: ValidateReport) -> FileRow:
    """A file's row."""
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


def _change(task: Task, progress: Progress | None) -> FileRow:
    from bloomcli.commands.change import Target, change_where_needed

    dry_run = bool(task.options.get("dry_run"))
    if task.output is not None and not dry_run:
        _make_directory(Path(task.output).parent)
    target = Target(
        output=task.output,
        in_place=task.in_place,
        overwrite=bool(task.options.get("overwrite")),
        dry_run=dry_run,
        force=bool(task.options.get("force")),
    )
    order = _order(task.command, task.options)
    threads = task.options.get("threads") or task.threads
    done = change_where_needed(task.path, order, target, threads=threads, progress=progress)
    if isinstance(done, str):
        return FileRow(path=task.path, status=Status.SKIPPED, output=task.output, reason=done)
    return _changed(done)


def _make_directory(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"the directory can't be made: {reason(error)}", path=str(folder), hint=hint(error)
        ) from None


def _order(command: str, options: dict[str, Any]) -> ChangeRequest:
    """What a command that writes is to do with each file. Raises UsageError."""
    asked = {k: v for k, v in options.items() if k not in _NOT_OF_ORDERS}
    if command == "add":
        asked["missing"] = True
    order: ChangeRequest = module_of(command).order(**asked)
    return order


def module_of(command: str) -> ModuleType:
    """A command's module, imported by who runs it: one that reads starts without those that write."""
    return import_module(f"bloomcli.commands.{command}")


def _changed(report: ChangeReport) -> FileRow:
    touched = [c for c in report.changes if c.action != "keep"]
    return FileRow(
        path=report.path,
        status=Status.DONE,
        format=report.format,
        output=report.output,
        columns=len({c.column for c in touched}),
        filters=sum(c.filters for c in touched),
        filter_bytes=sum((c.bitset_bytes or 0) * c.filters for c in touched),
        bytes_before=report.bytes_before,
        bytes_after=report.bytes_after,
        max_fpp=max((c.fpp for c in touched if c.fpp is not None), default=None),
        reason=_asides(report),
    )


def _asides(report: ChangeReport) -> str | None:
    """What is to be known besides what was done: columns that were left out, and remarks; without the evidence, which
    the rules' pages have."""
    left_out: dict[str, list[str]] = {}
    for change in report.changes:
        if change.reason is not None:
            left_out.setdefault(_brief(change.reason), []).append(change.column)
    said = [f"left out: {', '.join(columns)}, {reason}" for reason, columns in left_out.items()]
    return "; ".join([*said, *map(_brief, report.remarks)]) or None


def _brief(text: str) -> str:
    """Up to the rule in brackets."""
    brief, rule, _ = text.partition("] (")
    return brief + rule[:1]
