"""Output that depends on a terminal: colours, bars, binary output. The tests run in a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli

ESCAPE = "\x1b["


def in_terminal(*args: object, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run bloom with all of its streams on a terminal: exit code and what it showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bloomcli", *map(str, args)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | (env or {}),
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other side has closed
        pass
    os.close(ours)
    return process.wait(), shown.decode()


def test_tables_have_colours_on_a_terminal_and_not_elsewhere(filtered: Path) -> None:
    code, shown = in_terminal("inspect", filtered)
    assert code == 0
    assert ESCAPE in shown
    done = subprocess.run([sys.executable, "-m", "bloomcli", "inspect", filtered], capture_output=True, text=True)
    assert ESCAPE not in done.stdout


def test_binary_is_refused_on_a_terminal_and_redirected_elsewhere(filtered: Path) -> None:
    code, shown = in_terminal("dump", filtered, "-c", "id", "--format", "raw")
    assert code == 2
    assert "name a file with -o" in shown
    command = [sys.executable, "-m", "bloomcli", "dump", filtered, "-c", "id", "-g", "0", "--format", "raw"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    assert raw == bloomcli.dump(filtered, column="id", row_group=0).bitset


FIND = ("find", "7", "lake", "-c", "id", "-f", "jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "said", "output_on_terminal"),
    [
        (("add", "lake/0.parquet", "-c", "id", "-o", "out", "-f", "json"), "reading columns", False),
        (("inspect", "lake", "-f", "json", "-j", "2"), "4 of 4 files", False),
        (FIND, "of 4 files searched, ", False),
        (FIND, "of 4 files searched, ", True),
    ],
)
def test_long_work_says_how_far_it_is_and_rows_stay_whole(
    tmp_path: Path, args: tuple[str, ...], said: str, output_on_terminal: bool
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for number in range(4):
        pq.write_table(pa.table({"id": [number, 7, 100]}), lake / f"{number}.parquet")
    program = f"import bloomcli.cli.output as o; o.PATIENCE = -1; from bloomcli.cli import run; exit(run({args!r}))"
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdout=theirs if output_on_terminal else subprocess.PIPE,
        stderr=theirs,
        text=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "300"},
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 20).decode()
    os.close(ours)
    assert done.returncode == 0
    assert said in shown
    if args != FIND:
        assert done.stdout.startswith("{")
    elif not output_on_terminal:
        assert [json.loads(line)["row"] for line in done.stdout.splitlines()] == [1] * 4
    else:  # what is on a line before a row was erased
        lines = [line.rpartition("\x1b[2K")[2] for line in shown.replace("\r", "\n").split("\n")]
        assert [json.loads(line)["row"] for line in lines if line.startswith('{"path"')] == [1] * 4
