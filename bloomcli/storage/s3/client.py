"""The requests of all object stores, sent by boto3's client with bloomcli's settings.

boto3 reads the user's settings from the environment, profiles and instance roles. Without credentials, requests are
anonymous.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

import boto3
from botocore import UNSIGNED, xform_name
from botocore.config import Config
from botocore.handlers import add_expect_header

from bloomcli.errors import BloomError, UnreadableError, UsageError
from bloomcli.storage import traffic
from bloomcli.storage.objects.bounded import answers_to_writes, bounded_pools, content_of
from bloomcli.storage.objects.client import (
    Client,
    Conflict,
    Entry,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Page,
    Precondition,
    content_range,
)
from bloomcli.storage.objects.network import Answers, ListingProgress, nanoseconds_in, size_in
from bloomcli.storage.s3.errors import (
    BODY_ERRORS,
    FOREIGN_ERRORS,
    RAW_ERRORS,
    SDK_ERRORS,
    SETTING_ERRORS,
    converted_error,
    status_of,
)
from bloomcli.words import counted

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
    """The settings from the current environment. Raises BotoCoreError, ValueError if they can't be used."""
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


def client_of(own_settings: Settings) -> Any:
    """Create a boto3 client with its own connections. Raises BotoCoreError, ValueError for invalid settings."""
    client: Any = own_settings.session.client("s3", config=own_settings.config)
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


_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 5.0
_DIGEST_STEP_BYTES: Final = 4 << 20


_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "HeadObject": ("ContentLength", "ETag", "LastModified"),
    "GetObject": ("ContentLength", "ETag", "LastModified"),
    "ListObjectsV2": ("IsTruncated",),
    "PutObject": ("ETag",),
    "CreateMultipartUpload": ("UploadId",),
    "UploadPart": ("ETag",),
    "UploadPartCopy": ("CopyPartResult",),
    "CompleteMultipartUpload": ("ETag",),
}
"""The fields of answers that the code uses. An HTML page, which an endpoint that isn't a store may send, has none."""
_REQUIRED_OF_ITEMS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "ListObjectsV2": {"Contents": ("Key", "Size"), "CommonPrefixes": ("Prefix",)},
    "GetObjectTagging": {"TagSet": ("Key", "Value")},
    "UploadPartCopy": {"CopyPartResult": ("ETag",)},
    "ListMultipartUploads": {"Uploads": ("Key", "UploadId", "Initiated")},
}
"""The fields of the parts of answers."""

_EXPECTED: Final[dict[str, tuple[type[Exception], ...]]] = {
    **dict.fromkeys(("HeadObject", "ListObjectsV2", "GetObjectTagging", "DeleteObject"), (ObjectNotFound,)),
    **dict.fromkeys(("CreateMultipartUpload", "UploadPart"), ()),
}
"""Which of ObjectNotFound and Conflict a request can cause, where not both: it has no condition, or no object."""

T = TypeVar("T")


