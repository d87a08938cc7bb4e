"""Run functions of this process in a forked child, and trace the child's system calls."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).with_name("tracer.c")
_NAMES_BYTES: Final = 2 * 4096 + 2
_UNCAUGHT: Final = 99
"""Exit code of a child whose function raised."""


class Action(IntEnum):
    """What happens to a call. The numbers are those of tracer.c."""

    NOTHING = 0
    KILL = 1
    """The calling process is killed before the call."""
    KILL_ALL = 2
    """All processes are killed before the call."""
    ERROR = 3
    """The call fails and does nothing."""
    LATE_ERROR = 4
    """The call does its work and fails: a server's answer was lost, or earlier writes can't be stored."""
    SHORT = 5
    """The call does half of its work."""


class Call(NamedTuple):
    """A system call, in a form that identifies it in another run."""

    number: int
    name: str
    """Empty for a call without files."""
    files: str
    """The names of the call's files, separated by tabs; random digits are replaced by an asterisk."""
    occurrence: int
    """Position among the calls with the same number and files, from 0."""
    bytes: int = 0
    """The number of bytes requested, if the call may do less."""
    child: bool = False
    """The call was made by another process than the first."""


@dataclass(frozen=True)
class Fault:
    """A fault in one call."""

    action: Action
    call: Call
    error: int = 0
    """errno."""

    def __str__(self) -> str:
        what = self.action.name.lower().replace("_", " ")
        if self.error:
            what = f"{what} {os.strerror(self.error)}"
        where = self.call.files.replace("\t", " -> ") or f"system call {self.call.number}"
        return f"{what} at {self.call.name}({where}) #{self.call.occurrence}{' in a worker' * self.call.child}"


@dataclass(frozen=True)
class Run:
    """The result of a child."""

    code: int
    """Exit code, or minus the signal that ended it."""
    out: str
    err: str
    fired: bool = False
    """Whether the fault was injected."""
    overdue: bool = False
    """Whether the child was killed at the time limit."""


class _Plan(ctypes.Structure):
    _fields_ = (
        ("action", ctypes.c_long),
        ("number", ctypes.c_long),
        ("occurrence", ctypes.c_long),
        ("error", ctypes.c_long),
        ("deadline", ctypes.c_long),
        ("names", ctypes.c_char * _NAMES_BYTES),
    )


class _Outcome(ctypes.Structure):
    _fields_ = (
        ("status", ctypes.c_long),
        ("fired", ctypes.c_long),
        ("overdue", ctypes.c_long),
        ("task", ctypes.c_long),
    )


def compiler() -> str | None:
    """The C compiler that makes the tracer."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def compile_tracer(folder: Path) -> Path:
    """Make the tracer's library in a folder."""
    library = folder / "tracer.so"
    command = [compiler() or "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)
    return library


class Tracer:
    """Runs functions in children of this process, which may have one thread only."""

    def __init__(self, library: Path, folder: Path) -> None:
        self._library = ctypes.CDLL(str(library), use_errno=True)
        folder.mkdir()
        self._out, self._err, self._log = folder / "stdout", folder / "stderr", folder / "calls"

    def record(self, work: Callable[[], int], deadline: int) -> tuple[Run, list[Call]]:
        """Run without a fault. Returns the calls, too, in their order."""
        run = self._run(work, None, deadline, recorded=True)
        seen: dict[tuple[int, str], int] = {}
        calls = []
        for line in self._log.read_text(errors="surrogateescape").split("\n")[:-1]:
            number, name, first, count, files = line.split("\t", 4)
            key = (int(number), files)
            calls.append(
                Call(
                    number=key[0],
                    name=name,
                    files=files,
                    occurrence=seen.get(key, 0),
                    bytes=int(count),
                    child=first == "0",
                )
            )
            seen[key] = seen.get(key, 0) + 1
        return run, calls

    def run(self, work: Callable[[], int], fault: Fault | None, deadline: int) -> Run:
        """Run with a fault."""
        return self._run(work, fault, deadline, recorded=False)

    def _run(self, work: Callable[[], int], fault: Fault | None, deadline: int, *, recorded: bool) -> Run:
        waits, release = os.pipe()
        hears, sends = os.pipe()
        child = os.fork()
        if child == 0:
            self._in_child(work, waits, sends)
        os.close(waits)
        os.close(sends)
        os.read(hears, 1)  # earlier calls aren't traced
        os.close(hears)
        plan = _Plan(action=Action.NOTHING, deadline=deadline)
        if fault is not None:
            plan.action, plan.number, plan.error = fault.action, fault.call.number, fault.error
            plan.occurrence, plan.names = fault.call.occurrence, os.fsencode(fault.call.files)
        outcome = _Outcome()
        log = os.fsencode(self._log) if recorded else None
        error = self._library.follow(child, release, ctypes.byref(plan), ctypes.byref(outcome), log)
        os.close(release)
        if error:
            raise OSError(error, f"the tracer can't follow a process: {os.strerror(error)}")
        return Run(
            code=os.waitstatus_to_exitcode(outcome.status),
            out=self._out.read_text(errors="replace"),
            err=self._err.read_text(errors="replace"),
            fired=bool(outcome.fired),
            overdue=bool(outcome.overdue),
        )

    def _in_child(self, work: Callable[[], int], waits: int, sends: int) -> None:
        code = _UNCAUGHT
        try:
            for number, path in ((1, self._out), (2, self._err)):
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(fd, number)
                os.close(fd)
            os.write(sends, b"x")
            with suppress(OSError):  # a late tracer sees this call, too: a fault in it isn't the command's
                os.read(waits, 1)  # the tracer follows from here on
            code = work()
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  the traceback and the exit code report it
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
