"""Few processes and threads, or none: those that start do the work, a remark reports it, and nothing hangs.

`ulimit -u` (RLIMIT_NPROC) counts a user's threads. It doesn't apply to root, so the program first becomes another
user, which runs nothing else, and keeps the right to read the same files. Without root, and for limits other than a
number, a seccomp filter lets the system refuse threads, processes or both, which needs no rights.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, need
from pyarrow import orc
from support import datasets

import bloomcli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits on processes as Linux has them"),
]

_DROP: Final = """
import ctypes, os, resource, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result:
        raise OSError(ctypes.get_errno(), "this process can't be limited")
def become(user):  # Source: capabilities(7); CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    kept = 0b1111
    check(libc.prctl(28, 4, 0, 0, 0))  # PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP: access(2) asks them too
    os.setgroups([])
    os.setuid(user)
    header, data = struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", kept, kept, kept, 0, 0, 0)
    check(libc.capset(header, data))
    for capability in range(4):
        check(libc.prctl(47, 2, capability, 0, 0))  # PR_CAP_AMBIENT_RAISE: for the programs that it starts
"""

_ULIMIT: Final = (
    _DROP
    + """
become({user})
resource.setrlimit(resource.RLIMIT_NPROC, ({count}, {count}))
"""
)

_REFUSE: Final = """
import ctypes, errno, platform, struct
# Source: seccomp(2), clone(2) and linux/filter.h; the numbers of the calls are the architecture's.
CLONE, CLONE3, FORKS = {{"x86_64": (56, 435, (57, 58)), "aarch64": (220, 435, ())}}[platform.machine()]
THREAD, FAIL, ALLOW = 0x10000, 0x50000, 0x7FFF0000
def when(number, then):
    return [(0x15, 0, len(then), number), *then]
again, unknown = (6, 0, 0, FAIL | errno.EAGAIN), (6, 0, 0, FAIL | errno.ENOSYS)
code = [(0x20, 0, 0, 0)]
code += when(CLONE3, [unknown])  # its flags lie in memory: the C library uses clone then
for number in FORKS if {processes} else ():
    code += when(number, [again])
flags = [(0x20, 0, 0, 16), (0x45, {if_thread}, {if_process}, THREAD), again, (6, 0, 0, ALLOW)]
code += when(CLONE, flags)
code.append((6, 0, 0, ALLOW))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(code), b"".join(struct.pack("=HBBI", *step) for step in code))
for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(program), 0, 0)):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
    if libc.prctl(*arguments):
        raise OSError(ctypes.get_errno(), "no seccomp filter can be set")
"""


def limited(count: int) -> str:
    """Code at a program's start that limits its processes and threads to `count`."""
    need(os.geteuid() == 0, "root, to become a user with a limit of its own")
    return _ULIMIT.format(count=count, user=100_000 + os.getpid())


def refusing(*, threads: bool, processes: bool) -> str:
    """Code at a program's start that lets the system refuse threads, processes or both."""
    # a jump over `again` has 1 step, a jump to it none: (if the flag is set, if it isn't)
    return _REFUSE.format(processes=processes, if_thread=int(not threads), if_process=int(not processes))


