"""Datasets on this machine: the same rows and bytes with any number of jobs; bad files and killed workers."""

from __future__ import annotations

import errno
import multiprocessing.connection
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, need
from support import datasets
from support.processes import children, has_open
from support.tasks import CHANGING, plan_tasks

from bloomcli.commands.options import InspectOptions
from bloomcli.datasets import local, task, workers
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.listing import expand

pytestmark = pytest.mark.slow

ID = {"columns": ("id",)}


def run(
    root: Path,
    command: str,
    options: dict[str, Any],
    *,
    output: Path | None = None,
    in_place: bool = False,
    **how: Any,
) -> DatasetReport:
    """A command over a directory."""
    target = {"output": output, "in_place": in_place} if command in CHANGING else {}
    return local.run(plan_tasks(command, expand([str(root)]), options, **target), **how)


def test_any_number_of_jobs_reads_the_same_rows_in_the_order_of_the_files(tmp_path: Path) -> None:
    lake = datasets.mixed(tmp_path)
    reports = [run(lake, "validate", {"deep": True}, jobs=jobs) for jobs in (1, 2, 3)]
    assert datasets.brief(reports[0]) == datasets.brief(reports[1]) == datasets.brief(reports[2])
    assert [r.path for r in reports[1].rows] == [item.path for item in expand([str(lake)])]
    assert [r.jobs for r in reports] == [1, 2, 3]
    assert {r.exit_code for r in reports} == {3}
    assert all(r.seconds > 0 and r.engine == "local" and r.command == "validate" for r in reports)


@pytest.mark.parametrize("in_place", [True, False])
def test_any_number_of_jobs_writes_the_same_bytes(tmp_path: Path, in_place: bool) -> None:
    rows, bytes_ = [], []
    for jobs in (1, 2, 3):
        lake, out = datasets.mixed(tmp_path / f"lake{jobs}"), tmp_path / f"out{jobs}"
        made = lake if in_place else out
        untouched = (*datasets.HIDDEN, *datasets.OTHER, *datasets.BROKEN)
        before = [(lake / name).read_bytes() for name in untouched]
        report = run(lake, "add", ID, output=None if in_place else out, in_place=in_place, jobs=jobs)
        rows.append(datasets.brief(report, lake, out))
        bytes_.append(datasets.digests(made))
        assert [(lake / name).read_bytes() for name in untouched] == before
        assert datasets.temporary(tmp_path) == []
        again = run(lake, "add", ID, output=None if in_place else out, in_place=in_place, jobs=jobs)
        assert again.done == 0
        assert again.failed == report.failed == len(datasets.BROKEN)
        assert datasets.digests(made) == bytes_[-1]
    assert rows[0] == rows[1] == rows[2]
    assert bytes_[0] == bytes_[1] == bytes_[2]
    done = {r.path.lstrip("/") for r in rows[0] if r.status is Status.DONE}
    assert done == set(datasets.GOOD)
    if not in_place:
        assert set(bytes_[0]) == {*datasets.GOOD, *datasets.FILTERED}
        for name in datasets.GOOD:
            assert datasets.read(tmp_path / "out1" / name).equals(datasets.read(tmp_path / "lake1" / name))


@pytest.mark.parametrize("jobs", [1, 2])
def test_with_fail_fast_the_rest_is_not_run_and_what_was_done_has_its_row(tmp_path: Path, jobs: int) -> None:
    lake = datasets.plain(tmp_path / "lake", 40)
    (lake / "part=0" / "bad.parquet").write_bytes(b"\0" * (1 << 20))
    before = datasets.digests(lake)
    report = run(lake, "add", ID, in_place=True, jobs=jobs, fail_fast=True)
    assert report.failed == 1
    assert report.files < 41
    changed = {name for name, digest in datasets.digests(lake).items() if before[name] != digest}
    assert changed == {str(Path(r.path).relative_to(lake)) for r in report.rows if r.status is Status.DONE}
    assert datasets.temporary(lake) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_are_reported_as_they_come_largest_file_first(tmp_path: Path, jobs: int) -> None:
    for i, rows in enumerate((10, 20_000, 100)):
        datasets.write(tmp_path / f"{i}.parquet", rows)
    called_rows: list[FileRow] = []
    report = run(tmp_path, "inspect", {}, jobs=jobs, on_row=called_rows.append)
    assert [Path(r.path).name for r in report.rows] == ["0.parquet", "1.parquet", "2.parquet"]
    assert {r.path for r in called_rows} == {r.path for r in report.rows}
    if jobs == 1:
        assert [Path(r.path).name for r in called_rows] == ["1.parquet", "2.parquet", "0.parquet"]


