"""Unusual keys, permissions and settings, at a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.s3_place import S3Place

import bloomcli
from bloomcli.errors import BloomError, UnreadableError

pytestmark = pytest.mark.servers

_NOT_MINIO = ("d//x", "/x", "up/../x")
"""Keys that MinIO refuses, and S3 takes."""


@pytest.fixture
def data(fixtures: Path) -> bytes:
    return (fixtures / "parquet/orders.parquet").read_bytes()


def test_slashes_and_dots_in_a_key_mean_nothing(careless: S3Place, data: bytes) -> None:
    for key in _NOT_MINIO:
        careless.put(f"{key}.parquet", data)
        bloomcli.add(careless.path(f"{key}.parquet"), ["id"], in_place=True, force=True)
        assert careless.get(f"{key}.parquet") != data
    assert careless.names() == {f"{key}.parquet" for key in _NOT_MINIO}


def test_an_object_is_written_where_nothing_may_be_listed(
    lake: S3Place, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:GetObjectTagging"]
    whole = {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": allowed}
    policy = {"Version": "2012-10-17", "Statement": [whole | {"Resource": [f"arn:aws:s3:::{lake.bucket}/*"]}]}
    lake.client.put_bucket_policy(Bucket=lake.bucket, Policy=json.dumps(policy))
    (tmp_path / "orders.parquet").write_bytes(data)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    lake.put("there.parquet", data)
    bloomcli.add(tmp_path / "orders.parquet", ["id"], output=lake.path("there.parquet"), overwrite=True)
    assert bloomcli.validate(lake.path("there.parquet"), deep=True).ok
    with pytest.raises(UnreadableError, match="s3:ListBucket"):
        bloomcli.inspect(lake.path() + "/")


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_MAX_ATTEMPTS", "many"), ("AWS_MAX_ATTEMPTS", "0"), ("AWS_RETRY_MODE", "silly")]
)
def test_a_setting_that_cannot_be_used_is_an_error_that_names_the_variables(
    lake: S3Place, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BloomError, match="the configuration can't be used") as caught:
        bloomcli.inspect(lake.path("x.parquet"))
    assert name in str(caught.value.hint)