class S3Client(Client):
    """Requests to S3. The configuration is read before the first one."""

    def __init__(self) -> None:
        self._answers = Answers("S3", self.endpoint)
        self._lock = threading.Lock()
        self._clients: dict[object, Any] = {}
        self._settings: dict[object, Settings] = {}
        self.is_minio = False
        """The last answer came from MinIO."""

    def sdk(self, at: Location) -> Any:
        """boto3's client for this process and its AWS_* variables. Raises UnreadableError."""
        environment = frozenset(item for item in os.environ.items() if item[0].startswith("AWS_"))
        client = self._clients.get((os.getpid(), environment))
        if client is None:
            with self._lock:  # boto3's session isn't thread-safe when it creates a client
                client = self._clients.get((os.getpid(), environment)) or self._create_client(environment, at)
        return client

    def _create_client(self, environment: frozenset[tuple[str, str]], at: Location) -> Any:
        try:
            own_settings = self._settings.get(environment) or settings()
            client = client_of(own_settings)
        except SETTING_ERRORS as error:
            raise converted_error(error, "", at, writes=False) from None
        self._clients, self._settings = {(os.getpid(), environment): client}, {environment: own_settings}
        return client

    def locate(self, uri: str) -> Location:
        """Parse s3://, s3a:// and s3n:// URIs. Raises UsageError."""
        scheme, separator, rest = uri.partition("://")
        bucket, _, key = rest.partition("/")
        if "@" in bucket or (":" in bucket and not bucket.startswith("arn:")):
            raise UsageError(
                "the URI has credentials in it",
                path=f"{scheme}://***@{bucket.rpartition('@')[2]}/{key}" if ":" not in bucket else uri,
                hint="remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            )
        if scheme not in {"s3", "s3a", "s3n"} or not separator or not bucket:
            raise UsageError("the URI names no bucket", path=uri, hint="s3://BUCKET/KEY")
        return Location(f"{scheme}://{bucket}", key)

    def identity(self, at: Location) -> str:
        """The URI with the scheme s3."""
        return f"s3://{at.bucket}/{at.key}"

    def endpoint(self, at: Location) -> str:
        """The URL of the store."""
        return str(self.sdk(at).meta.endpoint_url)

    def head(self, at: Location) -> ObjectInfo | None:
        """An object's size, tag and properties; None if it doesn't exist."""
        try:
            answer = self.request("HeadObject", at)
        except ObjectNotFound:
            return None
        with self._converted_errors("HeadObject", at, writes=False):
            return info_of(answer)

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read the last bytes of an object, and its information. Raises ObjectNotFound."""

        def once() -> tuple[bytes, ObjectInfo]:
            try:
                answer = self.sdk(at).get_object(**object_parameters(at), Range=f"bytes=-{length}")
            except SDK_ERRORS as error:
                if status_of(error) != 416:
                    raise
                # an empty object has no ranges
                answer = self.sdk(at).get_object(**object_parameters(at))
            data = self._body(answer)
            info = info_of(_checked("GetObject", answer))
            if len(data) != min(length, info.size):
                raise _Foreign(f"it has {counted(len(data), 'byte')} of content instead of {min(length, info.size)}")
            return data, info

        return self._retry(at, length, once)

    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range of an object on the condition of its tag. Raises ObjectNotFound, Conflict."""

        def once() -> bytes:
            try:
                answer = self.sdk(at).get_object(
                    **object_parameters(at), Range=f"bytes={offset}-{offset + length - 1}", IfMatch=tag
                )
            except SDK_ERRORS as error:
                if status_of(error) == 416:
                    raise Conflict from None
                raise
            if answer.get("ETag") != tag:  # the endpoint ignores the condition
                answer["Body"].close()
                raise Conflict
            data = self._body(answer)
            range_ = content_range({"Content-Range": str(answer.get("ContentRange", ""))})
            if len(data) != length or (range_ and (range_.start, range_.end) != (offset, offset + length)):
                raise _Foreign("it has another range than the requested one")
            return data

        return self._retry(at, length, once)

    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> Iterator[Page]:
        """List the objects whose keys begin with a prefix, one page per request."""
        options: dict[str, Any] = {"Prefix": at.key}
        if delimiter:
            options["Delimiter"] = "/"
        if limit is not None:
            options["MaxKeys"] = limit
        progress = ListingProgress(at, self._answers)
        while True:
            try:
                answer = self.request("ListObjectsV2", at, whole=False, **options)
            except ObjectNotFound:
                raise UnreadableError("can't be listed: there is no such bucket", path=at.uri) from None
            with self._converted_errors("ListObjectsV2", at, writes=False):
                page = Page(
                    [Entry(i["Key"], size_in(i["Size"]), i.get("ETag", "")) for i in answer.get("Contents", ())],
                    [item["Prefix"] for item in answer.get("CommonPrefixes", ())],
                    last=not answer["IsTruncated"],
                )
            yield page
            if page.last:
                return
            options["ContinuationToken"] = progress.following(page, answer.get("NextContinuationToken"))

    def put(self, at: Location, data: bytes, precondition: Precondition | str, **properties: Any) -> ObjectInfo:
        """Write an object in one request, with properties as parameters of PutObject. Raises Conflict."""
        expected = (ObjectNotFound, Conflict) if isinstance(precondition, str) else Conflict
        with self._answers.expecting(expected, at, writing=True):
            answer = self.request(
                "PutObject",
                at,
                writes=True,
                Body=data,
                **precondition_parameters(precondition),
                **checksum_parameters(at, data),
                **properties,
            )
        return ObjectInfo(len(data), answer["ETag"], 0, answer)

    def request(
        self, operation: str, at: Location, *, writes: bool = False, whole: bool = True, **parameters: Any
    ) -> dict[str, Any]:
        """Send a request whose answer has no body.

        Args:
            operation: S3's name of the request, such as HeadObject.
            at: the object or the bucket.
            writes: the request is part of writing an object: errors are WriteErrors.
            whole: the request names the object; False if it names only the bucket.
            **parameters: further parameters of boto3's method.

        Raises:
            ObjectNotFound, Conflict: see `Client`.
            UnreadableError, WriteError: the request failed.
        """
        call = getattr(self.sdk(at), xform_name(operation))
        named = object_parameters(at) if whole else {"Bucket": at.bucket}
        with self._converted_errors(operation, at, writes=writes), answers_to_writes() if writes else nullcontext():
            answer = _checked(operation, call(**named, **parameters))
        self.is_minio = answer["ResponseMetadata"]["HTTPHeaders"].get("server", "").startswith("MinIO")
        return answer

    @contextmanager
    def _converted_errors(self, operation: str, at: Location, *, writes: bool) -> Iterator[None]:
        """Convert the errors of boto3, and those of its parsers for an answer that isn't one of S3."""
        try:
            yield
        except (BloomError, ObjectNotFound, Conflict):
            raise
        except SDK_ERRORS as error:
            expected = _EXPECTED.get(operation, (ObjectNotFound, Conflict))
            with self._answers.expecting(expected, at, writing=writes):
                raise converted_error(error, operation, at, writes=writes, endpoint=self.endpoint(at)) from None
        except _Foreign as error:
            raise self._answers.foreign(at, writing=writes, why=str(error)) from None
        except FOREIGN_ERRORS:
            raise self._answers.foreign(at, writing=writes) from None

    def _body(self, answer: dict[str, Any]) -> bytes:
        try:
            with closing(answer["Body"]) as body:
                data: bytes = body.read()
        except BODY_ERRORS as error:
            raise _BrokenBody(error) from None
        traffic.current().count(requests=0, downloaded=len(data))
        return data

    def _retry(self, at: Location, length: int, once: Callable[[], T]) -> T:
        """Read content; retry if the connection broke while a body was read. boto3 retries other errors.

        Args:
            at: the object.
            length: maximum size of the content.
            once: sends the requests.
        """
        for attempt in range(1, ATTEMPTS + 1):
            with self._converted_errors("GetObject", at, writes=False), content_of(length):
                try:
                    return once()
                except _BrokenBody as broken:
                    error = broken.error
                except RAW_ERRORS as broken:
                    if isinstance(broken, SDK_ERRORS):
                        raise
                    error = broken  # in the body of an error: boto3 doesn't convert it
            if attempt == ATTEMPTS:
                raise converted_error(error, "GetObject", at, writes=False, endpoint=self.endpoint(at)) from None
            time.sleep(min(_PAUSE_SECONDS * 2**attempt, _LONGEST_PAUSE_SECONDS))
        raise AssertionError


class _Foreign(Exception):
    """An answer isn't one of S3. The message says why."""


class _BrokenBody(Exception):
    """The connection broke while a body was read."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _checked(operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer. Raises _Foreign if it lacks the fields that the operation's answers always have."""
    head = answer["ResponseMetadata"]
    wanted = _REQUIRED.get(operation, ())
    if head["HTTPStatusCode"] >= HTTPStatus.MULTIPLE_CHOICES or not isinstance(head["HTTPHeaders"], dict):
        raise _Foreign(f"its status is {head['HTTPStatusCode']}")
    for name in wanted:
        if name not in answer:
            raise _Foreign(f"it has no {name}")
    for listed, names in _REQUIRED_OF_ITEMS.get(operation, {}).items():
        items = answer.get(listed, ())
        items = [items] if isinstance(items, dict) else items
        for item in items:
            for name in names:
                if name not in item:
                    raise _Foreign(f"an entry of its {listed} has no {name}")
    return answer


def object_parameters(at: Location) -> dict[str, str]:
    """The request parameters that name an object."""
    return {"Bucket": at.bucket, "Key": at.key}


def precondition_parameters(precondition: Precondition | str) -> dict[str, Any]:
    """The request parameters for a precondition."""
    if isinstance(precondition, str):
        return {"IfMatch": precondition}
    return {"IfNoneMatch": "*"} if precondition is Precondition.NO_OBJECT else {}


def checksum_parameters(at: Location, data: bytes | io.RawIOBase) -> dict[str, Any]:
    """The request parameters by which the store checks uploaded bytes."""
    if at.bucket.endswith("--x-s3"):
        return {"ChecksumAlgorithm": "CRC32"}  # directory buckets don't support Content-MD5
    digest = hashlib.md5(usedforsecurity=False)
    if isinstance(data, bytes):
        digest.update(data)
    else:
        while step := data.read(_DIGEST_STEP_BYTES):
            digest.update(step)
        data.seek(0)
    return {"ContentMD5": base64.b64encode(digest.digest()).decode()}


def info_of(answer: dict[str, Any]) -> ObjectInfo:
    """An object's information, from an answer to GetObject or HeadObject. Raises ValueError."""
    whole = str(answer.get("ContentRange", "")).rpartition("/")[2]
    size = size_in(whole if whole.isdigit() else answer["ContentLength"])
    details = {name: value for name, value in answer.items() if name not in {"Body", "ResponseMetadata"}}
    return ObjectInfo(size, answer["ETag"], nanoseconds_in(answer["LastModified"].timestamp()), details)
