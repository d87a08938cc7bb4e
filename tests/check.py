"""Run everything that has to hold: format, lint, types, manual pages, and all tests with their coverage.

``python tests/check.py`` runs all of it; ``--quick`` leaves out the tests that start other engines (Spark, DuckDB),
the slow ones, and coverage, and Hypothesis tries a fifth of the examples.

The tests run in parts, four processes at a time even on two cores: many tests wait for a server, a time limit or a
Java process. A part that ends makes room for the next. What still runs at the time limit is ended, and its output
shows where every thread of it was.

In the whole run a test that fails is run once more, because among servers, time limits and Java processes a test can
fail for want of time; what failed the first time and why is named at the part's end. Tests that prove what happens at
whatever instant (``NO_SECOND_RUN`` in ``conftest.py``) have no second run: there, once is a fault.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from support.processes import children

ROOT: Final = Path(__file__).parent.parent
MINUTES: Final = 45
QUICK_MINUTES: Final = 20
"""The limits for all of it: less than those of the workflow, which says nothing of what it ends."""
PROCESSES: Final = 4
QUICK: Final = "not spark and not interop and not servers and not slow"
AT_EVERY_CALL: Final = ("property", "storage/local")
"""Without coverage: tests/storage/local stops writes at each call of a function, and a probe is a call."""
PARTS: Final = (
    ("cli", "architecture"),
    ("datasets", "validation"),
    ("stores",),
    ("tables/test_*.py",),
    ("tables/delta", "tables/iceberg"),
    ("formats",),
    ("interop",),
    ("advice", "finding", "report", "trials"),
    ("faults",),
    ("storage/[!_l]*",),
    AT_EVERY_CALL,
)
"""Folders and files of tests that share a process, and with it a Spark session, those that take longest first. The
folders that are not named are one more part. tests/stores waits for most of its time, and is one of the first: at the
end nothing would use the processors meanwhile. The last parts are short: they end at about the same time.

