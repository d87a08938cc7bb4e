"""Replaces a file, or makes a new one, in processes that are killed, each at a different instant, and checks that no
file is lost.

    python -m support.killed_replacing FILE [new] [swapped] [vouched]

They are forked from this small process, because a fork of the tests' process takes several times as long.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bloomcli.errors import SourceChanged
from bloomcli.storage.local.hadoop_crc import checksum_file_of
from bloomcli.storage.local.temporary import sweep
from support.checksums import checksums
from support.every_instant import Instant
from support.others import OTHERS, Renames, just_before
from support.replacing import NEW, OLD, names, replace


def killed(number: int, work: Callable[[Instant], object]) -> bool:
    """Kill the work at an instant, in a child process. Returns whether it came to that instant."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            at = Instant(number, lambda: os.kill(os.getpid(), signal.SIGKILL), counting=False)
            with contextlib.suppress(SourceChanged), at:
                work(at)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


def check(file: Path, *, swapped: bool, vouched: bool) -> None:
    """Kill a replacement at every instant. Raises AssertionError.

    Args:
        file: an existing file, alone in its folder.
        swapped: another writer renames a file to the name just before the exchange.
        vouched: the file has checksums next to it.
    """
    others = Renames(file, vouched)
    seen = set()

    def work(at: Instant) -> None:
        if swapped:
            just_before(pytest.MonkeyPatch(), others.act)
        replace(file, verify=at.begin)

    for number in range(10_000):
        others.begin()
        was_killed = killed(number, work)
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
        if not was_killed:
            break
    assert number > 60
    assert (NEW, 2 + vouched) in seen or vouched, "killed while both files were there"
    assert {content for content, _ in seen} >= ({OLD, NEW, OTHERS} if swapped else {OLD, NEW})


def check_new(file: Path) -> None:
    """Kill a run that makes a new file from `file` at every instant: there is the whole new file or none, with its
    own checksums or none, never those that are left over, and a rerun completes it. Raises AssertionError."""
    target = file.with_name("target")
    sidecar, seen = checksum_file_of(target), set()
    for number in range(10_000):
        target.unlink(missing_ok=True)
        sidecar.write_bytes(checksums(b"left over", 512))
        was_killed = killed(number, lambda at: replace(target, source=file, overwrite=False, verify=at.begin))
        made, vouched = target.exists(), sidecar.exists()
        if made:
            assert target.read_bytes() == NEW
            assert not vouched or sidecar.read_bytes() == checksums(NEW, 512), f"stale at {number}"
        seen.add((made, vouched, len(names(file.parent))))
        sweep(file.parent)
        if made:
            assert sidecar.read_bytes() == checksums(NEW, 512), f"lost at {number}"
        else:
            replace(target, source=file, overwrite=False)
        assert target.read_bytes() == NEW
        assert names(file.parent) <= {file.name, target.name, sidecar.name}
        if not was_killed:
            break
    assert number > 60
    assert len(seen) >= 5


if __name__ == "__main__":
    if "new" in sys.argv:
        check_new(Path(sys.argv[1]))
    else:
        check(Path(sys.argv[1]), swapped="swapped" in sys.argv, vouched="vouched" in sys.argv)