def test_fewer_files_than_jobs_leave_cores_for_the_inside_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int | None] = []
    real = task.run

    def spy(one: task.Task, progress: Any = None) -> FileRow:
        seen.append(one.threads)
        return real(one, progress)

    monkeypatch.setattr(local.work, "run", spy)
    datasets.write(tmp_path / "a.parquet")
    assert run(tmp_path, "add", ID, in_place=True, jobs=6).jobs == 1
    assert seen == [6]


@pytest.mark.parametrize(
    ("sizes", "jobs", "threads"),
    [
        ([100], 6, [6]),
        ([100, 100], 6, [3, 3]),
        ([100] * 8, 4, [1] * 8),
        ([900, *[10] * 10], 4, [4, *[1] * 10]),
        ([450, 450, *[10] * 10], 4, [2, 2, *[1] * 10]),
        ([-1, 0, 0], 2, [1, 1, 1]),
    ],
)
def test_a_file_that_outweighs_the_others_gets_its_share_of_the_cores(
    sizes: list[int], jobs: int, threads: list[int]
) -> None:
    found = [local._threads(sum(sizes), jobs, min(jobs, len(sizes)), size) for size in sizes]
    assert found == threads


def test_the_largest_files_start_first_and_each_file_without_a_row_once() -> None:
    sizes = [*(i * 37 % 101 for i in range(60)), 1000, -1]
    tasks = [task.Task(options=InspectOptions(), path=f"{i}", size=size) for i, size in enumerate(sizes)]
    tasks[60] = replace(tasks[60], row=FileRow(path="settled", status=Status.FAILED))
    assert [tasks[i].size for i in local.largest_first(tasks)] == sorted(set(sizes) - {1000}, reverse=True)


def test_nothing_to_do_is_an_empty_report() -> None:
    report = local.run([])
    assert (report.rows, report.exit_code) == ((), 0)


# --- killed workers

BIG = pa.table({"id": pa.array(range(2_000_000))})
"""A task that runs long enough to be observed."""


