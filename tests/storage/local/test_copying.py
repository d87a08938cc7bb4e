"""Copies ranges in the kernel, or by reading and writing: both ways give the same bytes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomcli.errors import SourceChanged, WriteError
from bloomcli.storage.local import copying
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.source import LocalSource

STEP = 1 << 16
DATA = os.urandom(5 * STEP + 1234)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of several steps."""
    monkeypatch.setattr(copying, "STEP_BYTES", STEP)
    monkeypatch.setattr(copying, "READ_BYTES", 4096)
    path = tmp_path / "data"
    path.write_bytes(DATA)
    return path


def refuse(code: int) -> Callable[..., int]:
    def fail(*_: Any, **__: Any) -> int:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("copied", "step"),
    [(os.copy_file_range, STEP), (lambda *_, **__: 0, 4096), (refuse(errno.EXDEV), 4096)],
    ids=["in the kernel", "nothing copied", "refused"],
)
def test_several_ranges_with_bytes_between_them_are_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch, copied: Callable[..., int], step: int
) -> None:
    monkeypatch.setattr(os, "copy_file_range", copied)
    ranges = [(7, STEP + 5), (3 * STEP, 5), (0, len(DATA))]
    target = file.with_name("copy")
    steps: list[int] = []
    with (
        LocalSource(str(file), file) as source,
        replacing(target, source=source, overwrite=False, verify=lambda _: None) as out,
    ):
        for offset, length in ranges:
            out.write(b"head")
            out.copy_range(source, offset, length, steps.append)
    assert target.read_bytes() == b"".join(b"head" + DATA[at : at + size] for at, size in ranges)
    assert sum(steps) == sum(size for _, size in ranges)
    assert max(steps) == step


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_disk_that_refuses_a_copy_is_a_write_error(file: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(os, "copy_file_range", refuse(code))
    with (
        LocalSource(str(file), file) as source,
        pytest.raises(WriteError, match=os.strerror(code).lower()),
        replacing(file, source=source, overwrite=True, verify=lambda _: None) as out,
    ):
        out.copy_range(source, 0, len(DATA))
    assert file.read_bytes() == DATA
    assert [p.name for p in file.parent.iterdir()] == ["data"]


@pytest.mark.parametrize("left", [0, 100, STEP, STEP + 100])
def test_a_source_that_becomes_shorter_is_reported(file: Path, left: int) -> None:
    with (
        LocalSource(str(file), file) as source,
        pytest.raises(SourceChanged, match="became shorter"),
        replacing(file.with_name("out"), source=source, overwrite=True, verify=lambda _: None) as out,
    ):
        os.truncate(file, left)
        out.copy_range(source, 0, len(DATA))
    assert [p.name for p in file.parent.iterdir()] == ["data"]


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
        mounts.unlink()
        assert copying.file_system(os.makedev(7, 7)) == ""
    finally:
        copying.file_system.cache_clear()
