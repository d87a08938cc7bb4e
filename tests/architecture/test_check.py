"""tests/check.py: every test is run once, failures count, and what hangs is ended and shown."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import check
import pytest
import yaml
from check import Step
from support.processes import alive, wait_until


@pytest.mark.parametrize("quick", [True, False])
def test_every_file_of_tests_is_in_one_part(*, quick: bool) -> None:
    found = [file for names in check.parts(quick=quick) for path in check.paths(names) for file in files_of(path)]
    assert sorted(found) == sorted((check.ROOT / "tests").rglob("test_*.py"))


def files_of(path: Path) -> list[Path]:
    """A file, or a folder's files of tests."""
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


@pytest.mark.slow
def test_the_quick_run_leaves_out_only_folders_without_a_quick_test() -> None:
    command = [*("pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", check.QUICK)]
    folders = [str(path) for path in check.paths(check.ALREADY_QUICK)]
    found = check.run([Step([*command, *folders], {})], time.monotonic() + 600)
    assert found == pytest.ExitCode.NO_TESTS_COLLECTED


def a_test(folder: Path, body: str) -> Step:
    """A run of pytest over one test."""
    path = folder / "test_it.py"
    folder.mkdir()
    path.write_text(f"import subprocess, sys, time\n\ndef test_it():\n    {body}\n")
    return Step(("pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", "-c", "/dev/null", str(path)), {})


@pytest.mark.slow
def test_a_part_that_fails_is_shown_and_those_after_it_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps = [a_test(tmp_path / "fails", "assert not 'a reason'"), a_test(tmp_path / "lives", "pass")]
    steps += [a_test(tmp_path / "third", "(__import__('pathlib').Path(__file__).parent / 'ran').touch()")]
    assert check.run(steps, time.monotonic() + 600) == 1
    out, _ = capfd.readouterr()
    assert "a reason" in out
    assert out.count("== pytest") == 6
    assert (tmp_path / "third" / "ran").exists()


@pytest.mark.slow
def test_what_hangs_is_ended_with_its_processes_and_shows_where_it_was(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pid"
    program = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    hanging = a_test(
        tmp_path / "hangs", f"subprocess.run([{sys.executable!r}, '-c', {program!r}], start_new_session=True)"
    )

    def now() -> float:
        """The time limit is over as soon as the test hangs."""
        return float(file.is_file() and bool(file.read_text()))

    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=now, sleep=time.sleep))
    assert check.run([hanging, a_test(tmp_path / "lives", "pass")], 0.5) == 1
    out, _ = capfd.readouterr()
    assert f'File "{tmp_path}/hangs/test_it.py", line 4 in test_it' in out
    assert "hung: ended at the time limit" in out
    assert wait_until(lambda: not alive(int(file.read_text())))


def test_the_time_limits_come_before_those_of_the_workflow() -> None:
    jobs = yaml.safe_load((check.ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert jobs["whole"]["timeout-minutes"] > check.MINUTES
    assert jobs["quick"]["timeout-minutes"] > check.QUICK_MINUTES
