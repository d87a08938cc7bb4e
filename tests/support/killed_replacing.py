"""Replaces a file in processes that are killed, each at a different instant, and checks that no file is lost.

    python -m support.killed_replacing FILE [swapped] [vouched]

They are forked from this small process, because a fork of the tests' process takes several times as long.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from bloomcli.errors import SourceChanged
from bloomcli.storage.local.temporary import sweep
from support.checksums import checksums
from support.every_instant import Instant
from support.others import OTHERS, Renames, just_before
from support.replacing import NEW, OLD, names, replace


def check(file: Path, *, swapped: bool, vouched: bool) -> None:
    """Kill a replacement at every instant. Raises AssertionError.

    Args:
        file: an existing file, alone in its folder.
        swapped: another writer renames a file to the name just before the exchange.
        vouched: the file has checksums next to it.
    """
    others = Renames(file, vouched)
    seen = set()
    for number in range(10_000):
        others.begin()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if swapped:
                    just_before(pytest.MonkeyPatch(), others.act)
                at = Instant(number, lambda: os.kill(os.getpid(), signal.SIGKILL), counting=False)
                with contextlib.suppress(SourceChanged), at:
                    replace(file, verify=at.begin)
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        seen.add((file.read_bytes(), len(names(file.parent))))
        came = file.read_bytes() == OTHERS or any(p.read_bytes() == OTHERS for p in file.parent.iterdir())
        sweep(file.parent)
        if came:
            others.check()
        else:
            assert file.read_bytes() in ((OLD,) if swapped else (OLD, NEW))
        if vouched:
            assert others.sidecar.read_bytes() == checksums(file.read_bytes(), 512)
        assert names(file.parent) == {file.name, *([others.sidecar.name] if vouched else [])}
        assert status in (0, signal.SIGKILL)
        if status == 0:
            break
    assert number > 60
    assert (NEW, 2 + vouched) in seen or vouched, "killed while both files were there"
    assert {content for content, _ in seen} >= ({OLD, NEW, OTHERS} if swapped else {OLD, NEW})


if __name__ == "__main__":
    check(Path(sys.argv[1]), swapped="swapped" in sys.argv, vouched="vouched" in sys.argv)
