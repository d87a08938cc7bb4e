"""Files without permission to read or write, and outputs with odd names: exit codes and remaining files."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from conftest import ROOT, need
from support import datasets
from support.cli import Bloom
from support.one_process import Run, commands

import bloomcli

_DROP: Final = 24
"""PR_CAPBSET_DROP of prctl(2)."""

_MAY_READ_ALL: Final = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, which root has: modes of files say nothing to it then."""


def drop_rights() -> None:
    """Give up the rights that root has."""
    if os.geteuid() == 0:
        for number in _MAY_READ_ALL:
            ctypes.CDLL(None).prctl(_DROP, number, 0, 0, 0)


@pytest.fixture(scope="module")
def without_rights() -> Iterator[Run]:
    """Runs commands as one to whom the modes of files apply, all in one process."""
    with tempfile.NamedTemporaryFile() as secret:
        Path(secret.name).chmod(0)
        seen = subprocess.run(
            [sys.executable, "-Sc", f"open({secret.name!r})"],
            preexec_fn=drop_rights,
            capture_output=True,
            check=False,
        )
    need(b"PermissionError" in seen.stderr, "to be somebody to whom the modes of files apply")
    with commands(preexec=drop_rights) as run:
        yield run


@pytest.fixture
def bound(without_rights: Run, tmp_path: Path) -> Bloom:
    """Run a command line as one to whom the modes of files apply, in a folder with two files."""
    datasets.write(tmp_path / "a.parquet")
    datasets.write(tmp_path / "secret.parquet").chmod(0)
    (tmp_path / "locked").mkdir(mode=0)
    return functools.partial(without_rights, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        "inspect secret.parquet",
        "inspect a.parquet secret.parquet",
        "validate secret.parquet",
        "probe secret.parquet -c id 1",
        "dump secret.parquet -c id",
        "add secret.parquet -c id --in-place",
        "add secret.parquet -c id -o new.parquet",
        "remove secret.parquet -o new.parquet",
        "fold secret.parquet --fpp 0.1 --dry-run",
        "inspect --files-from secret.parquet",
        "probe a.parquet -c id --values-from secret.parquet",
        "validate a.parquet --baseline secret.parquet",
    ],
)
def test_a_file_that_may_not_be_read_ends_in_3_with_its_name_and_the_reason(bound: Bloom, args: str) -> None:
    done = bound(*args.split())
    assert done.code == 3
    assert "secret.parquet: can't be read: permission denied" in done.out + done.err
    assert "hint: check who may read it" in done.out + done.err


@pytest.mark.slow
@pytest.mark.parametrize("output", ["locked/new.parquet", "locked/deeper/new.parquet"])
@pytest.mark.parametrize("more", [[], ["--overwrite"], ["--dry-run"]])
def test_an_output_in_a_folder_that_may_not_be_searched_ends_in_3(bound: Bloom, output: str, more: list[str]) -> None:
    done = bound("add", "a.parquet", "-c", "id", "-o", output, *more)
    assert done.code == 3
    assert f"{output}: can't be written: permission denied" in done.err
    assert "search the directories" in done.err


@pytest.mark.parametrize("args", ["validate a.parquet --report html={}/x", "advise a.parquet --policy {}/x"])
def test_a_report_or_policy_in_a_folder_that_is_locked_or_not_there_says_which(
    bound: Bloom, tmp_path: Path, args: str
) -> None:
    (tmp_path / "locked").chmod(0o555)
    for folder, hint in (("locked", "check who may write to the directory"), ("no", "create the directory first")):
        done = bound(*args.format(folder).split())
        assert (done.code, done.out) == (3, "")
        assert done.err == f"bloom: {folder}/x: files can't be written to the directory {folder}\nhint: {hint}\n"


def test_an_output_that_names_a_directory_is_no_file_to_write(bloom: Bloom, tmp_path: Path) -> None:
    file = datasets.write(tmp_path / "a.parquet")
    (tmp_path / "d").mkdir()
    for command in (("add", "-c", "id"), ("remove",), ("fold", "--fpp", "0.1")):
        for output in (f"{tmp_path}/d/new/", f"{tmp_path}/d/", f"file://{tmp_path}/d/new/"):
            done = bloom(command[0], file, *command[1:], "-o", output)
            assert done.code == 2
            assert "directory" in done.err
            assert list((tmp_path / "d").iterdir()) == []
    with pytest.raises(bloomcli.BloomError, match="names a directory"):
        bloomcli.add(file, ["id"], output=f"{tmp_path}/d/new/")
    assert bloom("add", tmp_path, file, "-c", "id", "-o", f"{tmp_path}/d/new/").code == 0
    assert (tmp_path / "d" / "new" / "a.parquet").exists()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_of_a_file_and_links_to_it_the_file_is_changed_and_the_links_are_reported(
    bloom: Bloom, tmp_path: Path, jobs: int
) -> None:
    lake = tmp_path / "lake"
    plain = datasets.write(tmp_path / "plain.parquet")
    for number in range(jobs):
        shutil.rmtree(lake, ignore_errors=True)
        lake.mkdir()
        shutil.copy(plain, lake / "m.parquet")
        (lake / "a.parquet").symlink_to("m.parquet")
        (lake / "z.parquet").symlink_to("m.parquet")
        (lake / "copy.parquet").hardlink_to(lake / "m.parquet")
        done = bloom("add", lake, "-c", "id", "--in-place", "--jobs", jobs, "--format", "json")
        assert done.code == 0, f"{number}: {done.err}"
        rows = {Path(row["path"]).name: row for row in done.json["rows"]}
        assert {name: row["status"] for name, row in rows.items()} == {
            "a.parquet": "skipped",
            "copy.parquet": "done",
            "m.parquet": "done",
            "z.parquet": "skipped",
        }
        assert rows["a.parquet"]["reason"] == f"a link to the same file as {lake / 'm.parquet'}"
        assert (lake / "a.parquet").is_symlink()
        assert bloomcli.inspect(lake / "m.parquet").filters


def test_of_links_alone_to_a_file_elsewhere_the_first_is_worked_on(bloom: Bloom, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    plain = datasets.write(tmp_path / "plain.parquet")
    for name in ("a.parquet", "b.parquet"):
        (lake / name).symlink_to(plain)
    done = bloom("add", lake, "-c", "id", "--in-place", "--jobs", 2, "--format", "json")
    assert done.code == 0
    assert [row["status"] for row in done.json["rows"]] == ["done", "skipped"]
    assert bloomcli.inspect(plain).filters
    assert bloom("add", lake, "-c", "name", "-o", tmp_path / "out").code == 0
    assert len(list((tmp_path / "out").iterdir())) == 2, "each has an output of its own"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "closed", "code"),
    [
        ("inspect", ">&-", 3),
        ("add", ">&-", 3),
        ("add", "<&-", 0),
        ("add", "2>&-", 0),
        ("inspect", ">&- 2>&-", 3),
        ("add", "<&- >&- 2>&-", 3),
    ],
)
def test_closed_streams_are_no_bug_and_no_file_gets_their_numbers(
    tmp_path: Path, command: str, closed: str, code: int
) -> None:
    datasets.write(tmp_path / "a.parquet")
    options = " -c id -o new.parquet" if command == "add" else ""
    line = f"{sys.executable} -m bloomcli {command} a.parquet{options} {closed}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    assert "bug" not in done.stderr
    assert ("standard output" in done.stderr) == (closed == ">&-")
    if command == "add":
        assert bloomcli.validate(tmp_path / "new.parquet", deep=True).ok
