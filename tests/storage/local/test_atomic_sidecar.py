"""Hadoop's checksum files: a replaced file has the right one, or none, and never a stale one."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import datasets
from support.checksums import ALGORITHMS, checksums
from support.replacing import NEW, OLD, around, names, replace

import bloomcli
from bloomcli.errors import CorruptFile, UnreadableError, WriteError
from bloomcli.storage.local import hadoop_crc as sidecar_module
from bloomcli.storage.local import temporary
from bloomcli.storage.local.source import LocalSource


@pytest.fixture
def sidecar(file: Path) -> Path:
    """Its checksum file, as Hadoop writes it."""
    path = file.with_name(".data.parquet.crc")
    path.write_bytes(checksums(OLD, 512))
    return path


@pytest.mark.parametrize(
    ("size", "algorithm"), [*((512, algorithm) for algorithm in ALGORITHMS), (1, "CRC32"), (1 << 20, "CRC32")]
)
def test_a_replaced_file_has_checksums_of_its_new_content(
    file: Path, sidecar: Path, algorithm: str, size: int
) -> None:
    sidecar.write_bytes(checksums(OLD, size, algorithm))
    replace(file)
    assert file.read_bytes() == NEW
    assert sidecar.read_bytes() == checksums(NEW, size, algorithm)
    assert names(file.parent) == {file.name, sidecar.name}


@pytest.mark.parametrize(
    "old",
    [b"", b"crc\0\0\0", b"other content, whatever it is", b"crc\0" + bytes(4), b"crc\0\xff\xff\xff\xff"],
)
def test_an_invalid_sidecar_becomes_one_that_hadoop_reads(file: Path, sidecar: Path, old: bytes) -> None:
    sidecar.write_bytes(old)
    replace(file)
    assert sidecar.read_bytes() == checksums(NEW, 512)


def test_the_sources_sidecar_stays_and_another_name_gets_none(file: Path, sidecar: Path) -> None:
    link = file.with_name("link")
    link.symlink_to("target")
    replace(link, source=file, overwrite=False)
    assert sidecar.read_bytes() == checksums(OLD, 512)
    assert names(file.parent) == {file.name, sidecar.name, "target", "link"}
    sidecar.with_name(".target.crc").write_bytes(checksums(NEW, 512))
    replace(link, source=file)
    assert sidecar.with_name(".target.crc").read_bytes() == checksums(NEW, 512), "it lies beside the link's target"
    assert names(file.parent) == {file.name, sidecar.name, "target", "link", ".target.crc"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_sidecar_left_over_under_the_outputs_name_is_not_left_stale(file: Path, overwrite: bool) -> None:
    left_over = file.with_name(".target.crc")
    left_over.write_bytes(checksums(b"a file of long ago", 512))
    replace(file.with_name("target"), source=file, overwrite=overwrite)
    assert left_over.read_bytes() == checksums(NEW, 512)
    assert names(file.parent) == {file.name, "target", left_over.name}


def test_the_checksums_of_a_link_s_target_are_compared(file: Path, sidecar: Path) -> None:
    sidecar.write_bytes(checksums(NEW, 512))
    (file.parent / "elsewhere").mkdir()
    link = file.parent / "elsewhere" / "link"
    link.symlink_to(file)
    with LocalSource(str(link), link) as source, pytest.raises(CorruptFile, match="doesn't match its checksums"):
        sidecar_module.verified_checksums(source)


def test_a_sidecar_may_be_read_by_everyone_who_may_read_the_file(file: Path, sidecar: Path) -> None:
    file.chmod(0o754)
    old = os.umask(0o077)
    try:
        replace(file)
    finally:
        os.umask(old)
    assert sidecar.stat().st_mode & 0o777 == 0o644


def test_a_new_file_never_has_an_old_sidecar(file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look() -> None:
        vouched = sidecar.read_bytes() if sidecar.exists() else None
        seen.append((file.read_bytes() == OLD, None if vouched is None else vouched == checksums(OLD, 512)))

    around(monkeypatch, look)
    replace(file)
    assert list(dict.fromkeys(seen)) == [(True, True), (True, None), (False, None), (False, False)]


def fail(number: int) -> None:
    """Fail as a system call."""
    raise OSError(number, os.strerror(number))


def do_not_put_aside(old: Path, new: Path, real: Callable[[Path, Path], None] = os.replace) -> None:
    """Rename, but no checksum file."""
    if old.suffix == ".crc":
        fail(errno.EIO)
    real(old, new)


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        pytest.param(temporary, "_rename", lambda *_: errno.EIO, id="the replacement is refused"),
        pytest.param(os, "replace", do_not_put_aside, id="the sidecar can't be put aside"),
        pytest.param(sidecar_module, "new_checksum_file", lambda *_: fail(errno.ENOSPC), id="the disk is full"),
    ],
)
def test_a_failure_before_the_file_is_replaced_leaves_it_and_its_sidecar(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str, instead: object
) -> None:
    monkeypatch.setattr(where, name, instead)
    with pytest.raises(WriteError, match=r"can't be written: (input/output error|no space)"):
        replace(file)
    assert file.read_bytes() == OLD
    assert sidecar.read_bytes() == checksums(OLD, 512)
    assert names(file.parent) == {file.name, sidecar.name}


def refuse_names_of_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file gets a name that ends in .crc."""
    links, renames = os.link, os.replace

    def refused(real: Callable[[Path, Path], None], old: Path, new: Path) -> None:
        if new.suffix == ".crc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(old, new)

    monkeypatch.setattr(os, "link", partial(refused, links))
    monkeypatch.setattr(os, "replace", partial(refused, renames))
    monkeypatch.setattr(temporary, "rename_no_replace", lambda *_: False)


