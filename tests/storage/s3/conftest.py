"""A place in MinIO, and one in moto, which ignores preconditions."""

from __future__ import annotations

import pytest
from conftest import need
from support.s3_place import S3Place
from support.servers import running


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> S3Place:
    """A directory in a bucket of MinIO that keeps versions."""
    need(running.installed("minio"), "MinIO: python tests/support/servers/install.py minio")
    return S3Place(running.minio(), monkeypatch, versioned=True)


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> S3Place:
    """A directory in a bucket of moto."""
    return S3Place(running.moto(), monkeypatch)
