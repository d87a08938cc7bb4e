"""Fixtures of the tests on fake-gcs-server."""

from __future__ import annotations

import pytest
from google.cloud.storage.retry import DEFAULT_RETRY


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK sends a request again after 50 ms. By default it waits up to a second, and longer each time."""
    monkeypatch.setattr("bloomcli.storage.gcs.api.DEFAULT_RETRY", DEFAULT_RETRY.with_delay(0.05))
