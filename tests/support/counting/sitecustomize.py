"""With this folder on its path, Python counts pieces of work of bounded size, and can hold the work at one of them.

All formats call `Stop.check` before each piece. `COUNTINGFOLDER` names a folder: each process has a file there, named
after its id, with a byte for each piece. `COUNTINGHELD` is the number of pieces after which a process waits at the
next check until cancellation is requested (see `support.work`).
"""

import os
import sys
import time

_FOLDER = os.environ.get("COUNTINGFOLDER")
_HELD = int(os.environ.get("COUNTINGHELD", sys.maxsize))
_LONGEST_WAIT = 60.0
"""Seconds after which held work goes on, so that a run that doesn't obey a signal ends, with a larger count."""


def count(folder: str) -> None:
    from bloomcli.concurrency.threads import Stop

    check = Stop.check
    files: dict[int, int] = {}

    obeys = True

    def counted(self: Stop) -> None:
        nonlocal obeys
        pid = os.getpid()  # a forked process has its own file
        if pid not in files:
            path = os.path.join(folder, str(pid))  # noqa: PTH118
            files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if obeys and os.fstat(files[pid]).st_size >= _HELD:
            end = time.monotonic() + _LONGEST_WAIT
            while not self.requested and obeys:
                time.sleep(0.002)
                obeys = time.monotonic() < end
        check(self)
        os.write(files[pid], b".")

    Stop.check = counted  # type: ignore[method-assign]


if _FOLDER is not None:
    count(_FOLDER)
