"""A run that is killed or stopped at any time: every file stays intact, no process remains, and a second run ends
like an uninterrupted one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import ROOT, need
from support import datasets
from support.processes import HOLD, alive, children, has_open, held, started, wait_until

import bloomcli

pytestmark = pytest.mark.slow

FILES, ROWS = 24, 2_000
BLOOM = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored\n"
    "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    "from bloomcli.cli import run\n"
    "sys.exit(run(sys.argv[1:]))\n"
)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files without filters; one is broken."""
    need(Path("/proc/self/stat").is_file(), "/proc, to see processes")
    root = datasets.plain(tmp_path_factory.mktemp("stopped") / "origin", FILES, ROWS)
    (root / "part=0" / "bad.parquet").write_bytes(b"\0" * 100)
    return root


def arguments(lake: Path, *target: object) -> list[str]:
    """The command line."""
    return [sys.executable, "-c", BLOOM, "add", str(lake), "-c", "id", "-f", "json", *map(str, target)]


@contextmanager
def running(lake: Path, *target: object) -> Iterator[subprocess.Popen[str]]:
    """A run in a separate process group that waits at each file, so that it can be stopped in the middle."""
    with started(
        arguments(lake, *target),
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(HOLD), "HOLDPAUSE": "0.03"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process


def place(origin: Path, tmp_path: Path, in_place: bool, jobs: int = 2) -> tuple[Path, Path, list[object]]:
    """The dataset, the directory of its changed files, and the options for that."""
    if in_place:
        lake = shutil.copytree(origin, tmp_path / "lake")
        return lake, lake, ["--in-place", "--jobs", jobs]
    return origin, tmp_path / "out", ["-o", tmp_path / "out", "--jobs", jobs]


def ends_as_undisturbed(lake: Path, made: Path, undisturbed: dict[str, str]) -> None:
    """Run again in this process: it finishes, and leaves no temporary files."""
    where: dict[str, Any] = {"in_place": True} if made == lake else {"output": made}
    assert bloomcli.add([lake], ["id"], jobs=1, **where).exit_code == 3
    expected = undisturbed if made == lake else {n: d for n, d in undisturbed.items() if "bad" not in n}
    assert datasets.digests(made) == expected
    assert datasets.temporary(made.parent) == []


@pytest.mark.parametrize(("in_place", "after"), [(True, 12), (False, 0)])
def test_a_run_that_is_killed_can_be_started_again(
    origin: Path, undisturbed: dict[str, str], tmp_path: Path, in_place: bool, after: int
) -> None:
    lake, made, target = place(origin, tmp_path, in_place)
    with running(lake, *target) as process:
        assert wait_until(lambda: datasets.temporary(made) and datasets.changed(origin, made) >= after)
        workers = children(process.pid)
        assert len(workers) == 2
        process.kill()
        process.wait()
        at_most = datasets.changed(origin, made) + len(workers)
        assert wait_until(lambda: not any(map(alive, workers)))
        assert datasets.changed(origin, made) <= at_most, "workers go on after their file"
    assert after <= datasets.whole(made, ROWS) <= FILES
    ends_as_undisturbed(lake, made, undisturbed)


def test_a_whole_process_group_that_is_killed_leaves_temporary_files_which_the_next_run_removes(
    origin: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    lake, made, target = place(origin, tmp_path, True)
    for _ in range(10):
        with running(lake, *target) as process:
            wait_until(lambda: datasets.temporary(made) or process.poll() is not None)
            os.killpg(process.pid, signal.SIGKILL)
        datasets.whole(made, ROWS)
        if datasets.temporary(made):
            break
    else:
        pytest.fail("no kill hit a file that was being written")
    ends_as_undisturbed(lake, made, undisturbed)


@pytest.mark.parametrize(
    ("number", "group", "code", "in_place", "jobs"),
    [
        (signal.SIGINT, True, 130, True, 2),
        (signal.SIGINT, False, 130, False, 2),
        (signal.SIGTERM, False, 143, True, 2),
        (signal.SIGHUP, True, 129, False, 2),
        (signal.SIGINT, False, 130, True, 1),
        (signal.SIGTERM, False, 143, True, 1),
    ],
)
def test_a_run_that_is_stopped_tidies_up(
    origin: Path,
    undisturbed: dict[str, str],
    tmp_path: Path,
    number: signal.Signals,
    group: bool,
    code: int,
    in_place: bool,
    jobs: int,
) -> None:
    lake, made, target = place(origin, tmp_path, in_place, jobs)
    with running(lake, *target) as process:
        assert wait_until(lambda: datasets.temporary(made) and datasets.changed(origin, made) >= 2)
        workers = children(process.pid)
        (os.killpg if group else os.kill)(process.pid, number)
        _, said = process.communicate(timeout=600)
        assert process.returncode == code
        assert not any(map(alive, workers))
    if number == signal.SIGINT:
        far = "at least " if jobs > 1 else ""
        found = re.fullmatch(rf"bloom: stopped: {far}(\d+) of 25 files done; start it again to go on", said.strip())
        assert found is not None, said
        assert int(found[1]) <= datasets.changed(origin, made)
    else:
        assert said == ""
    assert datasets.temporary(made) == []
    assert 2 <= datasets.whole(made, ROWS) <= FILES
    ends_as_undisturbed(lake, made, undisturbed)


def test_every_file_is_readable_throughout(origin: Path, undisturbed: dict[str, str], tmp_path: Path) -> None:
    lake, made, target = place(origin, tmp_path, True)
    seen = set()
    with running(lake, *target) as process:
        while process.poll() is None:
            for path in sorted(made.rglob("[0-9]*.parquet")):
                report = bloomcli.inspect(path)
                assert (report.rows, report.unreadable) == (ROWS, 0)
            seen.add(datasets.changed(origin, made))
        assert process.returncode == 3
    assert len(seen) > 1, "the run was over before it was looked at"
    assert datasets.digests(made) == undisturbed


def test_two_runs_at_once_do_each_file_no_harm(origin: Path, undisturbed: dict[str, str], tmp_path: Path) -> None:
    lake, made, target = place(origin, tmp_path, True)
    with running(lake, *target) as one, running(lake, *target) as other:
        assert {one.wait(600), other.wait(300)} <= {3}
    datasets.whole(made, ROWS)
    ends_as_undisturbed(lake, made, undisturbed)


ID, NAME, INDEX = ("add", "-c", "id"), ("add", "-c", "name"), ("repair", "--add", "page-index")


@pytest.mark.parametrize(("first", "second"), [(ID, NAME), (INDEX, ID)])
def test_a_command_that_came_too_late_says_so_and_works_when_it_is_given_again(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    file = datasets.write(tmp_path / "part.parquet", rows=300)
    folder = tmp_path / "held"
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": str(HOLD), "HOLDFOLDER": str(folder), "HOLDAFTER": "0"}

    def command(words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "bloomcli", *words, str(file), "--in-place"]

    with started(command(first), cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as slow:
        try:
            assert wait_until(lambda: held(folder))
            late = subprocess.Popen(command(second), cwd=ROOT, stderr=subprocess.PIPE, text=True)
            assert wait_until(lambda: has_open(late.pid, file))
        finally:
            slow.send_signal(signal.SIGCONT)
        _, said = late.communicate(timeout=600)
        assert slow.wait(600) == 0
    assert late.returncode == 3
    assert "changed while it was being worked on" in said
    subprocess.run(command(second), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    done = {words[-1] for words in (first, second)} - {INDEX[-1]}
    assert {f.column for f in bloomcli.inspect(file).filters} == done
    chunk = pq.read_metadata(file).row_group(0).column(0)
    assert chunk.has_offset_index is (INDEX in (first, second))
