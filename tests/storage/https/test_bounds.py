"""A web server can't make a command wait, read or redirect without an end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest
from support.http_place import Behaviour, HttpPlace
from support.servers.dialects import Web
from support.servers.faults import Action, Fault
from support.servers.messages import Response
from support.servers.proxy import Proxy

from bloomcli.errors import UnreadableError
from bloomcli.storage import https_client as client
from bloomcli.storage.https_client import retry_after_seconds


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


def busy(asked: object, status: int, response: Response, _: bytes) -> bytes:
    """An answer that asks for a pause."""
    response.start = f"HTTP/1.1 {status} Busy"
    response.headers = [("Retry-After", str(asked)), ("Content-Length", "0")]
    return b""


@pytest.mark.parametrize("seconds", [7, client.RETRY_AFTER_MAX_SECONDS])
def test_a_short_pause_that_the_server_asks_for_is_waited_for(
    pauses: list[float], proxy: tuple[Proxy, HttpPlace], seconds: int
) -> None:
    with proxy[0].injecting(Fault(Action.CHANGE, times=2, change=partial(busy, seconds, 503))):
        assert _opened(*proxy) == 1000
    assert pauses == [seconds, seconds]
    with (
        proxy[0].injecting(Fault(Action.CHANGE, times=None, change=partial(busy, seconds, 503))),
        pytest.raises(UnreadableError, match=rf"5 attempts in {4 * seconds} seconds .status 503"),
    ):
        _opened(*proxy)


@pytest.mark.parametrize(
    ("asked", "status"), [("21600", 429), ("999999999999", 503), ("Fri, 31 Dec 9999 23:59:59 GMT", 503)]
)
def test_a_long_pause_is_not_waited_for_and_the_error_says_what_the_server_asked(
    pauses: list[float], proxy: tuple[Proxy, HttpPlace], asked: str, status: int
) -> None:
    with (
        proxy[0].injecting(Fault(Action.CHANGE, times=None, change=partial(busy, asked, status))),
        pytest.raises(UnreadableError, match=r"1 attempt, and asks for a pause of \d+ seconds") as caught,
    ):
        _opened(*proxy)
    assert pauses == []
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "9" * 5000, "Fri, 31 Dec 99999 23:59:59 GMT", "１"])
def test_an_invalid_pause_is_none(text: str) -> None:
    assert retry_after_seconds({"Retry-After": text}) == 0


def test_redirects_in_a_circle_come_to_an_end(behaviour: Behaviour, proxy: tuple[Proxy, HttpPlace]) -> None:
    behaviour.redirects |= {"/lake/data.bin": "/lake/other.bin", "/lake/other.bin": "/lake/data.bin"}
    with pytest.raises(UnreadableError, match="redirects more than 10 times"):
        _opened(*proxy)
    assert len(behaviour.seen) == 11
