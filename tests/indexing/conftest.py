"""Lakes of Parquet files in stores, to index."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import IN_CI, need
from support.servers import running
from support.stores import PLACES, SERVED, Place


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.servers)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty directory on this machine, and in a bucket."""
    server = SERVED.get(request.param)
    if server:
        need(running.installed(server) or not IN_CI, f"{server}: python tests/support/servers/install.py {server}")
        need(running.installed(server), f"{server}: preconditions, which moto ignores")
    root = tmp_path / "root"
    root.mkdir()
    return PLACES[request.param](root, monkeypatch)
