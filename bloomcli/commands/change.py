"""What add, remove and fold share: where the output goes, and carrying a draft out without harm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from bloomcli.atomic import AtomicWriter, replacing
from bloomcli.errors import UsageError
from bloomcli.formats.base import Built, Draft, FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model import ChangeReport
from bloomcli.source import LocalSource, open_source

Progress = Callable[[str, int, int], None]
"""Called with a phase's name, the bytes done and the bytes in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a changed file goes. Exactly one of `output` and `in_place`, unless it is a dry run."""

    output: str | os.PathLike[str] | None = None
    in_place: bool = False
    overwrite: bool = False
    dry_run: bool = False

    def resolve(self, path: str) -> Path | None:
        """The path to write; None in a dry run. Raises UsageError."""
        if self.output is not None and self.in_place:
            raise UsageError("--output and --in-place exclude each other", path=path)
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
        if output.exists() and Path(path).exists() and output.samefile(path):
            raise UsageError("the output is the input", path=path, hint="--in-place replaces a file safely")
        if output.is_dir():
            raise UsageError(f"the output {str(output)!r} is a directory", path=path, hint="name the file to write")
        return output


class _Meter:
    """Adds up what the threads have done, and tells."""

    def __init__(self, progress: Progress | None, phase: str, total: int) -> None:
        self._progress = progress
        self._phase = phase
        self._total = total
        self._done = 0
        self._lock = Lock()

    def tick(self, count: int) -> None:
        """Some more bytes are done."""
        if self._progress is not None:
            with self._lock:
                self._done += count
                self._progress(self._phase, min(self._done, self._total), self._total)


def change(
    path: str | os.PathLike[str],
    command: str,
    target: Target,
    draft_of: Callable[[FilterFile], Draft],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ChangeReport:
    """Plan a change with `draft_of` and, unless it is a dry run, carry it out."""
    started = time.perf_counter()
    with open_source(path) as source:
        if not isinstance(source, LocalSource):
            raise UsageError(
                "only local files can be changed", path=source.path, hint="copy the file here, change it, copy it back"
            )
        output = target.resolve(os.fspath(path) if source.local_path is None else str(source.local_path))
        draft = draft_of(open_file(source))
        kept = sum(length for _, length in draft.keep)
        if output is None:
            changes, decoded, size = draft.estimate, draft.bytes_to_decode, kept + draft.tail_bound
        else:
            built = _carry_out(source, output, target, draft, threads or _cores(), progress)
            changes, decoded = built.changes, built.bytes_decoded
            size = kept + sum(len(b) for b in built.tail)
        return ChangeReport(
            path=source.path,
            format="parquet",
            command=command,
            output=None if output is None else str(output),
            dry_run=target.dry_run,
            bytes_before=source.size,
            bytes_after=size,
            bytes_decoded=decoded,
            bytes_copied=kept,
            seconds=time.perf_counter() - started,
            changes=tuple(changes),
        )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _carry_out(
    source: LocalSource,
    output: Path,
    target: Target,
    draft: Draft,
    threads: int,
    progress: Progress | None,
) -> Built:
    """Copy what is kept in one thread while the columns are decoded in others; then the rest, then the rename."""
    kept = sum(length for _, length in draft.keep)
    copied = _Meter(progress, "copy", kept)
    decoded = _Meter(progress, "decode", draft.bytes_to_decode)
    stop = Event()
    result: list[Built] = []

    def verify(temporary: Path) -> None:
        with open_source(temporary) as written:
            result[0].verify(written)

    def copy(writer: AtomicWriter) -> None:
        for offset, length in draft.keep:
            writer.copy_range(source, offset, length, progress=copied.tick, cancelled=stop.is_set)

    overwrite = target.overwrite or target.in_place
    with replacing(output, source=source, overwrite=overwrite, verify=verify) as writer:
        with ThreadPoolExecutor(1, thread_name_prefix="bloom-copy") as pool:
            copying = pool.submit(copy, writer)
            try:
                result.append(draft.build(threads, decoded.tick))
            except BaseException:
                stop.set()
                raise
            copying.result()
        for blob in result[0].tail:
            writer.write(blob)
    return result[0]