class Killer:
    """Sends a signal to each descendant process that has a file open, each time it sees one."""

    def __init__(self, path: Path, number: signal.Signals, times: int = 1 << 30) -> None:
        self.killed: set[int] = set()
        self._path, self._number, self._left = path, number, times
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._hunt)

    def _hunt(self) -> None:
        while not self._stop.is_set() and self._left:
            for pid in children(os.getpid()):
                if self._left and pid not in self.killed and has_open(pid, self._path):
                    os.kill(pid, self._number)
                    self.killed.add(pid)
                    self._left -= 1
            time.sleep(0.001)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def poisoned(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A dataset of small files and a large one."""
    need(Path("/proc/self/fd").is_dir(), "/proc, to see which files a process has open")
    lake = datasets.plain(tmp_path / "lake", 12)
    poison = lake / "part=1" / "poison.parquet"
    pq.write_table(BIG, poison, use_dictionary=False, compression="none", row_group_size=100_000)
    yield lake, poison
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_file_whose_worker_is_always_killed_is_a_row_and_the_rest_is_done(
    poisoned: tuple[Path, Path], number: signal.Signals
) -> None:
    lake, poison = poisoned
    before = poison.read_bytes()
    with Killer(poison, number) as killer:
        report = run(lake, "add", ID, in_place=True, jobs=2)
    assert len(killer.killed) == 2
    (failed,) = (r for r in report.rows if r.status is Status.FAILED)
    assert failed.path == str(poison)
    assert "was killed, twice" in str(failed.error)
    # files that a killed worker had finished are found done
    assert (report.files, report.done + report.skipped, report.exit_code) == (13, 12, 3)
    assert poison.read_bytes() == before
    assert datasets.temporary(lake) == []


def test_a_worker_that_is_killed_once_costs_nothing_but_time(poisoned: tuple[Path, Path], tmp_path: Path) -> None:
    lake, poison = poisoned
    other = datasets.plain(tmp_path / "other", 12)
    shutil.copy(poison, other / "part=1")
    with Killer(poison, signal.SIGKILL, times=1) as killer:
        report = run(lake, "add", ID, in_place=True, jobs=2)
    assert len(killer.killed) == 1
    assert (report.done + report.skipped, report.failed, report.exit_code) == (13, 0, 0)
    run(other, "add", ID, in_place=True, jobs=1)
    assert datasets.digests(lake) == datasets.digests(other)


# --- what it costs


def said(program: str, *arguments: Path) -> list[str]:
    """The words that a program prints which plans and runs tasks, without reading values."""
    lines = [
        "import sys",
        "from bloomcli.commands.options import InspectOptions",
        "from bloomcli.datasets import local, planning",
        "from bloomcli.storage.listing import expand",
        "tasks = planning.plan(expand([sys.argv[1]]), InspectOptions())",
        program,
        "assert not {'pyarrow', 'pyspark'} & set(sys.modules)",
    ]
    command = [sys.executable, "-c", "\n".join(lines), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_parent_stays_small_however_many_rows_there_are(tmp_path: Path) -> None:
    need(Path("/proc/self/status").is_file(), "/proc, to see a process's memory")
    path = datasets.write(tmp_path / "a.parquet", rows=20)
    for i in range(3000):
        (tmp_path / f"{i:04}.parquet").hardlink_to(path)
    program = """
def kib():
    return int(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])
local.run(tasks[:50], jobs=2)
before = kib()
report = local.run(tasks, jobs=2)
print(report.done, kib() - before)
"""
    files, grown = map(int, said(program, tmp_path))
    assert files == 3001
    assert grown < 16 << 10


def test_what_the_files_need_is_imported_once_before_workers_are_forked(tmp_path: Path) -> None:
    need(sys.platform == "linux", "fork")
    for name in ("a.parquet", "b.PARQUET", "c.orc", "d.txt", "e"):
        (tmp_path / name).write_bytes(b"no file of any format")
    program = """
for _ in range(2):
    print(*(m for m in ('mosaic', 'orc', 'parquet') if f'bloomcli.formats.{m}.file' in sys.modules), end=' | ')
    local.run(tasks, jobs=2)
"""
    assert said(program, tmp_path) == ["|", "orc", "parquet", "|"]


def test_what_cannot_be_imported_is_reported_by_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.parquet", "b.parquet", "c.orc"):
        datasets.write(tmp_path / name)
    monkeypatch.setitem(sys.modules, "bloomcli.formats.parquet.file", None)
    # Only forked workers see the change. If other tests have left a thread running, no worker is forked here.
    monkeypatch.setattr(workers, "can_fork", lambda: True)
    report = run(tmp_path, "inspect", {}, jobs=2)
    assert [r.status for r in report.rows] == [Status.FAILED, Status.FAILED, Status.DONE]
    assert all("import of bloomcli.formats.parquet.file" in str(r.error) for r in report.rows[:2])


def test_an_error_when_a_pipe_is_closed_loses_no_worker_and_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = datasets.mixed(tmp_path)
    monkeypatch.setattr(workers, "can_fork", lambda: True)  # spawned workers don't see the change below
    expected = run(lake, "inspect", {}, jobs=2)
    close = multiprocessing.connection.Connection.close

    def fail(pipe: multiprocessing.connection.Connection) -> None:
        close(pipe)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(multiprocessing.connection.Connection, "close", fail)
    report = run(lake, "inspect", {}, jobs=2)
    assert (report.jobs, report.remarks) == (expected.jobs, ()) == (2, ())
    assert datasets.brief(report, lake) == datasets.brief(expected, lake)


def test_a_thread_of_a_library_forbids_forking() -> None:
    """A forked process would wait for ever for what the thread has locked."""
    program = (
        "import threading; from bloomcli.datasets import workers\n"
        "print(workers.can_fork(), end=' ')\n"
        "import pyarrow.compute as pc; pc.sum([1, 2])\n"
        "print(threading.active_count(), workers.can_fork())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1", "False"]


Below = Callable[[], list[int]]
"""Returns the descendant processes that the test has started, without those of other tests' Spark session."""


