"""The store for Google Cloud Storage, on fake-gcs-server behind a proxy that checks preconditions."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import need
from support.gcs_place import GcsPlace
from support.servers import clients, running
from support.servers.dialects import Gcs
from support.servers.faults import Action, Fault
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy
from support.stores import append
from support.tables import write

import bloomcli
from bloomcli.errors import SourceChanged, UnreadableError, UsageError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.gcs import writing
from bloomcli.storage.gcs.api import Answer
from bloomcli.storage.gcs.uploads import combined, decoded, encoded
from bloomcli.storage.objects.source import TAIL_BYTES

pytestmark = pytest.mark.servers

MIB = 1 << 20


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    need(running.installed("fake-gcs-server"), "fake-gcs-server: python tests/support/servers/install.py")
    port = running.fake_gcs().port
    with Proxy(port, Gcs(), guard=Preconditions(port)) as found:
        yield found


@pytest.fixture
def place(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> GcsPlace:
    """A bucket that the store sees by the proxy, and the test without it."""
    made = GcsPlace(proxy.url, monkeypatch)
    made.bucket = clients.gcs(running.fake_gcs().url).bucket(made.bucket.name)
    proxy.forget()
    return made


def test_the_crc_of_two_contents_is_made_of_their_own() -> None:
    of = random.Random(3)
    for length in (0, 1, 2, 7, 255, 65_537, 3 * MIB):
        first, second = of.randbytes(of.randrange(500)), of.randbytes(length)
        both = combined(google_crc32c.value(first), google_crc32c.value(second), length)
        assert both == google_crc32c.value(first + second)
        assert decoded(encoded(both)) == both


def test_an_appended_tail_is_composed_and_the_body_stays_in_the_store(place: GcsPlace, proxy: Proxy) -> None:
    data = random.Random(4).randbytes(3 * MIB)
    place.put("data.bin", data)
    with traffic.measured() as meter:
        append(place, "data.bin", b"new end")
    assert place.get("data.bin") == data + b"new end"
    assert place.names() == {"data.bin"}
    assert meter.total.bytes_uploaded == 7
    assert meter.total.bytes_downloaded == TAIL_BYTES
    assert meter.total.bytes_copied_by_store == len(data)
    assert meter.total.requests == len(proxy.recorded) <= 6
    assert proxy.kinds()["objects.get"] == 2, "whether it can be replaced, and for what carries over"
    assert proxy.kinds()["objects.compose"] == 1


def test_a_change_within_the_object_streams_in_chunks(place: GcsPlace, proxy: Proxy) -> None:
    data = random.Random(5).randbytes(20 * MIB)
    place.put("data.bin", data)
    with traffic.measured() as meter:
        append(place, "data.bin", b"new end", cut=5)
    assert place.get("data.bin") == data[:-5] + b"new end"
    assert meter.total.bytes_uploaded == len(data) + 2
    assert proxy.kinds()["objects.insert (resumable)"] == 3
    assert max(request.sent for request in proxy.recorded) <= 8 * MIB


@pytest.mark.parametrize("tail", [b"new end", b""], ids=["appended", "whole"])
def test_an_object_is_copied_to_another_bucket_by_the_store(place: GcsPlace, proxy: Proxy, tail: bytes) -> None:
    other = clients.gcs(running.fake_gcs().url).create_bucket(place.bucket.name + "-b")
    data = random.Random(6).randbytes(MIB)
    place.put("data.bin", data)
    with traffic.measured() as meter:
        append(place, "data.bin", tail, target=f"gs://{other.name}/copy.bin")
    assert other.get_blob("copy.bin").download_as_bytes() == data + tail
    assert {blob.name for blob in other.list_blobs()} == {"copy.bin"}
    assert meter.total.bytes_uploaded == len(tail)
    assert place.names() == {"data.bin"}


@pytest.mark.parametrize(
    ("target", "cut"), [(None, 0), ("copy.bin", 5)], ids=["composed in place", "streamed to a copy"]
)
def test_headers_metadata_class_and_time_stay(place: GcsPlace, target: str | None, cut: int) -> None:
    blob = place.bucket.blob("lake/data.bin")
    blob.content_type, blob.content_language = "application/x-parquet", "de"
    blob.content_disposition, blob.cache_control = "inline", "no-cache"
    blob.metadata = {"owner": "lake"}
    blob.upload_from_string(bytes(5000), content_type="application/x-parquet")
    append(place, "data.bin", b"new end", cut=cut, target=target)
    new = place.bucket.get_blob(f"lake/{target or 'data.bin'}")
    assert new.content_type == "application/x-parquet"
    assert new.metadata == {"owner": "lake"}
    assert new.size == 5007 - cut


def test_a_new_object_keeps_the_properties_of_the_old_one() -> None:
    """fake-gcs-server keeps less than the service."""
    source = {
        "name": "a",
        "generation": "1",
        "crc32c": "AAAAAA==",
        "md5Hash": "x",
        "contentType": "t",
        "contentEncoding": "e",
        "contentLanguage": "l",
        "contentDisposition": "d",
        "cacheControl": "c",
        "customTime": "2026-01-01T00:00:00Z",
        "metadata": {"a": "b"},
        "storageClass": "NEARLINE",
        "kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/7",
    }
    taken = writing._kept_properties(source)
    assert source.keys() - taken.keys() == {"name", "generation", "crc32c", "md5Hash", "kmsKeyName"}
    assert writing._key(source) == {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}


HELD: list[tuple[dict[str, Any], str]] = [
    ({"temporaryHold": True}, "a temporary hold"),
    ({"eventBasedHold": True}, "an event-based hold"),
    ({"retentionExpirationTime": "2999-01-01T00:00:00.000Z"}, "it has to be retained until 2999"),
    (
        {"retention": {"mode": "Locked", "retainUntilTime": "2999-01-01T00:00:00Z"}},
        "it has to be retained until 2999",
    ),
    ({"customerEncryption": {"keySha256": "x"}}, "a key of the customer's"),
]


def test_holds_retention_and_foreign_keys_are_refused_by_name(
    place: GcsPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fake-gcs-server has none of them: the answer of the service is as its reference has it."""
    place.put("data.bin", bytes(5000))
    client: Any = place.store.client  # type: ignore[attr-defined]
    known = client.resource
    for resource, words in HELD:
        monkeypatch.setattr(client, "resource", lambda at, more=resource: known(at) | more)
        with pytest.raises(UsageError, match=words) as caught:
            append(place, "data.bin", b"new end")
        assert caught.value.hint == "-o writes a copy"
        assert place.names() == {"data.bin"}
    ended = {"retentionExpirationTime": "2001-01-01T00:00:00.000Z"}
    monkeypatch.setattr(client, "resource", lambda at: known(at) | ended)
    append(place, "data.bin", b"new end")
    assert place.get("data.bin") == bytes(5000) + b"new end"


