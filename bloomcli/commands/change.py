"""What add, remove and fold share: where the output goes, and carrying a plan out without harm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum, auto
from errno import EACCES, ELOOP
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from bloomcli.commands.progress import Meter, Progress, cores
from bloomcli.errors import BloomError, UsageError, WriteError
from bloomcli.formats.base import Built, FilterFile, Kept, Placed, Plan
from bloomcli.formats.registry import open_file
from bloomcli.model.file import ChangeReport
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.temporary import sweep
from bloomcli.storage.managed_tables import reason_against
from bloomcli.storage.os_errors import of_file
from bloomcli.storage.source import LocalSource, Source, open_source

_SEPARATORS: Final = tuple(filter(None, (os.sep, os.altsep)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a changed file goes. Exactly one of `output` and `in_place`, unless it is a dry run."""

    output: str | os.PathLike[str] | None = None
    in_place: bool = False
    overwrite: bool = False
    dry_run: bool = False
    force: bool = False
    """Change files in place though a table's log records them."""

    def resolve(self, path: str) -> Path | None:
        """The path to write; None in a dry run. Raises UsageError."""
        if self.output is not None and self.in_place:
            raise UsageError("--output and --in-place exclude each other", path=path)
        if self.in_place:
            reason = None if self.force else reason_against(Path(path))
            if reason is not None:
                raise UsageError(
                    f"not to be changed in place: {reason}",
                    path=path,
                    hint="-o writes a copy; --force changes it all the same, and the table has to be told",
                )
        if self.dry_run:
            return None
        if self.in_place:
            return Path(path)
        if self.output is None:
            raise UsageError(
                "nowhere to write to",
                path=path,
                hint="give -o FILE, or --in-place to replace the file, or --dry-run to only see what would be done",
            )
        output = Path(self.output)
        try:
            info = output.stat()
        except (FileNotFoundError, NotADirectoryError):
            info = None
        except OSError as error:
            if error.errno == ELOOP:
                return output  # a link that leads in a circle: that is told when it is written
            raise WriteError(
                f"can't be written: {(error.strerror or str(error)).lower()}",
                path=str(output),
                hint="check who may search the directories above it" if error.errno == EACCES else None,
            ) from None
        except ValueError as error:  # a null byte
            raise UsageError(f"the output can't have such a name: {error}", path=path) from None
        if info is not None and _is_file(Path(path), info):
            raise UsageError("the output is the input", path=path, hint="--in-place replaces a file safely")
        if info is not None and S_ISDIR(info.st_mode):
            raise UsageError(f"the output {str(output)!r} is a directory", path=path, hint="name the file to write")
        if os.fspath(self.output).endswith(_SEPARATORS):
            raise UsageError(
                f"the output {os.fspath(self.output)!r} names a directory", path=path, hint="name the file to write"
            )
        return output


def _is_file(path: Path, info: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), info)
    except OSError:
        return False  # it is open, and what has become of its name is looked at before anything is replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """A command with its options, for whichever file: what add, remove and fold don't share."""

    command: str
    plan: Callable[[FilterFile], Plan]
    done: Callable[[FilterFile], str | None]
    """Why a file need not be changed; None where it has to be, or where only a plan can tell."""
    made: Callable[[FilterFile, FilterFile], bool]
    """Whether the second file is what the order makes of the first, as far as metadata and filters tell."""
    remarks: Callable[[FilterFile], tuple[str, ...]] = lambda _: ()
    """What the caller should know of the change, besides what it does."""
    idle: str | None = None
    """Why a plan that keeps every filter need not be carried out; None: it has to be."""


