"""Names of temporary objects, which contain new tails until they are composed.

    .NAME.bloom-RANDOM-MACHINE-PROCESS-START.tmp    next to NAME; listings skip hidden names

A sweep removes temporary objects of this machine's ended processes, and those older than a day.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

OLD_SECONDS: Final = 24 * 3600
"""Age beyond which a temporary object is removed: no run needs one for so long."""
_NAME_CHARACTERS: Final = 120
_NAME: Final = re.compile(
    r"\..{1,120}\.bloom-[0-9a-f]{12}-(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-(?P<start>\d+)\.tmp", re.DOTALL
)


class Owner(NamedTuple):
    """The process that created a temporary object."""

    machine: str
    process: int
    start: int

    @property
    def is_here(self) -> bool:
        """Whether the process runs or ran on this machine."""
        return self.machine == _machine_hash()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs on this machine now."""
        return self.is_here and _start_ticks(self.process) == self.start


def temporary_key(key: str) -> str:
    """A new, hidden name in the directory of an object, unique to this run."""
    directory, slash, name = key.rpartition("/")
    process = os.getpid()
    owner = f"{_machine_hash()}-{process}-{_start_ticks(process) or 0}"
    return f"{directory}{slash}.{name[:_NAME_CHARACTERS]}.bloom-{secrets.token_hex(6)}-{owner}.tmp"


def owner_of(key: str) -> Owner | None:
    """The process that created a temporary object; None if the name isn't a temporary object's."""
    found = _NAME.fullmatch(key.rpartition("/")[2])
    return None if found is None else Owner(found["machine"], int(found["process"]), int(found["start"]))


@cache
def _machine_hash() -> str:
    """A hash that distinguishes this machine, container and boot from others."""
    known = socket.gethostname()
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            known += Path(path).read_text() if path.startswith("/proc/sys") else os.readlink(path)  # noqa: PTH115
        except OSError:
            continue
    return hashlib.sha256(known.encode()).hexdigest()[:8]


def _start_ticks(process: int) -> int | None:
    """Start time of a process, in ticks since the machine's start; 0 if the system doesn't report it; None if no such
    process exists."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, IndexError, ValueError):
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return 0
