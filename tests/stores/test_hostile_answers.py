"""Whatever an endpoint answers, each operation ends with its result or with an error of bloomcli, after a bounded
number of requests and bytes.

The endpoint is a real server of the store behind the proxy of ``support/servers``, which changes its answers. Some
tests make one change each. The last one changes the answers to each kind of request of each operation at random
(`support/servers/hostile.py`): ``--seed N`` chooses other changes, ``--full`` more of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn
from urllib.parse import urlsplit

import pytest
from conftest import need
from google.cloud.storage.retry import DEFAULT_RETRY
from support.http_place import HttpPlace
from support.servers import running
from support.servers.dialects import S3, Azure, Gcs, Web
from support.servers.faults import Action, Fault
from support.servers.hostile import changed
from support.servers.messages import Response
from support.servers.proxy import Proxy
from support.servers.served import SERVERS, served
from support.stores import Place

from bloomcli.errors import BloomError, UnreadableError, WriteError
from bloomcli.model.traffic import Traffic
from bloomcli.storage import registry, traffic
from bloomcli.storage.base import KeptRange, Source, Store
from bloomcli.storage.objects import bounded, network

pytestmark = [pytest.mark.slow, pytest.mark.servers]

_OLD: Final = bytes(range(256)) * (6 << 12)
"""6 MiB: more than the least size of a part that S3 copies. Other stores have less of it."""
_CHANGES: Final = 4
"""Changes of the answers to each kind of request of an operation; 100 with --full."""
_REQUESTS_MAX: Final = 250
"""More than any operation sends: replacing sends 10 requests, and each may be sent 8 times."""
_BYTES_MAX: Final = 100 << 20
"""More than any operation downloads: an object of 6 MiB, in 8 attempts."""


@dataclass
class Endpoint:
    """A store that is reached through a proxy, with an object."""

    proxy: Proxy
    place: Place
    store: Store
    directory: str
    old: bytes

    def path(self, name: str) -> str:
        """The URI of an object."""
        return f"{self.directory}/{name}"


@contextmanager
def _made(name: str, patched: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An endpoint. The pauses between attempts take no time."""
    sleep = time.sleep
    patched.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.005)))
    with ExitStack() as stack:
        if name == "https":
            place: Place = HttpPlace(patched)
            proxy = stack.enter_context(Proxy(int(urlsplit(place.path()).port or 0), Web()))
            directory = f"{proxy.url}/lake"
        else:
            need(running.installed(SERVERS[name]), f"{SERVERS[name]}: python tests/support/servers/install.py")
            found = stack.enter_context(served(name))
            place, proxy, directory = found.place, found.proxy, found.place.path()
            for variable, value in found.environment.items():
                patched.setenv(variable, value)
        store = registry.store_of(directory)
        if name == "s3":
            patched.setattr(store.client, "put_most", 0)  # type: ignore[attr-defined]
            patched.setattr("bloomcli.storage.s3.writing._results", {})
        if name == "gcs":
            patched.setattr("bloomcli.storage.gcs.api.DEFAULT_RETRY", DEFAULT_RETRY.with_delay(0.001, 0.001))
            patched.setattr("bloomcli.storage.gcs.api.RETRY_SECONDS", 0.2)
        old = _OLD if name == "s3" else _OLD[: 1 << 20]
        place.put("data.bin", old)
        for number in range(3):
            place.put(f"more/{number}.bin", b"x")
        yield Endpoint(proxy, place, store, directory, old)


@pytest.fixture(params=SERVERS)
def endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An endpoint of a store of objects."""
    with _made(request.param, monkeypatch) as made:
        yield made


@pytest.fixture(params=[*SERVERS, "https"])
def any_endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An endpoint of a store of objects, or a web server."""
    with _made(request.param, monkeypatch) as made:
        yield made


def _read(at: Endpoint) -> bytes:
    with at.store.open(at.path("data.bin")) as source:
        source.check_unchanged()
        return source.read_at(0, source.size)


