"""Threads, signals, pipes, and the cancellation of work in other threads."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from typing import IO


def close_pipe(pipe: Connection | IO[bytes]) -> None:
    """Close one end of a pipe. It is closed even if the system reports an error, such as an interrupt.

    Requests that weren't written are lost: the process at the other end no longer reads.
    """
    with contextlib.suppress(OSError):
        pipe.close()
