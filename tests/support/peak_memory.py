"""The peak of a process's resident memory, measured by the process itself.

`getrusage` isn't enough: on Linux its peak includes the size of the process that started this one, and pytest's may
be the larger of the two.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

GIVES_BACK: Final = {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)}
"""Environment variables with which glibc returns freed blocks of 128 KiB and more to the system. By default it keeps
blocks of up to 32 MiB for the thread that freed them: up to 60 MiB with 32 threads, depending on their scheduling."""


def reset() -> None:
    """Reset the peak, which includes the temporary memory of imports."""
    with suppress(OSError):  # not Linux
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> int:
    """The peak of resident bytes since `reset`."""
    try:
        return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) << 10
    except OSError:  # macOS, where getrusage counts bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