def _replace(at: Endpoint, verify: Callable[[Source], None] | None = None) -> int:
    path = at.path("data.bin")
    with at.store.open(path) as source:
        pieces = (piece for piece in (KeptRange(0, source.size), b"and more"))
        return at.store.replace(path, pieces, source=source, overwrite=True, verify=verify)


class _Refused(WriteError):
    """The new object isn't written, for a reason of the caller's."""


def _abort(at: Endpoint) -> None:
    def refuse(_: Source) -> NoReturn:
        raise _Refused("refused")

    with suppress(_Refused):
        _replace(at, refuse)


_READING: Final[Mapping[str, Callable[[Endpoint], object]]] = {
    "read": _read,
    "kind": lambda at: at.store.kind(at.path("data.bin")),
}
_LISTING: Final[Mapping[str, Callable[[Endpoint], object]]] = {
    "list": lambda at: list(at.store.list(at.directory)),
    "names": lambda at: sorted(at.store.names(at.directory)),
}
_WRITING: Final[Mapping[str, Callable[[Endpoint], object]]] = {
    "put": lambda at: at.store.write_file(at.path("new.bin"), b"new", overwrite=True),
    "replace": _replace,
    "abort": _abort,
    "check": lambda at: at.store.check_output(at.path("data.bin"), overwrite=True),
    "sweep": lambda at: at.store.sweep_for([at.path("data.bin")]),
}


def _operations(at: Endpoint) -> Mapping[str, Callable[[Endpoint], object]]:
    return _READING if isinstance(at.place, HttpPlace) else {**_READING, **_LISTING, **_WRITING}


def _listings(at: Endpoint) -> str:
    """The kind of request that lists."""
    return {S3: "ListObjectsV2", Azure: "List Blobs", Gcs: "objects.list"}[type(at.proxy.dialect)]


def _expect_error(at: Endpoint, fault: Fault, work: Callable[[Endpoint], object], match: str = ".") -> BloomError:
    """The error of an operation under a fault: it is one of bloomcli, and its hint names the endpoint."""
    with at.proxy.injecting(fault), pytest.raises(BloomError, match=match) as caught:
        work(at)
    assert caught.value.exit_code == 3
    assert at.proxy.url in str(caught.value.hint)
    assert len(at.proxy.recorded) <= _REQUESTS_MAX
    return caught.value


def _text(body: bytes) -> Callable[[Response, bytes], bytes]:
    def change(response: Response, _: bytes) -> bytes:
        response.start = "HTTP/1.1 200 OK"
        response.headers = [("Content-Type", "text/html"), ("Content-Length", str(len(body)))]
        return body

    return change


def test_a_web_page_instead_of_a_listing_is_an_error_and_not_an_empty_directory(endpoint: Endpoint) -> None:
    kind, work = _listings(endpoint), _LISTING["list"]
    for page in (b"<!DOCTYPE html><html><br></html>", b"<html><body>Welcome</body></html>", b"", b"[]", b"null"):
        endpoint.proxy.forget()
        _expect_error(endpoint, Fault(Action.CHANGE, kind, times=None, change=_text(page)), work)
    endpoint.proxy.forget()
    _expect_error(endpoint, Fault(Action.CHANGE, kind, times=None, change=_text(b"")), _LISTING["names"])


def _without(response: Response, *headers: str) -> None:
    """Take headers from an answer."""
    response.headers = [(name, value) for name, value in response.headers if name.lower() not in headers]


