"""A change that streams a whole object through this machine holds little of it in memory, and can be stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT
from support.peak_memory import GIVES_BACK
from support.servers.faults import Action, Fault
from support.servers.rigs import Rig, rig_of

pytestmark = [pytest.mark.slow, pytest.mark.servers]

MIB = 1 << 20
SIZE = 100 * MIB

_CHANGE = """
import sys
sys.path.insert(0, "tests")
from support.peak_memory import peak
from bloomcli.storage.base import KeptRange
from bloomcli.storage.registry import store_of

def change(path):
    store = store_of(path)
    def pieces(size):
        yield KeptRange(0, 100)
        yield b"new bytes"
        yield KeptRange(200, size - 200)
    with store.open(path) as source:
        store.replace(path, pieces(source.size), source=source, overwrite=True)
    return peak() >> 20

print(*map(change, sys.argv[1:]))
"""
"""Changes objects within, one after the other, and prints the peak of memory after each, in MiB."""


def put(rig: Rig, name: str, data: bytes) -> None:
    """Write an object; in Azure a blob without blocks, which has to stream."""
    if rig.name == "azure":
        place: Any = rig.place
        client = place.blob(name)
        client._config.max_single_put_size = len(data) + 1
        client.upload_blob(data, overwrite=True)
        assert client.get_block_list("committed")[0] == []
    else:
        rig.place.put(name, data)


@pytest.mark.parametrize("store", ["azure", "gcs"])
def test_a_streamed_change_holds_a_few_parts_whatever_the_size(store: str) -> None:
    with rig_of(store) as rig:
        data = os.urandom(MIB) * (SIZE // MIB)
        put(rig, "small.bin", data[: 32 * MIB])
        put(rig, "large.bin", data)
        command = [sys.executable, "-c", _CHANGE, rig.place.path("small.bin"), rig.place.path("large.bin")]
        env = os.environ | dict(rig.forks.env) | {"PYTHONPATH": str(ROOT)} | GIVES_BACK
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        small, large = map(int, done.stdout.split())
        assert rig.place.get("large.bin") == data[:100] + b"new bytes" + data[200:]
    assert large < small + 48, "most of what is held is a few parts of 8 and 16 MiB"


@pytest.mark.parametrize(("store", "number"), [("azure", signal.SIGINT), ("gcs", signal.SIGTERM)])
def test_a_streamed_change_that_is_stopped_leaves_the_old_object(store: str, number: signal.Signals) -> None:
    with rig_of(store) as rig:
        data = os.urandom(MIB) * 40
        put(rig, "data.bin", data)
        command = [sys.executable, "-c", _CHANGE, rig.place.path("data.bin")]
        env = os.environ | dict(rig.forks.env) | {"PYTHONPATH": str(ROOT)}
        upload = {"azure": "Put Block", "gcs": "objects.insert (resumable)"}[store]
        fault = Fault(Action.PASS, upload, at=3)
        with rig.proxy.injecting(fault):
            process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
            fault.call = lambda: process.send_signal(number)
            code = process.wait(600)
        assert fault.fired == 1
        assert code in {128 + number, -number, 1}
        assert rig.place.get("data.bin") == data
        assert rig.place.names() == {"data.bin"}
