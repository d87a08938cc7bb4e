"""An index of 100,000 row groups in MinIO: written to it, and looked up in at most three requests."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from conftest import need
from support.indexes import answers, large_answer, large_pool, pool_hash, write_large
from support.s3_place import S3Place
from support.servers import clients, running
from support.servers.dialects import S3
from support.servers.proxy import Proxy

from bloomcli.index.reader import Index
from bloomcli.storage import registry
from bloomcli.storage.registry import open_source
from bloomcli.storage.s3.store import S3Store

pytestmark = pytest.mark.servers


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[S3Place, Proxy]]:
    """A bucket of MinIO, and a proxy through which the store sees it."""
    need(running.installed("minio"), "minio: python tests/support/servers/install.py minio")
    server = running.minio()
    with Proxy(server.port, S3()) as proxy:
        place = S3Place(server, monkeypatch)
        for name, value in clients.s3_environment(server, proxy.url).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setitem(registry.BY_SCHEME, "s3", S3Store())
        yield place, proxy


def test_a_lookup_in_100_000_row_groups_takes_at_most_three_requests(lake: tuple[S3Place, Proxy]) -> None:
    place, proxy = lake
    path = place.path("lake.bloom-index")
    write_large(path)
    assert proxy.recorded
    pool = large_pool()
    for value in (pool_hash(), random.Random(1).randbytes(8)):
        proxy.forget()
        with open_source(path) as source:
            found = answers(Index(source), value)
        assert {entry[1:] for entry in found} == large_answer(pool, value)
        assert 1 <= len(proxy.recorded) <= 3
        assert {request.status for request in proxy.recorded} == {206}
        assert sum(request.received for request in proxy.recorded) < 6 << 20
    assert not place.unfinished()
