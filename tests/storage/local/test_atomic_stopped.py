"""Signals during a replacement: the original stays complete, and temporary files are removed if possible."""

from __future__ import annotations

import contextlib
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
