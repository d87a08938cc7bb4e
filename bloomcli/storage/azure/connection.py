"""Gets the account, endpoint and credentials from a URI and from the environment variables of Azure's own tools.

    AZURE_STORAGE_CONNECTION_STRING   endpoint and credentials in one
    AZURE_STORAGE_ACCOUNT             the account of az:// URIs
    AZURE_STORAGE_SERVICE_ENDPOINT    its endpoint if that isn't https://ACCOUNT.blob.core.windows.net
    AZURE_STORAGE_KEY                 the account's key
    AZURE_STORAGE_SAS_TOKEN           a shared access signature
    AZURE_STORAGE_ANON                true: no credentials

Without any of these, azure-identity searches for credentials (environment, workload identity, managed identity, the
login of `az`). If it finds none, requests are sent without credentials, which public containers accept. The transport
counts the SDK's requests, including retries.
"""

from __future__ import annotations

import logging
import os
import time
import urllib.parse
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import requests
from azure.core.pipeline.transport import RequestsTransport

from bloomcli.errors import UsageError
from bloomcli.model.paths import shown
from bloomcli.storage import traffic
from bloomcli.storage.objects.bounded import BoundedAdapter
from bloomcli.storage.objects.client import Location, content_length


class _Adapter(BoundedAdapter, requests.adapters.HTTPAdapter):
    """Connections on which answers have bounds. Answers aren't decompressed."""

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request. Its Content-Encoding is that of the blob, whose stored bytes are needed."""
        response = super().send(*arguments, **options)
        response.raw.headers.pop("Content-Encoding", None)
        return response


class CountingTransport(RequestsTransport):  # type: ignore[misc]  # the SDK loads the class by an untyped function
    """The SDK's transport. Counts each request, and the bytes of blobs in requests and answers."""

    def _init_session(self, session: Any) -> None:
        super()._init_session(session)
        session.get_redirect_target = lambda _: None  # the SDK follows redirects; `requests` would read their bodies
        session.headers["Accept-Encoding"] = "identity"
        for scheme in list(session.adapters):
            session.mount(scheme, _Adapter(max_retries=False))

    def send(self, request: Any, **options: Any) -> Any:
        """Send a request, and retry it after a pause if the answer is 429, which the SDK doesn't retry."""
        for attempt in range(ATTEMPTS):
            response = self._send(request, **options)
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS or attempt == ATTEMPTS - 1:
                break
            response.internal_response.close()
            time.sleep(2**attempt)
        return response

    def _send(self, request: Any, **options: Any) -> Any:
        meter = traffic.current()
        operation = urllib.parse.parse_qs(urllib.parse.urlsplit(request.url).query).get("comp", [""])[0]
        has_content = request.method == "PUT" and operation in {"", "block"}
        meter.count(uploaded=content_length(request.headers) if has_content else 0)
        response = super().send(request, **options)
        if request.method == "GET" and not operation and response.status_code in {200, 206}:
            meter.count(requests=0, downloaded=content_length(response.headers))
        return response


SCHEMES: Final = ("az", "abfs", "abfss")
ATTEMPTS: Final = 5
"""Maximum number of attempts of a request."""
_CONNECTS: Final = 3
"""Maximum number of attempts to connect: further ones don't make a name resolve."""
READ_BYTES: Final = 64 << 20
"""Maximum size of a range in one request; the SDK splits larger ones."""
VARIABLES: Final = (
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_ACCOUNT",
    "AZURE_STORAGE_SERVICE_ENDPOINT",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_ANON",
)
_TRUE: Final = frozenset({"1", "true", "yes"})


class Container(NamedTuple):
    """A container, from a URI."""

    account: str
    """The account; empty for the account in the environment variables."""
    host: str
    """The host of the account's blobs; empty if the URI names none."""
    name: str


