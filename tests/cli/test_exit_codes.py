"""One map from what happened to the exit code, and errors that say what to do; never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import datasets
from support.cli import Bloom
from support.golden import ORC
from support.processes import started

import bloomcli
from bloomcli.cli import EXIT_CODES
from bloomcli.datasets import task


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["inspect", "{plain}"], 0, ""),
        (["nosuch"], 2, "No such command 'nosuch'"),
        (["inspct", "{plain}"], 2, "Did you mean inspect?"),
        (["{plain}"], 2, "It is a path: try `bloom inspect /"),
        ([], 2, "Usage: bloom"),
        (["inspect"], 2, "Missing argument"),
        (["inspect"], 2, "Try 'bloom inspect -h' for help."),
        (["index", "build", "x", "--colums", "y"], 2, "Try 'bloom index build -h' for help."),
        (["inspect", "{plain}", "--columns", "idd"], 2, "did you mean id?"),
        (["inspect", "{plain}", "--columns", "user"], 2, "user is a group; its leaves: user.email"),
        (["probe", "{plain}", "42"], 2, "no column has a filter"),
        (["probe", "{filtered}", "-c", "id"], 2, "no values"),
        (["probe", "{filtered}", "-c", "id", "many"], 2, "'many' is not a value of column id"),
        (["probe", "{filtered}", "-c", "user.*", "x"], 2, "means 2 columns"),
        (["probe", "{filtered}", "-c", "id", "--values-from", "{nowhere}"], 3, "no such file"),
        (["add", "{plain}", "-c", "id"], 2, "give -o FILE, or --in-place"),
        (["add", "{plain}", "-c", "id", "-o", "{plain}"], 2, "--in-place replaces a file safely"),
        (["add", "{plain}", "-c", "id", "-o", "{folder}"], 2, "is a directory"),
        (["add", "{plain}", "-c", "id", "-o", "{filtered}"], 2, "--overwrite"),
        (["add", "{plain}", "-c", "id", "-o", "{nowhere}", "--in-place"], 2, "exclude each other"),
        (["add", "{plain}", "-c", ",", "-o", "{nowhere}"], 2, "it names nothing"),
        (["add", "{plain}", "-c", "ok", "-o", "{nowhere}"], 2, "BOOLEAN"),
        (["add", "{plain}", "-c", "id", "-o", "{nowhere}", "--fpp", "2"], 2, "between 0 and 1"),
        (["add", "{plain}", "-c", "id", "-o", "{nowhere}", "--fpp", "x"], 2, "not a rate"),
        (["add", "{plain}", "-c", "id", "-o", "{nowhere}", "--max-bytes", "1GB?"], 2, "not a size"),
        (
            ["add", "{plain}", "-c", "id", "-o", "{nowhere}", "--max-bytes", "8"],
            2,
            "max_bytes takes a whole number of 32 bytes or more",
        ),
        (["add", "{filtered}", "-c", "id", "-o", "{nowhere}"], 2, "has a filter in row group 0 already"),
        (["add", "{plain}", "-c", "id", "-o", "{nowhere}/x/y"], 3, "create the output's directory first"),
        (["dump", "{filtered}"], 2, "2 columns have filters"),
        (["dump", "{orc}", "-c", "big", "-s", "7"], 2, "--stripe takes 0 to 1"),
        (["dump", "{orc}", "-c", "big", "-s", "1", "-g", "7"], 2, "--row-group"),
        (["probe", "{filtered}", "7"], 2, "id, user.email"),
        (["validate", "{filtered}", "--max-fpp", "0%"], 2, "between 0 and 1"),
        (["inspect", "{nowhere}"], 3, "no such file"),
        (["dump", "{folder}"], 3, "directory"),
        (["inspect", "{text}"], 3, "no Mosaic, ORC or Parquet file"),
        (["inspect", "gopher://x/y"], 4, "can't be read here"),
        (["probe"], 2, "Missing argument 'PATH...'"),
        (["find", "-c", "id"], 2, "Missing argument 'PATH...'"),
        (["find", "3", "-c", "id"], 2, "Missing argument 'PATH...'"),
        (["trial"], 2, "Missing argument 'FILE...'"),
        (["probe", "{lake}"], 2, "no values to probe"),
        (["inspect", "{lake}/nothing"], 2, "nothing: the directory holds no files"),
        (["inspect", "--files-from", "{lake}/empty"], 2, "the list names no files"),
        (["inspect", "--files-from", "{lake}/nowhere"], 3, "can't be read: no such file"),
        (["inspect", "{lake}/*.avro"], 3, "matches no file"),
        (["inspect", "{lake}", "--jobs", "0"], 2, "--jobs"),
        (["inspect", "{lake}", "--engine", "dask"], 2, "--engine"),
        (["inspect", "{lake}", "--conf", "spark.x"], 2, "is not KEY=VALUE"),
        (["add", "{lake}", "-c", "id"], 2, "nowhere to write to"),
        (["remove", "{lake}"], 2, "nowhere to write to"),
        (["fold", "{lake}"], 2, "nowhere to write to"),
        (["add", "{lake}", "-c", "id", "-o", "{lake}/out", "--in-place"], 2, "exclude each other"),
        (["add", "{lake}", "-c", "id", "-o", "{lake}"], 2, "the output is the input"),
        (["add", "{lake}", "-c", "id", "-o", "hdfs://node/x"], 2, "can't be written to hdfs: URIs"),
        (["add", "{lake}/a/x.parquet", "-c", "id", "-o", "hdfs://node/x"], 2, "can't be written to hdfs: URIs"),
        (["add", "{lake}", "-c", "id", "-o", "file://elsewhere/x"], 2, "can't be written to another machine"),
        (["add", "{lake}/a/x.parquet", "-c", "id", "-o", "file://elsewhere/x"], 2, "written to another machine"),
        (["probe", "{lake}", "-v", "3", "-l", "-f", "json"], 2, "--files-with-matches prints paths alone"),
        (["probe", "{lake}", "-v", "3", "-l", "--explain"], 2, "--files-with-matches prints paths alone"),
        (["probe", "{lake}", "-c", "id", "-v", "3", "--explain"], 2, "--explain is for one file"),
        (["add", "{lake}/a", "{lake}/b", "-c", "id", "-o", "{lake}/out"], 2, "would both become"),
        (["inspect", "gopher://x/y/"], 4, "can't be listed here"),
        (["inspect", "{lake}/" + "x" * 300], 3, "file name too long"),
    ],
)
def test_what_went_wrong_decides_the_exit_code_and_is_said_before_any_file_is_touched(
    bloom: Bloom, plain: Path, filtered: Path, tmp_path: Path, args: list[str], code: int, says: str
) -> None:
    text = tmp_path / "text.csv"
    text.write_text("a,b\n1,2\n")
    lake = tmp_path / "lake"
    for name in "ab":
        datasets.write(lake / name / "x.parquet")
    (lake / "nothing").mkdir()
    (lake / "nothing" / "_SUCCESS").touch()
    (lake / "empty").write_text("\n\n")
    names = {
        "plain": plain,
        "filtered": filtered,
        "folder": tmp_path,
        "text": text,
        "nowhere": tmp_path / "nowhere.parquet",
        "orc": ORC / "java_types.orc",
        "lake": lake,
    }
    before = datasets.digests(tmp_path)
    result = bloom(*(a.format_map(names) for a in args))
    assert result.code == code
    assert says in result.err
    assert "Traceback" not in result.err
    assert "a bug" not in result.err
    assert datasets.digests(tmp_path) == before
    if code:
        assert result.out == ""


def test_every_code_is_in_the_map() -> None:
    assert set(EXIT_CODES) == {0, 1, 2, 3, 4, 70, 130, 141}


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("oops"), 70, "a bug: ZeroDivisionError: oops"),
        (EOFError("marshal data too short"), 70, "a bug: EOFError: marshal data too short"),
        (OSError(5, "Input/output error"), 3, "a file operation failed: input/output error\nhint: "),
        (KeyboardInterrupt(), 130, "bloom: stopped"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_that_nobody_expected_has_an_exit_code_and_its_traceback_on_demand(
    bloom: Bloom, plain: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("bloomcli.commands.inspect.open_file", fails)
    result = bloom("inspect", plain)
    assert (result.code, said in result.err, "Traceback" in result.err) == (code, True, False)
    monkeypatch.setenv("BLOOM_DEBUG", "1")
    result = bloom("inspect", plain)
    assert (result.code, "in fails" in result.err) == (code, code != 130)


@pytest.mark.parametrize(
    ("module", "lost"),
    [("bloomcli.cli", False), ("bloomcli.cli.inspect", True), ("bloomcli.commands.inspect", False)],
)
def test_ctrl_c_while_modules_are_imported_is_130_without_a_traceback(plain: Path, module: str, lost: bool) -> None:
    program = (
        "import os, signal, sys, weakref\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            def interrupt(*_):\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "                for _ in range(100): pass\n"
        f"            if {lost}: weakref.ref(Interrupting(), interrupt)  # what it raises is lost\n"
        "            else: interrupt()\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from bloomcli.__main__ import main\n"
        "sys.argv = ['bloom', 'inspect', sys.argv[1]]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(plain)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.lstrip()) == (130, "", "bloom: stopped\n")


def test_almost_nothing_is_imported_before_main_catches_ctrl_c() -> None:
    package = Path(bloomcli.__file__).parent
    program = (
        "import sys, importlib, warnings\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "old = set(sys.modules)\n"
        "import bloomcli.__main__\n"
        "print(*sorted(set(sys.modules) - old))\n"
    )
    done = subprocess.run([sys.executable, "-ISc", program, package.parent], capture_output=True, text=True)
    assert done.stdout.split() == ["__future__", "bloomcli", "bloomcli.__main__", "bloomcli.version"], done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["inspect"], "2 of 4 files done"),
        (["add", "-c", "id", "--in-place"], "2 of 4 files done; start it again to go on"),
        (["add", "-c", "id", "--in-place", "--dry-run"], "2 of 4 files done"),
        (["add", "-c", "id", "--in-place", "--replace"], "2 of 4 files done; each file is whole, the original or"),
    ],
)
def test_a_stopped_run_over_a_dataset_says_how_far_it_came(
    bloom: Bloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], said: str
) -> None:
    lake = datasets.plain(tmp_path / "lake", 4)
    real, calls = task.run, 0
    stop_at = 7 if args[-1] in {"--in-place", "--replace"} else 3  # the check has looked at all four before

    def stopped(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(task, "run", stopped)
    result = bloom(*args, lake, "--jobs", 1)
    assert result.code == 130
    assert f"bloom: stopped: {said}" in result.err
    if said.endswith("to go on"):
        monkeypatch.setattr(task, "run", real)
        again = bloom(*args, lake, "--jobs", 1, "-f", "json")
        assert (again.json["skipped"], again.json["done"]) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("args", [["probe", "-c", "id", "7"], ["validate"], ["inspect", "-f", "json"]])
def test_a_closed_pipe_is_no_answer(filtered: Path, args: list[str]) -> None:
    """1 would say that a value is absent, or that there is a finding."""
    command, *options = args
    with started(
        [sys.executable, "-m", "bloomcli", command, filtered, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
@pytest.mark.parametrize(("args", "form"), [("inspect", "text"), ("validate", "junit")])
def test_a_full_disk_under_the_output_is_an_error_and_no_bug(filtered: Path, args: str, form: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bloomcli", args, filtered, "-f", form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("bloom: standard output: can't be written: no space left on device\nhint: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unbuffered", "command"),
    [("", ["dump", "-c", "id", "-g", "0"]), ("1", ["dump", "-c", "id", "-g", "0"]), ("1", ["inspect"])],
)
def test_an_output_that_takes_a_part_only_is_an_error(
    bloom: Bloom, filtered: Path, tmp_path: Path, unbuffered: str, command: list[str]
) -> None:
    """Unbuffered, Python writes once and doesn't look how much of it was taken."""

    most = len(bloom(*command, filtered).out.encode()) - 5  # the end of the last line is missing

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "bloomcli", *command, filtered],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limit,
            # the limit would cut off compiled modules too, which Python doesn't notice and leaves for later runs
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert done.returncode == 3
    assert done.stderr.startswith("bloom: standard output: can't be written: file too large")


def test_an_error_that_cannot_be_written_still_has_its_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        for name, code in (("nothing.parquet", 3), ("a", 2)):
            args = [sys.executable, "-m", "bloomcli", "inspect", tmp_path / name, *(["-c"] if code == 2 else [])]
            done = subprocess.run(args, stdout=subprocess.PIPE, stderr=full)
            assert done.returncode == code
