"""Replacing a file: the target has the old content or the new one, and no temporary file remains."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from support.replacing import NEW, OLD, accept, names, replace

from bloomcli.errors import SourceChanged, UnreadableError, UsageError, WriteError
from bloomcli.storage.local import copying, temporary
from bloomcli.storage.local.atomic import replacing, write_file
from bloomcli.storage.local.source import LocalSource


def fail(code: int) -> Callable[..., Any]:
    """A system call that fails."""

    def call(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize("mode", [0o444, 0o755])
def test_a_replaced_file_keeps_its_mode_and_a_new_one_obeys_the_umask(file: Path, mode: int) -> None:
    file.chmod(mode)
    old = os.umask(0o027)
    try:
        replace(file)
        replace(file.with_name("new"), source=file, overwrite=False)
    finally:
        os.umask(old)
    assert file.stat().st_mode & 0o7777 == mode
    assert file.with_name("new").stat().st_mode & 0o7777 == mode & ~0o027
    assert file.with_name("new").stat().st_nlink == 1, "a new output has one name"


def test_attributes_are_those_of_the_replaced_file_not_of_the_source(file: Path) -> None:
    target = file.with_name("target")
    target.write_bytes(b"goes")
    target.chmod(0o606)
    file.chmod(0o660)
    replace(target, source=file)
    assert target.stat().st_mode & 0o777 == 0o606


def test_a_symbolic_link_stays_and_its_target_is_replaced(file: Path) -> None:
    (file.parent / "links").mkdir()
    link = file.parent / "links" / "link"
    link.symlink_to("../data.parquet")
    replace(link, source=file)
    assert link.is_symlink()
    assert file.read_bytes() == link.read_bytes() == NEW
    assert not file.is_symlink()
    assert names(link.parent) == {"link"}


def test_a_link_in_a_circle_cannot_be_written(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to("link")
    with pytest.raises(WriteError):
        replace(link, source=file)
    assert names(file.parent) == {"data.parquet", "link"}


def test_a_hard_link_keeps_the_old_content(file: Path) -> None:
    other = file.with_name("other")
    other.hardlink_to(file)
    replace(file)
    assert (file.read_bytes(), other.read_bytes()) == (NEW, OLD)


def test_a_file_system_without_hard_links_gets_the_new_file_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    replace(file.with_name("target"), source=file, overwrite=False)
    assert file.with_name("target").read_bytes() == NEW
    assert names(file.parent) == {"data.parquet", "target"}


@pytest.mark.parametrize(
    ("call", "code", "hint"),
    [
        ("open", errno.EROFS, "read-only"),
        ("write", errno.ENOSPC, "disk is full"),
        ("fsync", errno.EDQUOT, "quota"),
        ("fchmod", errno.EIO, "original is whole"),
        ("rename", errno.EIO, "original is whole"),
        ("copy_file_range", errno.ENOSPC, "disk is full"),
    ],
)
def test_a_failed_system_call_is_a_write_error_and_leaves_the_original(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, hint: str
) -> None:
    with LocalSource(str(file), file) as source:
        monkeypatch.setattr(os, call, fail(code))
        with (
            pytest.raises(WriteError, match=os.strerror(code).lower()) as caught,
            replacing(file, source=source, overwrite=True, verify=accept) as out,
        ):
            out.copy_range(source, 0, 100)
            out.write(b"x")
        monkeypatch.undo()
    assert hint in (caught.value.hint or "")
    assert caught.value.path == str(file)
    assert file.read_bytes() == OLD
    assert names(file.parent) == {"data.parquet"}


@pytest.mark.parametrize(
    ("call", "code"), [("listxattr", errno.EIO), ("getxattr", errno.ESTALE), ("setxattr", errno.ENOSPC)]
)
def test_an_io_error_while_attributes_are_copied_is_an_error_and_a_refusal_is_none(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    try:
        os.setxattr(file, "user.origin", b"spark")
    except (AttributeError, OSError):
        need(False, "a file system with extended attributes")
    monkeypatch.setattr(os, call, fail(code))
    with pytest.raises(WriteError, match=os.strerror(code).lower()):
        replace(file)
    assert file.read_bytes() == OLD
    assert names(file.parent) == {file.name}
    monkeypatch.setattr(os, call, fail(errno.EPERM))
    replace(file)
    assert file.read_bytes() == NEW


def fails_later(monkeypatch: pytest.MonkeyPatch, call: str, file: Path, code: int) -> None:
    """A call that succeeds but reports a failure, when the file already has its new content."""
    real = getattr(os, call)

    def late(*arguments: Any, **named: Any) -> Any:
        done = real(*arguments, **named)
        if file.exists() and file.read_bytes() == NEW:
            raise OSError(code, os.strerror(code))
        return done

    monkeypatch.setattr(os, call, late)


@pytest.mark.parametrize(
    ("how", "call", "code"),
    [("in place", "close", errno.EIO), ("over", "fsync", errno.EDQUOT), ("new", "fsync", errno.ESTALE)],
)
def test_an_error_after_the_rename_does_not_say_that_the_original_is_in_place(
    file: Path, monkeypatch: pytest.MonkeyPatch, how: str, call: str, code: int
) -> None:
    target = file if how == "in place" else file.with_name("target")
    if how != "new":
        target.write_bytes(OLD)
    with monkeypatch.context() as patched, LocalSource(str(file), file) as source:
        fails_later(patched, call, target, code)
        with pytest.raises(WriteError, match="new file is in place, but") as caught:
            replace(target, opened=source, overwrite=how != "new")
    assert os.strerror(code).lower() in caught.value.reason
    assert caught.value.path == str(target)
    assert "original" not in (caught.value.hint or "")
    assert target.read_bytes() == NEW
    assert names(file.parent) == {file.name, target.name}


def test_an_error_of_a_completed_exchange_does_not_say_that_the_original_is_in_place(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = temporary._rename
    monkeypatch.setattr(temporary, "_rename", lambda *a: real(*a) or errno.EIO)  # a file server's answer was lost
    with pytest.raises(WriteError, match="new file is in place, but"):
        replace(file)
    assert file.read_bytes() == NEW
    assert names(file.parent) == {file.name}


def test_a_folder_that_cannot_be_synced_is_no_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_later(monkeypatch, "fsync", file, errno.EINVAL)
    replace(file)
    assert file.read_bytes() == NEW


def test_what_cannot_be_accessed_has_neither_changed_nor_does_it_not_exist(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = file.with_name("target")
    target.write_bytes(b"stays")
    with LocalSource(str(file), file) as source, monkeypatch.context() as patched:
        patched.setattr(Path, "stat", fail(errno.ESTALE))
        with pytest.raises(UnreadableError, match=os.strerror(errno.ESTALE).lower()) as caught:
            source.check_unchanged()
        assert not isinstance(caught.value, SourceChanged)
        with pytest.raises(WriteError, match=os.strerror(errno.ESTALE).lower()) as refused:
            replace(target, opened=source)
    assert refused.value.path == str(target)
    assert target.read_bytes() == b"stays"


def test_writing_a_small_file_first_sweeps_its_directory(file: Path) -> None:
    file.with_name(".report.txt.bloom-0123456789ab.tmp").write_bytes(b"half")
    write_file(file.with_name("report.txt"), b"new", overwrite=True)
    assert names(file.parent) == {file.name, "report.txt"}


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127])
def test_the_longest_names_can_be_replaced(file: Path, name: str) -> None:
    target = file.with_name(name)
    target.write_bytes(b"old")
    replace(target, source=file)
    assert target.read_bytes() == NEW


def test_a_name_that_is_too_long_cannot_be_written(file: Path) -> None:
    for overwrite in (False, True):
        with pytest.raises(WriteError, match="too long"):
            replace(file.with_name("x" * 256), source=file, overwrite=overwrite)
    assert names(file.parent) == {"data.parquet"}


def make_socket(path: Path) -> None:
    """A socket's name; the socket itself is closed."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a directory": Path.mkdir,
    "a pipe": os.mkfifo,
    "a socket": make_socket,
    "a device": lambda path: path.symlink_to("/dev/null"),
}


