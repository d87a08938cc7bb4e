"""bloom find: files that it writes when it is stopped, when others write them, and when there is no room; and lists
of paths for programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom
from support.one_process import commands
from support.processes import started

from bloomcli.finding import spool
from bloomcli.report import found_rows

SLOW = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
signal.signal(signal.SIGINT, signal.default_int_handler)
from bloomcli.cli import run
from bloomcli.report import found_rows
def write_all(found, writer, **options):
    print("begun", flush=True)
    time.sleep(6000)
found_rows.write_all = write_all
sys.exit(run())
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lake" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "s": ["x", "y"]}), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda n: n.name)
def test_a_run_that_is_stopped_leaves_no_file(file: Path, tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    out.mkdir()
    argv = [sys.executable, "-c", SLOW, "find", "1", str(file), "-c", "id", "-f", "csv", "-o", str(out / "x.csv")]
    with started(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        assert len(list(out.iterdir())) == 1
        running.send_signal(number)
        assert running.wait(600) == 128 + number
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "parquet", "text"])
def test_a_device_or_a_pipe_is_written_to_and_stays_one(bloom: Bloom, file: Path, tmp_path: Path, form: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        (tmp_path / "link").symlink_to(pipe)
        for output in (os.devnull, pipe, tmp_path / "link"):
            assert bloom("find", file, "1", "-c", "id", "-f", form, "-o", output).code == 0
            assert not Path(output).is_file()
        assert os.read(reader, 4) == {"csv": b"path", "parquet": b"PAR1", "text": os.fsencode(file)[:4]}[form]
    finally:
        os.close(reader)
    full = bloom("find", file, "1", "-c", "id", "-f", form, "-o", "/dev/full")
    assert (full.code, "/dev/full" in full.err) == (3, True)
    assert [entry.name for entry in file.parent.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_another_program_wrote_meanwhile_is_not_replaced(
    bloom: Bloom, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    out = tmp_path / "x"
    write_all = found_rows.write_all

    def meanwhile(*arguments: Any, **options: Any) -> None:
        write_all(*arguments, **options)
        out.write_text("another's")

    monkeypatch.setattr(found_rows, "write_all", meanwhile)
    done = bloom("find", "1", file, "-c", "id", "-f", form, "-o", out)
    assert (done.code, out.read_text()) == (2, "another's")
    assert "x: the output exists already" in done.err
    assert "--overwrite" not in done.err, "find has no such option"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "x"]


def test_a_full_temporary_directory_is_not_an_error_of_the_searched_file(
    bloom: Bloom, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_MEMORY_BYTES", 1)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "r+b"))  # noqa: PTH123, SIM115
    done = bloom("find", "1", file, "-c", "id", "-f", "csv")  # rows that Arrow has found are kept
    assert done.code == 3
    assert f"{tempfile.gettempdir()}: rows can't be kept in a temporary file: no space left on device" in done.err
    assert "TMPDIR" in done.err


@pytest.mark.slow
def test_a_list_of_paths_has_names_as_they_are(file: Path, tmp_path: Path) -> None:
    """Engines and `--files-from` open what it names."""
    names = [b"bell\x07.parquet", "käse ☃.parquet".encode(), b"bytes\xff.parquet", b"##[x].parquet"]
    folder = os.fsencode(file.parent)
    for name in names:
        os.link(file, folder + b"/" + name)
    paths = sorted(folder + b"/" + name for name in [*names, b"a.parquet"])
    words = ["find", "1", "-c", "id", "-q", "-f", "paths"]
    with commands(encoding="latin-1") as run:
        for options in (["--maybe"], []):
            piped = run(*words, *options, file.parent).out.encode("latin-1")
            assert piped.splitlines() == paths
            out = tmp_path / f"{len(options)}.txt"
            assert run(*words, *options, file.parent, "-o", out).code == 0
            assert out.read_bytes() == piped
            assert run(*words, "--files-from", out).out.encode("latin-1") == piped


def test_a_name_that_a_list_of_paths_can_not_have_is_an_error(bloom: Bloom, file: Path) -> None:
    file.rename(file.with_name("a\nb.parquet"))
    done = bloom("find", "1", file.parent, "-c", "id", "-f", "paths")
    assert (done.code, done.out) == (4, "")
    assert "line break; the search ends here, and its output isn't complete" in done.err
    assert "--format jsonl" in done.err


def test_two_lists_can_not_come_from_standard_input_and_an_empty_list_is_named(
    bloom: Bloom, file: Path, tmp_path: Path
) -> None:
    both = bloom("find", "--values-from", "-", "--files-from", "-", "-c", "id")
    assert (both.code, "standard input" in both.err) == (2, True)
    (tmp_path / "none").touch()
    empty = bloom("find", "1", "--files-from", tmp_path / "none", "-c", "id")
    assert (empty.code, "none: the list names no files" in empty.err) == (2, True)


@pytest.mark.parametrize("form", ["text", "jsonl", "csv"])
def test_columns_of_one_name_are_all_shown(bloom: Bloom, tmp_path: Path, form: str) -> None:
    names = ["id", "s", "s", "s_1"]
    columns = [pa.array([1, 2]), pa.array(["first", "x"]), pa.array(["second", "y"]), pa.array(["third", "z"])]
    inner = pa.StructArray.from_arrays(columns[1:3], names=["n", "n"])
    table = pa.Table.from_arrays([*columns, inner], names=[*names, "inner"])
    pq.write_table(table, tmp_path / "f.parquet")
    done = bloom("find", "1", tmp_path / "f.parquet", "-c", "id", "-f", form)
    for name, value in (("s", "first"), ("s_2", "second"), ("s_1", "third"), ("n_1", "second")):
        assert value in done.out
        assert name in done.out
    if form == "csv":
        header, row = done.out.splitlines()
        assert header == "path,stripe,row_group,row,value,id,s,s_2,s_1,inner"
        assert row.split(",", 9)[5:9] == ["1", "first", "second", "third"]
