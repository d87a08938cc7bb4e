"""Files that caused damage: every command ends soon, in little memory, with an error or a sound filter."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.fuzzing import HOSTILE, MEMORY, ROOT, SECONDS
from support.processes import started

FILES: Final = sorted(path for path in HOSTILE.iterdir() if path.suffix != ".md")
_LIMITED: Final = """
import json, os, resource, sys, tempfile
from pathlib import Path
import bloomcli.cli, bloomcli.kernels, pyarrow, pyarrow.parquet
from google.protobuf import message
run = bloomcli.cli.run
def limited(command, extra, seconds, out, err):
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
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
for command, extra, seconds in map(json.loads, sys.stdin):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if not (pid := os.fork()):
            limited(command, extra, seconds, out, err)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said = [file.seek(0) or file.read().decode(errors="replace") for file in (out, err)]
        print(json.dumps([code, *said]), flush=True)
"""
"""Runs each command in a separate process, under limits above the interpreter's own use. Processes are forked,
because imports take longer than most commands."""

COMMANDS: Final = {
    "repair": ["repair", "-o", "OUT"],
    "repair --add": ["repair", "--add", "page-index,statistics", "-o", "OUT"],
    "repair --dry-run": ["repair", "--dry-run"],
    "validate": ["validate", "--deep", "--require", "*"],
    "inspect": ["inspect"],
    "footer": ["inspect", "--footer", "--schema", "--format", "json"],
    "add": ["add", "-c", "*", "--replace", "-o", "OUT"],
}
LISTS: Final = ["inspect", "--pages", "--indexes", "--format", "json", "--columns"]


class Done(NamedTuple):
    """The exit status of a command, and its output."""

    code: int
    out: str
    err: str


Limited = Callable[..., Done]


@contextmanager
def limiting(program: str = _LIMITED) -> Iterator[Limited]:
    """The program that runs `bloom` under limits of address space and processor time."""
    env = {"MALLOC_ARENA_MAX": "2", "PATH": "/usr/bin:/bin"}
    with started(
        [sys.executable, "-c", program], cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None

        def run(*command: str, memory: int = MEMORY, seconds: int = SECONDS) -> Done:
            print(json.dumps([command, memory, seconds]), file=requests, flush=True)
            return Done(*json.loads(answers.readline()))

        yield run
        requests.close()
        assert process.wait(600) == 0


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    """Runs `bloom` under limits, forked from the same process each time."""
    with limiting() as run:
        yield run


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_ends_within_the_limits(limited: Limited, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name, args in COMMANDS.items():
        done = limited(*(str(out) if arg == "OUT" else arg for arg in args), str(path))
        assert done.code in {0, 1, 2, 3, 4}, f"{name}: {done.err[-2000:]}"
        assert "Traceback" not in done.err, name
        if done.code > 1 and name != "validate":
            assert done.err.startswith(f"bloom: {path}: "), name
        if "OUT" in args:
            assert out.exists() == (done.code == 0), name
        if name != "add":
            out.unlink(missing_ok=True)
    assert [p.name for p in tmp_path.iterdir()] == ["out"] * out.exists()
    if out.exists():
        checked = limited("validate", "--deep", str(out))
        # filters are sound; the row index of a file with another stride isn't
        rules = set(re.findall("^error ([a-z-]+)", checked.out, re.MULTILINE))
        assert checked.code == 0 or rules == {"row-index-positions"}


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_pages_and_indexes_of_every_column_are_listed_within_the_limits(limited: Limited, path: Path) -> None:
    inspected = limited("inspect", "--format", "json", str(path))
    if inspected.code:
        assert inspected.err.startswith(f"bloom: {path}: ")
        return
    columns = [column["column"] for column in json.loads(inspected.out)["by_column"]]
    assert columns
    for column in columns:
        done = limited(*LISTS, column, str(path))
        assert "Traceback" not in done.err, column
        assert done.code == 0 or done.err.startswith(f"bloom: {path}: "), f"{column}: {done.err[-2000:]}"
        if done.code == 0:
            assert json.loads(done.out)["pages"], column


# --- the limits hold


def test_a_command_beyond_its_memory_is_reported(limited: Limited, tmp_path: Path) -> None:
    """The limit is above the interpreter's memory, and below what this allocates."""
    add = ["add", str(ROOT / "fixtures" / "parquet" / "orders.parquet"), "-c", "id", "--replace", "-o"]
    done = limited(*add, str(tmp_path / "out"))
    assert done.code == 0, done.err
    few = limited(*add, str(tmp_path / "more"), memory=1 << 12)
    assert few.code != 0


@pytest.mark.slow
def test_a_command_beyond_its_time_is_ended() -> None:
    endless = _LIMITED.replace("code = run(command)", "exec('while True: pass')")
    assert endless != _LIMITED
    with limiting(endless) as run:
        done = run(seconds=1)
    assert done.code in {-signal.SIGXCPU, -signal.SIGKILL}
