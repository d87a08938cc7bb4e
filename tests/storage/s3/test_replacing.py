"""Replacing objects in S3: properties that they keep, bytes that aren't transferred, refusals, and lost answers."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import random
from collections.abc import Iterable
from typing import Any

import pytest
from support.processes import wait_until
from support.s3_place import S3Place, seen_through_a_proxy
from support.servers import running
from support.servers.faults import Action, Fault

from bloomcli.errors import SourceChanged, UsageError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.base import KeptRange, Piece, Pieces, PlacedBytes, Store
from bloomcli.storage.registry import LOCAL, store_of
from bloomcli.storage.s3 import writing
from bloomcli.storage.s3.client import S3Client
from bloomcli.storage.s3.upload import PartSizes

pytestmark = pytest.mark.servers

MIB = 1 << 20
LARGE = random.Random(3).randbytes(MIB) * 14
PROPERTIES: dict[str, Any] = {
    "ContentType": "application/vnd.apache.parquet",
    "ContentEncoding": "identity",
    "ContentLanguage": "de",
    "ContentDisposition": "attachment; filename=a.parquet",
    "CacheControl": "max-age=60",
    "Expires": dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    "Metadata": {"owner": "lake", "run": "17"},
    "StorageClass": "REDUCED_REDUNDANCY",
}


WAYS = pytest.mark.parametrize(
    ("old", "target"), [(b"small", None), (LARGE, "other/new.bin")], ids=["put in place", "in parts elsewhere"]
)
"""Ways of writing."""


def change(
    place: S3Place, *pieces: Piece, store: Store | None = None, target: str | None = None, **options: Any
) -> int:
    """Replace an object, or write `target` from it."""
    path = target or place.path("data.bin")
    store = store or store_of(path)
    with store.open(place.path("data.bin")) as source:
        return store.replace(path, (p for p in pieces), source=source, **({"overwrite": True} | options))


def tail_of(old: bytes) -> Iterable[Piece]:
    """The pieces of an object that gets 30 bytes behind its own."""
    return PlacedBytes(len(old), b"filter" * 4), KeptRange(0, len(old)), b"footer"


@WAYS
def test_headers_metadata_tags_class_and_encryption_carry_over(lake: S3Place, old: bytes, target: str | None) -> None:
    where = {"Bucket": lake.bucket, "Key": "lake/data.bin"}
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": running.KMS_KEY}
    lake.client.put_object(**where, Body=old, Tagging="a=1&b=x%20y%2Fz", **PROPERTIES, **encryption)
    change(lake, *tail_of(old), target=target and lake.path(target))
    name = target or "data.bin"
    assert lake.get(name) == old + b"filter" * 4 + b"footer"
    where["Key"] = f"lake/{name}"
    head = lake.client.head_object(**where)
    assert {key: head[key] for key in PROPERTIES} == PROPERTIES
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", f"arn:aws:kms:{running.KMS_KEY}")
    tags = lake.client.get_object_tagging(**where)["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"a": "1", "b": "x y/z"}


@WAYS
def test_of_several_kms_keys_the_objects_own_is_kept(careless: S3Place, old: bytes, target: str | None) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/5f2c7a44"
    encryption: dict[str, Any] = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    if old is not LARGE:  # moto doesn't keep it for multipart uploads
        encryption["BucketKeyEnabled"] = True
    careless.client.put_object(Bucket=careless.bucket, Key="lake/data.bin", Body=old, **encryption)
    change(careless, *tail_of(old), target=target and careless.path(target), force=True)
    name = target or "data.bin"
    assert careless.get(name) == old + b"filter" * 4 + b"footer"
    head = careless.client.head_object(Bucket=careless.bucket, Key=f"lake/{name}")
    assert {key: head[key] for key in encryption} == encryption


def test_the_body_stays_in_the_store(lake: S3Place) -> None:
    lake.put("data.bin", LARGE)
    with traffic.measured() as meter:
        change(lake, *tail_of(LARGE))
    total = meter.total
    assert total.bytes_copied_by_store == len(LARGE)
    assert total.bytes_uploaded == 30
    assert total.bytes_downloaded <= 2 * (256 << 10)
    assert total.requests <= 2 + 8, "of which one copies a part"


def test_a_file_of_this_machine_becomes_an_object(lake: S3Place, tmp_path: Any) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(LARGE)
    with LOCAL.open(str(path)) as source:
        lake.store.replace(lake.path("new.bin"), (p for p in tail_of(LARGE)), source=source, overwrite=False)
    assert lake.get("new.bin") == LARGE + b"filter" * 4 + b"footer"


def test_an_s3a_uri_is_the_same_object(lake: S3Place) -> None:
    lake.put("data.bin", b"old")
    with lake.store.open(lake.path("data.bin").replace("s3:", "s3a:")) as source:
        assert source.path.startswith("s3a:")
        pieces = (p for p in (KeptRange(0, 3), b"!"))
        lake.store.replace(lake.path("data.bin"), pieces, source=source, overwrite=True)
    assert lake.get("data.bin") == b"old!"
    with pytest.raises(UsageError, match="the output is the input"):
        lake.store.destination(lake.path("data.bin").replace("s3:", "s3n:"), lake.path("data.bin"))


LOCKS = {
    "a legal hold": {"ObjectLockLegalHoldStatus": "ON"},
    "is locked": {
        "ObjectLockMode": "GOVERNANCE",
        "ObjectLockRetainUntilDate": dt.datetime.now(dt.UTC) + dt.timedelta(days=2),
    },
}


@pytest.mark.parametrize("message", LOCKS)
def test_a_locked_object_is_replaced_only_by_force(lake: S3Place, message: str) -> None:
    lake.bucket += "-locked"
    lake.client.create_bucket(Bucket=lake.bucket, ObjectLockEnabledForBucket=True)
    lake.client.put_object(
        Bucket=lake.bucket, Key="lake/data.bin", Body=b"old", ContentMD5=_md5(b"old"), **LOCKS[message]
    )
    for check in (
        lambda: change(lake, KeptRange(0, 3), b"!"),
        lambda: lake.store.check_output(lake.path("data.bin"), overwrite=True),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            check()
        assert "--force" in str(caught.value.hint)
    assert lake.get("data.bin") == b"old"
    change(lake, KeptRange(0, 3), b"!", force=True)
    assert lake.get("data.bin") == b"old!"


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


@pytest.fixture
def ignoring(lake: S3Place, monkeypatch: pytest.MonkeyPatch) -> S3Place:
    """MinIO as if it ignored preconditions: it doesn't get those of our requests that write."""
    monkeypatch.setattr(writing, "_results", {})
    monkeypatch.setenv("AWS_CLIENT_OF_ITS_OWN", lake.bucket)
    client: Any = lake.store.client  # type: ignore[attr-defined]
    events = client.sdk(client.locate(lake.path())).meta.events

    def strip(request: Any, **_: object) -> None:
        for name in ("If-Match", "If-None-Match"):
            del request.headers[name]

    for operation in ("PutObject", "CompleteMultipartUpload"):
        events.register(f"before-sign.s3.{operation}", strip)
    return lake


