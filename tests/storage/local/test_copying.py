"""Copies ranges directly, in the kernel, or by reading and writing: all ways, and changes between them, give the same
bytes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import need

from bloomcli.errors import SourceChanged, WriteError
from bloomcli.storage.local import copying
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.copying import BLOCK, NewFile
from bloomcli.storage.local.source import LocalSource

STEP = 16 * BLOCK
DATA = os.urandom(5 * STEP + 1234)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of several steps, all of which can be copied directly if the file system supports it."""
    monkeypatch.setattr(copying, "STEP_BYTES", STEP)
    monkeypatch.setattr(copying, "READ_BYTES", BLOCK)
    monkeypatch.setattr(copying, "DIRECT_LEAST", 2 * BLOCK)
    path = tmp_path / "data"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def direct(file: Path) -> Path:
    """The same, on a file system with direct writes."""
    need(copying.file_system(file.stat().st_dev) in copying._DIRECT_ON, "a file system with direct writes")
    return file


def copy(file: Path, head: bytes, *ranges: tuple[int, int]) -> tuple[bytes, list[tuple[int, bool]]]:
    """The content of a file after `head`, the ranges and a tail were written to it; and the steps."""
    target = file.with_name("copy")
    fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    new = NewFile(target, fd)
    steps = []
    try:
        new.write(head)
        with LocalSource(str(file), file) as source:
            for offset, length in ranges:
                for step in new._steps(source, offset, length):
                    steps.append(step)
                    new.position += step[0]
                    assert target.stat().st_size == new.position
        os.write(fd, b"tail")
    finally:
        new.close()
        os.close(fd)
    return target.read_bytes(), steps


def on_disk(steps: list[tuple[int, bool]]) -> int:
    """Number of bytes that were written directly."""
    return sum(count for count, direct in steps if direct)


def test_whole_blocks_go_to_the_disk_directly_and_the_rest_follows(direct: Path) -> None:
    copied, steps = copy(direct, b"", (0, len(DATA)))
    assert copied == DATA + b"tail"
    assert steps[:5] == [(STEP, True)] * 5
    assert sum(count for count, _ in steps) == len(DATA)
    assert on_disk(steps) == len(DATA) // BLOCK * BLOCK


@pytest.mark.parametrize("shift", [1, BLOCK, BLOCK + 7])
def test_a_range_that_begins_within_a_block_goes_directly_from_the_next_one_on(direct: Path, shift: int) -> None:
    copied, steps = copy(direct, DATA[:shift], (shift, len(DATA) - shift))
    assert copied == DATA + b"tail"
    assert on_disk(steps) == len(DATA) // BLOCK * BLOCK - -(-shift // BLOCK) * BLOCK
    assert sum(count for count, _ in steps) == len(DATA) - shift


@pytest.mark.parametrize(
    ("ranges", "some"),
    [
        ([(0, 2 * BLOCK - 1), (10, STEP), (100, 3)], False),
        ([(0, STEP + 5), (STEP + 5, BLOCK), (3 * STEP, 5), (STEP + BLOCK + 10, 3 * STEP)], True),
    ],
    ids=["small or aligned differently", "some of each"],
)
def test_ranges_that_cannot_all_go_directly_are_whole(
    direct: Path, ranges: list[tuple[int, int]], some: bool
) -> None:
    copied, steps = copy(direct, b"", *ranges)
    assert copied == b"".join(DATA[at : at + size] for at, size in ranges) + b"tail"
    assert on_disk(steps) < sum(count for count, _ in steps)
    assert bool(on_disk(steps)) == some


@pytest.mark.parametrize(("code", "after"), [*((code, 0) for code in copying._NO_DIRECT), (copying._NO_DIRECT[0], 2)])
def test_if_a_direct_write_fails_the_range_is_copied_in_another_way(
    direct: Path, monkeypatch: pytest.MonkeyPatch, code: int, after: int
) -> None:
    calls = []
    real = os.pwrite

    def pwrite(*args: Any) -> int:
        calls.append(args)
        if len(calls) > after:
            raise OSError(code, os.strerror(code))
        return real(*args)

    monkeypatch.setattr(os, "pwrite", pwrite)
    copied, steps = copy(direct, b"", (0, len(DATA)))
    assert copied == DATA + b"tail"
    assert on_disk(steps) == after * STEP
    assert len(calls) == after + 1, "it isn't tried again"


