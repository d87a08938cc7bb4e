"""Runs tasks in a child Python process, for programs that can't be forked.

    caller                                          child
    tasks  ---------------- pickled ------------->  a pool of workers, as on the command line
    rows   <--------------- pickled --------------  in the order in which files finish

A process with several threads must not be forked. A spawned process imports the caller's main module again: a script
without ``if __name__ == "__main__"`` would repeat all its work. The child has neither the threads nor that module.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.spawn import get_executable
from types import FrameType
from typing import IO, Final, cast

from bloomcli.concurrency import close_pipe
from bloomcli.concurrency.signals import terminable
from bloomcli.datasets.pool import OnFewer, Rows, Shares, run_in_pool
from bloomcli.datasets.task import Task
from bloomcli.formats.keys import seal, use_seal
from bloomcli.model.dataset import FileRow

_CHILD: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from bloomcli.datasets.child_process import serve; serve()"
)
_PARENT_CHECK_SECONDS: Final = 0.5


class NotStarted(Exception):
    """The system can't start the child process; the message says why."""


def rows(tasks: Mapping[int, Task], shares: Shares, fail_fast: bool, on_fewer: OnFewer, *, run_here: bool) -> Rows:
    """Yield the tasks' rows; fewer rows than tasks if the child is killed. Closing ends the child and its workers.

    Raises:
        NotStarted: the system can't start the child.
    """
    try:
        started = subprocess.Popen(  # noqa: S603  this Python
            [os.fsdecode(get_executable()), "-c", _CHILD, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C goes to the caller, which ends the child
        )
    except OSError as error:
        raise NotStarted(error.strerror or str(error)) from None
    with started as child:
        to_child, from_child = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            try:
                with to_child:
                    pickle.dump((os.getpid(), shares, fail_fast, run_here, seal()), to_child)
                    pickle.dump(dict(tasks), to_child)
            except BrokenPipeError:  # the child was killed
                return
            while (found := _next(from_child)) is not None:
                if isinstance(found[1], str):
                    on_fewer(found[0], found[1])
                else:
                    yield found[0], found[1]
        except BaseException:
            child.terminate()
            raise
        finally:
            close_pipe(from_child)
            child.wait()


def _next(stream: IO[bytes]) -> tuple[int, FileRow | str] | None:
    try:
        found: tuple[int, FileRow | str] | None = pickle.load(stream)  # noqa: S301  from our own child
    except (EOFError, pickle.UnpicklingError):  # the child was killed
        return None
    return found


def serve() -> None:
    """The child's main function: reads tasks from standard input and writes rows to standard output."""
    pipe = os.dup(1)
    os.dup2(2, 1)  # other output must not mix with the rows
    parent, shares, fail_fast, run_here, of_parent = pickle.load(sys.stdin.buffer)  # noqa: S301  from our own parent
    use_seal(of_parent)
    tasks: dict[int, Task] = pickle.load(sys.stdin.buffer)  # noqa: S301

    def watch(number: int, frame: FrameType | None) -> None:
        del number, frame
        if os.getppid() != parent:  # the parent was killed, and nothing reads the rows
            raise SystemExit(1)

    def on_fewer(count: int, reason: str) -> None:
        _send(pipe, (count, reason))

    found = run_in_pool(tasks, shares, fail_fast, on_fewer, run_here=run_here)
    with terminable():
        signal.signal(signal.SIGALRM, watch)
        signal.setitimer(signal.ITIMER_REAL, _PARENT_CHECK_SECONDS, _PARENT_CHECK_SECONDS)
        try:
            for row in found:
                _send(pipe, row)
            _send(pipe, None)
        except BrokenPipeError:  # the parent has ended
            sys.exit(1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            found.close()


def _send(pipe: int, item: tuple[int, FileRow | str] | None) -> None:
    """Write without a buffer: when a signal ends the child, no data may wait for the parent."""
    data = pickle.dumps(item)
    while data:
        data = data[os.write(pipe, data) :]
