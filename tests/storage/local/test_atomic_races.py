"""Concurrent writers of a file: no data is ever overwritten silently."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, need
from support.checksums import checksums
from support.every_instant import WRITING, Instant
from support.others import OTHERS, Others, Renames, just_before
from support.replacing import NEW, OLD, names, replace

from bloomcli import kernels
from bloomcli.errors import SourceChanged, WriteError
from bloomcli.storage.local import locks, temporary
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.hadoop_crc import checksum_file_of
from bloomcli.storage.local.source import LocalSource
from bloomcli.storage.local.temporary import Marks, mark, sweep, temporary_name

NEWEST = b"what he has written after that" * 200
WITHIN = (*WRITING, "source.py", "sidecar.py")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A file in its own folder, on a file system that exchanges files: in memory if possible, because disks sync
    slowly."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        yield begin(Path(made))


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """The same on the file system of the tests' other files."""
    return begin(tmp_path)


def begin(above: Path) -> Path:
    """A file in a folder of its own."""
    folder = above / "folder"
    folder.mkdir()
    one, other = above / "one", above / "other"
    one.touch()
    other.touch()
    need(
        kernels.rename_with(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0,
        "Linux, and a file system that exchanges files",
    )
    path = folder / "data.parquet"
    path.write_bytes(OLD)
    return path


class Appends(Others):
    """Writes to the file that has the name."""

    def act(self) -> None:
        with self.file.open("ab") as stream:
            stream.write(b"!")

    def check(self) -> None:
        assert self.file.read_bytes() in (OLD + b"!", NEW + b"!")


class WritesLater(Others):
    """Opens the file that has the name, and writes after the replacement."""

    def act(self) -> None:
        self.fd = os.open(self.file, os.O_WRONLY | os.O_APPEND)

    def finish(self) -> None:
        os.write(self.fd, b"!")
        os.close(self.fd)

    def check(self) -> None:
        assert self.file.read_bytes() in (OLD + b"!", NEW + b"!")


class Removes(Others):
    """Removes the file that has the name."""

    def act(self) -> None:
        self.file.unlink()

    def check(self) -> None:
        assert not self.file.exists()


def at_every_instant(others: Others) -> Iterator[tuple[str, bool]]:
    """Replace the file, with others at it at one instant after the other; gives where, and whether it was refused."""
    file = others.file
    for number in range(10_000):
        others.begin()
        at = Instant(number, others.act, WITHIN, counting=False)
        refused = False
        with LocalSource(str(file), file) as source:
            try:
                with at:
                    replace(file, opened=source, verify=at.begin)
            except SourceChanged:
                refused = True
        if at.left >= 0:
            assert number > 100
            assert file.read_bytes() == NEW
            return
        others.finish()
        try:
            others.check()
        except AssertionError as error:
            raise AssertionError(f"lost at {at.place}: {error}") from None
        assert names(file.parent) <= {file.name, others.sidecar.name}, f"left behind at {at.place}"
        yield at.place, refused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "vouched"),
    [(Renames, False), (Renames, True), (Appends, True), (WritesLater, True), (Removes, True)],
    ids=["renames", "renames with checksums", "appends", "writes later", "removes"],
)
def test_changes_by_other_processes_at_any_time_are_never_overwritten(
    file: Path, kind: type[Others], vouched: bool
) -> None:
    if kind is WritesLater:
        with LocalSource(str(file), file) as source, file.open("ab"):
            need(locks.open_for_writing(source.fileno()), "a file system that reports who has a file open")
    outcomes = [refused for _, refused in at_every_instant(kind(file, vouched))]
    assert {True, False} == set(outcomes)
    assert outcomes == sorted(outcomes, reverse=True), "it fails until the file has its name, and not after that"


