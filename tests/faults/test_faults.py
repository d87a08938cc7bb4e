"""For any system call that fails, does half its work, or is the last: no file is harmed, and exit code and error
report what happened.

Each scenario is a command on small files. Its system calls are recorded; then it runs again and again, in a process
under ptrace, and each time one call is the last (SIGKILL), fails (EIO, ENOSPC, EDQUOT, EINTR, ESTALE, EACCES, EMFILE,
ENOMEM, EAGAIN), fails though it was done, or reads or writes half. Afterwards

- each file is the original or the complete new one, and its checksums fit;
- unless the process was killed, no other file remains next to them;
- the exit code is 0 and everything is as without the fault, or 3 and the error has the system's reason and a path;
- the same command once more ends what was begun, and leaves nothing.

A run of the suite makes a dozen or two of trials a scenario, chosen by a seed among the calls that are about the
files, and a few of the others. ``--full`` makes all (tens of thousands: most of an hour), and ``--seed N`` chooses
others:

    python -m pytest tests/faults --full
    python -m pytest tests/faults --seed 7 -k add-orc
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from conftest import ROOT, need
from support.faults.scenarios import SCENARIOS
from support.faults.tracing import compile_tracer, compiler
from support.processes import started

pytestmark = pytest.mark.slow

_CHANGING: Final = 27
_READING: Final = 12
_SLOW: Final = 12
"""The approximate number of trials of a scenario."""

_SHOWN: Final = 5

Request = Callable[[str, int, int], dict[str, Any]]


@pytest.fixture(scope="module")
def request_trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Request]:
    """A process that has everything imported, and makes trials."""
    need(
        sys.platform == "linux" and platform.machine() == "x86_64", "Linux on x86-64, whose registers the tracer sets"
    )
    need(compiler() is not None, "a C compiler")
    folder = tmp_path_factory.mktemp("faults")
    library = compile_tracer(folder)
    command = [sys.executable, "-m", "support.faults.run", str(library), str(folder)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    with started(
        command,
        cwd=ROOT / "tests",
        env=env | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        send, receive = process.stdin, process.stdout

        def request(name: str, most: int, seed: int) -> dict[str, Any]:
            send.write(f"{name} {most} {seed}\n")
            send.flush()
            line = receive.readline()
            assert line, process.communicate()[1]
            found: dict[str, Any] = json.loads(line)
            return found

        yield request
        send.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_fault_at_a_system_call_harms_nothing_and_is_reported(
    name: str, request_trials: Request, pytestconfig: pytest.Config
) -> None:
    most = _CHANGING if SCENARIOS[name].changing else _READING
    if SCENARIOS[name].slow:
        most = _SLOW
    seed = pytestconfig.getoption("seed")
    found = request_trials(name, 0 if pytestconfig.getoption("full") else most, seed)
    problems = found["problems"]
    shown = "\n\n".join(f"{p['fault']}\n{p['what']}, exit code {p['code']}\n{p['err']}" for p in problems[:_SHOWN])
    assert not problems, f"{len(problems)} of {found['trials']} trials with --seed {seed}:\n\n{shown}"
    assert found["trials"] >= min(most, found["every"]) * 0.5
    assert found["fired"] >= found["trials"] * 0.8, "calls are not found again in other runs: they don't say much"