tests/tables needs processes of its own, for another PySpark; they begin when `SPARK` has made what their Java starts
from, which it makes first."""
UNMEASURED: Final = (("interop",), ("faults",), AT_EVERY_CALL)
"""Parts without coverage."""
ALREADY_QUICK: Final = ("interop", "stores", "tables/test_*.py")
"""Folders and files without a test that the quick run keeps: pytest fails where it selects none."""
FEW_QUICK: Final = (("tables/delta", "tables/iceberg"), ("faults",), AT_EVERY_CALL)
"""Parts of which the quick run keeps so few tests that a process takes longer to start than to run them."""
QUICK_HOST: Final = ("datasets", "validation")
"""The part whose process runs those."""
FIRST: Final = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("tools.man", "--check"),
    ("tools.rules_index", "--check"),
)
"""What takes a second: the first that fails ends the run."""
SPARK: Final = ("tests.support.spark_start",)
"""Makes the caches with which each session of Spark starts in half the time."""
LEAST: Final = 95
"""Percent of the lines that the measured tests must reach."""


@dataclass(frozen=True)
class Step:
    """A Python module to run, with its arguments and what it adds to the environment."""

    command: Sequence[str]
    env: Mapping[str, str]

    def __str__(self) -> str:
        return " ".join(self.command)


def main(args: Sequence[str]) -> int:
    """Run the steps; returns the exit code of one that fails."""
    # Started in the background, a shell's command ignores Ctrl-C, and so would the commands that tests stop by it.
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        signal.signal(number, action)
    # Tests start hundreds of processes: each would compile every module again, which takes longer than its work.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    quick = "--quick" in args
    deadline = time.monotonic() + 60 * (QUICK_MINUTES if quick else MINUTES)
    for command in FIRST:
        if code := run([Step(command, {})], deadline):
            return code
    for old in () if quick else ROOT.glob(".coverage*"):
        old.unlink()
    steps = [*tests(quick=quick), Step(("mypy",), {})]
    code = run(steps if quick else [Step(SPARK, {}), *steps], deadline)
    for command in () if quick else (("coverage", "combine", "-q"), ("coverage", "report", f"--fail-under={LEAST}")):
        code = code or run([Step(command, {})], deadline)
    return code


def tests(*, quick: bool) -> Iterator[Step]:
    """The runs of pytest. Each measures coverage into a file of its own, except the quick ones and `UNMEASURED`."""
    for number, names in enumerate(parts(quick=quick)):
        chosen = [name for name in names if not (quick and name in ALREADY_QUICK)]
        folders = [str(path.relative_to(ROOT)) for path in paths(chosen)]
        pytest = ["pytest", "-q", "--durations=10", "-p", "no:cacheprovider"]
        twice = ["--reruns=1", "-rR"]
        if quick:
            command, env = [*pytest, "-m", QUICK, "--hypothesis-profile=quick"], {}
        elif names in UNMEASURED:
            command, env = [*pytest, *twice], {}
        else:
            command = [*pytest, *twice, "-p", "tests.support.line_coverage"]
            env = {"COVERAGE_FILE": str(ROOT / f".coverage.part{number}")}
        if folders:
            yield Step([*command, *folders], env)


def parts(*, quick: bool) -> list[Sequence[str]]:
    """The folders and files of tests, each in one part: those that aren't named before the last four, or, of a quick
    run, first."""
    found = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    named = {name.partition("/")[0] for part in PARTS for name in part}
    assert named <= found, f"no folders of tests: {named - found}"
    rest = sorted(found - named)
    if not quick:
        return [*PARTS[:-4], rest, *PARTS[-4:]]
    few = [name for part in FEW_QUICK for name in part]
    joined = [[*part, *few] if part == QUICK_HOST else part for part in PARTS if part not in FEW_QUICK]
    return [rest, *joined]


def paths(names: Sequence[str]) -> list[Path]:
    """The folders and files of a part."""
    return [path for name in names for path in sorted((ROOT / "tests").glob(name))]


def run(steps: Sequence[Step], deadline: float) -> int:
    """Run the steps, as many at a time as there may be; returns the highest exit code, 1 for one beyond the deadline.

    The output of a step is shown when it ends, that of the only one as it comes.
    """
    waiting, codes = list(steps), [0]
    running: dict[subprocess.Popen[bytes], tuple[Step, float, IO[bytes] | None]] = {}
    with ExitStack() as open_files:
        while waiting or running:
            while waiting and len(running) < PROCESSES:
                step = waiting.pop(0)
                print(f"== {step}", flush=True)
                log = open_files.enter_context(tempfile.TemporaryFile()) if len(steps) > 1 else None
                command = [sys.executable, "-m", *step.command]
                process = subprocess.Popen(command, cwd=ROOT, env=os.environ | step.env, stdout=log, stderr=log)
                running[process] = step, time.monotonic(), log
            late = set(running) if time.monotonic() > deadline else set()
            if late:
                waiting.clear()
                end(late)
            for process in [p for p in running if p.poll() is not None]:
                step, started, log = running.pop(process)
                if log is not None:
                    log.seek(0)
                    print(log.read().decode(errors="replace"), flush=True)
                codes.append(1 if process in late else abs(process.returncode))
                said = f"failed with {process.returncode}" if process.returncode else "passed"
                said = "hung: ended at the time limit" if process in late else said
                print(f"== {step}: {said}, {time.monotonic() - started:.1f} s", flush=True)
            time.sleep(0.05)
    return max(codes)


def end(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """End processes and all that they started. pytest writes where its threads are when it is told to abort."""
    started = [pid for process in processes if Path("/proc").is_dir() for pid in children(process.pid)]
    for process in processes:
        process.send_signal(signal.SIGABRT)
    for process in processes:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pid in started:
        with suppress(ProcessLookupError):  # it has ended with its parent
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
