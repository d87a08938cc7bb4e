"""Files on web servers, which honour ranges and conditions, or some of them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from support.cli import Bloom
from support.http_place import Behaviour, HttpPlace
from support.tables import write

import bloomcli
from bloomcli.errors import SourceChanged, UnreadableError, UnsupportedError, UsageError
from bloomcli.model.paths import shown
from bloomcli.storage import traffic
from bloomcli.storage.https_client import ATTEMPTS, HttpClient
from bloomcli.storage.objects.source import TAIL_BYTES

LARGE = bytes(range(251)) * 4000
"""More than the tail that is read first."""
assert len(LARGE) > TAIL_BYTES + 1000


@pytest.fixture
def behaviour() -> Behaviour:
    return Behaviour()


@pytest.fixture
def place(behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch) -> HttpPlace:
    monkeypatch.setattr("bloomcli.storage.https_client._PAUSE_SECONDS", 0.01)
    return HttpPlace(monkeypatch, behaviour)


@pytest.mark.parametrize(
    ("suffixes", "tags"), [(True, "strong"), (False, "strong"), (True, "weak"), (False, "time"), (True, "none")]
)
def test_every_range_comes_as_it_is_whatever_tags_the_server_has(
    place: HttpPlace, behaviour: Behaviour, suffixes: bool, tags: str
) -> None:
    behaviour.suffixes, behaviour.tags = suffixes, tags
    for size in (0, 1, 1000, TAIL_BYTES, len(LARGE)):
        place.put("data.bin", LARGE[:size])
        with place.store.open(place.path("data.bin")) as source:
            assert source.size == size
            for start, length in ((0, size), (0, min(size, 10)), (size // 2, size // 3), (size, 0)):
                assert source.read_at(start, length) == LARGE[start : start + length]
            source.check_unchanged()


@pytest.mark.parametrize("conditions", [True, False])
@pytest.mark.parametrize("tags", ["strong", "time"])
def test_a_file_that_changes_between_two_ranges_is_never_mixed(
    place: HttpPlace, behaviour: Behaviour, tags: str, conditions: bool
) -> None:
    behaviour.tags, behaviour.conditions = tags, conditions
    place.put("data.bin", LARGE)
    with place.store.open(place.path("data.bin")) as source:
        place.put("data.bin", LARGE[::-1])
        with pytest.raises(SourceChanged):
            source.read_at(0, 100)
        with pytest.raises(SourceChanged):
            source.check_unchanged()


def test_each_range_is_requested_with_the_tag_of_the_first_one(place: HttpPlace, behaviour: Behaviour) -> None:
    place.put("data.bin", LARGE)
    with place.store.open(place.path("data.bin")) as source:
        source.read_at(0, 100)
    (_, first), (_, second) = behaviour.seen
    assert first["range"] == f"bytes=-{TAIL_BYTES}"
    assert "if-match" not in first
    assert second["range"] == "bytes=0-99"
    assert second["if-match"] == second["if-range"]
    assert second["if-match"].startswith('"')


def test_a_server_that_ignores_ranges_is_named_and_its_file_is_not_loaded(
    place: HttpPlace, behaviour: Behaviour
) -> None:
    behaviour.ranges = False
    place.put("data.bin", LARGE)
    with traffic.measured() as meter, pytest.raises(UnsupportedError, match="the server ignores ranges") as caught:
        place.store.open(place.path("data.bin"))
    assert caught.value.hint == "copy the file to this machine"
    assert meter.total.bytes_downloaded == 0
    place.put("small.bin", LARGE[:5000])
    with place.store.open(place.path("small.bin")) as source:  # it comes with the first answer
        assert source.read_at(17, 100) == LARGE[17:117]


def test_redirects_are_followed_and_counted(place: HttpPlace, behaviour: Behaviour) -> None:
    place.put("data.bin", LARGE)
    behaviour.redirects["/lake/old.bin"] = "/lake/data.bin"
    with traffic.measured() as meter, place.store.open(place.path("old.bin")) as source:
        assert source.read_at(0, 100) == LARGE[:100]
    assert len(behaviour.seen) == meter.total.requests == 4


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_fails_is_asked_again_and_each_request_is_counted(
    place: HttpPlace, behaviour: Behaviour, status: int
) -> None:
    place.put("data.bin", LARGE)
    behaviour.statuses = [status, status]
    with traffic.measured() as meter, place.store.open(place.path("data.bin")) as source:
        assert source.size == len(LARGE)
    assert meter.total.requests == len(behaviour.seen) == 3
    behaviour.statuses = [status] * 50
    with pytest.raises(UnreadableError, match=f"status {status}, request abc123") as caught:
        place.store.open(place.path("data.bin"))
    assert f"{ATTEMPTS} attempts" in str(caught.value)
    assert caught.value.hint


def test_an_incomplete_content_is_requested_again(place: HttpPlace, behaviour: Behaviour) -> None:
    place.put("data.bin", LARGE)
    behaviour.cut = [1000, 0]
    with traffic.measured() as meter, place.store.open(place.path("data.bin")) as source:
        assert source.read_at(0, len(LARGE)) == LARGE
    assert meter.total.requests == len(behaviour.seen) == 4
    behaviour.cut = [10] * 50
    with pytest.raises(UnreadableError, match=f"the connection was lost, after {ATTEMPTS} attempts"):
        place.store.open(place.path("data.bin"))


@pytest.mark.parametrize("status", [401, 403])
def test_denied_access_says_so(place: HttpPlace, behaviour: Behaviour, status: int) -> None:
    behaviour.statuses = [status]
    with pytest.raises(UnreadableError, match=f"access denied .status {status}, request abc123") as caught:
        place.store.open(place.path("data.bin"))
    assert "signature" in str(caught.value.hint)


def test_a_signed_uri_and_a_password_are_sent_and_never_shown(place: HttpPlace, behaviour: Behaviour) -> None:
    place.put("data.bin", LARGE)
    uri = f"http://user:pass%21word@{place.host}/lake/data.bin?X-Signature=secret"
    with place.store.open(uri) as source:
        assert source.path == f"http://{place.host}/lake/data.bin?..."
    path, headers = behaviour.seen[0]
    assert path == "/lake/data.bin?X-Signature=secret"
    assert headers["authorization"] == "Basic dXNlcjpwYXNzIXdvcmQ="
    with pytest.raises(UnreadableError) as caught:
        place.store.open(uri.replace("data.bin", "nowhere.bin"))
    assert "secret" not in str(caught.value)
    assert "pass" not in str(caught.value)
    assert shown("https://host/a?b=c#d").partition("#")[0] == "https://host/a?..."


@pytest.mark.parametrize("name", ["", "lake/", "lake/*.parquet", "lake/[ab].parquet"])
def test_directories_and_patterns_are_refused_with_a_hint(place: HttpPlace, behaviour: Behaviour, name: str) -> None:
    uri = f"http://{place.host}/{name}"
    assert place.store.is_dataset(uri)
    with pytest.raises(UnsupportedError, match="a web server's files can't be listed") as caught:
        list(place.store.list(uri))
    assert "--files-from" in str(caught.value.hint)
    assert not behaviour.seen


def test_a_question_mark_begins_the_query_and_is_no_pattern(place: HttpPlace) -> None:
    uri = place.path("data.bin?version=2")
    assert not place.store.is_dataset(uri)
    (found,) = place.store.list(uri)
    assert (found.path, found.relative) == (uri, "data.bin")


@pytest.mark.slow
def test_a_refused_connection_and_missing_tls_are_reported(place: HttpPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableError, match="the connection was refused") as caught:
        place.store.open("http://127.0.0.1:1/data.bin")
    assert caught.value.hint
    with pytest.raises(UnreadableError, match="TLS can't be used with the server"):
        place.store.open(f"https://{place.host}/lake/data.bin")
    with pytest.raises(UnreadableError, match="the server's name can't be resolved"):
        place.store.open("http://no-such-host.invalid/data.bin")


def test_proxies_are_taken_from_the_usual_variables(place: HttpPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes a request for any host, as a proxy does."""
    place.behaviour.files["/data.bin"] = (LARGE, 1e9)
    monkeypatch.setenv("http_proxy", f"http://user:word@{place.host}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with place.store.open("http://files.invalid/data.bin") as source:
        assert source.read_at(0, 10) == LARGE[:10]
    asked, headers = place.behaviour.seen[0]
    assert asked == "http://files.invalid/data.bin"
    assert headers["proxy-authorization"] == "Basic dXNlcjp3b3Jk"
    monkeypatch.setenv("no_proxy", "files.invalid")
    with pytest.raises(UnreadableError, match="can't be resolved"):
        place.store.open("http://files.invalid/data.bin")


def test_commands_read_a_file_of_a_server(place: HttpPlace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.table({"id": pa.array(range(5000), pa.int64())}), rows=1000)
    bloomcli.add(path, ["id"], in_place=True)
    place.put("a.parquet", path.read_bytes())
    there, here = bloomcli.inspect(place.path("a.parquet")), bloomcli.inspect(path)
    assert there.filters == here.filters
    assert bloomcli.validate(place.path("a.parquet"), deep=True).findings == ()
    for change in (partial(bloomcli.add, columns=["id"], replace=True), bloomcli.remove, bloomcli.fold):
        for dry_run in (False, True):
            with pytest.raises(UsageError, match="URIs can be read, but not changed") as caught:
                change(place.path("a.parquet"), in_place=True, dry_run=dry_run)
            assert caught.value.hint == "-o writes a changed copy"
    for source, target in ((place.path("a.parquet"), tmp_path / "there"), (path, tmp_path / "here")):
        bloomcli.remove(source, output=target)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    os.umask(umask := os.umask(0))
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o666 & ~umask, "as of any new file: the store has no mode"


def test_connections_are_used_again(place: HttpPlace) -> None:
    place.put("data.bin", LARGE)
    client = HttpClient()
    at = client.locate(place.path("data.bin"))
    for _ in range(3):
        client.get(at, {"Range": "bytes=0-9"}, 10)
    (manager,) = client._managers.values()
    assert manager.connection_from_url(at.uri).num_connections == 1  # type: ignore[attr-defined]


def test_a_password_and_a_signature_are_in_no_report_of_a_file_that_is_there(
    place: HttpPlace, tmp_path: Path, bloom: Bloom
) -> None:
    """`tests/cli/test_secrets_in_uris.py` has the URIs that can't be read."""
    path = write(tmp_path / "a.parquet", pa.table({"id": pa.array(range(5000), pa.int64())}), rows=1000)
    place.put("a.parquet", path.read_bytes())
    uri, out = f"http://user:hunter2@{place.host}/lake/a.parquet?X-Signature=c2VjcmV0", tmp_path / "out"
    (tmp_path / "list").write_text(f"{uri}\n")
    listed = ["--files-from", tmp_path / "list", "-f", "json", "--jobs"]
    for command in (
        ["inspect", uri],
        ["inspect", *listed, "2"],
        ["probe", *listed, "1", "-c", "id", "-v", "42"],
        ["validate", *listed, "1", "--report", f"sarif={tmp_path / 'x.sarif'}"],
        ["add", *listed, "1", "-c", "id", "-o", out],
    ):
        done = bloom(*command)
        assert done.code == 0, done.err
        for secret in ("hunter2", "c2VjcmV0"):
            assert secret not in done.out + done.err, command
    assert b"c2VjcmV0" not in (tmp_path / "x.sarif").read_bytes()


def test_a_server_that_compresses_is_refused_by_name(place: HttpPlace, behaviour: Behaviour) -> None:
    behaviour.headers = {"Content-Encoding": "gzip"}
    for size in (1000, len(LARGE)):
        place.put("data.bin", LARGE[:size])
        with pytest.raises(UnsupportedError, match="the server sends compressed answers"):
            place.store.open(place.path("data.bin"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Range": "bytes 0-9/10"},
        {"Content-Range": "bytes 0-0/99999999999999999999999"},
        {"Content-Range": "bytes */5"},
        {"Content-Range": "octets 1-2/3"},
        {"Content-Range": ""},
        {"Content-Length": "x"},
        {"Content-Length": "-5"},
        {"Content-Length": "3"},
        {"Last-Modified": "when?"},
    ],
    ids=str,
)
def test_a_server_that_lies_in_its_headers_is_an_error_or_does_no_harm(
    place: HttpPlace, behaviour: Behaviour, headers: dict[str, str]
) -> None:
    place.put("data.bin", LARGE)
    behaviour.headers = headers
    try:
        with place.store.open(place.path("data.bin")) as source:
            assert source.read_at(5, 100) == LARGE[5:105]
    except (UnreadableError, UnsupportedError) as error:
        assert error.hint
        assert "\n" not in error.message


def test_a_password_does_not_follow_a_redirect_to_another_host(
    place: HttpPlace, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Behaviour()
    elsewhere = HttpPlace(monkeypatch, other)
    elsewhere.put("data.bin", LARGE)
    behaviour.redirects["/lake/data.bin"] = elsewhere.path("data.bin")
    with place.store.open(f"http://user:word@{place.host}/lake/data.bin") as source:
        assert source.read_at(0, 10) == LARGE[:10]
    assert all("authorization" in headers for _, headers in behaviour.seen)
    assert other.seen
    assert not any("authorization" in headers for _, headers in other.seen)


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://host/x", "/lake/old.bin"])
def test_a_redirect_that_leads_nowhere_is_an_error(place: HttpPlace, behaviour: Behaviour, to: str) -> None:
    behaviour.redirects["/lake/old.bin"] = to
    with pytest.raises(UnreadableError) as caught:
        place.store.open(place.path("old.bin"))
    assert caught.value.hint
