"""How many files are worked on at a time."""

from __future__ import annotations

from typing import Final

from bloomcli.commands.progress import cores

_JOBS_FOR_CORE: Final = 4
"""A request takes some 20 ms until its answer comes, and what `inspect` does with a small file some 5 ms."""
_REMOTE_JOBS: Final = (8, 32)
"""Each is a process, of some 40 MB of its own with a vendor's SDK."""


def default_jobs(*, remote: bool) -> int:
    """Files at a time where the options don't say: as many as cores; where a file lies in a store whose answers take
    time, four times as many, from 8 to 32."""
    return min(max(_JOBS_FOR_CORE * cores(), _REMOTE_JOBS[0]), _REMOTE_JOBS[1]) if remote else cores()
