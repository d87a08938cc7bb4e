"""A web server can't make a command wait, read or redirect without an end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from support.http_place import Behaviour, HttpPlace
from support.servers.dialects import Web
from support.servers.faults import Action, Fault
from support.servers.proxy import Proxy

from bloomcli.errors import UnreadableError, UnsupportedError
from bloomcli.storage import https_client as client
from bloomcli.storage.https_client import retry_after_seconds
from bloomcli.storage.objects import bounded

_IN_BUFFERS = 16 << 20
"""More than the buffers of a loopback connection hold, for each attempt."""


@pytest.fixture
def behaviour() -> Behaviour:
    return Behaviour()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which take no time."""
    found: list[float] = []
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=found.append, time=time.time))
    return found


@pytest.fixture
def proxy(behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Proxy, HttpPlace]]:
    place = HttpPlace(monkeypatch, behaviour)
    place.put("data.bin", b"x" * 1000)
    with Proxy(int(place.host.rpartition(":")[2]), Web()) as found:
        yield found, place


def _opened(proxy: Proxy, place: HttpPlace) -> int:
    with place.store.open(f"{proxy.url}/lake/data.bin") as source:
        return source.size


@pytest.mark.parametrize("seconds", [7, client.RETRY_AFTER_MAX_SECONDS])
def test_a_short_pause_that_the_server_asks_for_is_waited_for(
    behaviour: Behaviour, pauses: list[float], proxy: tuple[Proxy, HttpPlace], seconds: int
) -> None:
    def busy(response: object, _: bytes) -> bytes:
        response.start = "HTTP/1.1 503 Busy"  # type: ignore[attr-defined]
        response.headers = [("Retry-After", str(seconds)), ("Content-Length", "0")]  # type: ignore[attr-defined]
        return b""

    with proxy[0].injecting(Fault(Action.CHANGE, times=2, change=busy)):
        assert _opened(*proxy) == 1000
    assert pauses == [seconds, seconds]
    with (
        proxy[0].injecting(Fault(Action.CHANGE, times=None, change=busy)),
        pytest.raises(UnreadableError, match=rf"5 attempts in {4 * seconds} seconds .status 503"),
    ):
        _opened(*proxy)


@pytest.mark.parametrize("asked", ["21600", "999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_long_pause_is_not_waited_for_and_the_error_says_what_the_server_asked(
    pauses: list[float], proxy: tuple[Proxy, HttpPlace], asked: str, status: int
) -> None:
    def busy(response: object, _: bytes) -> bytes:
        response.start = f"HTTP/1.1 {status} Busy"  # type: ignore[attr-defined]
        response.headers = [("Retry-After", asked), ("Content-Length", "0")]  # type: ignore[attr-defined]
        return b""

    with (
        proxy[0].injecting(Fault(Action.CHANGE, times=None, change=busy)),
        pytest.raises(UnreadableError, match=r"1 attempt, and asks for a pause of \d+ seconds") as caught,
    ):
        _opened(*proxy)
    assert pauses == []
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "9" * 5000, "Fri, 31 Dec 99999 23:59:59 GMT", "１"])
def test_an_invalid_pause_is_none(text: str) -> None:
    assert retry_after_seconds({"Retry-After": text}) == 0


@pytest.mark.parametrize("status", [200, 206, 302, 404, 503])
def test_a_body_without_an_end_is_not_drained(
    pauses: list[float], proxy: tuple[Proxy, HttpPlace], status: int
) -> None:
    with (
        proxy[0].injecting(Fault(Action.ENDLESS, times=None, status=status)),
        pytest.raises((UnreadableError, UnsupportedError)) as caught,
    ):
        _opened(*proxy)
    assert caught.value.hint
    recorded = proxy[0].of_kind("GET")
    assert len(recorded) <= client.ATTEMPTS + 10
    assert all(request.received <= _IN_BUFFERS for request in recorded)


def test_a_hundred_continues_without_an_end_are_an_error_that_names_the_server(
    pauses: list[float], proxy: tuple[Proxy, HttpPlace]
) -> None:
    with (
        proxy[0].injecting(Fault(Action.CONTINUES, times=None)),
        pytest.raises(UnreadableError, match="sent more than the request allows") as caught,
    ):
        _opened(*proxy)
    assert proxy[0].url in str(caught.value.hint)
    recorded = proxy[0].of_kind("GET")
    assert len(recorded) == client.ATTEMPTS
    assert all(request.received <= _IN_BUFFERS for request in recorded)


@pytest.mark.slow
def test_a_byte_at_a_time_is_too_slow(
    pauses: list[float], proxy: tuple[Proxy, HttpPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "READ_GRACE_SECONDS", 0.2)
    with (
        proxy[0].injecting(Fault(Action.DRIP, times=None, status=206, seconds=0.05)),
        pytest.raises(UnreadableError, match=r"the server sends less than 1\.0 KiB in a second, after 5 attempts"),
    ):
        _opened(*proxy)


def test_redirects_in_a_circle_come_to_an_end(behaviour: Behaviour, proxy: tuple[Proxy, HttpPlace]) -> None:
    behaviour.redirects |= {"/lake/data.bin": "/lake/other.bin", "/lake/other.bin": "/lake/data.bin"}
    with pytest.raises(UnreadableError, match="redirects more than 10 times"):
        _opened(*proxy)
    assert len(behaviour.seen) == 11
