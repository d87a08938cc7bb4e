"""Runs a reader in its own process, and kills the process if it doesn't answer in time.

The process gets a job, runs its lookups one after the other, and sends a message for each (`serve`). The classes of
jobs and messages can be pickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_executable
from typing import IO, Final, NamedTuple

from bloomcli import limits
from bloomcli.concurrency.signals import deferred
from bloomcli.concurrency.threads import start
from bloomcli.datasets.spark_session import first_line
from bloomcli.errors import BloomError
from bloomcli.model.file import Column
from bloomcli.trials.readers import named
from bloomcli.trials.readers.base import InVariant, Lookup, LookupResult, Reader
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


class Trial(NamedTuple):
    """A value of a column that is looked up in a file with and without filters."""

    file: TrialFile
    column: TrialColumn
    value: LookupValue


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

    def order(self) -> list[Trial]:
        """All values to look up. Each column's first present and first absent value come first, then the second ones,
        so that the lookups of a limited time are of all columns and both kinds."""
        ranked = []
        for file in self.files:
            for column in file.columns:
                counts = {True: 0, False: 0}
                for value in column.values:
                    ranked.append((counts[value.present], Trial(file, column, value)))
                    counts[value.present] += 1
        return [trial for _, trial in sorted(ranked, key=lambda item: item[0])]


class Progress(NamedTuple):
    """A message: the reader has started (empty text), or begins the lookup that the text describes."""

    text: str


class Outcome(NamedTuple):
    """A message: the result of one lookup. If the reader failed, the result is its error."""

    trial: int
    """The position in `Job.order()`."""
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
    " from bloomcli.trials.process import serve; serve(int(sys.argv[2]))"
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
    connection, remote = Pipe()
    child: subprocess.Popen[bytes] | None = None
    with connection, tempfile.TemporaryFile() as output:
        try:
            with remote, deferred():  # no signal may arrive between the start of the process and its assignment
                child = _start(remote, output)
            with contextlib.suppress(BrokenPipeError):  # the process ended: `_received` reports how
                connection.send(job)
            yield from _received(child, connection, timeout, output)
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


_ERROR_MOST: Final = 400
"""Characters of a reader's error that are shown."""


def serve(descriptor: int) -> None:
    """Receive a job on a connection, and send its messages. This process ends when the other end of the connection
    closes."""
    with Connection(descriptor) as connection:
        job: Job = connection.recv()
        start(threading.Thread(target=_end_with, args=(connection,), daemon=True))  # else `send` fails then
        for message in messages(job):
            connection.send(message)


def _end_with(connection: Connection) -> None:
    """End this process when the other end of the connection closes, even during a lookup."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os._exit(1)


def messages(job: Job) -> Iterator[Message]:
    """Start the reader and run the lookups. Any error of the reader becomes a message."""
    started = time.monotonic()
    try:
        reader = named([job.reader])[0].reader()
    except BloomError as error:
        yield Completion(error.reason, error.hint)
        return
    except Exception as error:  # noqa: BLE001  an error of any type is the reader's, and is reported
        yield Completion(_text(error))
        return
    yield Progress("")
    begun: set[tuple[str, bool]] = set()
    for number, trial in enumerate(job.order()):
        kind = (trial.column.column.path, trial.value.present)
        if job.seconds is not None and time.monotonic() - started > job.seconds and kind in begun:
            break
        begun.add(kind)
        yield from _outcome(reader, trial, job.runs, number)
    reader.close()
    yield Completion()


def _outcome(reader: Reader, trial: Trial, runs: int, number: int) -> Iterator[Message]:
    name = f"{trial.column.column.path} = {trial.value.literal}"
    counted = None
    whole = trial.value.rows <= limits.TRIAL_ROWS_COMPARED
    yield Progress(f"{name} without filters")
    try:
        without = reader.look_up(_lookup(trial, filters=False, whole=whole))
    except Exception as error:  # noqa: BLE001
        counted = _text(error)
        whole = False
        try:  # the reader may be unable to read another column of the file
            without = reader.look_up(_lookup(trial, filters=False, whole=whole))
        except Exception as other:  # noqa: BLE001
            yield Outcome(number, _text(other), None)
            return
    yield Progress(f"{name} with filters")
    lookups = [_lookup(trial, filters=filters, whole=whole) for filters in (False, True)]
    try:
        with_filters = reader.look_up(lookups[True])
        seconds = []
        for run in range(runs):
            yield Progress(name)
            # one directly after the other, and every other time the one with filters first
            order = (True, False) if run % 2 else (False, True)
            times = {filters: reader.seconds(lookups[filters]) for filters in order}
            seconds.append((times[False], times[True]))
    except Exception as error:  # noqa: BLE001
        yield Outcome(number, without, _text(error), counted=counted)
        return
    yield Outcome(number, without, with_filters, tuple(seconds), counted)


def _lookup(trial: Trial, *, filters: bool, whole: bool) -> Lookup:
    file, column, value = trial
    switched = file.comparison == "switch"
    return Lookup(
        path=file.with_filters if filters else file.without_filters,
        format=file.format,
        names=column.names,
        in_variant=column.in_variant,
        value=value.value,
        filters=filters or not switched,
        whole=whole,
    )


def _text(error: Exception) -> str:
    """The first line of a reader's error, without the stack traces that Java adds."""
    text = first_line(error)[:_ERROR_MOST]
    return text if " " in text else f"{type(error).__name__} {text}"