@pytest.mark.parametrize("how", ["in place", "over", "new"])
def test_checksums_that_do_not_get_their_name_are_reported_and_put_in_place_by_the_next_run(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    target = file if how == "in place" else file.with_name("target")
    checksum_file = sidecar_module.checksum_file_of(target)
    if target != file:
        checksum_file.write_bytes(checksums(b"old", 512))
    with monkeypatch.context() as patched:
        refuse_names_of_checksums(patched)
        with pytest.raises(WriteError, match=r"no space.*the new file is in place") as caught:
            replace(target, source=file, overwrite=how != "new")
    assert caught.value.path == str(checksum_file)
    assert "the next bloom" in (caught.value.hint or "")
    assert target.read_bytes() == NEW
    assert not checksum_file.exists()
    temporary.sweep(file.parent)
    assert checksum_file.read_bytes() == checksums(NEW, 512)
    assert names(file.parent) == {file.name, sidecar.name, target.name, checksum_file.name}


def test_old_checksums_that_do_not_get_their_name_back_are_reported_and_put_back_by_the_next_run(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        refuse_names_of_checksums(patched)
        patched.setattr(temporary, "_rename", lambda *_: errno.EIO)
        with pytest.raises(WriteError, match=r"can't be put back: no space.*file is unchanged") as caught:
            replace(file)
    assert caught.value.path == str(sidecar)
    assert file.read_bytes() == OLD
    temporary.sweep(file.parent)
    assert sidecar.read_bytes() == checksums(OLD, 512)
    assert names(file.parent) == {file.name, sidecar.name}


LONG = bytes(range(256)) * 40_000
"""More than is read at a time."""


@pytest.mark.parametrize(
    ("algorithm", "size", "at", "elsewhere"),
    [
        ("CRC32", 512, 0, False),
        ("CRC32C", 512, 5000, True),
        ("CRC32", 1, 77, True),
        ("CRC32C", 1000, 5119, False),
        ("CRC32", 1 << 20, 5, True),
    ],
)
def test_damage_that_the_sidecar_shows_is_an_error_and_gets_no_new_checksums(
    file: Path, sidecar: Path, algorithm: str, size: int, at: int, elsewhere: bool
) -> None:
    sidecar.write_bytes(checksums(OLD, size, algorithm))
    damaged = bytearray(OLD)
    damaged[at] ^= 1
    file.write_bytes(damaged)
    before = sidecar.read_bytes()
    target = file.with_name("target") if elsewhere else file
    with pytest.raises(CorruptFile, match=r"match its checksums \(\.data\.parquet\.crc\)") as caught:
        replace(target, source=file)
    assert caught.value.path == str(file)
    assert caught.value.offset == at // size * size
    assert "remove the checksums" in (caught.value.hint or "")
    assert (file.read_bytes(), sidecar.read_bytes()) == (damaged, before)
    assert names(file.parent) == {file.name, sidecar.name}
    sidecar.unlink()
    file.write_bytes(OLD)
    replace(target, source=file)


@pytest.mark.parametrize("at", [4_194_303, 4_194_304, 9_999_999])
def test_damage_is_found_at_any_offset(file: Path, sidecar: Path, at: int) -> None:
    file.write_bytes(LONG)
    sidecar.write_bytes(checksums(LONG, 1000))
    with LocalSource(str(file), file) as source:
        known = sidecar_module.verified_checksums(source)
        assert known is not None
        assert known.pack() == sidecar.read_bytes()
    with file.open("r+b") as stream:
        stream.seek(at)
        stream.write(b"\xff" if LONG[at] != 255 else b"\0")
    with LocalSource(str(file), file) as source, pytest.raises(CorruptFile) as caught:
        sidecar_module.verified_checksums(source)
    assert caught.value.offset == at // 1000 * 1000


@pytest.mark.parametrize(
    ("vouched", "offset"),
    [
        (OLD[:-512], len(OLD) - 512),
        (OLD[:600], 1024),
        (b"", 0),
        (OLD + b"x", len(OLD)),
        (b"another file", 0),
    ],
)
def test_checksums_of_a_longer_or_shorter_file_are_refused(
    file: Path, sidecar: Path, vouched: bytes, offset: int
) -> None:
    said = checksums(vouched, 512)
    sidecar.write_bytes(said if vouched != OLD[:600] else checksums(OLD, 512)[: 8 + 2 * 4 + 1])
    with pytest.raises(CorruptFile) as caught:
        replace(file)
    assert caught.value.offset == offset
    assert file.read_bytes() == OLD


def test_a_file_whose_checksums_cannot_be_read_is_not_changed(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: Path, *arguments: int) -> int:
        if path == sidecar:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UnreadableError, match="permission denied") as caught:
        replace(file)
    monkeypatch.undo()
    assert caught.value.path == str(sidecar)
    assert file.read_bytes() == OLD
    assert names(file.parent) == {file.name, sidecar.name}


def test_checksums_of_unchanged_bytes_are_copied_without_reading_the_bytes_again(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = 0
    real = zlib.crc32

    def count(data: bytes) -> int:
        nonlocal summed
        summed += len(data)
        return real(data)

    monkeypatch.setattr(zlib, "crc32", count)
    replace(file)
    monkeypatch.undo()
    assert summed == len(OLD) + len(NEW) - len(OLD) // 512 * 512
    assert sidecar.read_bytes() == checksums(NEW, 512)


def test_a_file_that_bloom_changes_is_checked_first(tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "part.parquet", rows=1000)
    checksum_file = path.with_name(".part.parquet.crc")
    checksum_file.write_bytes(checksums(path.read_bytes(), 512))
    sound = path.read_bytes()
    path.write_bytes(bytes([*sound[:5000], sound[5000] ^ 1, *sound[5001:]]))
    damaged = datasets.digests(tmp_path)
    for target in ({"in_place": True}, {"output": tmp_path / "out.parquet"}):
        with pytest.raises(CorruptFile) as caught:
            bloomcli.add(path, ["id"], **target)
        assert caught.value.offset == 5000 // 512 * 512
        assert datasets.digests(tmp_path) == damaged
    path.write_bytes(sound)
    bloomcli.add(path, ["id"], in_place=True)
    assert checksum_file.read_bytes() == checksums(path.read_bytes(), 512)
    bloomcli.remove(path, in_place=True)
    assert (path.read_bytes(), checksum_file.read_bytes()) == (sound, checksums(sound, 512))
