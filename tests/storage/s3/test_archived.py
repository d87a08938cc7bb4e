"""Objects in archived storage classes, and those that are encrypted with a key of the customer's."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from support.s3_place import S3Place
from support.servers import running

import bloomcli
from bloomcli.errors import BloomError, UnreadableError, UsageError
from bloomcli.model.dataset import Status
from bloomcli.storage.objects.client import Location
from bloomcli.storage.s3.errors import restore_command

pytestmark = pytest.mark.servers


@pytest.fixture
def data(fixtures: Path) -> bytes:
    return (fixtures / "parquet/orders.parquet").read_bytes()


def archived(place: S3Place, data: bytes, storage_class: str, name: str = "it's a.parquet") -> str:
    """Put an object of a class; gives its URI."""
    where = {"Bucket": place.bucket, "Key": f"lake/{name}"}
    place.client.put_object(**where, Body=data, StorageClass=storage_class)
    return place.path(name)


def restore(place: S3Place, hint: str) -> None:
    """Make the request of the command that a hint names."""
    words = shlex.split(hint.partition("`")[2].partition("`")[0])
    assert words[:3] == ["aws", "s3api", "restore-object"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    place.client.restore_object(
        Bucket=options["--bucket"], Key=options["--key"], RestoreRequest=json.loads(options["--restore-request"])
    )


def test_an_archived_object_is_an_error_with_its_class_and_the_command_that_restores_it(
    careless: S3Place, data: bytes, tmp_path: Path
) -> None:
    storage_class = "DEEP_ARCHIVE"
    path = archived(careless, data, storage_class)
    orders = (
        lambda: bloomcli.inspect(path),
        lambda: bloomcli.probe(path, column="id", values=[1]),
        lambda: bloomcli.add(path, ["id"], in_place=True),
        lambda: bloomcli.add(path, ["id"], output=careless.path("new.parquet")),
        lambda: bloomcli.add(path, ["id"], output=tmp_path / "new.parquet"),
    )
    hint = ""
    for order in orders:
        with pytest.raises(BloomError, match=rf"archived \(storage class {storage_class}\)") as caught:
            order()
        assert caught.value.path == path
        hint = str(caught.value.hint)
    assert careless.names() == {"it's a.parquet"}
    assert not (tmp_path / "new.parquet").exists()
    restore(careless, hint)
    assert bloomcli.inspect(path).row_groups
    assert careless.get("it's a.parquet") == data


def test_a_restored_object_is_replaced_by_force_only(careless: S3Place, data: bytes) -> None:
    storage_class = "GLACIER"
    path = archived(careless, data, storage_class)
    with pytest.raises(UnreadableError) as caught:
        bloomcli.inspect(path)
    restore(careless, str(caught.value.hint))
    with pytest.raises(UsageError, match=f"storage class {storage_class}.*readable for some days") as refused:
        bloomcli.add(path, ["id"], in_place=True)
    assert "--force" in str(refused.value.hint)
    assert careless.get("it's a.parquet") == data
    bloomcli.add(path, ["id"], in_place=True, force=True)
    head = careless.client.head_object(Bucket=careless.bucket, Key="lake/it's a.parquet")
    assert head["StorageClass"] == storage_class
    assert head["ContentLength"] > len(data)


@pytest.mark.usefixtures("one_process")
def test_an_archived_object_among_others_is_a_row_and_the_others_are_read(careless: S3Place, data: bytes) -> None:
    archived(careless, data, "GLACIER", "a.parquet")
    archived(careless, data, "GLACIER_IR", "b.parquet")
    report: Any = bloomcli.inspect([careless.path("")])
    assert [row.status for row in report.rows] == [Status.FAILED, Status.DONE]
    assert "storage class GLACIER" in report.rows[0].error
    assert "restore-object" in report.rows[0].hint


def test_an_archive_tier_of_intelligent_tiering_is_left_for_good() -> None:
    assert "Days" not in restore_command(Location("s3://lake", "a"), "DEEP_ARCHIVE_ACCESS")
    assert "Days" in restore_command(Location("s3a://lake", "a"), "DEEP_ARCHIVE")


def test_an_object_encrypted_with_a_customers_key_is_refused(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    need(running.installed("minio"), "MinIO: python tests/support/servers/install.py minio")
    server = running.minio_with_tls()
    monkeypatch.setenv("AWS_CA_BUNDLE", str(server.folder / "certs/public.crt"))
    place = S3Place(server, monkeypatch)
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": b"k" * 32}
    where = {"Bucket": place.bucket, "Key": "lake/a.parquet"}
    place.client.put_object(**where, Body=data, **key)
    place.put("b.parquet", data)
    for order in (
        lambda: bloomcli.inspect(place.path("a.parquet")),
        lambda: bloomcli.add(place.path("a.parquet"), ["id"], in_place=True),
        lambda: bloomcli.add(place.path("b.parquet"), ["id"], output=place.path("a.parquet"), overwrite=True),
    ):
        with pytest.raises(BloomError, match="key of the customer's") as caught:
            order()
        assert caught.value.hint
    assert place.client.get_object(**where, **key)["Body"].read() == data
    assert place.names() == {"a.parquet", "b.parquet"}
