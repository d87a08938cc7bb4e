"""The default number of files to work on at a time."""

from __future__ import annotations

from typing import Final

from bloomcli.commands.progress import cores

_JOBS_FOR_CORE: Final = 4
"""A store answers a request after about 20 ms; `inspect` needs about 5 ms of processor time for a small file."""
_REMOTE_JOBS: Final = (8, 32)
"""Fewest and most. Each job is a process, which takes about 40 MB with a vendor's SDK."""


def default_jobs(*, remote: bool) -> int:
    """Files at a time if the options don't say: one for each core; with files in remote stores four for each core,
    from 8 to 32."""
    return min(max(_JOBS_FOR_CORE * cores(), _REMOTE_JOBS[0]), _REMOTE_JOBS[1]) if remote else cores()
