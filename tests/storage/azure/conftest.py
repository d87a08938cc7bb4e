"""Fixtures of the tests on Azurite."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK sends a request again after 50 ms. By default it waits up to 4 seconds, and longer each time."""
    monkeypatch.setattr("azure.storage.blob.ExponentialRetry.get_backoff_time", lambda *_: 0.05)