def check_refused(place: S3Place, old: bytes) -> None:
    """Raise AssertionError unless changes are refused, but for those that are forced."""
    place.put("data.bin", old)
    before = place.names()
    for _ in range(2):
        with pytest.raises(UsageError, match="ignores preconditions") as caught:
            change(place, *tail_of(old))
        assert "--force" in str(caught.value.hint)
    assert place.get("data.bin") == old
    assert place.names() == before, "no upload, and no object of bloom's own"
    change(place, *tail_of(old), force=True)
    assert place.get("data.bin") == old + b"filter" * 4 + b"footer"


@pytest.mark.parametrize("old", [b"small", LARGE], ids=["put", "in parts"])
def test_an_endpoint_that_ignores_preconditions_is_refused_unless_forced(ignoring: S3Place, old: bytes) -> None:
    check_refused(ignoring, old)


def test_an_endpoint_that_ignores_them_and_misses_parts_first_is_found_out_too(careless: S3Place) -> None:
    check_refused(careless, LARGE)


def test_a_forced_change_still_looks_whether_the_object_changed(ignoring: S3Place) -> None:
    ignoring.put("data.bin", b"old")

    def pieces() -> Pieces:
        yield KeptRange(0, 3)
        ignoring.put("data.bin", b"theirs")
        yield b"!"

    with ignoring.store.open(ignoring.path("data.bin")) as source, pytest.raises(SourceChanged):
        ignoring.store.replace(source.path, pieces(), source=source, overwrite=True, force=True)
    assert ignoring.get("data.bin") == b"theirs"