def container(at: Location) -> Container:
    """The container of a location. Raises UsageError."""
    scheme, _, authority = at.root.partition("://")
    name, at_sign, host = authority.partition("@")
    if scheme == "az":
        if not name or at_sign or ":" in name:
            raise UsageError("the URI names no container", path=at.uri, hint="az://CONTAINER/NAME")
        return Container("", "", name)
    if not name or not host or ":" in name:
        raise UsageError(
            "the URI names no container and account",
            path=at.uri,
            hint="abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME",
        )
    return Container(host.partition(".")[0], host.replace(".dfs.", ".blob.", 1), name)


def service(where: Container, at: Location) -> Any:
    """The SDK's client of the account. Raises UsageError."""
    from azure.core.exceptions import AzureError
    from azure.storage.blob import BlobServiceClient

    # The SDK logs a warning for each incomplete answer and retries. Without a handler, warnings go to stderr.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    options: dict[str, Any] = {
        "transport": CountingTransport(),
        "retry_total": ATTEMPTS - 1,
        "retry_connect": _CONNECTS - 1,
        "retry_read": ATTEMPTS - 1,
        "retry_status": ATTEMPTS - 1,
        "initial_backoff": 1,
        "increment_base": 2,
        "max_single_get_size": READ_BYTES,
        "max_chunk_get_size": READ_BYTES,
    }
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    try:
        if text and (not where.account or _part_of(text, "accountname") in {None, where.account}):
            return BlobServiceClient.from_connection_string(text, **options)
        url = _endpoint(where, at)
        return BlobServiceClient(url, credential=_credential(where), **options)
    except (ValueError, AzureError):
        # the SDK's message may contain parts of the credentials
        raise UsageError(
            "the credentials for Azure can't be used",
            path=at.uri,
            hint="check AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN",
        ) from None


def endpoint_of(at: Location) -> str:
    """The URL of a location's account, for messages; empty if it isn't known."""
    where, text = container(at), os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    try:
        if text and (not where.account or _part_of(text, "accountname") in {None, where.account}):
            suffix = _part_of(text, "endpointsuffix") or "core.windows.net"
            return shown(_part_of(text, "blobendpoint") or f"https://{_part_of(text, 'accountname')}.blob.{suffix}")
        return shown(_endpoint(where, at))
    except UsageError:
        return ""


def _part_of(connection: str, name: str) -> str | None:
    """A part of a connection string, by its name in lower case."""
    pairs = (part.partition("=") for part in connection.split(";"))
    return next((value for key, _, value in pairs if key.strip().lower() == name), None)


def _endpoint(where: Container, at: Location) -> str:
    account = os.environ.get("AZURE_STORAGE_ACCOUNT", "")
    if where.host and account != where.account:
        return f"https://{where.host}"
    if endpoint := os.environ.get("AZURE_STORAGE_SERVICE_ENDPOINT"):
        return endpoint
    if where.host:
        return f"https://{where.host}"
    if not account:
        raise UsageError(
            "the storage account isn't known",
            path=at.uri,
            hint="set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING, "
            "or name it: abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME",
        )
    return f"https://{account}.blob.core.windows.net"


def _credential(where: Container) -> Any:
    """The credentials from the environment variables, else from azure-identity; None if there are none."""
    account = os.environ.get("AZURE_STORAGE_ACCOUNT", "")
    if os.environ.get("AZURE_STORAGE_ANON", "").lower() in _TRUE:
        return None
    if not where.account or where.account == account or not account:
        if key := os.environ.get("AZURE_STORAGE_KEY"):
            return {"account_name": where.account or account, "account_key": key}
        if token := os.environ.get("AZURE_STORAGE_SAS_TOKEN"):
            return token.lstrip("?")
    from azure.core.exceptions import ClientAuthenticationError
    from azure.identity import DefaultAzureCredential

    credential = DefaultAzureCredential()
    try:
        credential.get_token("https://storage.azure.com/.default")
    except ClientAuthenticationError:
        return None
    return credential
