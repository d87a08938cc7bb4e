"""boto3's client for S3, with the settings that it gets, and the meter that counts its requests.

boto3 reads its settings from the environment, profiles and instance roles. Without credentials, requests
are anonymous.
"""

from __future__ import annotations

from typing import Any, Final

from bloomcli.errors import UnsupportedError
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage import traffic

ATTEMPTS: Final = 8
"""How often a request is made at most, with growing pauses, unless AWS_MAX_ATTEMPTS or the profile says otherwise."""
_CONNECTIONS: Final = 48
"""Connections that are kept: for parts that are copied and uploaded, and for reads."""
_UPLOADS: Final = frozenset({"PutObject", "UploadPart"})
"""The requests whose bodies are objects' content."""


class Settings(NamedTuple):
    """What clients are made of. The session keeps the description of S3's requests that it has read: the first client
    takes 100 ms to make, and each further one, as in a forked process, 5 ms."""

    session: Any
    config: Any


def settings() -> Settings:
    """The settings of this moment's environment.

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
        # Uploads have a Content-MD5 of their own, which stores knew long before these checksums.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "user_agent_extra": "bloomcli",
    }
    if session.get_credentials() is None:
        options["signature_version"] = UNSIGNED
    return Settings(session, Config(**options))


def client_of(found: Settings) -> Any:
    """Make a client of boto3, with connections of its own. Raises BotoCoreError, ValueError for broken settings."""
    client: Any = found.session.client("s3", config=found.config)
    client.meta.events.register("before-send.s3", _count)
    return client


def _count(request: Any, event_name: str, **_: Any) -> None:
    """Count a request, each attempt of it, at the meter of the work that it belongs to."""
    uploaded = int(request.headers.get("Content-Length") or 0) if event_name.rpartition(".")[2] in _UPLOADS else 0
    traffic.current().count(uploaded=uploaded)
