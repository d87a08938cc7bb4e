"""Uploads new objects: small ones in one request, others in the chunks of a resumable upload.

The store checks a small object's content by the CRC32C in the request. The CRC32C of a large one is known only after
its last chunk, and the caller compares it with the store's. If a chunk fails, the upload starts again: resuming it
couldn't be tested, as the tests' emulator doesn't report how much of an upload it has. A failed resumable upload is
cancelled. After a killed process, the store deletes it after a week; it is invisible to readers.

The CRC32C of two concatenated contents is computed from the CRC32C of each. A CRC is linear: appending n zero bytes
to a content multiplies its CRC by a matrix that depends only on n. The matrix is computed by squaring, once per bit
of n, like in zlib's crc32_combine for another polynomial.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import google_crc32c

from bloomcli.errors import WriteError
from bloomcli.storage.gcs.api import Answer, Api, Interrupted, Request, object_in
from bloomcli.storage.objects.client import Location
from bloomcli.storage.objects.writing import PART_BYTES

_POLYNOMIAL: Final = 0x82F63B78


def encoded(value: int) -> str:
    """A CRC32C in the API's encoding: Base64 of four bytes, big-endian."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def decoded(text: str) -> int:
    """A CRC32C from the API's encoding. Raises ValueError if it isn't four bytes."""
    data = base64.b64decode(text)
    if len(data) != 4:
        raise ValueError("a CRC32C has four bytes")
    return int.from_bytes(data, "big")


def combined(first: int, second: int, second_length: int) -> int:
    """The CRC32C of two concatenated contents, from the CRC32C of each and the second one's size in bytes."""
    zeros = _squared(_squared([_POLYNOMIAL, *(1 << n for n in range(31))]))  # the matrix of four zero bits
    while second_length:
        zeros = _squared(zeros)
        if second_length & 1:
            first = _times(zeros, first)
        second_length >>= 1
    return first ^ second


def _times(matrix: list[int], vector: int) -> int:
    total = 0
    for row in matrix:
        if vector & 1:
            total ^= row
        vector >>= 1
    return total


def _squared(matrix: list[int]) -> list[int]:
    return [_times(matrix, row) for row in matrix]


CHUNK_BYTES: Final = PART_BYTES
"""Size of a chunk in bytes, a multiple of 256 KiB."""
ATTEMPTS: Final = 3
"""Maximum number of attempts of a resumable upload."""
_RESUME_INCOMPLETE: Final = 308


def checksum_of(data: bytes) -> str:
    """The CRC32C of a content, in the API's encoding."""
    return encoded(int(google_crc32c.value(data)))


def insert(
    api: Api,
    at: Location,
    size: int,
    chunks: Callable[[], Iterator[bytes]],
    resource: Mapping[str, Any],
    params: Mapping[str, str],
) -> dict[str, Any]:
    """Upload an object. Returns the API's description of it.

    Args:
        api: sends the requests.
        at: the object.
        size: its size in bytes.
        chunks: returns its content in chunks of `CHUNK_BYTES`, the last one shorter. Called once per attempt.
        resource: its properties, under the API's names.
        params: request parameters: the precondition and the encryption key.

    Raises:
        Conflict: the precondition failed.
        WriteError: the store refused the object.
    """
    url = api.url(at.bucket, upload=True)
    if size <= CHUNK_BYTES:
        data = b"".join(chunks())
        body, boundary = _related({**resource, "name": at.key, "crc32c": checksum_of(data)}, data)
        headers = {"Content-Type": f"multipart/related; boundary={boundary}"}
        request = Request("POST", url, {**params, "uploadType": "multipart"}, headers, body, len(data))
        return api.send_for_object(at, request, writing=True)
    start = Request(
        "POST",
        url,
        {**params, "uploadType": "resumable", "name": at.key},
        {"Content-Type": "application/json", "X-Upload-Content-Length": str(size)},
        json.dumps({**resource, "name": at.key}).encode(),
    )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _in_chunks(api, at, start, size, chunks())
        except Interrupted as error:
            if attempt == ATTEMPTS:
                raise error.error from None
    raise AssertionError


def _in_chunks(api: Api, at: Location, start: Request, size: int, chunks: Iterator[bytes]) -> dict[str, Any]:
    """Make one attempt of a resumable upload. Raises Interrupted if another attempt may succeed."""
    started = api.send(at, start, writing=True)
    with api.answers.checked(at, writing=True):
        session = started.headers["Location"]
    position = 0
    answer = Answer(_RESUME_INCOMPLETE, {}, b"")
    try:
        for data in chunks:
            headers = {"Content-Range": f"bytes {position}-{position + len(data) - 1}/{size}"}
            position += len(data)
            request = Request("PUT", session, {}, headers, data, len(data))
            answer = api.send(at, request, writing=True, retries=False)
            going_on = answer.status == _RESUME_INCOMPLETE
            received = answer.headers.get("Range", "").rpartition("-")[2]
            whole = not going_on or received == str(position - 1)
            if going_on != (position < size) or not whole:
                raise Interrupted(WriteError("can't be written: the store took only part of an upload", path=at.uri))
    except BaseException:
        with suppress(Exception):  # the store answers a cancellation with an error, and deletes the upload anyway
            api.once(Request("DELETE", session))
        raise
    with api.answers.checked(at, writing=True):
        return object_in(answer)


def _related(resource: Mapping[str, Any], data: bytes) -> tuple[bytes, str]:
    """A multipart/related body of an object's description and its content, and the boundary."""
    boundary = secrets.token_hex(16)
    first = f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(resource)}\r\n"
    content_type = resource.get("contentType", "application/octet-stream")
    second = f"--{boundary}\r\nContent-Type: {content_type}\r\n\r\n"
    return b"".join((first.encode(), second.encode(), data, f"\r\n--{boundary}--\r\n".encode())), boundary