def without_exchange(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Simulates a system or file system that can't exchange files."""
    real = temporary._rename
    monkeypatch.setattr(temporary, "_rename", lambda *a: code if a[-1] == temporary._EXCHANGE else real(*a))


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM])
def test_where_files_cannot_be_exchanged_they_are_renamed(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    without_exchange(monkeypatch, code)
    replace(file)
    assert file.read_bytes() == NEW
    assert names(file.parent) == {file.name}


@pytest.mark.slow
def test_without_exchanges_changes_are_lost_only_between_the_last_check_and_the_rename(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_exchange(monkeypatch, errno.EINVAL)
    lost: list[str] = []
    others = Renames(file, True)
    monkeypatch.setattr(
        others, "check", lambda: lost.append("") if file.read_bytes() == NEW else Renames.check(others)
    )
    at: list[str] = []
    for place, _ in at_every_instant(others):
        at += [place] * len(lost)
        lost.clear()
    assert at, "if no change is ever lost, the documentation can promise more"
    assert {place.partition(":")[0] for place in at} <= {
        "LocalSource._current",
        "LocalSource.fingerprint",
        "Source.check_unchanged",
        "TemporaryFile._exchange",
        "fingerprint_of",
    }


def test_a_file_system_that_ignores_the_flag_has_renamed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(fd: int, one: Path, other_fd: int, other: Path, flags: int) -> int:
        del fd, other_fd, flags
        one.replace(other)
        return 0

    monkeypatch.setattr(temporary, "_rename", rename)
    replace(file)
    assert file.read_bytes() == NEW
    assert names(file.parent) == {file.name}


def test_the_newest_of_several_files_that_others_write_during_exchanges_stays(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = on_disk

    def write(content: bytes) -> Callable[[], None]:
        def act() -> None:
            new = file.with_name("new")
            new.write_bytes(content)
            new.replace(file)

        return act

    for count in range(1, 6):
        file.write_bytes(OLD)
        contents = [b"%d" % i * 1000 for i in range(count)]
        with monkeypatch.context() as patched:
            just_before(patched, *map(write, contents))
            with pytest.raises(SourceChanged, match="changed while it was being worked on") as caught:
                replace(file)
        assert caught.value.path == str(file)
        assert file.read_bytes() == contents[-1]
        assert names(file.parent) == {file.name}


def test_a_file_that_cannot_be_put_back_because_the_name_was_removed_is_reported(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    just_before(monkeypatch, Renames(file, False).act, file.unlink)
    with pytest.raises(SourceChanged, match="was removed") as caught:
        replace(file)
    (kept,) = file.parent.iterdir()
    assert kept.read_bytes() == OTHERS
    assert str(kept) in (caught.value.hint or "")
    sweep(file.parent)
    assert kept.exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["", "vouched", "swapped vouched", "new"])
def test_a_kill_at_any_time_loses_no_file(file: Path, how: str) -> None:
    command = [sys.executable, "-m", "support.killed_replacing", file, *how.split()]
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_interrupt_at_any_time_loses_no_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = Renames(file, True)
    came: list[int] = []
    for number in range(10_000):
        others.begin()
        at = Instant(number, counting=False)
        came.clear()
        with monkeypatch.context() as patched:
            just_before(patched, lambda: (came.append(1), others.act()))
            with contextlib.suppress(SourceChanged, KeyboardInterrupt), at:
                replace(file, verify=at.begin)
        if came:
            others.check()
        else:
            assert file.read_bytes() == OLD
        assert names(file.parent) == {file.name, others.sidecar.name}, at.place
        if at.left >= 0:
            break
    assert number > 100


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True], ids=["alone", "with others"])
def test_a_sweep_at_any_time_does_not_harm_a_writer(
    file: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool
) -> None:
    others = Renames(file, True)
    for number in range(10_000):
        others.begin()
        at = Instant(number, lambda: sweep(file.parent), WITHIN, counting=False)
        with monkeypatch.context() as patched:
            if swapped:
                just_before(patched, others.act)
            with contextlib.suppress(SourceChanged), at:
                replace(file, verify=at.begin)
                assert not swapped
        content = OTHERS if swapped else NEW
        assert file.read_bytes() == content, at.place
        assert others.sidecar.read_bytes() == checksums(content, 512)
        assert names(file.parent) == {file.name, others.sidecar.name}, at.place
        if at.left >= 0:
            break
    assert number > 100


def left(file: Path, held: bytes, new: bytes) -> Path:
    """A file under the name of an exchange of `file`, which has other files' marks unless they are `new`."""
    made = file.with_name("made")
    made.write_bytes(new)
    path = temporary_name(file, Marks(new=mark(made.stat()), old="0" * 12))
    made.replace(file)
    path.write_bytes(held)
    return path


def test_a_sweep_puts_back_the_file_that_a_killed_writer_exchanged(file: Path) -> None:
    left(file, OTHERS, NEW)
    sweep(file.parent)
    assert file.read_bytes() == OTHERS
    assert names(file.parent) == {file.name}


def test_a_sweep_keeps_a_file_if_it_is_unknown_which_one_is_newer(file: Path) -> None:
    path = left(file, OTHERS, NEW)
    file.unlink()
    file.write_bytes(NEWEST)
    assert not sweep(file.parent).removed
    assert (file.read_bytes(), path.read_bytes()) == (NEWEST, OTHERS)


def test_a_sweep_keeps_the_files_of_a_running_writer(file: Path) -> None:
    path = left(file, OTHERS, NEW)
    with file.open("rb") as writers:
        fcntl.flock(writers, fcntl.LOCK_EX)
        assert not sweep(file.parent).removed
        assert (file.read_bytes(), path.read_bytes()) == (NEW, OTHERS)


def test_a_sweep_finds_the_file_of_a_long_name(file: Path) -> None:
    long = file.with_name("ü" * 127)
    file.replace(long)
    long.with_name("ü" * 126).write_bytes(NEWEST)
    path = left(long, OTHERS, NEW)
    assert len(os.fsencode(path.name)) <= 255
    sweep(long.parent)
    assert long.read_bytes() == OTHERS
    assert long.with_name("ü" * 126).read_bytes() == NEWEST
    assert len(names(long.parent)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("why", ["checksums", "no exchange", "no exchange after all"])
def test_a_lock_that_another_process_holds_is_an_error_that_names_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    if why == "checksums":
        checksum_file_of(file).write_bytes(checksums(OLD, 512))
    elif why == "no exchange":
        monkeypatch.setattr(temporary, "file_system", lambda _: "overlay")
    else:
        without_exchange(monkeypatch, errno.EINVAL)
    before = names(file.parent)
    with file.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        started = time.monotonic()
        with pytest.raises(WriteError, match="another process has held its lock") as caught:
            replace(file)
        assert time.monotonic() - started >= 0.2
    assert caught.value.path == str(file)
    assert caught.value.exit_code == 3
    assert file.read_bytes() == OLD
    assert names(file.parent) == before
    replace(file)
    assert file.read_bytes() == NEW


def test_checksums_that_another_process_has_locked_stay_with_their_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    own = checksum_file_of(file)
    own.write_bytes(checksums(OLD, 512))
    with own.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(WriteError, match="another process has held its lock"):
            replace(file)
    assert (file.read_bytes(), own.read_bytes()) == (OLD, checksums(OLD, 512))
    assert names(file.parent) == {file.name, own.name}


def hanging(file: Path, when: str) -> int:
    """A process that replaces the file by OLD and more, stopped before or after the exchange."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            real, first = temporary._rename, [when]

            def stop(fd: int, one: Path, other_fd: int, other: Path, flags: int) -> int:
                if first == ["before"]:
                    os.kill(os.getpid(), signal.SIGSTOP)
                done = real(fd, one, other_fd, other, flags)
                if first == ["after"]:
                    os.kill(os.getpid(), signal.SIGSTOP)
                first.clear()
                return done

            temporary._rename = stop
            with (
                LocalSource(str(file), file) as source,
                replacing(file, source=source, overwrite=True, verify=lambda _: None) as out,
            ):
                out.copy_range(source, 0, len(OLD))
                out.write(b"!")
            code = 0
        except SourceChanged:
            code = 3
        finally:
            os._exit(code)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    return child


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_lock_of_a_writer_that_hangs_is_bypassed_only_before_its_exchange_and_the_writer_detects_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    child = hanging(file, when)
    try:
        if when == "before":
            replace(file)
            assert file.read_bytes() == NEW
        else:
            assert file.read_bytes() == OLD + b"!"
            with pytest.raises(WriteError, match="another process has held its lock"):
                replace(file)
    finally:
        os.kill(child, signal.SIGCONT)
        status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == (3 if when == "before" else 0)
    assert file.read_bytes() == (NEW if when == "before" else OLD + b"!")
    assert names(file.parent) == {file.name}


def test_an_output_whose_lock_another_process_holds_is_overwritten(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    target = file.with_name("target")
    target.write_bytes(OTHERS)
    with target.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        replace(target, source=file)
    assert target.read_bytes() == NEW


def test_a_lock_is_waited_for(file: Path) -> None:
    with file.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        timer = threading.Timer(0.3, lambda: fcntl.flock(other, fcntl.LOCK_UN))
        timer.start()
        replace(file)
        timer.join()
    assert file.read_bytes() == NEW


def test_a_file_that_may_be_locked_by_writers_only_is_opened_for_writing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, locked = fcntl.flock, []

    def as_on_nfs(fd: int, how: int) -> None:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "not open for writing")
        real(fd, how)
        locked.append(os.fstat(fd).st_ino)

    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    monkeypatch.setattr(temporary, "open_for_writing", lambda _: False)  # NFS has no such leases
    inode = file.stat().st_ino
    replace(file)
    assert inode in locked
    assert file.read_bytes() == NEW


def test_a_file_that_a_process_has_open_for_writing_is_reported(on_disk: Path) -> None:
    file = on_disk
    with LocalSource(str(file), file) as source:
        assert not locks.open_for_writing(source.fileno())
        with file.open("rb"):
            assert not locks.open_for_writing(source.fileno())
        with file.open("r+b"):
            need(sys.platform == "linux" and locks.open_for_writing(source.fileno()), "a file system with leases")
            with pytest.raises(SourceChanged):
                replace(file)
        assert not locks.open_for_writing(source.fileno())
    assert file.read_bytes() == OLD
