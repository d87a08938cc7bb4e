"""Signals while a file is being replaced: the original stays whole, and what can be tidied up is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from support.replacing import NEW, OLD, names, replace

from bloomcli.errors import WriteError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in a folder of its own."""
    path = tmp_path / "data.parquet"
    path.write_bytes(OLD)
    return path


STOPPED = """
import signal, sys, time
from pathlib import Path
from bloomcli.atomic import replacing
from bloomcli.source import LocalSource
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
path = Path(sys.argv[1])
with LocalSource(str(path), path) as source:
    with replacing(path, source=source, overwrite=True, verify=lambda _: None) as out:
        out.copy_range(source, 0, 1000)
        print("ready", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "code", "left"), [(signal.SIGTERM, 143, 1), (signal.SIGINT, -2, 1), (signal.SIGKILL, -9, 2)]
)
def test_a_process_that_is_stopped_leaves_the_original_whole(
    file: Path, number: signal.Signals, code: int, left: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(file)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(20) == code
    assert file.read_bytes() == OLD
    assert len(names(file.parent)) == left  # nobody can tidy up after SIGKILL
    replace(file)
    assert file.read_bytes() == NEW


def test_the_handler_of_sigterm_is_given_back(file: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    replace(file)
    with pytest.raises(WriteError):
        replace(file.with_name("target"), source=file, verify=lambda _: (_ for _ in ()).throw(WriteError("no")))
    assert signal.getsignal(signal.SIGTERM) is before


def test_somebody_elses_handler_of_sigterm_stays(file: Path) -> None:
    def handler(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, handler)
    try:
        replace(file, during=lambda: signal.getsignal(signal.SIGTERM) is handler or pytest.fail("it was replaced"))
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