def test_an_incomplete_description_is_requested_again(place: GcsPlace, proxy: Proxy) -> None:
    place.put("data.bin", bytes(5000))
    fault = Fault(Action.SHORTEN, "objects.get")
    with proxy.injecting(fault):
        append(place, "data.bin", b"new end")
    assert fault.fired == 1
    assert place.get("data.bin") == bytes(5000) + b"new end"


@pytest.mark.parametrize(("action", "at"), [(Action.LOSE, 3), (Action.REFUSE, 2), (Action.ERROR_503, 1)])
def test_a_chunk_that_fails_once_begins_the_upload_anew(
    place: GcsPlace, proxy: Proxy, action: Action, at: int
) -> None:
    data = random.Random(8).randbytes(20 * MIB)
    place.put("data.bin", data)
    fault = Fault(action, "objects.insert (resumable)", at=at)
    with proxy.injecting(fault):
        append(place, "data.bin", b"new end", cut=5)
    assert fault.fired == 1
    assert place.get("data.bin") == data[:-5] + b"new end"


COMMITS = {
    "composed": ("objects.compose", 0, 5000, 1),
    "streamed": ("objects.insert (multipart)", 5, 5000, 1),
    "streamed in chunks": ("objects.insert (resumable)", 5, 20 * MIB, 3),
}
"""The request by which an object becomes the new one, what is cut off, the size, and the number of that request."""


