"""A command in a separate process: its output, its work and its memory, with limits of memory and time.

The processes are forked from one that has imported what commands need, because that takes longer than most of them.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from support import work

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 120
"""The limit of processor time, for commands that never end; 1 to 5 seconds are usual."""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    """The exit code; negative for a signal."""
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


_SERVE: Final = """
import contextlib, json, os, resource, sitecustomize, sys, tempfile
from pathlib import Path
import bloomcli.cli, pyarrow.parquet
run = bloomcli.cli.run
answers, sys.stdout = sys.stdout, open(os.devnull, "w")
with contextlib.redirect_stderr(sys.stdout):
    for command in json.loads(sys.argv[1]):
        assert run(command) == 0, command
sys.stdout = answers
def limited(command, counts, extra, seconds, out, err):
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    os.environ["COUNTINGFOLDER"] = counts  # for processes that the command starts
    sitecustomize.count(counts)
    if extra is not None:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + extra, taken + extra))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # of this process, which has taken nothing yet
    code = 1
    try:
        code = run(command)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
for command, *limits in map(json.loads, sys.stdin):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if not (pid := os.fork()):
            limited(command, *limits, out, err)
        _, status, usage = os.wait4(pid, 0)
        said = [file.seek(0) or file.read().decode(errors="replace") for file in (out, err)]
        done = [os.waitstatus_to_exitcode(status), *said, usage.ru_maxrss * 1024]
        print(json.dumps(done), file=answers, flush=True)
"""
_PARQUET, _ORC = (str(ROOT / "fixtures" / name) for name in ("parquet/orders.parquet", "orc/java_bare.orc"))
_FIRST: Final = [
    *(["inspect", "--footer", "--format", "json", path] for path in (_PARQUET, _ORC)),
    *(["add", "-c", "*", "--replace", "--dry-run", path] for path in (_PARQUET, _ORC)),
    ["repair", "--dry-run", _PARQUET],
    ["validate", "--deep", "--no-policy", _ORC],
    ["find", "5", "-c", "id", "--files-only", _PARQUET],
]
"""Commands that import what others need."""


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process, which ends with this one. It is small: the peak of a forked process includes its parent's size."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, json.dumps(_FIRST)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(work.COUNTING), "MALLOC_ARENA_MAX": "2"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def run(*arguments: object, memory: int | None = None, seconds: int = SECONDS) -> Done:
    """Run `bloom` with these arguments.

    Args:
        arguments: the words of the command line.
        memory: the address space that it may take in addition to what its modules take.
        seconds: the processor time that it may take.
    """
    process = _server()
    assert process.stdin is not None
    assert process.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        words = [*map(str, arguments)]
        print(json.dumps([words, folder, memory, seconds]), file=process.stdin, flush=True)
        return Done(*json.loads(process.stdout.readline()), pieces=sum(work.pieces(folder)))
