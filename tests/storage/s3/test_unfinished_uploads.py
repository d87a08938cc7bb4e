"""A run reports unfinished uploads and the commands that end them, and ends its own uploads."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest
from support.s3_place import S3Place, seen_through_a_proxy
from support.servers import running
from support.servers.faults import Action, Fault

import bloomcli
from bloomcli.errors import WriteError
from bloomcli.storage import registry, traffic
from bloomcli.storage.base import KeptRange, Pieces
from bloomcli.storage.s3 import upload as uploads
from bloomcli.storage.s3.client import S3Client

pytestmark = pytest.mark.servers

BODY = bytes(6 << 20)


def begun(lake: S3Place, name: str, *, parts: bool = True) -> str:
    """Begin an upload by another program."""
    where = {"Bucket": lake.bucket, "Key": f"lake/{name}"}
    upload: str = lake.client.create_multipart_upload(**where)["UploadId"]
    if parts:
        lake.client.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"theirs")
    return upload


def test_a_run_reports_the_uploads_to_its_keys_and_no_others(lake: S3Place) -> None:
    ours = {name: begun(lake, name) for name in ("a", "year=2024/b", "it's")}
    begun(lake, "z")
    swept = registry.sweep_for([lake.path(name) for name in ("a", "year=2024/b", "it's", "year=2024/c")])
    assert not swept.removed
    assert len(swept.remaining) == len(swept.remarks) == 3
    assert len(lake.unfinished()) == 4, "none is ended"
    for upload in ours.values():
        assert sum(upload in remark for remark in swept.remarks) == 1
    for remark in swept.remarks:
        assert f"--endpoint-url {running.minio().url}" in remark
        lake.end_upload(remark)
    assert len(lake.unfinished()) == 1
    assert not any(registry.sweep_for([lake.path("a")]))


def test_many_uploads_are_reported_in_few_lines(lake: S3Place) -> None:
    for _ in range(13):
        begun(lake, "a", parts=False)
    swept = lake.store.sweep_for([lake.path("a")])
    assert len(swept.remaining) == 13
    assert len(swept.remarks) == 11
    assert swept.remarks[-1] == "3 more unfinished uploads"


def test_a_change_reports_unfinished_uploads_and_is_made(lake: S3Place, fixtures: Any) -> None:
    lake.put("orders.parquet", (fixtures / "parquet/orders.parquet").read_bytes())
    upload = begun(lake, "orders.parquet")
    report = bloomcli.add(lake.path("orders.parquet"), ["id"], in_place=True)
    assert any(upload in remark for remark in report.remarks)
    assert bloomcli.validate(lake.path("orders.parquet"), deep=True).ok
    assert [name.split()[1] for name in lake.unfinished()] == [upload]


def test_a_store_that_does_not_list_uploads_has_nothing_to_report(
    lake: S3Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Fault(Action.ERROR_500, times=None)
    with seen_through_a_proxy(lake, monkeypatch, 1) as (proxy, store), proxy.injecting(failing):
        assert not any(store.sweep_for([lake.path("a")]))


@pytest.mark.parametrize("times", [1, None])
def test_an_upload_whose_beginning_was_not_answered_is_reported_and_none_is_ended(
    lake: S3Place, monkeypatch: pytest.MonkeyPatch, times: int | None
) -> None:
    lake.put("data.bin", BODY)
    earlier = begun(lake, "data.bin", parts=False)
    time.sleep(3.1)  # dates in answers have whole seconds
    at_once: list[str] = []
    with seen_through_a_proxy(lake, monkeypatch, 2) as (proxy, store):
        fault = Fault(
            Action.LOSE, "CreateMultipartUpload", times=times, call=lambda: at_once.append(begun(lake, "data.bin"))
        )

        def pieces() -> Pieces:
            yield KeptRange(0, len(BODY))
            yield b"!"

        with store.open(lake.path("data.bin")) as source, proxy.injecting(fault), traffic.measured() as meter:
            if times is None:
                with pytest.raises(WriteError, match="the store may have begun an upload nevertheless") as caught:
                    store.replace(source.path, pieces(), source=source, overwrite=True)
                message = str(caught.value.hint)
            else:
                store.replace(source.path, pieces(), source=source, overwrite=True)
                message = "; ".join(meter.remarks)
    assert lake.get("data.bin") == BODY + (b"!" if times else b"")
    left = {name.split()[1] for name in lake.unfinished()}
    lost = left - {earlier, *at_once}
    assert len(lost) == (2 if times is None else 1)
    assert {earlier, *at_once} <= left, "none is ended"
    for upload in {*lost, *at_once}:
        assert f"--upload-id {upload} --endpoint-url {proxy.url}" in message
    assert earlier not in message


def test_an_upload_that_cannot_be_ended_is_named_by_the_error(lake: S3Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.put("data.bin", BODY)
    with seen_through_a_proxy(lake, monkeypatch, 1) as (proxy, store):

        def pieces() -> Pieces:
            yield KeptRange(0, len(BODY))
            raise WriteError("the disk is full")

        store.client.put_most = 0
        with (
            store.open(lake.path("data.bin")) as source,
            proxy.injecting(Fault(Action.ERROR_500, "AbortMultipartUpload", times=None)),
            pytest.raises(WriteError, match="the disk is full; an unfinished upload is left") as caught,
        ):
            store.replace(source.path, pieces(), source=source, overwrite=True)
    (left,) = lake.unfinished()
    assert left.split()[1] in str(caught.value.hint)


def test_the_moments_of_a_request_are_by_the_clock_of_the_store() -> None:
    when = uploads.time_range("Sun, 22 Nov 2026 07:00:10 GMT", 3.5)
    assert when.last == dt.datetime(2026, 11, 22, 7, 0, 11, tzinfo=dt.UTC)
    assert when.first == dt.datetime(2026, 11, 22, 7, 0, 5, 500_000, tzinfo=dt.UTC)


@pytest.mark.parametrize("date", ["", "today", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_date_that_is_none_or_ends_the_calendar_is_replaced_by_the_clock_of_this_machine(date: str) -> None:
    now = dt.datetime.now(dt.UTC)
    when = uploads.time_range(date, 0)
    assert when.first - dt.timedelta(minutes=1) < now < when.last + dt.timedelta(minutes=1)


def test_a_command_for_an_endpoint_of_amazon_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    client = S3Client()
    command = uploads.command_for(client, client.locate("s3://lake/a b"), "ID")
    assert command == "`aws s3api abort-multipart-upload --bucket lake --key 'a b' --upload-id ID`"
