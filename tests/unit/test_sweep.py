"""Temporary files of writers that were killed are removed; those in use, and every other file, stay."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from support import datasets

from bloomcli import atomic
from bloomcli.atomic import replacing, sweep
from bloomcli.commands import task
from bloomcli.engines import local
from bloomcli.listing import expand
from bloomcli.source import LocalSource

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


def names(folder: Path) -> set[str]:
    """What lies in a folder."""
    return {p.name for p in folder.iterdir()}


@pytest.mark.parametrize(
    "name",
    [
        STALE,
        "..part.parquet.crc.bloom-0123456789ab.tmp",
        ".a\nb.bloom-0123456789ab.tmp",
        f".{'x' * 48}.bloom-{'0' * 12}.tmp",
    ],
)
def test_a_temporary_file_that_nobody_writes_is_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"half")
    assert sweep(tmp_path) == [tmp_path / name]
    assert names(tmp_path) == set()


def test_other_names_stay(tmp_path: Path) -> None:
    for name in KEPT:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / STALE).write_bytes(b"half")
    assert sweep(tmp_path) == [tmp_path / STALE]
    assert names(tmp_path) == set(KEPT)


def test_every_name_that_a_writer_gives_is_one_that_is_swept(tmp_path: Path) -> None:
    for name in ("a", "a.parquet", "ä" * 60, "x" * 255, "with space", "a\nb", ".hidden.crc"):
        path = atomic._beside(tmp_path / name)
        path.write_bytes(b"half")
        assert sweep(tmp_path) == [path]


def test_a_file_that_is_being_written_stays_and_is_whole_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(b"old")
    with (
        LocalSource(str(path), path) as source,
        replacing(path, source=source, overwrite=True, verify=lambda _: None) as writer,
    ):
        assert sweep(tmp_path) == []
        writer.write(b"new")
        assert sweep(tmp_path) == []
        assert writer.path.exists()
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == {"part.parquet"}


def test_a_lock_of_another_process_counts_until_that_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(b"old" * 1000)
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from bloomcli.atomic import replacing\n"
        "from bloomcli.source import LocalSource\n"
        "path = Path(sys.argv[1])\n"
        "with LocalSource(str(path), path) as source:\n"
        "    with replacing(path, source=source, overwrite=True, verify=lambda _: None) as out:\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert sweep(tmp_path) == []
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert len(names(tmp_path)) == 2
    assert len(sweep(tmp_path)) == 1
    assert names(tmp_path) == {"part.parquet"}


def test_where_locks_tell_nothing_temporary_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(95, "Operation not supported")  # as some network file systems answer

    (tmp_path / STALE).write_bytes(b"perhaps in use")
    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert sweep(tmp_path) == []
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
    assert sweep(tmp_path / "nowhere") == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_sweeps_where_it_writes_and_nowhere_else(tmp_path: Path, jobs: int) -> None:
    lake, out = datasets.plain(tmp_path / "lake", 4), tmp_path / "out"
    folders = sorted({p.parent for p in lake.rglob("*.parquet")})
    (out / folders[0].name).mkdir(parents=True)
    for folder in (*folders, out / folders[0].name):
        (folder / STALE).write_bytes(b"half")
    listed = expand([str(lake)])
    local.run(task.plan("inspect", listed, {}), jobs=jobs)
    local.run(task.plan("add", listed, {"columns": ("id",)}, output=out), jobs=jobs)
    assert datasets.temporary(out) == []
    assert len(datasets.temporary(lake)) == len(folders)
    local.run(task.plan("add", listed, {"columns": ("id",)}, in_place=True), jobs=jobs)
    assert datasets.temporary(lake) == []
    assert len(datasets.digests(out)) == 4