def bloom(start: str, *arguments: object, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the command line in a program with this start. Raises subprocess.TimeoutExpired if it hangs."""
    return run(start, "from bloomcli.cli import run; sys.exit(run(sys.argv[1:]))", *arguments, seconds=seconds)


def run(start: str, program: str, *arguments: object, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a program with this start, in a separate process group, so that all its processes can be ended."""
    command = [sys.executable, "-c", f"{start}\nimport sys\n{program}", *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, 9)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


START = {
    "no threads": refusing(threads=True, processes=False),
    "no processes": refusing(threads=False, processes=True),
    "neither": refusing(threads=True, processes=True),
}


@pytest.mark.parametrize("what", ["parquet", "orc"])
def test_one_file_is_done_without_threads_or_processes(tmp_path: Path, what: str) -> None:
    path = tmp_path / f"in.{what}"
    table = pa.table({"id": pa.array(range(50_000)), "s": [f"s{i}" for i in range(50_000)]})
    if what == "parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=10_000)
    else:
        orc.write_table(table, path, compression="zstd")
    free = tmp_path / f"free.{what}"
    assert not bloomcli.add(path, ["id", "s"], output=free, threads=3).remarks
    for how, start in START.items():
        out = tmp_path / f"{how}.{what}"
        done = bloom(start, "add", path, "-c", "id,s", "-o", out, "--threads", 3, "--format", "json")
        assert (done.returncode, done.stderr) == (0, ""), (how, done)
        remarks = json.loads(done.stdout)["remarks"]
        assert bool(remarks) is (how != "no processes")
        assert not remarks or "fewer threads" in remarks[0]
        assert out.read_bytes() == free.read_bytes()
        deep = bloom(start, "validate", out, "--deep", "--jobs", 3)
        assert deep.returncode == 0, deep


@pytest.mark.parametrize("how", START)
def test_reading_mosaic_needs_a_process_and_threads_and_it_is_said_where_it_gets_none(
    fixtures: Path, tmp_path: Path, how: str
) -> None:
    path, out = next(fixtures.rglob("released_types.mosaic")), tmp_path / "out.mosaic"
    done = bloom(START[how], "add", path, "-c", "*", "--mosaic-draft", "-o", out)
    assert done.returncode == 4
    starts_none = "paimon-mosaic can't start a thread", "in a separate process, which can't be started"
    assert any(text in done.stderr for text in starts_none)
    assert "`ulimit -u`, or the container's pids.max, says" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "command"), [("no threads", "add"), ("no processes", "add"), ("neither", "validate")]
)
def test_a_dataset_is_done_without_threads_or_processes(tmp_path: Path, how: str, command: str) -> None:
    lake, out = datasets.plain(tmp_path / "lake", 6), tmp_path / "out"
    arguments = [
        *(("add", lake, "-c", "id", "-o", out) if command == "add" else ("validate", lake, "--deep")),
        "--jobs",
        2,
    ]
    done = bloom(START[how], *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["files"] == 6
    refused = how != "no threads"
    assert report["jobs"] == (1 if refused else 2)
    assert ["0 of 2 worker processes" in text for text in report["remarks"]] == [True] * refused
    if command == "add":
        shown = bloom(START[how], *arguments, "--overwrite")
        assert shown.returncode == 0
        assert ("0 of 2 worker processes could be started" in shown.stdout) is refused


@pytest.mark.parametrize("count", [1, 2, 4])
def test_under_any_ulimit_two_files_are_done_by_as_many_workers_as_there_may_be(tmp_path: Path, count: int) -> None:
    lake, out = tmp_path / "lake", tmp_path / "out"
    for name in ("a", "b"):
        datasets.write(lake / f"{name}.parquet", 20_000)
    done = bloom(limited(count), "add", lake, "-c", "id", "-o", out, "--jobs", 2, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["files"], report["done"], report["failed"]) == (2, 2, 0)
    workers = min(count - 1, 2)
    assert report["jobs"] == max(workers, 1)
    assert [text.split(" worker")[0] for text in report["remarks"]] == [f"{workers} of 2"] * (workers < 2)
    for name in ("a", "b"):
        assert bloomcli.validate(out / f"{name}.parquet", deep=True).ok


@pytest.mark.parametrize("count", [1, 2])
def test_under_any_ulimit_one_file_is_done(tmp_path: Path, count: int) -> None:
    path = datasets.write(tmp_path / "a.parquet", 100_000)
    done = bloom(limited(count), "add", path, "-c", "id", "--in-place", "--threads", 4, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert bloomcli.validate(path, deep=True).ok


THREADED = """
import threading
release = threading.Event()
if sys.argv[2] == "threaded":
    threading.Thread(target=release.wait).start()
{start}
from bloomcli.commands.options import InspectOptions
from bloomcli.datasets import local, planning
from bloomcli.storage.listing import expand
tasks = planning.plan(expand([sys.argv[1]]), InspectOptions())
if sys.argv[3] == "apart":
    print({{str(row.error).partition(": ")[2] for _, row in local.run_isolated(dict(enumerate(tasks)))}})
else:
    report = local.run(tasks, jobs=2)
    print(report.done, report.failed, report.jobs, len(report.remarks))
release.set()
"""


@pytest.mark.parametrize("threaded", ["threaded", "single"])
def test_a_program_with_threads_that_gets_no_process_does_the_work_itself(tmp_path: Path, threaded: str) -> None:
    datasets.plain(tmp_path, 5)
    done = run("", THREADED.format(start=START["no processes"]), tmp_path, threaded, "run")
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 0 1 1\n", "")


@pytest.mark.parametrize("threaded", ["threaded", "single"])
def test_a_file_that_took_its_process_down_is_not_tried_in_one_that_others_need(
    tmp_path: Path, threaded: str
) -> None:
    datasets.plain(tmp_path, 2)
    done = run("", THREADED.format(start=START["no processes"]), tmp_path, threaded, "apart")
    assert done.stdout == "{'no process can be started to work on it'}\n", done


def test_a_progress_bar_needs_no_thread(tmp_path: Path) -> None:
    program = (
        "import time\n"
        "from bloomcli.cli import output\n"
        "output.PATIENCE = 0\n"
        "sys.stderr.isatty = lambda: True\n"
        "with output.Bars() as bars:\n"
        "    for done in range(5):\n"
        "        bars('copy', done, 4)\n"
        "print('done')\n"
    )
    done = run(START["no threads"], program)
    assert (done.returncode, done.stdout) == (0, "done\n"), done
