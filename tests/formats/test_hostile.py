"""Files that did harm: every command ends on each of them soon, in little memory, with an error or a sound filter."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from support.fuzzing import HOSTILE, MEMORY, ROOT, SECONDS

FILES: Final = sorted(path for path in HOSTILE.iterdir() if path.suffix != ".md")
_LIMITED: Final = """
import resource, sys
from pathlib import Path
import bloomcli.cli, bloomcli.kernels, pyarrow, pyarrow.parquet
from google.protobuf import message
extra, seconds = int(sys.argv[1]), int(sys.argv[2])
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + extra, taken + extra))
used = resource.getrusage(resource.RUSAGE_SELF)
so_far = int(used.ru_utime + used.ru_stime) + 1
resource.setrlimit(resource.RLIMIT_CPU, (so_far + seconds, so_far + seconds))
sys.exit(bloomcli.cli.run(sys.argv[3:]))
"""
"""A command, under limits above what the interpreter has taken by then."""

COMMANDS: Final = {
    "add": ["add", "-c", "*", "--replace", "-o", "OUT"],
    "validate": ["validate", "--deep", "--require", "*"],
    "inspect": ["inspect"],
}


def limited(args: list[str], *, memory: int = MEMORY, seconds: int = SECONDS) -> subprocess.CompletedProcess[str]:
    """Run `bloom` under limits of address space and of processor time."""
    return subprocess.run(
        [sys.executable, "-c", _LIMITED, str(memory), str(seconds), *args],
        cwd=ROOT,
        env={"MALLOC_ARENA_MAX": "2", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_ends_within_the_limits(path: Path, command: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = limited([str(out) if arg == "OUT" else arg for arg in COMMANDS[command]] + [str(path)])
    assert done.returncode in {0, 1, 2, 3, 4}, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    if done.returncode > 1 and command != "validate":
        assert done.stderr.startswith(f"bloom: {path}: ")
    assert out.exists() == (command == "add" and done.returncode == 0)
    assert [p.name for p in tmp_path.iterdir()] == ["out"] * out.exists()
    if out.exists():
        checked = limited(["validate", "--deep", str(out)])
        assert checked.returncode == 0, checked.stdout + checked.stderr


# --- the limits hold


def test_a_command_beyond_its_memory_is_reported(tmp_path: Path) -> None:
    """The limit is above what the interpreter takes, and below what this asks for."""
    fixture = ROOT / "fixtures" / "parquet" / "orders.parquet"
    done = limited(["add", str(fixture), "-c", "id", "--replace", "-o", str(tmp_path / "out")])
    assert done.returncode == 0, done.stderr
    few = limited(["add", str(fixture), "-c", "id", "--replace", "-o", str(tmp_path / "more")], memory=1 << 12)
    assert few.returncode != 0


@pytest.mark.slow
def test_a_command_beyond_its_time_is_ended() -> None:
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED.replace("sys.exit(", "exec('while True: pass') or sys.exit("), "0", "1"],
        cwd=ROOT,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode < 0
    assert after.ru_utime - before.ru_utime < 8
    assert time.monotonic() - started < 60
