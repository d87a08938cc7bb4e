"""Signals during a replacement: the original stays complete, and temporary files are removed if possible."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from support.checksums import checksums
from support.every_instant import Instant
from support.processes import started
from support.replacing import NEW, OLD, names, replace

from bloomcli.storage.local.atomic import write_file

pytestmark = pytest.mark.slow


STOPPED = """
import signal, sys, time
from pathlib import Path
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.source import LocalSource
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
path = Path(sys.argv[1])
with LocalSource(str(path), path) as source:
    with replacing(path, source=source, overwrite=True, verify=lambda _: None) as out:
        out.copy_range(source, 0, 1000)
        print("ready", flush=True)
        time.sleep(600)
"""
"""A process that is in the middle of replacing a file."""


@pytest.mark.parametrize(
    ("number", "code", "left"),
    [(signal.SIGTERM, 143, 1), (signal.SIGHUP, 129, 1), (signal.SIGINT, -2, 1), (signal.SIGKILL, -9, 2)],
)
def test_a_process_that_is_stopped_leaves_the_original_whole(
    file: Path, number: signal.Signals, code: int, left: int
) -> None:
    argv = [sys.executable, "-c", STOPPED, str(file)]
    with started(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(600) == code
    assert file.read_bytes() == OLD
    assert len(names(file.parent)) == left  # after SIGKILL, the process can't remove it
    replace(file)
    assert file.read_bytes() == NEW


INSTANTS = """
import os, signal, sys
from pathlib import Path
from bloomcli.storage.local.temporary import sweep
from support.replacing import NEW, OLD, names, replace
from support.checksums import checksums

CHANGES = {"open", "os.rename", "os.link", "os.remove"}
folder = Path(sys.argv[1])
source, target = folder / "source", folder / "target"
sidecar = target.with_name(f".{target.name}.crc")
left = -1

def count(event, arguments):  # killed before the next call that changes the folder
    global left
    named = event in CHANGES and str(arguments[0])  # by its path, or by its name in a directory that is open
    if left >= 0 and named and (str(folder) in named or named.endswith(".tmp")):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

sys.addaudithook(count)
seen = set()
for instant in range(1000):
    for path in folder.iterdir():
        path.unlink()
    source.write_bytes(OLD)
    sidecar.write_bytes(checksums(b"left over", 512))
    child = os.fork()
    if child == 0:
        left = instant
        replace(target, source=source, overwrite=False)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    content = target.read_bytes() if target.exists() else None
    assert content in (NEW, None)
    vouched = sidecar.read_bytes() if sidecar.exists() else None
    if content is not None:
        assert vouched in (None, checksums(content, 512)), f"stale at {instant}"
    seen.add((content == NEW, vouched is not None, len(names(folder))))
    sweep(folder)
    if content is not None:
        assert vouched or sidecar.read_bytes() == checksums(content, 512), f"lost at {instant}"
        assert names(folder) == {"source", target.name, sidecar.name}
    if content is None:
        replace(target, source=source, overwrite=False)
    assert target.read_bytes() == NEW
    assert names(folder) <= {"source", target.name, sidecar.name}
    if status == 0:
        break
print(instant, len(seen))
"""


def test_after_a_kill_at_any_time_a_new_file_has_its_own_checksums_or_none_and_a_rerun_completes(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSTANTS, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    instants, states = map(int, done.stdout.split())
    assert instants >= 8
    assert states >= 5


@pytest.mark.parametrize("how", ["new", "checksums", "own"])
def test_ctrl_c_at_any_time_leaves_no_temporary_file(file: Path, how: str) -> None:
    """Otherwise a temporary file would stay until the next run."""
    target = file if how == "checksums" else file.with_name("target")
    sidecar = target.with_name(f".{target.name}.crc")

    def work() -> None:
        if how == "own":
            write_file(target, NEW, overwrite=True)
        else:
            replace(target, source=file, overwrite=how != "new")

    for instant in range(10_000):
        file.write_bytes(OLD)
        if target != file:
            target.unlink(missing_ok=True)
        if how == "checksums":
            sidecar.write_bytes(checksums(OLD, 512))
        at = Instant(instant)
        with contextlib.suppress(KeyboardInterrupt), at:
            work()
        assert names(file.parent) <= {file.name, target.name, sidecar.name}, f"left behind at {at.place}"
        content = target.read_bytes() if target.exists() else None
        assert content in (OLD, NEW) if target == file else content in (None, NEW)
        if how == "checksums":
            assert sidecar.read_bytes() == checksums(target.read_bytes(), 512), f"stale or lost at {at.place}"
        if at.left >= 0:
            break
    assert instant > 50
    assert target.read_bytes() == NEW
    if how == "checksums":
        assert sidecar.read_bytes() == checksums(NEW, 512)
