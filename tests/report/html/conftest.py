"""Pages of reports: those of files that engines write, and of reports with names that break pages."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import need

if TYPE_CHECKING:
    from support.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's Chromium."""
    from support import browser as support

    lacking = support.missing()
    need(not lacking, f"{' and '.join(lacking)} (python tests/support/servers/install.py chromium)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with support.browser(tmp_path_factory.mktemp("profile")) as found:
            yield found


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages, which tests write."""
    return tmp_path_factory.mktemp("pages")
