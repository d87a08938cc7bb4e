"""Sends requests to the JSON API, counts and retries them, and converts error answers to bloomcli's errors.

Only permissions are repeated from the service's messages.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import urllib.parse
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import google.auth
import requests
import urllib3
from google.api_core import exceptions
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY

from bloomcli.errors import UsageError
from bloomcli.storage import traffic
from bloomcli.storage.objects.bounded import (
    DOCUMENT_MAX_BYTES,
    ERROR_MAX_BYTES,
    AnswerTooLong,
    BoundedAdapter,
    answers_to_writes,
    content_of,
)
from bloomcli.storage.objects.client import Conflict, Location, ObjectNotFound, content_length
from bloomcli.storage.objects.network import Answers, connection_failure, size_in, storage_error
from bloomcli.words import counted

_PERMISSION: Final = re.compile(r"\bstorage\.[a-zA-Z]+\.[a-zA-Z]+\b")
_LOGIN: Final = "gcloud auth application-default login, or check GOOGLE_APPLICATION_CREDENTIALS"
_LATER: Final = "try again later, or with fewer --jobs"


def answer_error(at: Location, error: GoogleAPICallError, *, writing: bool, tried: str = "") -> Exception:
    """The error for an answer: ObjectNotFound, Conflict, or an error of bloomcli with the request's id."""
    status, text = int(error.code or 0), error.message or ""
    reason = next((str(detail.get("reason")) for detail in error.errors if isinstance(detail, dict)), "")
    if status == 404 and "bucket" in text.lower() and "object" not in text.lower():
        why, hint = "there is no such bucket", "check the bucket's name"
    elif status in {404, 410}:
        return ObjectNotFound()
    elif status in {412, 304}:
        return Conflict()
    elif status == 401:
        why, hint = "access denied: there are no credentials, or the token has expired", _LOGIN
    elif "retention" in text.lower() or "hold" in reason.lower() or "retention" in reason.lower():
        why, hint = "the object can't be replaced: it has a hold or a retention period", "-o writes a copy"
    elif status == 403:
        permission = _PERMISSION.search(text)
        by_default = "storage.objects.create and .delete" if writing else "storage.objects.get"
        why = f"access denied: {permission.group() if permission else by_default} is needed"
        hint = "ask the bucket's owner for a role that has it; see docs/stores.md"
    elif status == 429:
        why, hint = f"the store asks for fewer requests{tried}", _LATER
    elif status >= 500:
        why, hint = f"the store failed{tried}", "try again later"
    elif reason.startswith("customerEncryption") or "customer-supplied encryption" in text.lower():
        why, hint = "the object is encrypted with a key of the customer's", "bloom has no keys"
    else:
        why = f"the store refuses ({reason})" if reason else "the store refuses"
        hint = "see the service's documentation of this answer"
    answer: Any = error.response
    request = None if answer is None else answer.headers.get("x-guploader-uploadid")
    details = f"status {status}" + (f", request {request}" if request else "")
    return storage_error(at, f"{why} ({details})", hint, writing=writing, denied=status in {401, 403})


STORE: Final = "Google Cloud Storage"

RETRY_SECONDS: Final = 30
"""Maximum time for which a request is retried, with pauses that double."""
_TIMEOUT: Final = (20, 60)
"""Timeouts in seconds: of a connection, of an answer."""
_POOL: Final = 32
"""Size of the connection pool."""
_VARIABLES: Final = ("STORAGE_EMULATOR_HOST", "API_ENDPOINT_OVERRIDE", "GOOGLE_APPLICATION_CREDENTIALS")
_STEP_BYTES: Final = 64 << 10
"""Bytes that are decompressed at a time."""
_REDIRECT: Final = 300
_NO_ERRORS: Final = frozenset({308, 416})
"""Statuses that callers handle: 308 for an incomplete upload, 416 for an invalid range."""


class Answer(NamedTuple):
    """The store's answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Request(NamedTuple):
    """A request."""

    method: str
    url: str
    params: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    uploaded: int = 0
    """Number of bytes of an object's content in the body."""
    max_bytes: int = 0
    """Maximum number of bytes of an object's content in the answer. One more is read, to detect a longer content."""


