"""A store of objects whose requests are counted."""

from __future__ import annotations

import pytest
from support.object_stores import SCHEME, MemoryClient, MemoryObjects

from bloomcli.storage import registry


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> MemoryClient:
    """The client of a store whose URIs the registry finds."""
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    return store.client