def test_a_connection_that_breaks_in_the_body_of_an_answer_is_an_error(endpoint: Endpoint) -> None:
    def half(status: int, response: Response, body: bytes) -> bytes:
        _without(response, "transfer-encoding")
        response.headers += [] if response.get("content-length") else [("Content-Length", "0")]
        if status != 200:
            response.start = f"HTTP/1.1 {status} Any"
        response.put("content-length", str(len(body) + 1000))
        return body[: len(body) // 2]

    for status, work in ((200, _read), (200, _LISTING["list"]), (403, _LISTING["list"]), (503, _read)):
        endpoint.proxy.forget()
        with (
            endpoint.proxy.injecting(Fault(Action.CHANGE, times=None, change=partial(half, status))),
            pytest.raises(UnreadableError) as caught,
        ):
            work(endpoint)
        assert caught.value.hint
        assert len(endpoint.proxy.recorded) <= _REQUESTS_MAX


def test_an_answer_without_a_tag_or_a_generation_is_an_error(endpoint: Endpoint) -> None:
    def without(response: Response, body: bytes) -> bytes:
        _without(response, "etag", "x-goog-generation")
        return body.replace(b'"generation"', b'"other"').replace(b"ETag>", b"Other>")

    for name, work in {"read": _read, "replace": _replace, "put": _WRITING["put"]}.items():
        if name == "put" and isinstance(endpoint.proxy.dialect, Gcs):
            continue
        endpoint.proxy.forget()
        _expect_error(endpoint, Fault(Action.CHANGE, times=None, change=without), work)
    assert endpoint.place.get("data.bin") == endpoint.old


def test_a_listing_with_bad_times_or_cut_off_is_an_error_where_times_are_read(endpoint: Endpoint) -> None:
    def cut(response: Response, body: bytes) -> bytes:
        _without(response, "transfer-encoding", "content-length")
        return body[: len(body) // 2]

    def yesterday(response: Response, body: bytes) -> bytes:
        _without(response, "transfer-encoding", "content-length")
        for tag in (b"LastModified", b"Last-Modified"):
            body = re.sub(rb"<%b>[^<]*" % tag, b"<%b>yesterday" % tag, body, count=1)
        return body

    for change in (cut,) if isinstance(endpoint.proxy.dialect, Gcs) else (cut, yesterday):
        fault = Fault(Action.CHANGE, _listings(endpoint), times=None, change=change)
        with endpoint.proxy.injecting(fault), pytest.raises(UnreadableError) as caught:
            list(endpoint.store.list(endpoint.directory))
        assert endpoint.proxy.url in str(caught.value.hint)


def test_a_listing_that_repeats_its_token_comes_to_an_end(endpoint: Endpoint) -> None:
    kind = _listings(endpoint)
    for work in _LISTING.values():
        endpoint.proxy.forget()
        fault = Fault(Action.CHANGE, kind, times=None, change=_followed(lambda: "again"))
        _expect_error(endpoint, fault, work, match="the listing repeats a page's token")
        assert endpoint.proxy.kinds()[kind] <= 4


def test_a_listing_of_empty_pages_comes_to_an_end(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = _listings(endpoint)
    monkeypatch.setattr(network, "EMPTY_PAGES_MAX", 5)
    tokens = iter(range(1000))
    for number in range(3):
        endpoint.place.remove(f"more/{number}.bin")
    endpoint.place.remove("data.bin")
    fault = Fault(Action.CHANGE, kind, times=None, change=_followed(lambda: f"token{next(tokens)}"))
    _expect_error(endpoint, fault, _LISTING["names"], match="more than 5 empty pages in a row")


def _followed(token: Callable[[], str]) -> Callable[[Response, bytes], bytes]:
    """Adds a token for the next page to a listing. Each page is the first one, whatever the store says to it."""
    pages: list[bytes] = []

    def change(response: Response, body: bytes) -> bytes:
        text = token().encode()
        pages.append(body)
        response.start, body = "HTTP/1.1 200 OK", pages[0]
        if body.startswith(b"{"):
            comma = b", " if body.strip() != b"{}" else b""
            body = b'{"nextPageToken": "%b"%b' % (text, comma) + body.lstrip()[1:]
        elif b"ListBucketResult" in body:
            body = body.replace(b"<IsTruncated>false</IsTruncated>", b"<IsTruncated>true</IsTruncated>")
            body = re.sub(rb"<NextContinuationToken>.*?</NextContinuationToken>", b"", body)
            body = body.replace(
                b"</ListBucketResult>", b"<NextContinuationToken>%b</NextContinuationToken></ListBucketResult>" % text
            )
        else:
            for empty in (b"<NextMarker/>", b"<NextMarker />", b"<NextMarker></NextMarker>"):
                body = body.replace(empty, b"<NextMarker>%b</NextMarker>" % text)
        _without(response, "content-length", "transfer-encoding")
        return body

    return change


@pytest.mark.parametrize(
    "fault",
    [Fault(Action.ENDLESS, times=None, status=status) for status in (200, 206, 302, 403, 503)]
    + [Fault(Action.CONTINUES, times=None)],
    ids=lambda fault: f"{fault.action.name}-{fault.status}",
)
def test_an_answer_without_an_end_is_not_read_to_the_end(
    any_endpoint: Endpoint, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = any_endpoint
    monkeypatch.setattr(bounded, "DOCUMENT_MAX_BYTES", 1 << 20)
    monkeypatch.setattr("bloomcli.storage.gcs.api.DOCUMENT_MAX_BYTES", 1 << 20)
    for name, work in _operations(endpoint).items():
        endpoint.proxy.forget()
        with endpoint.proxy.injecting(fault), suppress(BloomError):
            work(endpoint)
            assert name == "sweep", name
        assert len(endpoint.proxy.recorded) <= _REQUESTS_MAX, name
        assert all(request.received <= 16 << 20 for request in endpoint.proxy.recorded), name


def test_an_answer_of_single_bytes_is_too_slow(any_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = any_endpoint
    monkeypatch.setattr(bounded, "READ_GRACE_SECONDS", 0.05)
    fault = Fault(Action.DRIP, times=None, status=206, seconds=0.005)
    said = (
        "the connection was lost" if isinstance(endpoint.proxy.dialect, Azure) else r"less than 1\.0 KiB in a second"
    )
    with endpoint.proxy.injecting(fault), pytest.raises(UnreadableError, match=said) as caught:
        _read(endpoint)
    assert caught.value.hint
    assert len(endpoint.proxy.recorded) <= _REQUESTS_MAX


def test_no_answer_is_a_bug_of_the_program_or_harms_an_object(
    any_endpoint: Endpoint, pytestconfig: pytest.Config
) -> None:
    endpoint = any_endpoint
    problems, trials = [], 0
    count = 100 if pytestconfig.getoption("full") else _CHANGES
    first = pytestconfig.getoption("seed") * 1_000_000
    for name, work in _operations(endpoint).items():
        endpoint.proxy.forget()
        work(endpoint)
        kinds = list(dict.fromkeys(request.kind for request in endpoint.proxy.recorded))
        for kind in kinds:
            for number in range(count):
                if endpoint.place.get("data.bin") != endpoint.old:
                    endpoint.place.put("data.bin", endpoint.old)
                endpoint.proxy.forget()
                seed, trials = first + trials, trials + 1
                times = None if number % 2 else 1
                fault = Fault(Action.CHANGE, kind, times=times, change=changed(seed))
                problem = _problem(endpoint, name, work, fault)
                if problem:
                    problems.append(f"{name}, {kind}, changed({seed}), times={times}: {problem}")
    assert not problems, "\n".join(problems)
    assert trials >= 2 * count


def _problem(at: Endpoint, name: str, work: Callable[[Endpoint], object], fault: Fault) -> str:
    """What is wrong with the outcome of an operation under a fault; empty if nothing is."""
    total = Traffic()
    with at.proxy.injecting(fault), traffic.measured() as meter:
        try:
            work(at)
        except BloomError as error:
            if error.exit_code not in {2, 3, 4} or "\n" in error.message:
                return f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001  any other exception is what the test looks for
            return f"{type(error).__name__}: {error}"
        total = meter.total
    if len(at.proxy.recorded) > _REQUESTS_MAX:
        return f"{len(at.proxy.recorded)} requests"
    if total.bytes_downloaded > _BYTES_MAX or sum(r.received for r in at.proxy.recorded) > _BYTES_MAX:
        return f"{total.bytes_downloaded} bytes"
    found = at.place.get("data.bin")
    if found not in {at.old, at.old + b"and more"}:
        return "the object is another" if found is not None else "the object is gone"
    return ""
