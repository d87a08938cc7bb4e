"""Runs all checks: format, lint, types, manual pages, and all tests with their coverage.

``python tests/check.py`` runs all of them; ``--quick`` leaves out the tests that start other engines (Spark, DuckDB),
slow tests, and coverage, and Hypothesis tries a fifth of the examples.

The tests run in parts, five processes at a time even on two cores, because many tests wait for a server, a time limit
or a Java process: with four, a sixth of the two cores' time was idle. When a part ends, the next one starts. Parts
that still run at the time limit are ended, and their output shows the stack of every thread.

The whole run repeats a failed test once, because with servers, time limits and Java processes a test can fail for
lack of time; the first failure is reported at the part's end. Tests of random moments (``NO_SECOND_RUN`` in
``conftest.py``) aren't repeated: one failure shows a fault.
"""

from __future__ import annotations

import os
import resource
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
MINUTES: Final = 80
QUICK_MINUTES: Final = 40
"""Time limits of a run: shorter than those of the workflow, which doesn't show the output of a job that it ends."""
PROCESSES: Final = 5
QUICK: Final = "not spark and not interop and not servers and not slow"
AT_EVERY_CALL: Final = ("property", "storage/local")
"""Parts without coverage: tests/storage/local stops writes at each function call, and coverage adds calls."""
PARTS: Final = (
    ("tables/delta", "tables/iceberg"),
    ("tables/test_*.py",),
    ("datasets", "validation"),
    ("cli", "architecture"),
    ("stores",),
    ("formats",),
    ("interop",),
    ("advice", "finding", "indexing", "report", "trials"),
    ("faults",),
    ("storage/[!_l]*",),
    AT_EVERY_CALL,
)
"""Folders and files of tests that share a process, and with it a Spark session, the longest first. Folders that
aren't listed form one more part. tests/stores waits most of the time, and is one of the first parts so that others
can use the processors meanwhile. The last parts are short, so that they end at about the same time.

tests/tables needs separate processes, for another PySpark; `SPARK` first creates the caches for their Java."""
UNMEASURED: Final = (("interop",), ("faults",), AT_EVERY_CALL)
"""Parts without coverage."""
ALREADY_QUICK: Final = ("interop", "stores", "tables/test_*.py")
"""Folders and files without tests for the quick run; pytest fails if it selects no test."""
FEW_QUICK: Final = (("tables/delta", "tables/iceberg"), ("faults",), AT_EVERY_CALL)
"""Parts with so few tests for the quick run that a process takes longer to start than to run them."""
QUICK_HOST: Final = ("datasets", "validation")
"""The part whose process runs the tests of `FEW_QUICK`."""
FIRST: Final = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("tools.man", "--check"),
    ("tools.rules_index", "--check"),
)
"""Checks that take a second. The first failure ends the run."""
SPARK: Final = ("tests.support.spark_start",)
"""Creates the caches with which each Spark session starts in half the time."""
LEAST: Final = 95
"""Percentage of the lines that the measured tests must cover."""


@dataclass(frozen=True)
class Step:
    """A Python module to run, with its arguments and additional environment variables."""

    command: Sequence[str]
    env: Mapping[str, str]

    def __str__(self) -> str:
        return " ".join(self.command)


def main(args: Sequence[str]) -> int:
    """Run the steps. Returns the exit code of a failed one."""
    # a shell's background command ignores Ctrl-C, and so would the commands that tests stop by Ctrl-C
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        signal.signal(number, action)
    # tests start hundreds of processes: each would compile every module again, which takes longer than its work
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    quick = "--quick" in args
    deadline = time.monotonic() + 60 * (QUICK_MINUTES if quick else MINUTES)
    for command in FIRST:
        if code := run([Step(command, {})], deadline):
            return code
    for old in () if quick else ROOT.glob(".coverage*"):
        old.unlink()
    steps = [*tests(quick=quick), Step(("mypy",), {})]
    begun = time.monotonic()
    code = run(steps if quick else [Step(SPARK, {}), *steps], deadline)
    share = processor_seconds() / (time.monotonic() - begun)
    print(f"== the parts kept {share:.2f} of {os.cpu_count()} processors busy", flush=True)
    for command in () if quick else (("coverage", "combine", "-q"), ("coverage", "report", f"--fail-under={LEAST}")):
        code = code or run([Step(command, {})], deadline)
    return code


def tests(*, quick: bool) -> Iterator[Step]:
    """The runs of pytest. Each writes its coverage to a separate file, except quick runs and `UNMEASURED`."""
    for number, names in enumerate(parts(quick=quick)):
        chosen = [name for name in names if not (quick and name in ALREADY_QUICK)]
        folders = [str(path.relative_to(ROOT)) for path in paths(chosen)]
        pytest = ["pytest", "-q", "--durations=10", "-p", "no:cacheprovider"]
        twice = ["--reruns=1", "--rerun-show-tracebacks"]
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
    """The folders and files of tests, each in one part. Unlisted folders come before the last four parts; in a quick
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
    """Run the steps, up to `PROCESSES` at a time. Returns the highest exit code; 1 for a step beyond the deadline.

    The output of a step is shown when it ends; the output of a single step immediately.
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
            for process in list(running):
                before = processor_seconds()
                if process.poll() is None:
                    continue
                step, started, log = running.pop(process)
                if log is not None:
                    log.seek(0)
                    print(log.read().decode(errors="replace"), flush=True)
                codes.append(1 if process in late else abs(process.returncode))
                said = f"failed with {process.returncode}" if process.returncode else "passed"
                said = "hung: ended at the time limit" if process in late else said
                used = processor_seconds() - before
                print(
                    f"== {step}: {said}, {time.monotonic() - started:.1f} s, {used:.0f} s of processors", flush=True
                )
            time.sleep(0.05)
    return max(codes)


def processor_seconds() -> float:
    """The processor time of all steps that have ended, and of the processes that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """End processes and all processes that they started. On SIGABRT, pytest prints the stacks of its threads."""
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
