"""Services of objects, behind a proxy that counts and breaks requests: what is sent, and what becomes of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import need
from google.cloud.storage.retry import DEFAULT_RETRY
from support.azure_place import AzurePlace
from support.servers import running
from support.servers.faults import Action, Fault
from support.servers.served import SERVERS, Served, served
from support.stores import append

from bloomcli.storage import registry, traffic
from bloomcli.storage.base import KeptRange
from bloomcli.storage.objects.source import TAIL_BYTES
from bloomcli.storage.remote_stores import S3Store

pytestmark = pytest.mark.servers

MIB = 1 << 20
DATA = random.Random(7).randbytes(MIB)


@pytest.fixture
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A directory in a service, which the store sees through the proxy. Requests are sent again after 50 ms."""
    server = SERVERS[request.param]
    need(running.installed(server), f"{server}: python tests/support/servers/install.py {server}")
    monkeypatch.setattr("azure.storage.blob.ExponentialRetry.get_backoff_time", lambda *_: 0.05)
    monkeypatch.setattr("bloomcli.storage.gcs.api.DEFAULT_RETRY", DEFAULT_RETRY.with_delay(0.05))
    monkeypatch.setitem(registry.known_stores(), "s3", S3Store())
    with served(request.param) as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.mark.parametrize(
    ("service", "kind", "action"),
    [
        ("azure", "Put Block List", Action.LOSE),
        ("azure", "Put Block", Action.ERROR_503),
        ("azure", "Get Blob", Action.RESET),
        ("azure", "Get Blob", Action.LOSE),
        ("gcs", "objects.get (media)", Action.RESET),
        ("gcs", "objects.get", Action.ERROR_429),
        ("gcs", "objects.insert (multipart)", Action.ERROR_500),
        ("gcs", "objects.compose", Action.LOSE),
        ("gcs", "objects.delete", Action.LOSE),
    ],
    indirect=["service"],
)
def test_a_request_that_fails_once_is_sent_again_and_a_lost_commit_is_found(
    service: Served, kind: str, action: Action
) -> None:
    service.place.put("data.bin", DATA)
    fault = Fault(action, kind)
    with service.proxy.injecting(fault), traffic.measured() as meter:
        append(service.place, "data.bin", b"new end")
    assert fault.fired == 1
    assert meter.total.requests == len(service.proxy.recorded), "the retry counts too"
    assert service.place.get("data.bin") == DATA + b"new end"
    assert service.place.names() == {"data.bin"}


@pytest.mark.parametrize(
    ("service", "cut", "blocks", "copied"),
    [
        ("azure", 0, True, 20),
        ("azure", 5, True, 20),
        ("azure", 0, False, 0),
        ("gcs", 0, False, 20),
        ("gcs", 5, False, 0),
    ],
    indirect=["service"],
)
def test_a_dry_run_estimates_what_the_server_sees(service: Served, cut: int, blocks: bool, copied: int) -> None:
    place, data, new = service.place, DATA * 20, 300_000
    if isinstance(place, AzurePlace) and not blocks:
        place.blob("data.bin").upload_blob(data)
    else:
        place.put("data.bin", data)
    path = place.path("data.bin")
    with place.store.open(path) as source:
        estimate = place.store.estimate(path, [KeptRange(0, len(data) - cut), new], source=source)
    service.proxy.forget()
    append(place, "data.bin", bytes(new), cut=cut)
    assert abs(estimate.requests - len(service.proxy.recorded)) <= 6
    uploads = [each for each in service.proxy.recorded if each.kind == "Put Block" or "insert" in each.kind]
    assert abs(estimate.bytes_uploaded - sum(each.sent for each in uploads)) <= MIB
    downloaded = sum(each.received for each in service.proxy.of_kind("Get Blob", "objects.get (media)"))
    assert abs(estimate.bytes_downloaded - downloaded) <= MIB + TAIL_BYTES
    assert abs(estimate.bytes_copied_by_store - copied * MIB) <= MIB


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_a_listing_goes_by_pages(service: Served) -> None:
    names = [f"{n}.parquet" for n in range(7)]
    for name in names:
        service.place.put(f"many/{name}", b"x")
    client: Any = service.place.store.client  # type: ignore[attr-defined]
    pages = list(client.pages(client.locate(service.place.path("many/")), limit=3))
    assert [entry.key.rpartition("/")[2] for page in pages for entry in page.entries] == names
    assert [page.last for page in pages] == [False] * (len(pages) - 1) + [True]
    assert len(pages) == 3 == len([each for each in service.proxy.recorded if "list" in each.kind.lower()])


NAMES = ["a b", "ab", "a#b", "a%2Fb", "%41", "a?b", "a+b", "a&b=c", "a;b", "a[1]", "a*b", "it's", "ünï", "漢字"]


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_objects_with_odd_names_are_read_changed_and_listed_and_no_other_is(service: Served) -> None:
    place = service.place
    names = NAMES if isinstance(place, AzurePlace) else [*NAMES, "back\\slash"]  # Azure makes it a slash
    for name in names:
        place.put(name, name.encode() * 100)
    for name in names:
        append(place, name, b"new end")
    assert {name: place.get(name) for name in names} == {name: name.encode() * 100 + b"new end" for name in names}
    assert {item.path for item in place.store.list(place.path())} == {place.path(name) for name in names}