@pytest.mark.parametrize("way", COMMITS)
def test_another_writer_before_the_commit_wins(place: GcsPlace, proxy: Proxy, way: str) -> None:
    kind, cut, size, at = COMMITS[way]
    place.put("data.bin", bytes(size))
    change = Fault(Action.PASS, kind, at=at, call=lambda: place.put("data.bin", b"theirs"))
    with proxy.injecting(change), pytest.raises(SourceChanged):
        append(place, "data.bin", b"new end", cut=cut)
    assert change.fired == 1
    assert place.get("data.bin") == b"theirs"
    assert place.names() == {"data.bin"}


def test_an_object_with_other_bytes_than_were_written_names_the_way_back(
    place: GcsPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put("data.bin", bytes(5000))
    generation = place.bucket.get_blob("lake/data.bin").generation
    monkeypatch.setattr(writing, "combined", lambda *_: 12345)
    with pytest.raises(WriteError, match="isn't what was written") as caught:
        append(place, "data.bin", b"new end")
    assert f"#{generation}" in str(caught.value.hint)


def test_a_sweep_removes_what_ended_processes_and_old_runs_left_and_nothing_else(
    place: GcsPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put("data.bin", bytes(10))
    running_here = writing.temporary_key("lake/data.bin")
    place.bucket.blob(running_here).upload_from_string(b"x")
    ended = running_here.replace(f"-{os.getpid()}-", "-999999999-")
    place.bucket.blob(ended).upload_from_string(b"x")
    machine = writing._machine_hash()
    elsewhere = running_here.replace(f"-{machine}-", "-00000000-")
    place.bucket.blob(elsewhere).upload_from_string(b"x")
    place.bucket.blob("lake/.data.bin.bloom-other.tmp").upload_from_string(b"not ours")
    swept = place.store.sweep_for([place.path("data.bin")])
    assert [uri.rpartition("/")[2] for uri in swept.removed] == [ended.rpartition("/")[2]]
    assert {uri.rpartition("/")[2] for uri in swept.remaining} == {
        name.rpartition("/")[2] for name in (running_here, elsewhere)
    }
    monkeypatch.setattr(writing, "OLD_SECONDS", -1)
    assert len(place.store.sweep_for([place.path("data.bin")]).removed) == 2
    assert place.names() == {"data.bin", ".data.bin.bloom-other.tmp"}
    assert [item.relative for item in place.store.list(place.path())] == ["data.bin"]


def test_both_schemes_are_one_spelling(place: GcsPlace) -> None:
    place.put("data.bin", b"content")
    other = place.path("data.bin").replace("gs://", "gcs://")
    spell = place.store.spelling()
    assert spell(other) == spell(place.path("data.bin"))
    with place.store.open(other) as source:
        assert source.read_at(0, 7) == b"content"


def test_errors_are_one_line_with_a_hint(place: GcsPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableError) as caught:
        list(place.store.list("gs://no-such-bucket-here/"))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    monkeypatch.setattr("bloomcli.storage.gcs.api.RETRY_SECONDS", 1)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    with pytest.raises(UnreadableError, match="the connection was refused, tried for 1 seconds") as refused:
        place.store.open(place.path("data.bin"))
    assert refused.value.hint


def test_a_refused_permission_is_named_with_the_request(place: GcsPlace, proxy: Proxy) -> None:
    from google.api_core.exceptions import Forbidden

    from bloomcli.storage.gcs.api import answer_error
    from bloomcli.storage.objects.client import AccessDenied

    class _Response:
        headers = MappingProxyType({"x-guploader-uploadid": "ABC123"})

    text = "user@example.org does not have storage.objects.get access to the Google Cloud Storage object. secret"
    at = place.store.client.locate(place.path("x"))  # type: ignore[attr-defined]
    error = answer_error(at, Forbidden(text, response=_Response()), writing=False)
    assert isinstance(error, AccessDenied)
    assert "access denied: storage.objects.get is needed (status 403, request ABC123)" in str(error)
    assert "example.org" not in str(error)


def test_bad_credentials_are_a_usage_error(place: GcsPlace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    with pytest.raises(UsageError, match="the credentials for Google Cloud Storage can't be used") as caught:
        place.store.open(place.path("data.bin"))
    assert "GOOGLE_APPLICATION_CREDENTIALS" in str(caught.value.hint)


def test_commands_change_a_file_in_a_bucket_and_give_it_back(place: GcsPlace, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(5000), pa.int64()), "name": [f"n{n}" for n in range(5000)]})
    old = write(tmp_path / "a.parquet", table, rows=1000).read_bytes()
    place.put("a.parquet", old)
    report = bloomcli.add(place.path("a.parquet"), ["id"], in_place=True)
    new = place.get("a.parquet")
    assert new is not None
    assert new.startswith(old), "the old file stays whole"
    assert report.bytes_unreclaimed > 8
    assert pq.read_table(pa.BufferReader(new)).equals(table)
    assert bloomcli.validate(place.path("a.parquet"), deep=True).findings == ()
    bloomcli.add(place.path("a.parquet"), ["name"], output=place.path("b.parquet"))
    assert bloomcli.validate(place.path("b.parquet"), deep=True).findings == ()
    for name in ("a.parquet", "b.parquet"):
        bloomcli.remove(place.path(name), in_place=True)
        assert place.get(name) == old
    assert place.names() == {"a.parquet", "b.parquet"}


def test_a_temporary_object_that_cannot_be_removed_is_reported(place: GcsPlace, proxy: Proxy, tmp_path: Path) -> None:
    old = write(tmp_path / "a.parquet", pa.table({"id": pa.array(range(5000), pa.int64())}), rows=1000).read_bytes()
    place.put("a.parquet", old)
    with proxy.injecting(Fault(Action.FORBIDDEN, "objects.delete", times=None)):
        report = bloomcli.add(place.path("a.parquet"), ["id"], in_place=True)
        (left,) = place.names() - {"a.parquet"}
        remark = next(text for text in report.remarks if left in text)
        assert "`gcloud storage rm 'gs://" in remark
        place.put("a.parquet", old)
        refused = Fault(Action.FORBIDDEN, "objects.compose", times=None)
        both = refused, Fault(Action.FORBIDDEN, "objects.delete", times=None)
        with proxy.injecting(*both), pytest.raises(WriteError) as caught:
            bloomcli.add(place.path("a.parquet"), ["id"], in_place=True)
        assert ".a.parquet.bloom-" in str(caught.value.hint)


def test_a_directory_that_may_not_be_listed_is_not_swept(place: GcsPlace, proxy: Proxy) -> None:
    place.put("a.parquet", bytes(5000))
    with proxy.injecting(Fault(Action.FORBIDDEN, "objects.list", times=None)):
        swept = place.store.sweep_for([place.path("a.parquet")])
    assert (list(swept.removed), list(swept.remaining)) == ([], [])


def test_an_answer_of_another_range_or_generation_is_no_content(place: GcsPlace, proxy: Proxy) -> None:
    data = random.Random(9).randbytes(MIB)
    place.put("data.bin", data)
    client: Any = place.store.client  # type: ignore[attr-defined]
    send = client.api.send
    for headers, error in (
        ({"Content-Range": f"bytes 1-100/{MIB}"}, UnreadableError),
        ({"x-goog-generation": "12345"}, SourceChanged),
    ):
        with place.store.open(place.path("data.bin")) as source:

            def lying(at: Any, request: Any, lies: Any = headers, **more: Any) -> Any:
                answer = send(at, request, **more)
                return answer._replace(headers={**answer.headers, **lies})

            client.api.send = lying
            with pytest.raises(error):
                source.read_at(0, 100)
            client.api.send = send


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"size": "x", "generation": "1"}', b'{"items": [{"name": 3}]}'])
def test_an_answer_of_another_server_is_an_error(
    place: GcsPlace, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    client: Any = place.store.client  # type: ignore[attr-defined]
    monkeypatch.setattr(client.api, "send", lambda *_, **__: Answer(200, {}, content))
    for work in (place.store.fingerprint, place.store.open, lambda path: list(place.store.list(f"{path}/*"))):
        try:
            work(place.path("data.bin"))
        except UnreadableError as error:
            assert error.hint


def test_an_object_of_an_impossible_time_is_not_replaced(place: GcsPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation is a number of microseconds, and a time has nanoseconds."""
    client: Any = place.store.client  # type: ignore[attr-defined]
    content = b'{"name": "data.bin", "size": "1", "generation": "9223372036854775807"}'
    monkeypatch.setattr(client.api, "send", lambda *_, **__: Answer(200, {}, content))
    with pytest.raises(UnreadableError, match="isn't one of") as caught:
        place.store.check_output(place.path("data.bin"), overwrite=True)
    assert caught.value.hint
