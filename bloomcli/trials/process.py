"""Runs a reader in its own process, and kills the process if it doesn't answer in time.

The process gets a job and sends messages. All their classes can be pickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_executable
from typing import IO, Final, NamedTuple

from bloomcli.concurrency.signals import deferred
from bloomcli.model.file import Column
from bloomcli.trials.readers.base import InVariant, LookupResult
from bloomcli.trials.values import LookupValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialColumn:
    """A column, and the values to look up in it."""

    column: Column
    names: tuple[str, ...]
    values: tuple[LookupValue, ...]
    in_variant: InVariant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFile:
    """The two versions of a file in which one reader looks up values."""

    path: str
    """As the user named it."""
    format: str
    row_groups: int
    with_filters: str
    """The local file with filters."""
    without_filters: str
    """The local file without filters; the same file if an option of the reader switches filters off."""
    comparison: str
    """``switch``, ``added`` or ``removed``, as in `ReaderTrial.comparison`."""
    columns: tuple[TrialColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The lookups of one reader."""

    reader: str
    files: tuple[TrialFile, ...]
    runs: int
    """Timed runs of each lookup."""
    seconds: float | None = None
    """The reader begins no lookup later than this after its start, except for the first present and the first absent
    value of each column in one file; None for no limit."""

    def order(self) -> list[tuple[int, int, int]]:
        """The positions (file, column, value) of all lookups. Each column's first present and first absent value come
        first, then the second ones, so that the lookups of a limited time are of all columns and both kinds."""
        ranked = []
        for at, file in enumerate(self.files):
            for number, column in enumerate(file.columns):
                seen = {True: 0, False: 0}
                for index, value in enumerate(column.values):
                    ranked.append((seen[value.present], (at, number, index)))
                    seen[value.present] += 1
        return [place for _, place in sorted(ranked, key=lambda item: item[0])]


class Progress(NamedTuple):
    """A message: the reader has started (empty text), or begins the lookup that the text describes."""

    text: str


class Outcome(NamedTuple):
    """A message: the result of one lookup. If the reader failed, the result is its error."""

    file: int
    column: int
    value: int
    """Positions in `Job.files`, `TrialFile.columns` and `TrialColumn.values`."""
    without: LookupResult | str
    with_filters: LookupResult | str | None
    """None if the lookup failed even without filters."""
    seconds: tuple[tuple[float, float], ...] = ()
    """For each timed run: seconds without filters, seconds with filters."""
    counted: str | None = None
    """The reader's error because of which rows were only counted, although the value isn't frequent."""


class Completion(NamedTuple):
    """The last message: all lookups are done, or `error` says why not, and `hint` what to do."""

    error: str | None = None
    hint: str | None = None


Message = Progress | Outcome | Completion


_CHILD_CODE: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from bloomcli.trials.child import serve; serve(int(sys.argv[2]))"
)
_OUTPUT_READ: Final = 1 << 14
_END_SECONDS: Final = 5.0
"""The longest time that a process may take to end after its last message; Spark stops within two seconds."""


def run(job: Job, timeout: float) -> Iterator[Outcome | Completion]:
    """Yield the outcome of each lookup as soon as it is done, and then the completion.

    Args:
        job: the lookups.
        timeout: seconds that the reader may take to start, and for each lookup.
    """
    here, there = Pipe()
    child: subprocess.Popen[bytes] | None = None
    with here, tempfile.TemporaryFile() as output:
        try:
            with there, deferred():  # no signal may arrive between the start of the process and its assignment
                child = _start(there, output)
            with contextlib.suppress(BrokenPipeError):  # the process ended: `_received` reports how
                here.send(job)
            yield from _received(child, here, timeout, output)
        except NotStartedError as error:
            yield Completion(str(error))
        finally:
            if child is not None:
                _end(child)


class NotStartedError(Exception):
    """The system can't start the process; the message says why."""


def _start(connection: Connection, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a reader's process at the other end of a connection. Raises NotStartedError."""
    try:
        return subprocess.Popen(  # noqa: S603  this Python interpreter
            [os.fsdecode(get_executable()), "-c", _CHILD_CODE, json.dumps(sys.path), str(connection.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[connection.fileno()],
            start_new_session=True,  # Ctrl-C reaches only this process, which ends the child and its children
        )
    except OSError as error:
        raise NotStartedError(f"its process doesn't start: {error.strerror or error}") from None


def _received(
    child: subprocess.Popen[bytes], connection: Connection, timeout: float, output: IO[bytes]
) -> Iterator[Outcome | Completion]:
    doing = "it starts"
    while True:
        try:
            if not connection.poll(timeout):
                yield Completion(f"no answer for {timeout:g} s: {doing}", "--timeout gives it more time")
                return
            message: Message = connection.recv()
        except (EOFError, OSError):
            yield Completion(f"its process ended {_how(child)}: {doing}{_last_line(output)}")
            return
        if isinstance(message, Progress):
            doing = message.text or doing
            continue
        yield message
        if isinstance(message, Completion):
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_END_SECONDS)
            return


def _how(child: subprocess.Popen[bytes]) -> str:
    try:
        code = child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        return "without an answer"
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _last_line(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _OUTPUT_READ, 0))
    lines = [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f"; the last line of its output: {lines[-1]}" if lines else ""


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children, which are in the same session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
