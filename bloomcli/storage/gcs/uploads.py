"""Writes new objects: small ones in one request, others in chunks of a resumable upload.

The store compares a small object's content with its CRC32C. That of a large one is known at its end, and compared
with what the store has computed. An upload in chunks that doesn't come to its end is cancelled; one of a killed
process is dropped by the store after a week, and nobody sees it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import google_crc32c

from bloomcli.storage.gcs.api import Answer, Api, Request
from bloomcli.storage.gcs.checksum import encoded
from bloomcli.storage.objects.client import Location
from bloomcli.storage.objects.prepared import PART_BYTES

CHUNK_BYTES: Final = PART_BYTES
"""Bytes of a chunk: a multiple of 256 KiB."""
_GOES_ON: Final = 308


class Inserted(NamedTuple):
    """An object that was written."""

    resource: dict[str, Any]
    crc: int
    """The CRC32C of what was sent."""


def insert(
    api: Api,
    at: Location,
    size: int,
    chunks: Callable[[], Iterator[bytes]],
    resource: Mapping[str, Any],
    params: Mapping[str, str],
) -> Inserted:
    """Write an object.

    Args:
        api: for the requests.
        at: the object.
        size: its bytes.
        chunks: makes its content, in pieces of `CHUNK_BYTES`, but for the last one.
        resource: what else the object has, as the API names it.
        params: conditions, and the key.

    Raises:
        Conflict: a condition isn't met.
        WriteError: the store refuses.
    """
    bucket = at.root.partition("://")[2]
    url = api.url(bucket, upload=True)
    if size <= CHUNK_BYTES:
        data = b"".join(chunks())
        crc = int(google_crc32c.value(data))
        body, boundary = _related({**resource, "name": at.key, "crc32c": encoded(crc)}, data)
        headers = {"Content-Type": f"multipart/related; boundary={boundary}"}
        request = Request("POST", url, {**params, "uploadType": "multipart"}, headers, body, len(data))
        return Inserted(api.send(at, request, writing=True).json, crc)
    start = Request(
        "POST",
        url,
        {**params, "uploadType": "resumable", "name": at.key},
        {"Content-Type": "application/json", "X-Upload-Content-Length": str(size)},
        json.dumps({**resource, "name": at.key}).encode(),
    )
    session = api.send(at, start, writing=True).headers["Location"]
    try:
        return _in_chunks(api, at, session, size, chunks())
    except BaseException:
        _cancel(api, session)
        raise


def _in_chunks(api: Api, at: Location, session: str, size: int, chunks: Iterator[bytes]) -> Inserted:
    crc = position = 0
    answer = Answer(_GOES_ON, {}, b"")
    for data in chunks:
        crc = int(google_crc32c.extend(crc, data))
        chunk = _Chunk(api, session, data, position, size)
        answer = api.repeated(at, chunk.send, writing=True)
        position += len(data)
    return Inserted(answer.json, crc)


class _Chunk:
    """A chunk that is sent, and sent again from where the store has it."""

    def __init__(self, api: Api, session: str, data: bytes, start: int, size: int) -> None:
        self._api, self._session, self._data, self._start, self._size = api, session, data, start, size
        self._again = False

    def send(self) -> Answer:
        """Send what the store hasn't got yet. Raises GoogleAPICallError, and the connection's errors."""
        skipped = 0
        if self._again:
            answer = self._put(b"", f"bytes */{self._size}")
            if answer.status != _GOES_ON:
                return answer
            skipped = _received(answer) - self._start
        self._again = True
        while True:
            end = self._start + len(self._data)
            left = self._data[skipped:]
            answer = self._put(left, f"bytes {self._start + skipped}-{end - 1}/{self._size}")
            if answer.status != _GOES_ON or _received(answer) >= end:
                return answer
            if _received(answer) <= self._start + skipped:
                raise ConnectionError("the store took nothing of a chunk")
            skipped = _received(answer) - self._start

    def _put(self, data: bytes, of: str) -> Answer:
        headers = {"Content-Range": of, "Content-Length": str(len(data))}
        return self._api.once(Request("PUT", self._session, {}, headers, data, len(data)))


def _received(answer: Answer) -> int:
    """How many bytes the store has of an upload."""
    last = answer.headers.get("Range", "").rpartition("-")[2]
    return int(last) + 1 if last.isdigit() else 0


def _cancel(api: Api, session: str) -> None:
    with suppress(Exception):  # the store answers with an error of its own, and drops what is left anyway
        api.once(Request("DELETE", session))


def _related(resource: Mapping[str, Any], data: bytes) -> tuple[bytes, str]:
    """A body of two parts: the object's description, and its content."""
    boundary = secrets.token_hex(16)
    first = f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(resource)}\r\n"
    content_type = resource.get("contentType", "application/octet-stream")
    second = f"--{boundary}\r\nContent-Type: {content_type}\r\n\r\n"
    return b"".join((first.encode(), second.encode(), data, f"\r\n--{boundary}--\r\n".encode())), boundary
