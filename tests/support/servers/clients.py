"""The vendors' SDKs, with which tests write and read objects on the servers without `bloom`."""

from __future__ import annotations

import functools
import os
import warnings
from typing import Any

from support.servers.running import Server


def s3(server: Server, url: str | None = None) -> Any:
    """boto3's client for a server or a proxy in front of it. One per process, because it takes 100 ms to create."""
    return _s3(server, url or server.url, os.getpid())


@functools.lru_cache(maxsize=8)
def _s3(server: Server, url: str, process: int) -> Any:
    import boto3
    import botocore.config

    config = botocore.config.Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=server.user,
        aws_secret_access_key=server.secret,
        region_name="us-east-1",
        config=config,
    )


def s3_environment(server: Server, url: str) -> dict[str, str]:
    """The variables by which the vendor's tools find a server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": server.user,
        "AWS_SECRET_ACCESS_KEY": server.secret,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }


def azure(server: Server, url: str | None = None) -> Any:
    """The blob service's client for a server, or for a proxy in front of it."""
    from azure.storage.blob import BlobServiceClient

    return BlobServiceClient(f"{url or server.url}/{server.user}", credential=server.secret, retry_total=0)


def azure_environment(server: Server, url: str) -> dict[str, str]:
    """The variables by which the vendor's tools find a server."""
    parts = {
        "DefaultEndpointsProtocol": "http",
        "AccountName": server.user,
        "AccountKey": server.secret,
        "BlobEndpoint": f"{url}/{server.user}",
    }
    return {"AZURE_STORAGE_CONNECTION_STRING": "".join(f"{key}={value};" for key, value in parts.items())}


def gcs(url: str) -> Any:
    """The storage client for a server, or for a proxy in front of it."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return storage.Client("project", AnonymousCredentials(), client_options={"api_endpoint": url})


def gcs_environment(url: str) -> dict[str, str]:
    """The variables by which the vendor's tools find a server."""
    return {"STORAGE_EMULATOR_HOST": url, "GOOGLE_CLOUD_PROJECT": "project"}
