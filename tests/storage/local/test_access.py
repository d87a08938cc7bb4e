"""Who may read a file after it is replaced: those who could before. New files obey umask and default ACL."""

from __future__ import annotations

import errno
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from conftest import ROOT, need
from support.checksums import checksums
from support.replacing import NEW, OLD, replace

import bloomcli
from bloomcli.errors import WriteError
from bloomcli.model.change import ChangeReport
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.atomic import write_file
from bloomcli.storage.traffic import measured

ACCESS: Final = "system.posix_acl_access"
DEFAULT: Final = "system.posix_acl_default"
OWNER, USER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
THIRD: Final = 54321
"""A user who is neither the owner of any file nor in its group."""


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as in the extended attribute: entries of tag, permissions and id (-1: none)."""
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, permissions, number & 0xFFFFFFFF) for tag, permissions, number in entries
    )


THIRD_READS: Final = acl((OWNER, 7, -1), (USER, 5, THIRD), (GROUP, 0, -1), (MASK, 5, -1), (OTHER, 0, -1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory whose default ACL lets a third user read new files."""
    folder = tmp_path / "shared"
    folder.mkdir()
    try:
        os.setxattr(folder, DEFAULT, THIRD_READS)
    except (AttributeError, OSError):
        need(False, "a file system with access control lists, such as ext4, xfs or tmpfs")
    folder.chmod(0o755)
    return folder


def file_in(folder: Path, mode: int = 0o640, listed: bytes | None = None, name: str = "data.parquet") -> Path:
    """A file with a mode and an access control list, or none."""
    path = folder / name
    path.write_bytes(OLD)
    if ACCESS in os.listxattr(path):
        os.removexattr(path, ACCESS)
    path.chmod(mode)
    if listed is not None:
        os.setxattr(path, ACCESS, listed)
    return path


def access(path: Path) -> tuple[int, bytes | None]:
    """A file's mode and access control list."""
    found = os.getxattr(path, ACCESS) if ACCESS in os.listxattr(path) else None
    return path.stat().st_mode & 0o7777, found


def as_user(user: int, folder: Path, act: Callable[[], object]) -> bool:
    """Whether another user may do something in a folder, tried in a process of that user."""
    need(os.geteuid() == 0, "root, who can become another user")
    child = os.fork()
    if not child:
        code = 2
        try:
            os.chdir(folder)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            act()
            code = 0
        except (PermissionError, WriteError) as error:
            code = 1 if "ermission denied" in str(error) else 3
        finally:
            os._exit(code)
    return {0: True, 1: False}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]


@pytest.mark.parametrize("mode", [0o640, 0o444])
def test_a_default_acl_of_the_directory_gives_nobody_access_to_a_replaced_file(folder: Path, mode: int) -> None:
    file, again = file_in(folder, mode), file_in(folder, mode, name="baseline.json")
    replace(file)
    write_file(again, b"{}", overwrite=True)
    assert (file.read_bytes(), again.read_bytes()) == (NEW, b"{}")
    assert access(file) == access(again) == (mode, None)


@pytest.mark.parametrize(
    "listed",
    [
        THIRD_READS,
        acl((OWNER, 6, -1), (USER, 6, THIRD + 1), (GROUP, 4, -1), (MASK, 6, -1), (OTHER, 4, -1)),
        acl((OWNER, 6, -1), (USER, 0, THIRD), (GROUP, 4, -1), (MASK, 4, -1), (OTHER, 4, -1)),  # one user is kept out
    ],
)
def test_a_replaced_file_keeps_its_own_access_control_list(folder: Path, listed: bytes) -> None:
    file = file_in(folder, listed=listed)
    before = access(file)
    replace(file)
    assert access(file) == before
    assert before[1] == listed


def test_at_no_time_has_the_temporary_file_more_access_than_the_old_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_in(folder, 0o664, acl((OWNER, 6, -1), (USER, 4, 1), (GROUP, 0, -1), (MASK, 6, -1), (OTHER, 4, -1)))
    seen = []

    def watched(name: str) -> None:
        real: Callable[..., object] = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            found = real(*arguments, **named)
            seen.extend(access(path) for path in folder.iterdir() if path.name.endswith(".tmp"))
            return found

        monkeypatch.setattr(os, name, call)

    for name in ("open", "fchown", "fchmod", "setxattr", "removexattr", "write"):
        watched(name)
    replace(file)
    monkeypatch.undo()
    allowed = access(file)
    assert len(seen) > 3
    for mode, listed in seen:
        if (mode, listed) != allowed:
            assert not mode & 0o077, "with a list, the mode's group bits are its mask"
    assert allowed in seen


