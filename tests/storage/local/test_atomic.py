"""Replacing a file: the target has the old content or the new one, and no temporary file remains."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from support.replacing import NEW, OLD, accept, names, replace

from bloomcli.errors import SourceChanged, UnreadableError, UsageError, WriteError
from bloomcli.storage.local import copying, temporary
from bloomcli.storage.local.atomic import replacing, write_file
from bloomcli.storage.local.copying import NewFile
from bloomcli.storage.local.source import LocalSource


def fail(code: int) -> Callable[..., Any]:
    """A system call that fails."""

    def call(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return call


def test_the_file_has_its_new_content_and_no_other_name_appears(file: Path) -> None:
    replace(file)
    assert file.read_bytes() == NEW
    assert names(file.parent) == {"data.parquet"}


def test_nobody_sees_a_half_written_file(file: Path) -> None:
    def look() -> None:
        assert file.read_bytes() == OLD
        assert len(names(file.parent)) == 2
        assert all(name.startswith(".") for name in names(file.parent) - {file.name})

    replace(file, during=look)


def test_the_finished_file_is_verified_before_it_has_its_name(file: Path) -> None:
    seen = []

    def verify(path: Path) -> None:
        seen.append((path.read_bytes(), file.read_bytes(), path.parent == file.parent, path.stat().st_mode))

    file.chmod(0o640)
    replace(file, verify=verify)
    assert seen == [(NEW, OLD, True, 0o100640)]


def test_a_reader_that_has_the_old_file_open_keeps_it(file: Path) -> None:
    with file.open("rb") as reader:
        replace(file)
        assert reader.read() == OLD


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o444, 0o755])
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


def test_the_owner_is_kept(file: Path) -> None:
    need(os.geteuid() == 0, "root, who may give files away")
    os.chown(file, 12345, 23456)
    replace(file)
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


def test_if_the_owner_cannot_be_set_the_group_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need(os.geteuid() == 0, "root, who may give files away")
    os.chown(file, 12345, 23456)
    real = os.fchown

    def fchown(fd: int, uid: int, gid: int) -> None:
        if uid != -1:
            raise PermissionError(errno.EPERM, "not yours")
        real(fd, uid, gid)

    monkeypatch.setattr(os, "fchown", fchown)
    replace(file)
    assert (file.stat().st_uid, file.stat().st_gid) == (0, 23456)


def test_extended_attributes_are_kept(file: Path) -> None:
    try:
        os.setxattr(file, "user.origin", b"spark")
    except (AttributeError, OSError):
        need(False, "a file system with extended attributes")
    replace(file)
    assert os.getxattr(file, "user.origin") == b"spark"


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


def test_a_dangling_link_is_followed_to_its_target(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to("there")
    replace(link, source=file, overwrite=False)
    assert file.with_name("there").read_bytes() == NEW
    assert link.is_symlink()


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


def test_an_output_that_exists_needs_overwrite(file: Path) -> None:
    target = file.with_name("target")
    target.write_bytes(b"stays")
    with pytest.raises(UsageError, match="exists already") as caught:
        replace(target, source=file, overwrite=False)
    assert caught.value.path == str(target)
    assert "--overwrite" in (caught.value.hint or "")
    assert target.read_bytes() == b"stays"
    replace(target, source=file)
    assert target.read_bytes() == NEW
    assert names(file.parent) == {"data.parquet", "target"}


def test_a_file_that_gets_the_name_during_the_work_is_not_overwritten(file: Path) -> None:
    target = file.with_name("target")
    with pytest.raises(UsageError, match="exists already"):
        replace(target, source=file, overwrite=False, during=lambda: target.write_bytes(b"somebody's"))
    assert target.read_bytes() == b"somebody's"
    assert names(file.parent) == {"data.parquet", "target"}


def test_a_file_system_without_hard_links_gets_the_new_file_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    replace(file.with_name("target"), source=file, overwrite=False)
    assert file.with_name("target").read_bytes() == NEW
    assert names(file.parent) == {"data.parquet", "target"}


def test_a_new_output_has_one_name(file: Path) -> None:
    replace(file.with_name("target"), source=file, overwrite=False)
    assert file.with_name("target").stat().st_nlink == 1


@pytest.mark.parametrize("error", [ValueError("bug"), KeyboardInterrupt(), WriteError("no"), SystemExit(3)])
@pytest.mark.parametrize("where", ["during", "verify"])
def test_errors_during_the_work_are_passed_on_and_no_temporary_file_stays(
    file: Path, where: str, error: BaseException
) -> None:
    def stop(*_: object) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        replace(file, **{where: stop})  # type: ignore[arg-type]
    assert caught.value is error
    assert file.read_bytes() == OLD
    assert names(file.parent) == {"data.parquet"}


@pytest.mark.parametrize("call", ["open", "write", "fsync", "fchmod", "rename", "copy_file_range"])
@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "original is whole"),
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


@pytest.mark.parametrize("call", ["setxattr", "listxattr", "fchown"])
def test_attributes_that_the_user_may_not_set_are_skipped(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(os, call, fail(errno.EPERM))
    replace(file)
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("call", ["listxattr", "getxattr", "setxattr"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.ESTALE])
def test_an_io_error_while_attributes_are_copied_is_an_error(
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


def fails_later(monkeypatch: pytest.MonkeyPatch, call: str, file: Path, code: int) -> None:
    """A call that succeeds but reports a failure, when the file already has its new content."""
    real = getattr(os, call)

    def late(*arguments: Any, **named: Any) -> Any:
        done = real(*arguments, **named)
        if file.exists() and file.read_bytes() == NEW:
            raise OSError(code, os.strerror(code))
        return done

    monkeypatch.setattr(os, call, late)


@pytest.mark.parametrize("how", ["in place", "over", "new"])
@pytest.mark.parametrize("call", ["close", "fsync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.EDQUOT, errno.ESTALE])
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


def test_an_error_of_a_completed_link_is_not_taken_for_another_processs_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link(old: Path, new: Path) -> None:
        real(old, new)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "link", link)
    replace(file.with_name("target"), source=file, overwrite=False)
    assert file.with_name("target").read_bytes() == NEW
    assert names(file.parent) == {file.name, "target"}


def test_a_folder_that_cannot_be_synced_is_no_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_later(monkeypatch, "fsync", file, errno.EINVAL)
    replace(file)
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_source_that_cannot_be_accessed_has_not_changed(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with LocalSource(str(file), file) as source, monkeypatch.context() as patched:
        patched.setattr(Path, "stat", fail(code))
        with pytest.raises(UnreadableError, match=os.strerror(code).lower()) as caught:
            source.check_unchanged()
    assert not isinstance(caught.value, SourceChanged)


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
def test_an_output_that_cannot_be_accessed_is_not_taken_for_one_that_does_not_exist(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    target = file.with_name("target")
    target.write_bytes(b"stays")
    with LocalSource(str(file), file) as source, monkeypatch.context() as patched:
        patched.setattr(Path, "stat", fail(code))
        with pytest.raises(WriteError, match=os.strerror(code).lower()) as caught:
            replace(target, opened=source)
    assert caught.value.path == str(target)
    assert target.read_bytes() == b"stays"


def test_writing_a_small_file_first_sweeps_its_directory(file: Path) -> None:
    file.with_name(".report.txt.bloom-0123456789ab.tmp").write_bytes(b"half")
    write_file(file.with_name("report.txt"), b"new", overwrite=True)
    assert names(file.parent) == {file.name, "report.txt"}


def test_a_folder_that_does_not_exist_cannot_be_written_to(file: Path) -> None:
    with pytest.raises(WriteError) as caught:
        replace(file.parent / "nowhere" / "out", source=file)
    assert "create the output's directory first" in (caught.value.hint or "")


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


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", IRREGULAR)
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


def test_a_device_node_is_not_replaced(file: Path) -> None:
    need(os.geteuid() == 0, "root, who may make device nodes")
    target = file.with_name("nul")
    os.mknod(target, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    with pytest.raises(UsageError, match="a device"):
        replace(target, source=file)
    assert target.is_char_device()


def test_a_really_full_disk_leaves_the_original_whole(file: Path) -> None:
    full = Path("/dev/full")
    need(full.exists(), "a device that is always full")
    fd = os.open(full, os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="No space"):
            NewFile(full, fd).write(b"x" * 100)
    finally:
        os.close(fd)
    with (
        LocalSource(str(file), file) as source,
        pytest.raises(WriteError, match="no space left"),
        replacing(file, source=source, overwrite=True, verify=accept) as out,
    ):
        target = os.open(full, os.O_WRONLY)
        os.dup2(target, out.fd)
        os.close(target)
        out.write(b"x" * 100)
    assert file.read_bytes() == OLD
    assert names(file.parent) == {"data.parquet"}


def append(path: Path) -> None:
    """Another process writes to the file."""
    with path.open("ab") as out:
        out.write(b"!")


@pytest.mark.parametrize(
    "change",
    [
        append,
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: (path.unlink(), path.write_bytes(OLD)),
        Path.unlink,
    ],
    ids=["longer", "touched", "replaced", "gone"],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_source_that_changes_during_the_work_stops_it(
    file: Path, change: Callable[[Path], object], elsewhere: bool
) -> None:
    target = file.with_name("target") if elsewhere else file
    before = names(file.parent)
    with pytest.raises(SourceChanged):
        replace(target, source=file, verify=lambda _: (change(file), None)[1])
    assert names(file.parent) <= before


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM])
def test_without_copying_in_the_kernel_bytes_are_read_and_written(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "copy_file_range", fail(code))
    replace(file)
    assert file.read_bytes() == NEW


def test_a_kernel_that_copies_no_or_few_bytes_per_call_gives_a_complete_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "copy_file_range", lambda *_, **__: 0)
    replace(file)
    assert file.read_bytes() == NEW
    monkeypatch.undo()
    file.write_bytes(OLD)
    real = os.copy_file_range
    monkeypatch.setattr(os, "copy_file_range", lambda a, b, n, **rest: real(a, b, min(n, 7), **rest))
    replace(file)
    assert file.read_bytes() == NEW


def test_a_system_without_copy_file_range_reads_and_writes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "copy_file_range")
    replace(file)
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("in_kernel", [True, False])
def test_copies_report_their_progress_and_can_be_cancelled(
    file: Path, monkeypatch: pytest.MonkeyPatch, in_kernel: bool
) -> None:
    if not in_kernel:
        monkeypatch.setattr(os, "copy_file_range", fail(errno.ENOSYS))
    monkeypatch.setattr(copying, "STEP_BYTES", 100)
    steps: list[int] = []
    with LocalSource(str(file), file) as source, replacing(file, source=source, overwrite=True, verify=accept) as out:
        out.copy_range(source, 3, 250, steps.append)
        assert (steps, out.position) == ([100, 100, 50], 250)
        out.copy_range(source, 0, 1000, steps.append, lambda: len(steps) >= 5)
        assert (steps[3:], out.position) == ([100, 100], 450)
    assert file.read_bytes() == OLD[3:253] + OLD[:200]
