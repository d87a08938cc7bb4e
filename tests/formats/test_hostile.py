"""Files that caused damage: every command ends soon, in little memory, with an error or a sound filter."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Final

import pytest
from support.fuzzing import HOSTILE, MEMORY, SECONDS
from support.measured_command import Done, run

FILES: Final = sorted(path for path in HOSTILE.iterdir() if path.suffix != ".md" and path.stem != "bomb-deltab_28")
"""One that is between two others in size is left to `add`."""
COMMANDS: Final = {
    "repair": ["repair", "--add", "page-index,statistics", "-o", "OUT"],
    "repair --dry-run": ["repair", "--dry-run"],
    "validate": ["validate", "--deep", "--require", "*"],
    "inspect": ["inspect"],
    "footer": ["inspect", "--footer", "--schema", "--format", "json"],
}
"""`add` is in `parquet/test_hostile.py` and `orc/test_hostile.py`, which measure its memory and its work."""
LISTS: Final = ["inspect", "--pages", "--indexes", "--format", "json", "--columns"]


def limited(*command: str) -> Done:
    """Run a command under the limits of memory and processor time."""
    return run(*command, memory=MEMORY, seconds=SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_ends_within_the_limits(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name, args in COMMANDS.items():
        done = limited(*(str(out) if arg == "OUT" else arg for arg in args), str(path))
        assert done.code in {0, 1, 2, 3, 4}, f"{name}: {done.errors[-2000:]}"
        assert "Traceback" not in done.errors, name
        if done.code > 1 and name != "validate":
            assert done.errors.startswith(f"bloom: {path}: "), name
        if "OUT" in args:
            assert out.exists() == (done.code == 0), name
            out.unlink(missing_ok=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_pages_and_indexes_of_every_column_are_listed_within_the_limits(path: Path) -> None:
    inspected = limited("inspect", "--format", "json", str(path))
    if inspected.code:
        assert inspected.errors.startswith(f"bloom: {path}: ")
        return
    columns = [column["column"] for column in json.loads(inspected.output)["by_column"]]
    assert columns
    for column in columns:
        done = limited(*LISTS, column, str(path))
        assert "Traceback" not in done.errors, column
        assert done.code == 0 or done.errors.startswith(f"bloom: {path}: "), f"{column}: {done.errors[-2000:]}"
        if done.code == 0:
            assert json.loads(done.output)["pages"], column


# --- the limits hold


@pytest.mark.slow
def test_a_command_beyond_its_memory_is_reported(tmp_path: Path) -> None:
    add = ["add", HOSTILE / "bomb-deltab_26.parquet", "-c", "*", "-o", tmp_path / "out"]
    assert "more than 33554432 different values" in run(*add).errors
    few = run(*add, memory=1 << 20)
    assert few.code == 3
    assert "there is not enough memory" in few.errors


@pytest.mark.slow
def test_a_command_beyond_its_time_is_ended() -> None:
    done = run("repair", "--dry-run", HOSTILE / "bomb-deltab_30.parquet", seconds=1)
    assert done.code in {-signal.SIGXCPU, -signal.SIGKILL}