@of_file
def change(
    path: str | os.PathLike[str],
    order: ChangeRequest,
    target: Target,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ChangeReport:
    """Plan a change and, unless it is a dry run, carry it out."""
    started = time.perf_counter()
    with open_source(path) as source:
        local, output = _ends(source, target)
        if output is not None:
            sweep(output.parent)  # a dataset's engine does it once for a directory
        file = open_file(local)
        report = _change(local, file, order.plan(file), output, order, target, threads, progress)
    return replace(report, seconds=time.perf_counter() - started)


@of_file
def change_where_needed(
    path: str | os.PathLike[str],
    order: ChangeRequest,
    target: Target,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ChangeReport | str:
    """As `change`, but a file that needs none is copied at most; gives the reason then.

    An output that the order made of this file already is left as it is. One that was made by another order, or of
    what the file was before, is made again; something else than a file of the same format is left to `overwrite`.
    """
    started = time.perf_counter()
    with open_source(path) as source:
        file = open_file(source)
        if target.output is not None and not target.overwrite and isinstance(source, LocalSource):
            state = _state(file, source, order, Path(target.output))
            if state is _Output.MADE:
                return "the output is there already"
            target = replace(target, overwrite=state is _Output.STALE)
        reason, plan = order.done(file), None
        if reason is None and order.idle is not None:
            plan = order.plan(file)
            reason = order.idle if all(c.action == "keep" for c in plan.estimate) else None
        if reason is not None:
            if target.output is None or target.dry_run:
                return reason
            _copy_whole(source, Path(target.output), overwrite=target.overwrite)
            return f"{reason}; copied"
        local, output = _ends(source, target)
        report = _change(local, file, plan or order.plan(file), output, order, target, threads, progress)
    return replace(report, seconds=time.perf_counter() - started)


class _Output(Enum):
    """What is there under an output's name."""

    MADE = auto()
    """What the order makes of the file."""
    STALE = auto()
    """A file of the same format, but not that one."""
    OTHER = auto()
    """Nothing, or something that no order made."""


def _state(file: FilterFile, source: LocalSource, order: ChangeRequest, output: Path) -> _Output:
    try:
        info = output.stat()
        if not S_ISREG(info.st_mode):
            return _Output.OTHER
        older = info.st_mtime_ns < source.local_path.stat().st_mtime_ns
        with open_source(output) as there:
            made = open_file(there)
            if made.format != file.format:
                return _Output.OTHER
            try:
                return _Output.MADE if not older and order.made(file, made) else _Output.STALE
            except BloomError:
                return _Output.STALE  # what is wrong with the file itself, its change will tell
    except (BloomError, OSError):
        return _Output.OTHER


def _ends(source: Source, target: Target) -> tuple[LocalSource, Path | None]:
    """What is read and what is written; None in a dry run."""
    if not isinstance(source, LocalSource):
        raise UsageError(
            "only local files can be changed",
            path=source.path,
            hint="copy the file here, change it, copy it back",
        )
    return source, target.resolve(str(source.local_path))


def _change(
    source: LocalSource,
    file: FilterFile,
    plan: Plan,
    output: Path | None,
    order: ChangeRequest,
    target: Target,
    threads: int | None,
    progress: Progress | None,
) -> ChangeReport:
    if output is None:
        changes, decoded, left, remarks = plan.estimate, plan.bytes_to_decode, 0, plan.remarks
        size = plan.bytes_to_copy + plan.new_bytes_bound
    else:
        built, size = _carry_out(source, output, target, plan, threads or cores(), progress)
        changes, decoded, left = built.changes, built.bytes_decoded, built.bytes_unreclaimed
        remarks = plan.remarks + built.remarks
    return ChangeReport(
        path=source.path,
        format=file.format,
        command=order.command,
        output=None if output is None else str(output),
        dry_run=target.dry_run,
        bytes_before=source.size,
        bytes_after=size,
        bytes_decoded=decoded,
        bytes_copied=plan.bytes_to_copy,
        seconds=0.0,
        changes=tuple(changes),
        bytes_unreclaimed=left,
        remarks=remarks + order.remarks(file),
    )


def _copy_whole(source: Source, output: Path, *, overwrite: bool) -> None:
    """Copy a file that needs no change, as atomically as a changed one."""
    if not isinstance(source, LocalSource):
        raise UsageError("only local files can be copied", path=source.path)

    def verify(temporary: Path) -> None:
        if temporary.stat().st_size != source.size:
            raise WriteError("the copy is not as long as the file", path=str(output))

    with replacing(output, source=source, overwrite=overwrite, verify=verify) as writer:
        writer.copy_range(source, 0, source.size)


def _carry_out(
    source: LocalSource,
    output: Path,
    target: Target,
    plan: Plan,
    threads: int,
    progress: Progress | None,
) -> tuple[Built, int]:
    """Write the plan's pieces while its columns are read in other threads; gives the new file's size too."""
    copied = Meter(progress, "copy", plan.bytes_to_copy)
    decoded = Meter(progress, "decode", plan.bytes_to_decode)

    def verify(temporary: Path) -> None:
        with open_source(temporary) as written:
            plan.result().verify(written)

    overwrite = target.overwrite or target.in_place
    with replacing(output, source=source, overwrite=overwrite, verify=verify) as writer:
        with closing(plan.pieces(threads, decoded.tick)) as pieces:
            for piece in pieces:
                if isinstance(piece, Kept):
                    writer.copy_range(source, *piece, progress=copied.tick, cancelled=plan.failed)
                elif isinstance(piece, Placed):
                    writer.place(*piece)
                else:
                    writer.write(piece)
                del piece  # a filter may be large, and the next one is built where it was
        size = writer.position
    return plan.result(), size
