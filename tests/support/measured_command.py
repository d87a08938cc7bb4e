"""A command in a separate process: its output, its processor time and its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final, NamedTuple


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: str
    errors: str
    cpu: float
    """Seconds of processor time, which doesn't depend on other processes."""
    memory: int
    """Peak resident bytes, as the system counts them."""

    @property
    def text(self) -> str:
        """Standard output and standard error."""
        return self.output + self.errors


_MEASURED: Final = """
import json, os, subprocess, sys, tempfile
with tempfile.TemporaryFile("w+") as errors:
    process = subprocess.Popen([sys.executable, "-m", "bloomcli", *sys.argv[1:]], stdout=subprocess.PIPE,
                               stderr=errors, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    errors.seek(0)
    seconds = usage.ru_utime + usage.ru_stime
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps([code, output, errors.read(), seconds, usage.ru_maxrss * 1024]))
"""
"""Started from this small process, because the peak includes the size of its parent, and pytest may be large."""


def run(*arguments: object) -> Done:
    """Run `bloom` with these arguments."""
    command = [sys.executable, "-c", _MEASURED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Done(*json.loads(done.stdout))
