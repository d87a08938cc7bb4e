"""Creates boto3's client for S3 with bloomcli's settings, and counts its requests.

boto3 reads the user's settings from the environment, profiles and instance roles. Without credentials, requests are
anonymous.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bloomcli.errors import UnsupportedError
from bloomcli.storage import traffic

ATTEMPTS: Final = 8
"""Maximum number of attempts of a request, with growing pauses, unless AWS_MAX_ATTEMPTS or the profile sets it."""
_CONNECTIONS: Final = 48
"""Size of the connection pool: enough for copied parts, uploaded parts and reads."""
_UPLOADS: Final = frozenset({"PutObject", "UploadPart"})
"""Requests whose body is content of an object."""


class Settings(NamedTuple):
    """A boto3 session and configuration, from which clients are created.

    The session caches the description of S3's requests: creating the first client takes 100 ms, and each further one,
    such as in a forked process, 5 ms.
    """

    session: Any
    config: Any


def settings() -> Settings:
    """The settings from the current environment.

    Raises:
        UnsupportedError: boto3 isn't installed.
        botocore.exceptions.BotoCoreError, ValueError: the configuration can't be used.
    """
    try:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
    except ImportError:
        raise UnsupportedError("reading from S3 needs boto3", hint="pip install 'bloomcli[s3]'") from None

    session: Any = boto3.session.Session()
    of_user = session._session.get_config_variable
    retries: dict[str, Any] = {"mode": "standard" if of_user("retry_mode") == "legacy" else of_user("retry_mode")}
    if of_user("max_attempts") is None:
        retries["total_max_attempts"] = ATTEMPTS
    options: dict[str, Any] = {
        "retries": retries,
        "max_pool_connections": _CONNECTIONS,
        # Uploads have a Content-MD5, which more stores support than these checksums.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "user_agent_extra": "bloomcli",
    }
    if session.get_credentials() is None:
        options["signature_version"] = UNSIGNED
    return Settings(session, Config(**options))


def client_of(found: Settings) -> Any:
    """Create a boto3 client with its own connections. Raises BotoCoreError, ValueError for invalid settings."""
    from botocore.handlers import add_expect_header

    from bloomcli.storage.objects.bounded import bounded_pools

    client: Any = found.session.client("s3", config=found.config)
    pools = client._endpoint.http_session._pool_classes_by_scheme
    pools.update(bounded_pools(pools))
    # boto3 reads the answer to Expect: 100-continue by its own code, without an end.
    client.meta.events.unregister("before-call.s3", add_expect_header)
    client.meta.events.register("before-send.s3", _count)
    return client


def _count(request: Any, event_name: str, **_: Any) -> None:
    """Count each attempt of a request in the current meter."""
    uploaded = int(request.headers.get("Content-Length") or 0) if event_name.rpartition(".")[2] in _UPLOADS else 0
    traffic.current().count(uploaded=uploaded)
