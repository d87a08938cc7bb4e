"""Temporary files of writers that were killed are removed; those in use, and every other file, stay."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT
from support import datasets
from support.checksums import checksums
from support.processes import started
from support.replacing import names
from support.tasks import plan_tasks

import bloomcli
from bloomcli.datasets import local
from bloomcli.storage.listing import expand
from bloomcli.storage.local import temporary
from bloomcli.storage.local.atomic import replacing, write_file
from bloomcli.storage.local.hadoop_crc import checksum_file_of
from bloomcli.storage.local.locks import lock
from bloomcli.storage.local.source import LocalSource
from bloomcli.storage.local.temporary import TemporaryFile, sweep, temporary_files, temporary_name

STALE = ".part.parquet.bloom-0123456789ab.tmp"
KEPT = (
    "part.parquet",
    ".part.parquet.crc",
    ".bloom-0123456789ab.tmp",
    "part.parquet.bloom-0123456789ab.tmp",
    ".part.parquet.bloom-0123456789ab.tmp.bak",
    ".part.parquet.bloom-0123456789AB.tmp",
    ".part.parquet.bloom-0123456789abc.tmp",
    ".part.parquet.inprogress.tmp",
    "..bloom-0123456789a.tmp",
)


def test_a_temporary_file_that_is_not_in_use_is_removed_and_other_names_stay(tmp_path: Path) -> None:
    for name in KEPT:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / STALE).write_bytes(b"half")
    assert sweep(tmp_path).removed == [str(tmp_path / STALE)]
    assert names(tmp_path) == set(KEPT)


def test_every_name_of_a_writers_temporary_file_is_swept(tmp_path: Path) -> None:
    for name in ("a", "a.parquet", "ä" * 60, "x" * 255, "with space", "a\nb", ".hidden.crc"):
        path = temporary_name(tmp_path / name)
        path.write_bytes(b"half")
        assert sweep(tmp_path).removed == [str(path)]


def flock_after(done: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs an action between the creation of the next file and its lock."""
    real, waiting = fcntl.flock, [done]

    def flock(fd: int, how: int) -> None:
        if waiting:
            waiting.pop()()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_a_file_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "part.parquet"
    file.write_bytes(b"old")
    swept: list[str] = []
    flock_after(lambda: swept.extend(sweep(tmp_path).removed), monkeypatch)
    with (
        LocalSource(str(file), file) as source,
        replacing(file, source=source, overwrite=True, verify=lambda _: None) as out,
    ):
        assert len(swept) == 1
        assert swept != [str(out.path)]
        assert names(tmp_path) == {file.name, out.path.name}
        out.write(b"new")
    assert file.read_bytes() == b"new"
    assert names(tmp_path) == {file.name}


def test_a_file_that_a_sweep_has_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweepers: list[int] = []

    def hold() -> None:
        (found,) = temporary_files(tmp_path)
        sweepers.append(os.open(found, os.O_RDWR))
        assert lock(sweepers[0])

    flock_after(hold, monkeypatch)
    with TemporaryFile(tmp_path / "part.parquet") as made:
        made.open()
        os.close(sweepers[0])
        assert not sweep(tmp_path).removed, "it is locked"
        assert names(tmp_path) == {made.path.name}


@pytest.mark.slow
def test_writers_never_lose_their_files_to_a_concurrent_sweep(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bloomcli.storage.local.temporary import sweep\n"
        "folder, swept = Path(sys.argv[1]), 0\n"
        "print('ready', flush=True)\n"
        "while not (folder / 'stop').exists():\n"
        "    swept += len(sweep(folder).removed)\n"
        "print(swept)\n"
    )
    files = 500
    with started([sys.executable, "-c", program, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            for number in range(files):
                if number % 10 == 0:
                    write_file(tmp_path / f"{number % 50}.json", b"new", overwrite=True)
                else:
                    with TemporaryFile(tmp_path / "part.parquet") as made:
                        assert os.path.samestat(os.fstat(made.open()), made.path.stat())
        finally:
            (tmp_path / "stop").touch()
        assert process.wait(600) == 0
    assert names(tmp_path) == {"stop", *(f"{i}.json" for i in range(0, 50, 10))}


def put_aside(file: Path, data: bytes) -> Path:
    """Checksums that a killed writer left under a temporary name."""
    path = temporary_name(checksum_file_of(file))
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "algorithm"), [("part.parquet", "CRC32"), ("x" * 250, "CRC32C"), ("ä" * 60, "CRC32"), ("a\nb", "CRC32C")]
)
def test_checksums_that_match_a_file_without_any_are_put_back(tmp_path: Path, name: str, algorithm: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"content" * 1000)
    right = checksums(b"content" * 1000, 512, algorithm)
    for wrong in (checksums(b"Content" * 1000, 512), right[:-1], right + b"more", checksums(b"short", 512), b"crc\0"):
        put_aside(file, wrong)
    put_aside(file, right)
    sweep(tmp_path)
    assert names(tmp_path) == {name, f".{name}.crc"}
    assert checksum_file_of(file).read_bytes() == right


