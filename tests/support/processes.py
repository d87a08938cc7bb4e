"""The processes of a run, from /proc."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final


@contextmanager
def started(command: Sequence[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process, with Popen's options, that is killed if the block fails. The end of Popen's own block would wait for
    it, for ever if it waits for the test.
    """
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def children(pid: int) -> list[int]:
    """Processes below a process, at any depth; zombies don't count."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
            except OSError:  # the process has ended meanwhile
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid})


def alive(pid: int) -> bool:
    """Whether a process runs. A zombie doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def working_in(folder: Path) -> list[int]:
    """Processes that were started in a folder, and run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # the process has ended, or is another user's
                if (entry / "cwd").readlink() == folder and alive(int(entry.name)):
                    found.append(int(entry.name))
    return found


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    try:
        return any(fd.readlink() == path for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def wait_until(condition: Callable[[], object], seconds: float = 300.0) -> bool:
    """Wait until a condition is true. Returns whether it became true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


HOLD: Final = Path(__file__).with_name("hold")
"""A folder for PYTHONPATH, which makes a writer wait or stop at its files."""


def held(folder: Path) -> int | None:
    """The id of the process that `support/hold` stopped; None if it hasn't stopped."""
    try:
        pid = int((folder / "held").read_text() or 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if pid else ""
    except OSError:
        return None
    return pid if state == "T" else None