def test_the_checksum_file_is_readable_by_those_who_may_read_the_file(folder: Path) -> None:
    file = file_in(folder, 0o640)
    sidecar = hadoop_crc.checksum_file_of(file)
    sidecar.write_bytes(checksums(OLD, 512))
    replace(file)
    assert access(sidecar) == (0o640, None)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_new_output_has_the_access_that_cp_gives_its_copy(folder: Path, mode: int) -> None:
    import subprocess

    (folder.parent / "elsewhere").mkdir()
    source = file_in(folder.parent / "elsewhere", mode)
    subprocess.run(["cp", source, folder / "copied"], check=True)
    replace(folder / "new", source=source, overwrite=False)
    assert access(folder / "new") == access(folder / "copied")


@pytest.fixture
def no_chown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Makes the system refuse new owners, and if asked, new groups too, as it does to users other than root."""
    real = os.fchown

    def refuse(groups: bool) -> None:
        def fchown(fd: int, owner: int, group: int) -> None:
            if groups or owner != -1:
                raise PermissionError(errno.EPERM, "not yours")
            real(fd, owner, group)

        monkeypatch.setattr(os, "fchown", fchown)

    yield refuse
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("mode", "groups", "after"),
    [
        (0o6755, False, 0o755),
        (0o4711, True, 0o711),
        (0o664, False, 0o664),
        (0o660, True, 0o600),  # the new file's group isn't the old one
        (0o664, True, 0o644),
        (0o604, True, 0o600),  # the old group, whose members are others now, had no access
        (0o2770, True, 0o700),
    ],
)
def test_nobody_gains_access_if_owner_or_group_cannot_be_kept_and_the_report_says_so(
    tmp_path: Path, no_chown: Callable[[bool], None], mode: int, groups: bool, after: int
) -> None:
    need(os.geteuid() == 0, "root, who may give files away")
    file = file_in(tmp_path)
    os.chown(file, 12345, 23456)
    file.chmod(mode)
    no_chown(groups)
    with measured() as meter:
        replace(file)
    assert file.stat().st_mode & 0o7777 == after
    assert file.stat().st_gid == (os.getegid() if groups else 23456)
    (remark,) = meter.remarks
    assert ("owner 12345" in remark, "group 23456" in remark) == (True, groups)
    assert ("setuid" in remark) == bool(mode & 0o6000)


def test_an_access_control_list_goes_with_its_group(folder: Path, no_chown: Callable[[bool], None]) -> None:
    need(os.geteuid() == 0, "root, who may give files away")
    file = file_in(folder, listed=THIRD_READS)
    os.chown(file, 12345, 23456)
    no_chown(True)
    with measured() as meter:
        replace(file)
    assert access(file) == (0o700, None)
    assert "access control list" in meter.remarks[0]


def test_a_file_whose_list_cannot_be_set_is_readable_by_its_owner_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_in(folder, listed=THIRD_READS)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "setxattr", refuse)
    replace(file)
    assert access(file) == (0o700, None)


def orders(file: Path) -> Callable[[Path], ChangeReport]:
    """Fill the file; the command that changes it."""
    file.write_bytes((ROOT / "fixtures" / "parquet" / "orders.parquet").read_bytes())
    return partial(bloomcli.add, columns=["id"], in_place=True)


@pytest.mark.parametrize("mode", [0o440, 0o660])
def test_a_command_keeps_mode_owner_attributes_and_access_control_list_and_names_what_it_cannot_keep(
    folder: Path, no_chown: Callable[[bool], None], mode: int
) -> None:
    """Also those of a file that nobody may write: its folder is what has to be writable."""
    need(os.geteuid() == 0, "root, who may give files away")
    file = file_in(folder, mode, THIRD_READS if mode & 0o200 else None)
    change = orders(file)
    os.chown(file, 12345, 23456)
    os.setxattr(file, "user.team", b"sales")
    kept = access(file)
    assert change(file).output == str(file)
    assert access(file) == kept
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)
    assert os.getxattr(file, "user.team") == b"sales"
    orders(file)
    no_chown(False)
    assert any("owner 12345" in remark for remark in change(file).remarks)


def test_a_command_needs_a_folder_where_it_may_write_and_no_file_that_it_may_write() -> None:
    with tempfile.TemporaryDirectory() as made:
        file = file_in(Path(made), 0o444)
        change = orders(file)
        before = file.read_bytes()
        file.parent.chmod(0o755)
        assert not as_user(THIRD, file.parent, lambda: change(file))
        assert [*file.parent.iterdir()] == [file]
        assert file.read_bytes() == before
        file.parent.chmod(0o777)
        assert as_user(THIRD, file.parent, lambda: change(file))
        assert file.read_bytes() != before