def test_checksums_never_replace_others_and_belong_to_a_file_of_that_name(tmp_path: Path) -> None:
    file, other = tmp_path / "part.parquet", tmp_path / "other.parquet"
    for path in (file, other):
        path.write_bytes(b"content" * 1000)
    right = checksums(b"content" * 1000, 512)
    checksum_file_of(file).write_bytes(b"mine")
    put_aside(file, right)
    put_aside(tmp_path / "gone.parquet", right)
    assert len(sweep(tmp_path).removed) == 2
    assert checksum_file_of(file).read_bytes() == b"mine"
    assert names(tmp_path) == {file.name, checksum_file_of(file).name, other.name}


def test_of_names_that_were_cut_each_file_gets_its_own_checksums(tmp_path: Path) -> None:
    files = [tmp_path / f"{'long' * 20}-{i}.parquet" for i in range(4)]
    for i, path in enumerate(files):
        path.write_bytes(b"%d" % i * 700)
        put_aside(path, checksums(b"%d" % i * 700, 512))
    sweep(tmp_path)
    assert names(tmp_path) == {name for p in files for name in (p.name, f".{p.name}.crc")}
    assert [checksum_file_of(p).read_bytes() for p in files] == [checksums(p.read_bytes(), 512) for p in files]


def test_checksums_are_not_put_back_for_a_file_that_is_replaced_during_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "part.parquet"
    file.write_bytes(b"content" * 1000)
    put_aside(file, checksums(b"content" * 1000, 512))
    real = temporary.rename_to_free_name

    def late(left: Path, final: Path) -> None:
        write_file(file, b"new", overwrite=True)
        real(left, final)

    monkeypatch.setattr(temporary, "rename_to_free_name", late)
    sweep(tmp_path)
    assert file.read_bytes() == b"new"
    assert names(tmp_path) == {file.name}


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.ENOLCK])
def test_on_a_file_system_without_locks_temporary_files_stay_and_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(code, os.strerror(code))  # as some network file systems answer

    (tmp_path / STALE).write_bytes(b"perhaps in use")
    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert not sweep(tmp_path).removed
    source = tmp_path / "a.parquet"
    source.write_bytes(b"old")
    with (
        LocalSource(str(source), source) as opened,
        replacing(source, source=opened, overwrite=True, verify=lambda _: None) as writer,
    ):
        writer.write(b"new")
    assert source.read_bytes() == b"new"
    assert names(tmp_path) == {STALE, "a.parquet"}


def test_directories_and_links_of_that_name_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / STALE).mkdir()
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / STALE.replace("0", "f")).symlink_to(target)
    sweep(tmp_path)
    assert target.read_bytes() == b"mine"
    assert (tmp_path / STALE).is_dir()
    assert not sweep(tmp_path / "nowhere").removed


@pytest.mark.slow
def test_a_run_sweeps_where_it_writes_and_nowhere_else(tmp_path: Path) -> None:
    lake, out = datasets.plain(tmp_path / "lake", 4), tmp_path / "out"
    folders = sorted({p.parent for p in lake.rglob("*.parquet")})
    (out / folders[0].name).mkdir(parents=True)
    for folder in (*folders, out / folders[0].name):
        (folder / STALE).write_bytes(b"half")
    listed = expand([str(lake)])
    local.run(plan_tasks("inspect", listed, {}), jobs=2)
    local.run(plan_tasks("add", listed, {"columns": ("id",)}, output=out), jobs=2)
    assert datasets.temporary(out) == []
    assert len(datasets.temporary(lake)) == len(folders)
    local.run(plan_tasks("add", listed, {"columns": ("id",)}, in_place=True), jobs=2)
    assert datasets.temporary(lake) == []
    assert len(datasets.digests(out)) == 4


def test_changing_a_single_file_first_sweeps_its_directory(tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "part.parquet", rows=100)
    (tmp_path / STALE).write_bytes(b"half")
    put_aside(path, checksums(path.read_bytes(), 512))
    bloomcli.add(path, ["id"], dry_run=True)
    assert len(names(tmp_path)) == 3
    bloomcli.add(path, ["id"], in_place=True)
    assert names(tmp_path) == {path.name, checksum_file_of(path).name}
    assert checksum_file_of(path).read_bytes() == checksums(path.read_bytes(), 512)


@pytest.mark.parametrize("error", [errno.EIO, errno.EEXIST, errno.ESTALE])
def test_a_completed_link_that_the_system_reports_as_failed_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """A file server's answer may be lost: then the client's second request finds the link of the first."""
    left, final = tmp_path / "left", tmp_path / "final"
    left.write_bytes(b"new")
    link = os.link

    def denied(one: Path, other: Path) -> None:
        link(one, other)
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", denied)
    temporary.rename_to_free_name(left, final)
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    left.write_bytes(b"newer")
    monkeypatch.undo()
    with pytest.raises(FileExistsError):
        temporary.rename_to_free_name(left, final)
    assert (left.read_bytes(), final.read_bytes()) == (b"newer", b"new")
