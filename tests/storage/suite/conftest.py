"""The stores that each test of this suite runs on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import IN_CI, need
from support.servers import running
from support.stores import PLACES, READ_ONLY, READ_WITHOUT, SERVED, UNLISTED, WRITE_DIFFERENTLY, Place


def _made(request: pytest.FixtureRequest, folder: Path, patched: pytest.MonkeyPatch) -> Place:
    server = SERVED.get(request.param)
    if server and (IN_CI or request.fixturename == "writable" or request.param not in READ_WITHOUT):
        need(running.installed(server), f"{server}: python tests/support/servers/install.py {server}")
    root = folder / "lake"
    root.mkdir()
    return PLACES[request.param](root, patched)


def _params(names: Iterable[str]) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.servers) if name in SERVED else name for name in names]


@pytest.fixture(params=_params(name for name in PLACES if name not in WRITE_DIFFERENTLY))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty directory in each store."""
    return _made(request, tmp_path, monkeypatch)


@pytest.fixture(params=_params(name for name in PLACES if name not in WRITE_DIFFERENTLY | UNLISTED))
def listing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty directory in each store that has directories."""
    return _made(request, tmp_path, monkeypatch)


@pytest.fixture(params=_params(name for name in PLACES if name not in READ_ONLY | {"file-uri"}))
def writable(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty directory in each store whose files can be changed."""
    return _made(request, tmp_path, monkeypatch)


@pytest.fixture(params=_params(sorted(READ_ONLY)))
def read_only(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty directory in each store that is only read."""
    return _made(request, tmp_path, monkeypatch)
