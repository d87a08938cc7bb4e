"""A run in a Python of its own, beside a program that can't be forked.

    caller                                          child
    tasks  ---------------- pickled ------------->  workers, as on the command line
    rows   <--------------- pickled --------------  as files are done

A process with several threads must not be forked, and one that is spawned imports the caller's main module again:
of a script without ``if __name__ == "__main__"`` it would do all the work once more. The child has neither the
threads nor the main module.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from multiprocessing.spawn import get_executable
from types import FrameType
from typing import IO, Final, cast

from bloomcli.datasets.task import Task
from bloomcli.model.dataset import FileRow

Rows = Generator[tuple[int, FileRow], None, None]
"""Files' positions and rows, as they are done."""

Told = Callable[[int, str], None]
"""Given how many worker processes there are, and why there aren't more."""

_CHILD: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from bloomcli.datasets.child_process import serve; serve()"
)
_PARENT_CHECK_SECONDS: Final = 0.5


class NotStarted(Exception):
    """The system starts no other process; says why."""


def rows(tasks: dict[int, Task], workers: int, fail_fast: bool, told: Told, *, here: bool) -> Rows:
    """The tasks' rows; fewer than tasks where the child was killed. When closed, the child and its workers end.

    Raises:
        NotStarted: there is no child.
    """
    try:
        started = subprocess.Popen(  # noqa: S603  this Python
            [os.fsdecode(get_executable()), "-c", _CHILD, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for the caller, which ends the child
        )
    except OSError as error:
        raise NotStarted(error.strerror or str(error)) from None
    with started as child:
        to_child, from_child = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            try:
                with to_child:
                    pickle.dump((os.getpid(), tasks, workers, fail_fast, here), to_child)
            except BrokenPipeError:  # it was killed
                return
            while (found := _next(from_child)) is not None:
                if isinstance(found[1], str):
                    told(found[0], found[1])
                else:
                    yield found[0], found[1]
        except BaseException:
            child.terminate()
            raise
        finally:
            from_child.close()
            child.wait()


def _next(stream: IO[bytes]) -> tuple[int, FileRow | str] | None:
    try:
        found: tuple[int, FileRow | str] | None = pickle.load(stream)  # noqa: S301  from our own child
    except (EOFError, pickle.UnpicklingError):  # it was killed
        return None
    return found


def serve() -> None:
    """The child: takes tasks from standard input, gives rows to standard output."""
    from bloomcli.concurrency.signals import terminable
    from bloomcli.datasets.local import side_by_side

    pipe = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed must not get among the rows
    parent, tasks, workers, fail_fast, here = pickle.load(sys.stdin.buffer)  # noqa: S301  from our own parent

    def watch(number: int, frame: FrameType | None) -> None:
        del number, frame
        if os.getppid() != parent:  # it was killed: nobody reads the rows
            raise SystemExit(1)

    found = side_by_side(tasks, workers, fail_fast, lambda count, reason: _send(pipe, (count, reason)), here=here)
    with terminable():
        signal.signal(signal.SIGALRM, watch)
        signal.setitimer(signal.ITIMER_REAL, _PARENT_CHECK_SECONDS, _PARENT_CHECK_SECONDS)
        try:
            for row in found:
                _send(pipe, row)
            _send(pipe, None)
        except BrokenPipeError:  # the parent has gone
            sys.exit(1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            found.close()


def _send(pipe: int, item: tuple[int, FileRow | str] | None) -> None:
    """Unbuffered: at an end from outside nothing may be left that waits for the parent."""
    data = pickle.dumps(item)
    while data:
        data = data[os.write(pipe, data) :]
