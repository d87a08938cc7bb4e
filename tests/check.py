"""Everything that has to hold, one step after the other: format, lint, types, manual pages, all tests with coverage.

``python tests/check.py`` runs them all and stops at the first that fails; ``--quick`` leaves out the suites that
start other engines (Spark, DuckDB), the slow ones, and the coverage gate. The whole suite runs in two halves side by
side, of which one mostly waits for other processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUICK = ("pytest", "-q", "--durations=10", "-m", "not spark and not interop and not slow")
HALVES = {
    "with other processes": ("architecture", "cli", "datasets", "interop"),
    "in one process": (
        "checks",
        "commands",
        "faults",
        "filters",
        "formats",
        "golden",
        "kernels",
        "policy",
        "property",
        "report",
        "rules",
        "storage",
        "validation",
        "values",
        "test_errors.py",
        "test_hints.py",
    ),
}
"""Folders of tests; the first half is told as it goes."""
STEPS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    ("tools.man", "--check"),
    ("tools.rules_index", "--check"),
)


def main(args: Sequence[str]) -> int:
    """Run the steps; returns the exit code of the first that fails."""
    # Started in the background, a shell's command ignores Ctrl-C, and so would the commands that tests stop by it.
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        signal.signal(number, action)
    # Tests start hundreds of processes: each would compile every module again, which takes longer than its work.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quick = "--quick" in args
    for step in (*STEPS, *([QUICK] if quick else [])):
        if code := _run(step, env):
            return code
    return 0 if quick else _whole(env)


def _run(step: Sequence[str], env: dict[str, str]) -> int:
    module = step[0]
    print(f"== {' '.join(step)}", flush=True)
    started = time.monotonic()
    code = subprocess.run([sys.executable, "-m", *step], cwd=ROOT, env=env).returncode
    print(
        f"== {module} failed with {code}" if code else f"== {module}: {time.monotonic() - started:.1f} s", flush=True
    )
    return code


def _whole(env: dict[str, str]) -> int:
    """All tests, with their coverage together."""
    known = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    assert known == {folder for folders in HALVES.values() for folder in folders}, "a folder of tests is in no half"
    for old in ROOT.glob(".coverage*"):
        old.unlink()
    runs, logs = [], []
    for number, folders in enumerate(HALVES.values()):
        step = ["pytest", "-q", "--durations=10", "-p", "no:cacheprovider", "--cov=bloomcli", "--cov-report="]
        step += [f"tests/{folder}" for folder in folders]
        print(f"== {' '.join(step)}", flush=True)
        log = None if number == 0 else tempfile.TemporaryFile("w+")  # noqa: SIM115  closed below
        own = env | {"COVERAGE_FILE": str(ROOT / f".coverage.half{number}")}
        logs.append(log)
        runs.append(subprocess.Popen([sys.executable, "-m", *step], cwd=ROOT, env=own, stdout=log, stderr=log))
    codes = [run.wait() for run in runs]
    for name, log, code in zip(HALVES, logs, codes, strict=True):
        if log is not None:
            log.seek(0)
            print(log.read(), flush=True)
            log.close()
        print(f"== pytest, {name}: {'passed' if code == 0 else f'failed with {code}'}", flush=True)
    if any(codes):
        return max(codes)
    return _run(("coverage", "combine"), env) or _run(("coverage", "report", "--fail-under=95"), env)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
