"""Runs a reader in its own process, and kills the process if it doesn't answer in time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_executable
from typing import IO, Final

from bloomcli.concurrency.signals import deferred
from bloomcli.trials.job import Completion, Job, Message, Outcome, Progress

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