@pytest.mark.parametrize(("kind", "overwrite"), [*((kind, True) for kind in IRREGULAR), ("a directory", False)])
def test_only_regular_files_are_replaced(
    file: Path, monkeypatch: pytest.MonkeyPatch, kind: str, overwrite: bool
) -> None:
    monkeypatch.chdir(file.parent)  # names of sockets are short
    target = Path("target")
    IRREGULAR[kind](target)
    before = target.stat()
    for write in (
        lambda: replace(target, source=file, overwrite=overwrite),
        lambda: write_file(target, b"new", overwrite=overwrite),
    ):
        with pytest.raises(UsageError, match=kind) as caught:
            write()
        assert caught.value.path == "target"
        assert "name a file" in (caught.value.hint or "")
    after = target.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert names(file.parent) == {"data.parquet", "target"}


@pytest.mark.parametrize("in_kernel", [True, False])
def test_copies_report_their_progress_and_can_be_cancelled(
    file: Path, monkeypatch: pytest.MonkeyPatch, in_kernel: bool
) -> None:
    if not in_kernel:
        monkeypatch.setattr(os, "copy_file_range", fail(errno.ENOSYS))
    monkeypatch.setattr(copying, "STEP_BYTES", 100)
    monkeypatch.setattr(copying, "_FLUSH_BYTES", 100)
    steps: list[int] = []
    with LocalSource(str(file), file) as source, replacing(file, source=source, overwrite=True, verify=accept) as out:
        out.copy_range(source, 3, 250, steps.append)
        assert (steps, out.position) == ([100, 100, 50], 250)
        out.copy_range(source, 0, 1000, steps.append, lambda: len(steps) >= 5)
        assert (steps[3:], out.position) == ([100, 100], 450)
    assert file.read_bytes() == OLD[3:253] + OLD[:200]
