"""A command in a separate process: its output, its work and its memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Final, NamedTuple

from support import work


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: str
    errors: str
    memory: int
    """Peak resident bytes, as the system counts them."""
    pieces: int
    """The pieces of bounded size that it decoded: its work, which doesn't depend on the machine and its load."""

    @property
    def text(self) -> str:
        """Standard output and standard error."""
        return self.output + self.errors


_MEASURED: Final = """
import json, os, resource, subprocess, sys, tempfile
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
with tempfile.TemporaryFile("w+") as errors:
    process = subprocess.Popen([sys.executable, "-m", "bloomcli", *sys.argv[1:]], stdout=subprocess.PIPE,
                               stderr=errors, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    errors.seek(0)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps([code, output, errors.read(), usage.ru_maxrss * 1024]))
"""
"""Started from this small process, because the peak includes the size of its parent, and pytest may be large. The
limit of processor time is for commands that never end; 1 to 5 seconds are usual."""


def run(*arguments: object) -> Done:
    """Run `bloom` with these arguments."""
    command = [sys.executable, "-c", _MEASURED, *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, env=work.counting(folder), capture_output=True, text=True, check=True)
        return Done(*json.loads(done.stdout), pieces=sum(work.pieces(folder)))
