"""Files that did harm: every command ends on each of them soon, in little memory, with an error or a sound filter."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.fuzzing import HOSTILE, MEMORY, ROOT, SECONDS

FILES: Final = sorted(path for path in HOSTILE.iterdir() if path.suffix != ".md")
_LIMITED: Final = """
import json, os, resource, sys, tempfile
from pathlib import Path
import bloomcli.cli, bloomcli.kernels, pyarrow, pyarrow.parquet
from google.protobuf import message
extra, seconds, run = int(sys.argv[1]), int(sys.argv[2]), bloomcli.cli.run
def limited(command, out, err):
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
done = []
for command in map(json.loads, sys.argv[3:]):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if not (pid := os.fork()):
            limited(command, out, err)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said = [file.seek(0) or file.read().decode(errors="replace") for file in (out, err)]
        done.append([code, *said])
print(json.dumps(done))
"""
"""Commands in processes of their own, under limits above what the interpreter has taken by then. They are forked, as
importing everything takes longer than most of them do."""

COMMANDS: Final = {
    "add": ["add", "-c", "*", "--replace", "-o", "OUT"],
    "validate": ["validate", "--deep", "--require", "*"],
    "inspect": ["inspect"],
    "footer": ["inspect", "--footer", "--schema", "--format", "json"],
}
LISTS: Final = ["inspect", "--pages", "--indexes", "--format", "json", "--columns"]


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def limited(
    *commands: list[str], memory: int = MEMORY, seconds: int = SECONDS, program: str = _LIMITED
) -> list[Done]:
    """Run `bloom` some times, one after the other, under limits of address space and of processor time."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(memory), str(seconds), *map(json.dumps, commands)],
        cwd=ROOT,
        env={"MALLOC_ARENA_MAX": "2", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [Done(*each) for each in json.loads(done.stdout)]


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_ends_within_the_limits(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    commands = [[str(out) if arg == "OUT" else arg for arg in args] + [str(path)] for args in COMMANDS.values()]
    *ended, checked = limited(*commands, ["validate", "--deep", str(out)])
    for name, done in zip(COMMANDS, ended, strict=True):
        assert done.code in {0, 1, 2, 3, 4}, f"{name}: {done.err[-2000:]}"
        assert "Traceback" not in done.err, name
        if done.code > 1 and name != "validate":
            assert done.err.startswith(f"bloom: {path}: "), name
        if name == "add":
            assert out.exists() == (done.code == 0)
    assert [p.name for p in tmp_path.iterdir()] == ["out"] * out.exists()
    if out.exists():
        assert checked.code == 0, checked.out + checked.err


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_pages_and_indexes_of_every_column_are_listed_within_the_limits(path: Path) -> None:
    (inspected,) = limited(["inspect", "--format", "json", str(path)])
    if inspected.code:
        assert inspected.err.startswith(f"bloom: {path}: ")
        return
    columns = [column["column"] for column in json.loads(inspected.out)["by_column"]]
    assert columns
    for column, done in zip(columns, limited(*([*LISTS, name, str(path)] for name in columns)), strict=True):
        assert "Traceback" not in done.err, column
        assert done.code == 0 or done.err.startswith(f"bloom: {path}: "), f"{column}: {done.err[-2000:]}"
        if done.code == 0:
            assert json.loads(done.out)["pages"], column


# --- the limits hold


def test_a_command_beyond_its_memory_is_reported(tmp_path: Path) -> None:
    """The limit is above what the interpreter takes, and below what this asks for."""
    add = ["add", str(ROOT / "fixtures" / "parquet" / "orders.parquet"), "-c", "id", "--replace", "-o"]
    (done,) = limited([*add, str(tmp_path / "out")])
    assert done.code == 0, done.err
    (few,) = limited([*add, str(tmp_path / "more")], memory=1 << 12)
    assert few.code != 0


@pytest.mark.slow
def test_a_command_beyond_its_time_is_ended() -> None:
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    endless = _LIMITED.replace("code = run(command)", "exec('while True: pass')")
    assert endless != _LIMITED
    (done,) = limited([], seconds=1, program=endless)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.code < 0
    assert after.ru_utime - before.ru_utime < 8
    assert time.monotonic() - started < 60