class Interrupted(Exception):
    """A request failed and may be sent again. `error` is the failure."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Adapter(BoundedAdapter, requests.adapters.HTTPAdapter):
    """Connections on which answers have bounds."""


class _Session(AuthorizedSession):
    """A session that follows no redirects: the API has none. `requests` would read the body of each."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None: no answer is a redirect."""
        del resp


class Api:
    """The JSON API. Thread-safe; a forked process creates its own connections."""

    def __init__(self) -> None:
        self.answers = Answers(STORE, lambda _: self.endpoint)
        self._lock = threading.Lock()
        self._connection_key: tuple[object, ...] = ()
        self._connection: tuple[requests.Session, str] | None = None

    @property
    def endpoint(self) -> str:
        """The URL of the store."""
        return self._session()[1]

    def url(self, bucket: str, name: str | None = None, *, upload: bool = False) -> str:
        """The URL of an object, or of a bucket's objects if `name` is None."""
        where = f"{self._session()[1]}{'/upload' if upload else ''}/storage/v1/b/{_quoted(bucket)}/o"
        return where if name is None else f"{where}/{_quoted(name)}"

    def send(self, at: Location, request: Request, *, writing: bool = False, retries: bool = True) -> Answer:
        """Send a request. Raises ObjectNotFound, Conflict, UnreadableError; WriteError if `writing`; without
        `retries`, Interrupted if another attempt may succeed."""
        retry = DEFAULT_RETRY.with_timeout(RETRY_SECONDS if retries else 0)
        try:
            with answers_to_writes() if writing else nullcontext():
                return cast("Answer", retry(self.once)(request))
        except exceptions.RetryError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            if not retries:
                raise Interrupted(self._error(at, cause, writing)) from None
            raise self._error(at, cause, writing, f", tried for {RETRY_SECONDS} seconds") from None
        except (exceptions.GoogleAPICallError, GoogleAuthError, requests.RequestException, OSError) as error:
            raise self._error(at, error, writing) from None

    def send_for_object(self, at: Location, request: Request, *, writing: bool = False) -> dict[str, Any]:
        """Send a request, and return the object's description in the answer. Raises as `send`."""
        answer = self.send(at, request, writing=writing)
        with self.answers.checked(at, writing=writing):
            return object_in(answer)

    def once(self, request: Request) -> Answer:
        """Send a request once. Raises GoogleAPICallError for an error answer, and errors of the connection."""
        meter = traffic.current()
        meter.count(uploaded=request.uploaded)
        media = request.params.get("alt") == "media"
        try:
            with (
                content_of(request.max_bytes) if media else nullcontext(),
                self._session()[0].request(
                    request.method,
                    request.url,
                    params=dict(request.params),
                    headers={"Accept-Encoding": "gzip"} | dict(request.headers),
                    data=request.body,
                    stream=True,
                    timeout=_TIMEOUT,
                ) as answer,
            ):
                if not answer.status_code < _REDIRECT and answer.status_code not in _NO_ERRORS:
                    raise _refusal(answer)
                if not media:
                    reply = Answer(answer.status_code, answer.headers, _document(answer, DOCUMENT_MAX_BYTES))
                    _check_whole(reply)
                    return reply
                # the content is read as it is stored, possibly compressed
                content = answer.raw.read(request.max_bytes + 1, decode_content=False)
                meter.count(requests=0, downloaded=len(content))
                if len(content) < min(content_length(answer.headers), request.max_bytes):
                    raise ConnectionError("the answer is incomplete")
                return Answer(answer.status_code, answer.headers, content)
        except urllib3.exceptions.HTTPError as error:  # while the body was read
            raise ConnectionError("the connection was lost") from error

    def _session(self) -> tuple[requests.Session, str]:
        with self._lock:
            now = os.getpid(), *map(os.environ.get, _VARIABLES)
            if self._connection is None or self._connection_key != now:
                self._connection_key, self._connection = now, _connect()
            return self._connection

    def _error(self, at: Location, error: Exception, writing: bool, tried: str = "") -> Exception:
        if isinstance(error, exceptions.GoogleAPICallError):
            return answer_error(at, error, writing=writing, tried=tried)
        if isinstance(error, GoogleAuthError) and not isinstance(next(iter(error.args), None), OSError):
            return storage_error(
                at, "access denied: the token has expired or can't be obtained", _LOGIN, writing=writing
            )
        why, hint = connection_failure(error, self.endpoint)
        return storage_error(at, why + tried, hint, writing=writing)


