"""Two commands on one file: both filters exist afterwards, or one command failed with an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from support import datasets
from support.checksums import checksums
from support.processes import HOLD, has_open, held, started, wait_until

import bloomcli
from bloomcli.storage.local.hadoop_crc import checksum_file_of

pytestmark = pytest.mark.slow

RACES: Final = {"checksums": 5, "rename": 5, "nowhere": 30}
"""Rounds: one is enough if both commands wait for each other; otherwise chance has to find the moment."""

RACER: Final = """
import os, sys, time
from pathlib import Path

folder, column, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
file, meeting = folder / "part.parquet", folder.with_name("meeting")
round = met = opened = -1

def meet(event, arguments):  # just before what both must not be in at a time, wait for the other
    global met
    named = os.path.basename(str(arguments[0])) if arguments else ""
    critical = {
        "checksums": event == "open" and named.startswith("..part.parquet.crc.bloom-"),
        "rename": event == "os.rename" and named.startswith(".part.parquet.bloom-"),
        "nowhere": False,
    }
    if critical[place] and met < round:
        met = round
        wait(f"{round}-critical", 0.1)

def wait(name, seconds):
    (meeting / f"{name}-{column}").touch()
    end = time.monotonic() + seconds
    while len(list(meeting.glob(f"{name}-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.0005)

def open_source(self, *arguments):  # both have the file open before one of them replaces it
    global opened
    init(self, *arguments)
    if place != "nowhere" and opened < round:
        opened = round
        wait(f"{round}-opened", 600)

import bloomcli
from bloomcli.errors import SourceChanged
from bloomcli.storage.local.source import LocalSource
init, LocalSource.__init__ = LocalSource.__init__, open_source
bloomcli.add  # what it needs is imported now
sys.addaudithook(meet)
for round in range(int(sys.argv[4])):
    wait(f"{round}-begin", 60)
    try:
        bloomcli.add(file, [column], in_place=True)
        code = 0
    except SourceChanged as error:
        assert str(file) == error.path
        code = error.exit_code
    print(code, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize(
    ("place", "vouched"),
    [("checksums", True), ("rename", True), ("rename", False), ("nowhere", True), ("nowhere", False)],
)
def test_no_filter_is_lost_when_two_add_one_at_a_time(tmp_path: Path, place: str, vouched: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "meeting").mkdir()
    file = folder / "part.parquet"
    original = datasets.write(tmp_path / "original.parquet", rows=300).read_bytes()
    columns = ["id", "name"]

    def begin() -> None:
        file.write_bytes(original)
        if vouched:
            checksum_file_of(file).write_bytes(checksums(original, 512))

    begin()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, folder, column, place, str(RACES[place])],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for column in columns
    ]
    outcomes = set()
    try:
        for number in range(RACES[place]):
            codes = []
            for racer in racers:
                assert racer.stdout is not None
                codes.append(int(racer.stdout.readline()))
            found = {f.column for f in bloomcli.inspect(file).filters}
            assert found == {c for c, code in zip(columns, codes, strict=True) if code == 0}, (
                f"race {number}: {codes}"
            )
            assert found, "nobody got through"
            assert bloomcli.validate(file, deep=True).ok
            if vouched:
                assert checksum_file_of(file).read_bytes() == checksums(file.read_bytes(), 512)
            assert len(os.listdir(folder)) == 1 + vouched  # noqa: PTH208
            outcomes.add(tuple(codes))
            begin()
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write("\n")
                racer.stdin.flush()
        assert [racer.wait(600) for racer in racers] == [0, 0]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
            for stream in (racer.stdin, racer.stdout):
                assert stream is not None
                stream.close()
    if place != "nowhere":
        assert outcomes <= {(0, 3), (3, 0)}


ID, NAME, INDEX = ("add", "-c", "id"), ("add", "-c", "name"), ("repair", "--add", "page-index")


@pytest.mark.parametrize(("first", "second"), [(ID, NAME), (INDEX, ID)])
def test_a_command_that_came_too_late_says_so_and_works_when_it_is_given_again(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    file = datasets.write(tmp_path / "part.parquet", rows=300)
    folder = tmp_path / "held"
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": str(HOLD), "HOLDFOLDER": str(folder), "HOLDAFTER": "0"}

    def command(words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "bloomcli", *words, str(file), "--in-place"]

    with started(command(first), cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as slow:
        try:
            assert wait_until(lambda: held(folder))
            late = subprocess.Popen(command(second), cwd=ROOT, stderr=subprocess.PIPE, text=True)
            assert wait_until(lambda: has_open(late.pid, file))
        finally:
            slow.send_signal(signal.SIGCONT)
        _, said = late.communicate(timeout=600)
        assert slow.wait(600) == 0
    assert late.returncode == 3
    assert "changed while it was being worked on" in said
    subprocess.run(command(second), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    done = {words[-1] for words in (first, second)} - {INDEX[-1]}
    assert {f.column for f in bloomcli.inspect(file).filters} == done
    chunk = pq.read_metadata(file).row_group(0).column(0)
    assert chunk.has_offset_index is (INDEX in (first, second))