def test_an_endpoint_is_asked_once(lake: S3Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_results", {})
    lake.put("data.bin", LARGE)
    with seen_through_a_proxy(lake, monkeypatch) as (proxy, store):
        for done in range(3):
            change(lake, KeptRange(0, len(LARGE) + done), b"!", store=store)
        assert proxy.kinds()["CompleteMultipartUpload"] == 4
    assert lake.get("data.bin") == LARGE + b"!!!"


def test_uploads_do_not_wait_for_copies(lake: S3Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "sizes_for", lambda _, copies: PartSizes(5 * MIB, 5 * MIB, 5 * MIB, copies))
    lake.put("data.bin", LARGE)
    waited: list[bool] = []
    with seen_through_a_proxy(lake, monkeypatch) as (proxy, store):

        def upload_is_there() -> None:
            waited.append(wait_until(lambda: bool(proxy.of_kind("UploadPart")), 200))

        with proxy.injecting(Fault(Action.PASS, "UploadPartCopy", times=None, call=upload_is_there)):
            change(lake, KeptRange(0, len(LARGE)), b"!", store=store)
    assert waited == [True] * (len(LARGE) // (5 * MIB))
    assert lake.get("data.bin") == LARGE + b"!"


@pytest.mark.parametrize(("old", "times"), [(b"small", None), (LARGE, 1)], ids=["put", "in parts"])
def test_a_lost_answer_is_settled_by_the_object(
    lake: S3Place, monkeypatch: pytest.MonkeyPatch, old: bytes, times: int | None
) -> None:
    lake.put("data.bin", old)
    kind = "PutObject" if old == b"small" else "CompleteMultipartUpload"
    lost = Fault(Action.LOSE, kind, at=2, times=times)
    with seen_through_a_proxy(lake, monkeypatch) as (proxy, store), proxy.injecting(lost):
        change(lake, KeptRange(0, len(old)), b"!", store=store)
    assert lake.get("data.bin") == old + b"!"
    assert not lake.unfinished()


def test_a_completion_that_fails_leaves_the_object_and_no_upload(
    lake: S3Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("data.bin", LARGE)
    with seen_through_a_proxy(lake, monkeypatch) as (proxy, store):
        fault = Fault(Action.FAILED_200, "CompleteMultipartUpload", at=2, times=None)
        with proxy.injecting(fault), pytest.raises(WriteError, match="the object is as it was"):
            change(lake, KeptRange(0, len(LARGE)), b"!", store=store)
    assert lake.get("data.bin") == LARGE
    assert not lake.unfinished()


def test_an_object_that_is_not_what_was_written_is_an_error_that_names_the_version_to_go_back_to(
    lake: S3Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("data.bin", LARGE)
    version = lake.client.head_object(Bucket=lake.bucket, Key="lake/data.bin")["VersionId"]
    real = S3Client.read_tail

    def read_tail(self: S3Client, at: Any, length: int) -> Any:
        data, info = real(self, at, length)
        return data[:-1] + b"?", info

    def pieces() -> Pieces:
        yield KeptRange(0, len(LARGE))
        yield b"!"
        monkeypatch.setattr(S3Client, "read_tail", read_tail)

    with (
        lake.store.open(lake.path("data.bin")) as source,
        pytest.raises(WriteError, match="isn't the one that was written") as caught,
    ):
        lake.store.replace(source.path, pieces(), source=source, overwrite=True)
    assert f"versionId={version}" in str(caught.value.hint)
    lake.client.copy_object(
        Bucket=lake.bucket, Key="lake/data.bin", CopySource=f"{lake.bucket}/lake/data.bin?versionId={version}"
    )
    assert lake.get("data.bin") == LARGE