def document_in(answer: Answer) -> dict[str, Any]:
    """The JSON object that is the content of an answer. Raises ValueError, TypeError, RecursionError."""
    document = json.loads(answer.content)
    if not isinstance(document, dict):
        raise TypeError("the document isn't a JSON object")
    return document


def object_in(answer: Answer) -> dict[str, Any]:
    """The API's description of an object. Raises ValueError, TypeError, LookupError, RecursionError."""
    resource = document_in(answer)
    for name in ("size", "generation"):
        resource[name] = str(size_in(resource[name]))
    if "name" not in resource or not all(
        isinstance(resource.get(n, ""), str) for n in ("name", "crc32c", "kmsKeyName")
    ):
        raise TypeError("a field of the object's description isn't a text")
    return resource


def _check_whole(answer: Answer) -> None:
    """Raise ConnectionError, which is retried, if a JSON document is incomplete."""
    if answer.headers.get("Content-Type", "").startswith("application/json"):
        try:
            json.loads(answer.content or b"{}")
        except (ValueError, RecursionError):
            raise ConnectionError("the answer is incomplete") from None


def _document(answer: requests.Response, most: int) -> bytes:
    """The body of an answer that isn't an object's content, decompressed. Raises AnswerTooLong."""
    parts, size = [], 0
    while part := answer.raw.read(_STEP_BYTES, decode_content=True):
        parts.append(part)
        size += len(part)
        if size > most:
            raise AnswerTooLong(f"the answer has more than {counted(most, 'byte')}")
    return b"".join(parts)


def _refusal(answer: requests.Response) -> exceptions.GoogleAPICallError:
    """The SDK's exception for a redirect or an error, whatever its body is."""
    try:
        content = _document(answer, ERROR_MAX_BYTES)
        description = document_in(Answer(answer.status_code, answer.headers, content)).get("error")
    except (urllib3.exceptions.HTTPError, OSError, ValueError, TypeError, RecursionError):
        description = None
    description = description if isinstance(description, dict) else {}
    errors = description.get("errors")
    error: exceptions.GoogleAPICallError = exceptions.from_http_status(  # type: ignore[no-untyped-call]
        answer.status_code,
        str(description.get("message", "")),
        errors=errors if isinstance(errors, list) else (),
        response=answer,
    )
    return error


def _connect() -> tuple[requests.Session, str]:
    """A session with the credentials that the SDK finds, and the SDK's endpoint. Raises UsageError."""
    logging.getLogger("google").addHandler(logging.NullHandler())  # else its warnings go to stderr
    credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
    try:
        if not os.environ.get("STORAGE_EMULATOR_HOST"):
            credentials, _ = google.auth.default(scopes=storage.Client.SCOPE)
    except DefaultCredentialsError:
        if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            raise UsageError(
                "the credentials for Google Cloud Storage can't be used",
                hint="GOOGLE_APPLICATION_CREDENTIALS has to name a file of credentials",
            ) from None
        # public buckets need no credentials
    # after an answer 401, credentials are refreshed; there is nothing to refresh without credentials
    statuses = () if isinstance(credentials, AnonymousCredentials) else (HTTPStatus.UNAUTHORIZED,)
    session = _Session(credentials, refresh_status_codes=statuses)  # type: ignore[no-untyped-call]
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter(pool_connections=4, pool_maxsize=_POOL))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing project, which isn't needed
        client = storage.Client(project="none", credentials=credentials)
    endpoint = client.api_endpoint.rstrip("/")
    client.close()
    return session, endpoint


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