@pytest.fixture
def threaded() -> Iterator[Below]:
    """This process can't be forked: another thread runs."""
    before = set(children(os.getpid()))
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    yield lambda: [pid for pid in children(os.getpid()) if pid not in before]
    release.set()
    thread.join()


def test_where_threads_run_a_child_python_does_the_same(tmp_path: Path, threaded: Below) -> None:
    lake, other = (datasets.mixed(tmp_path / name) for name in ("lake", "other"))
    called_rows: list[FileRow] = []
    report = run(lake, "add", ID, in_place=True, jobs=2, on_row=called_rows.append)
    assert datasets.brief(report, lake) == datasets.brief(run(other, "add", ID, in_place=True, jobs=1), other)
    assert sorted(r.path for r in called_rows) == sorted(r.path for r in report.rows)
    assert datasets.digests(lake) == datasets.digests(other)
    stopped = run(lake, "validate", {"require": ("nosuch",)}, jobs=2, fail_fast=True)
    assert 1 <= stopped.failed <= stopped.files < report.files
    assert threaded() == []


@pytest.mark.parametrize("raised", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("below", ["forked", "threaded"])
def test_what_the_caller_does_with_a_row_may_fail_and_leaves_no_process_and_no_file(
    tmp_path: Path, request: pytest.FixtureRequest, below: str, raised: type[BaseException]
) -> None:
    need(Path("/proc/self/stat").is_file(), "/proc, to see processes")
    datasets.plain(tmp_path, 30)
    left: Below = request.getfixturevalue("threaded") if below == "threaded" else list

    def broken(row: FileRow) -> None:
        raise raised("the caller's own")

    with pytest.raises(raised, match="the caller's own"):
        run(tmp_path, "add", ID, in_place=True, jobs=2, on_row=broken)
    assert datasets.temporary(tmp_path) == []
    assert [*multiprocessing.active_children(), *left()] == []


def test_where_threads_run_and_the_child_python_is_killed_its_remaining_files_fail(
    tmp_path: Path, threaded: Below
) -> None:
    need(Path("/proc/self/stat").is_file(), "/proc, to see processes")
    lake = datasets.plain(tmp_path / "lake", 40)

    def kill(row: FileRow) -> None:
        parents = [pid for pid in threaded() if children(pid)]
        if parents:
            os.kill(parents[0], signal.SIGKILL)

    report = run(lake, "add", ID, in_place=True, jobs=2, on_row=kill)
    assert (report.files, report.exit_code) == (40, 3)
    assert 1 <= report.failed < 40
    assert all("was killed" in str(r.error) for r in report.rows if r.status is Status.FAILED)


SCRIPT = """
import sys, threading
import bloomcli
print("once")
threading.Thread(target=lambda: threading.Event().wait(600), daemon=True).start()
report = bloomcli.gate(sys.argv[1], jobs=2)
print(report.exit_code, report.files, [r.error for r in report.rows if r.error])
"""


def test_a_script_without_a_guard_is_not_run_again_by_workers(tmp_path: Path) -> None:
    datasets.plain(tmp_path / "lake", 5)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", tmp_path / "lake"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("once\n0 5 []\n", "")