def test_a_short_direct_write_continues_where_it_ended(direct: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[: 3 * BLOCK], at))
    copied, steps = copy(direct, b"", (0, len(DATA)))
    assert copied == DATA + b"tail"
    assert steps[:4] == [(3 * BLOCK, True)] * 4


def test_a_disk_that_refuses_a_direct_write_is_a_write_error(direct: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pwrite(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", pwrite)
    with (
        LocalSource(str(direct), direct) as source,
        pytest.raises(WriteError, match="no space left"),
        replacing(direct, source=source, overwrite=True, verify=lambda _: None) as out,
    ):
        out.copy_range(source, 0, len(DATA))
    assert direct.read_bytes() == DATA
    assert [p.name for p in direct.parent.iterdir()] == ["data"]


@pytest.mark.parametrize("left", [0, STEP + 100])
def test_a_source_that_becomes_shorter_is_reported(direct: Path, left: int) -> None:
    with (
        LocalSource(str(direct), direct) as source,
        pytest.raises(SourceChanged, match="became shorter"),
        replacing(direct.with_name("out"), source=source, overwrite=True, verify=lambda _: None) as out,
    ):
        os.truncate(direct, left)
        out.copy_range(source, 0, len(DATA))
    assert [p.name for p in direct.parent.iterdir()] == ["data"]


@pytest.mark.parametrize("lack", ["no flag", "no open", "another file system", "no mounts"])
def test_without_direct_writes_everything_goes_through_the_cache(
    file: Path, monkeypatch: pytest.MonkeyPatch, lack: str
) -> None:
    copying.file_system.cache_clear()
    if lack == "no flag":
        monkeypatch.delattr(os, "O_DIRECT", raising=False)
    elif lack == "no open":
        real = os.open

        def refuse(path: Any, flags: int, *rest: Any) -> int:
            if flags & getattr(os, "O_DIRECT", 0):
                raise OSError(errno.EINVAL, "no direct writes here")
            return real(path, flags, *rest)

        monkeypatch.setattr(os, "open", refuse)
    elif lack == "another file system":
        monkeypatch.setattr(copying, "_DIRECT_ON", ())
    else:
        monkeypatch.setattr(copying, "_MOUNTS", file.with_name("nowhere"))
    copied, steps = copy(file, b"", (0, len(DATA)))
    copying.file_system.cache_clear()
    assert copied == DATA + b"tail"
    assert on_disk(steps) == 0


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw,errors=continue", "ext4"),
        ("36 35 98:0 / / rw - xfs /dev/sda rw", "xfs"),
        ("36 35 98:0 / /odd\\040name rw shared:1 master:2 - btrfs /dev/sda rw", "btrfs"),
        ("36 35 98:1 / / rw - ext4 /dev/sda rw", ""),
        ("36 35 98:0 / / rw", ""),
        ("36 35 98:0 / / rw -", ""),
        ("", ""),
    ],
)
def test_the_file_systems_type_is_read_from_the_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, kind: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 7:7 / /other rw - tmpfs tmpfs rw\n{line}\n")
    monkeypatch.setattr(copying, "_MOUNTS", mounts)
    copying.file_system.cache_clear()
    try:
        assert copying.file_system(os.makedev(98, 0)) == kind
    finally:
        copying.file_system.cache_clear()


def refusing(code: int) -> Callable[..., int]:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(code, os.strerror(code))

    return refuse


_IN_KERNEL = os.copy_file_range
KERNELS: dict[str, tuple[Callable[..., int] | None, int]] = {
    "no such call": (None, BLOCK),
    "no bytes": (lambda *_, **__: 0, BLOCK),
    "few bytes": (lambda a, b, n, **rest: _IN_KERNEL(a, b, min(n, 77), **rest), 77),
    **{
        errno.errorcode[code]: (refusing(code), BLOCK)
        for code in (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
    },
}
"""Systems that don't copy a range at once, and the bytes of the largest step on each."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_ranges_that_the_kernel_does_not_copy_are_read_and_written(
    file: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    copies, step = KERNELS[kernel]
    monkeypatch.setattr(copying, "_DIRECT_ON", ())
    monkeypatch.delattr(os, "copy_file_range")
    if copies is not None:
        monkeypatch.setattr(os, "copy_file_range", copies, raising=False)
    copied, steps = copy(file, b"head", (7, len(DATA) - 7))
    assert copied == b"head" + DATA[7:] + b"tail"
    assert max(count for count, _ in steps) == step
