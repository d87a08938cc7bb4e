"""Reports unfinished uploads to the keys to write. A killed run left them, or another program is writing.

S3 doesn't show which program began an upload, so bloom aborts none and reports the commands that do. It also reports
the uploads that began when the answer to CreateMultipartUpload was lost: boto3 retries the request, and the store may
have begun an upload for each attempt. Another program may have begun one at the same time.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bloomcli.errors import BloomError
from bloomcli.storage.base import SweepResult
from bloomcli.storage.objects.client import Conflict, Location, ObjectNotFound
from bloomcli.storage.s3.client import S3Client, bucket_of
from bloomcli.storage.s3.errors import is_missing_bucket

_MAX_PAGES: Final = 10
"""Maximum number of pages, of 1,000 uploads each, that are searched."""
_MAX_REMARKS: Final = 10
_PRECISION: Final = timedelta(seconds=1)
"""HTTP's dates have whole seconds."""


Locations = Callable[[], Iterable[Location]]
"""Returns the keys to write. It is called for each pass: there may be millions, so they aren't held in a list."""


def sweep(client: S3Client, locations: Locations) -> SweepResult:
    """Report unfinished uploads to the keys; none if the store can't list them."""
    found: list[tuple[Location, Any]] = []
    ranges: dict[str, tuple[str, str]] = {}
    for at in locations():
        first, last = ranges.get(at.root, (at.key, at.key))
        ranges[at.root] = min(first, at.key), max(last, at.key)
    for root, (first, last) in ranges.items():
        try:
            found += _bucket_uploads(client, root, first, last, locations)
        except (ObjectNotFound, Conflict, BloomError):
            continue
    return SweepResult(
        remaining=[f"{at.uri} (upload {item['UploadId']})" for at, item in found], remarks=_remarks(client, found)
    )


def _remarks(client: S3Client, found: Sequence[tuple[Location, Any]]) -> list[str]:
    remarks = [
        f"an unfinished upload to {at.uri} began at {item['Initiated']:%Y-%m-%d %H:%M:%S %Z}: if nothing writes "
        f"there any more, {command_for(client, at, item['UploadId'])} ends it"
        for at, item in found[:_MAX_REMARKS]
    ]
    if len(found) > len(remarks):
        remarks.append(f"{len(found) - len(remarks)} more unfinished uploads")
    return remarks


def command_for(client: S3Client, at: Location, upload: str) -> str:
    """The shell command that aborts an upload, in backquotes."""
    where = ["--bucket", bucket_of(at), "--key", at.key, "--upload-id", upload, *_endpoint(client, at)]
    return f"`{shlex.join(['aws', 's3api', 'abort-multipart-upload', *where])}`"


def _endpoint(client: S3Client, at: Location) -> list[str]:
    """The option for an endpoint other than Amazon's."""
    parts = urlsplit(str(client.sdk(at).meta.endpoint_url))
    if (parts.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return []
    return ["--endpoint-url", parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()]


class TimeRange(NamedTuple):
    """The interval in which an upload was begun, by the store's clock."""

    first: datetime
    last: datetime


def time_range(date: str, seconds: float) -> TimeRange:
    """The interval in which a request was sent.

    Args:
        date: the Date header of its answer; if it is empty or invalid, this machine's clock is used.
        seconds: the duration of all attempts.
    """
    try:
        last = parsedate_to_datetime(date).astimezone(UTC)
        return TimeRange(last - timedelta(seconds=seconds) - _PRECISION, last + _PRECISION)
    except (ValueError, TypeError, OverflowError):
        last = datetime.now(UTC)
    return TimeRange(last - timedelta(seconds=seconds) - _PRECISION, last + _PRECISION)


def begun_uploads(client: S3Client, at: Location, when: TimeRange | None, seconds: float = 0.0) -> list[str]:
    """Remarks on the unfinished uploads to a key that began in an interval, with the commands that abort them.

    Args:
        client: sends the requests.
        at: the object.
        when: the interval; None if no attempt got an answer: the last `seconds` until now.
        seconds: the duration of all attempts.
    """
    try:
        if when is None:
            answer = client.request("ListMultipartUploads", at, whole=False, Prefix=at.key, MaxUploads=1)
            when = time_range(answer["ResponseMetadata"]["HTTPHeaders"].get("date", ""), seconds)
        listed = ((place, item) for place, item in _list_uploads(client, at) if place.key == at.key)
        found = [(place, item) for place, item in listed if when.first <= item["Initiated"] <= when.last]
    except (ObjectNotFound, Conflict, BloomError) as error:
        if isinstance(error, BloomError) and is_missing_bucket(error):
            return []
        where = ["--bucket", bucket_of(at), "--prefix", at.key, *_endpoint(client, at)]
        command = shlex.join(["aws", "s3api", "list-multipart-uploads", *where])
        return [f"an unfinished upload to {at.uri} may be left: `{command}` lists it"]
    return _remarks(client, found)


def _bucket_uploads(
    client: S3Client, root: str, first: str, last: str, locations: Locations
) -> list[tuple[Location, Any]]:
    """The unfinished uploads to the locations that are in a bucket, with keys from `first` to `last`."""
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    found = _uploads_to(_list_uploads(client, Location(root, first[:same])), locations)
    if not found and first != last and client.is_minio:  # MinIO treats the prefix as a whole key
        found = _uploads_to(_list_uploads(client, Location(root, "")), locations)
    return found


def _uploads_to(uploads: Iterable[tuple[Location, Any]], locations: Locations) -> list[tuple[Location, Any]]:
    found = list(uploads)
    keys = {(at.root, at.key) for at, _ in found}
    ours = {key for at in locations() if (key := (at.root, at.key)) in keys} if keys else keys
    return [(at, item) for at, item in found if (at.root, at.key) in ours]


def _list_uploads(client: S3Client, at: Location) -> Iterator[tuple[Location, Any]]:
    """The unfinished uploads to keys that begin with a prefix."""
    options: dict[str, Any] = {"Prefix": at.key}
    for _ in range(_MAX_PAGES):
        answer = client.request("ListMultipartUploads", at, whole=False, **options)
        for item in answer.get("Uploads", ()):
            yield at._replace(key=item["Key"]), item
        if not answer.get("IsTruncated") or "NextKeyMarker" not in answer:
            return
        options |= {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer.get("NextUploadIdMarker", "")}
