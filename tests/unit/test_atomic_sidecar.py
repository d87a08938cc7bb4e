"""Hadoop's checksum files: a replaced file has the right one, or none, and never a stale one."""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.replacing import NEW, OLD, names, replace

from bloomcli.errors import WriteError


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, from its polynomial."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


ALGORITHMS: dict[str, Callable[[bytes], int]] = {"CRC32": zlib.crc32, "CRC32C": crc32c}


def checksums(data: bytes, size: int, algorithm: str = "CRC32") -> bytes:
    """What the file beside `data` holds."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"crc\0" + struct.pack(f">I{len(parts)}I", size, *map(ALGORITHMS[algorithm], parts))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in a folder of its own."""
    path = tmp_path / "data.parquet"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def sidecar(file: Path) -> Path:
    """Its checksum file, as Hadoop writes it."""
    path = file.with_name(".data.parquet.crc")
    path.write_bytes(checksums(OLD, 512))
    return path


@pytest.mark.parametrize("size", [512, 1, 100, 4096, 1 << 20])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
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
    [
        b"",
        b"crc",
        b"crc\0\0\0",
        b"other content, whatever it is",
        b"crc\0" + bytes(4),
        b"crc\0\xff\xff\xff\xff",
        checksums(b"another file", 512),
        checksums(b"another file", 512, "CRC32C"),
    ],
)
def test_a_sidecar_that_never_was_right_becomes_one_that_hadoop_reads(file: Path, sidecar: Path, old: bytes) -> None:
    sidecar.write_bytes(old)
    replace(file)
    assert sidecar.read_bytes() == checksums(NEW, 512)


def test_a_file_that_had_no_sidecar_gets_none(file: Path) -> None:
    replace(file)
    assert names(file.parent) == {"data.parquet"}


def test_the_sources_sidecar_stays_and_another_name_gets_none(file: Path, sidecar: Path) -> None:
    replace(file.with_name("target"), source=file, overwrite=False)
    assert sidecar.read_bytes() == checksums(OLD, 512)
    assert names(file.parent) == {file.name, sidecar.name, "target"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_sidecar_left_over_under_the_outputs_name_is_not_left_stale(file: Path, overwrite: bool) -> None:
    left_over = file.with_name(".target.crc")
    left_over.write_bytes(checksums(b"a file of long ago", 512))
    replace(file.with_name("target"), source=file, overwrite=overwrite)
    assert left_over.read_bytes() == checksums(NEW, 512)
    assert names(file.parent) == {file.name, "target", left_over.name}


def test_the_sidecar_lies_beside_what_a_link_points_to(file: Path, sidecar: Path) -> None:
    (file.parent / "links").mkdir()
    link = file.parent / "links" / "link"
    link.symlink_to(file)
    replace(link, source=file)
    assert sidecar.read_bytes() == checksums(NEW, 512)
    assert names(link.parent) == {"link"}


def test_a_sidecar_may_be_read_by_whoever_may_read_the_file(file: Path, sidecar: Path) -> None:
    file.chmod(0o754)
    old = os.umask(0o077)
    try:
        replace(file)
    finally:
        os.umask(old)
    assert sidecar.stat().st_mode & 0o777 == 0o644


def test_at_no_instant_is_there_a_new_file_with_an_old_sidecar(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    real = os.replace

    def look(*arguments: Any) -> None:
        seen.append((file.read_bytes() == OLD, sidecar.exists()))
        real(*arguments)
        seen.append((file.read_bytes() == OLD, sidecar.exists()))

    monkeypatch.setattr(os, "replace", look)
    replace(file)
    assert seen == [(True, False), (False, False), (False, False), (False, True)]


def test_a_refused_replacement_leaves_the_file_readable(
    file: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(WriteError):
        replace(file)
    assert file.read_bytes() == OLD
    assert names(file.parent) == {file.name}  # a file without checksums can be read


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_sidecar_that_cannot_be_written_is_no_reason_to_call_the_work_undone(
    file: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    target = file.with_name("target")
    file.with_name(".target.crc").write_bytes(checksums(b"old", 512))
    real = os.replace

    def refuse(old: Path, new: Path) -> None:
        if new.suffix == ".crc":
            raise OSError(errno.ENOSPC, "full")
        real(old, new)

    monkeypatch.setattr(os, "replace", refuse)
    replace(target, source=file, overwrite=overwrite)
    assert target.read_bytes() == NEW
    assert names(file.parent) == {file.name, "target"}
