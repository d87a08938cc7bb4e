"""Answers that no store sends: true answers with another status, other headers or another body, chosen at random."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from support.servers.messages import Response

_STATUSES: Final = (
    200,
    201,
    204,
    206,
    300,
    301,
    302,
    304,
    307,
    308,
    400,
    401,
    403,
    404,
    409,
    411,
    412,
    416,
    429,
    500,
)
_STATUSES_TOO: Final = (503, 511, 599, 999)
_VALUES: Final = (
    "",
    "-1",
    "0",
    "9" * 20,
    "9" * 5000,
    "x",
    "true",
    "\xff\xfe",
    '"other"',
    "bytes 0-0/1",
    "bytes 5-1/9",
    "gzip",
    "Thu, 01 Jan 9999 00:00:00 GMT",
    "http://127.0.0.1:1/elsewhere",
    "/elsewhere",
    "file:///etc/passwd",
)
_ADDED: Final = (
    "Content-Encoding",
    "Transfer-Encoding",
    "Retry-After",
    "x-amz-retry-after",
    "Location",
    "Content-Range",
    "ETag",
    "x-ms-error-code",
    "x-amz-bucket-region",
    "x-amz-missing-meta",
    "x-amz-restore",
    "x-goog-generation",
    "x-ms-blob-type",
    "x-ms-tag-count",
    "Content-Type",
)
_BODIES: Final = (
    b"",
    b"<!DOCTYPE html><html><body>Welcome<br></body></html>",
    b"<html><body>Welcome</body></html>",
    b'<?xml version="1.0"?><Error><Code>Strange</Code></Error>',
    b'<?xml version="1.0"?><Error/>',
    b"<Error><Code>NoSuchKey</Code><Message>%s{0}</Message></Error>",
    b"<ListBucketResult/>",
    b"<EnumerationResults/>",
    b"{}",
    b"[]",
    b"null",
    b'"text"',
    b"1" * 5000,
    b"[" * 100_000,
    b"<a>" * 10_000,
    b'{"error": "text"}',
    b'{"error": {"errors": "text", "message": 5, "details": 7}}',
    b'{"error": {"errors": [7], "message": null}}',
    b'{"items": 7}',
    b'{"items": [7]}',
    b'{"items": [{"name": 5, "size": "1"}]}',
    b'{"prefixes": [null], "items": []}',
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00",
    b"\xff\xfe\x00",
)
_TEXTS: Final = (
    (rb">\d{4}-\d\d-\d\dT[^<]*<", b">yesterday<"),
    (rb">\d{4}-\d\d-\d\dT[^<]*<", b">9999-12-31T23:59:59.000Z<"),
    (rb">\d+<", b">-1<"),
    (rb">\d+<", b">99999999999999999999999<"),
    (rb">[^<]+<", b"><"),
    (rb"<(\w+)>[^<]*</\1>", b""),
    (rb">(true|false)<", b">perhaps<"),
    (rb'"\d+"', b'"-1"'),
    (rb'"\d+"', b'"99999999999999999999999"'),
    (rb'"\d{4}-[^"]*"', b'"yesterday"'),
    (rb'"[^"]*"', b"7"),
    (rb'"[^"]*"', b"null"),
    (rb'"(\w+)":', b'"other":'),
)


def changed(seed: int) -> Callable[[Response, bytes], bytes]:
    """A function that changes an answer: the same change for the same seed and answer."""

    def change(response: Response, body: bytes) -> bytes:
        chosen = random.Random(seed)
        for _ in range(chosen.choice((1, 1, 1, 2, 3))):
            body = chosen.choice((_other_status, _other_header, _other_body, _other_body))(chosen, response, body)
        if chosen.random() < 0.9:
            response.headers = [
                (name, str(len(body)) if name.lower() == "content-length" else value)
                for name, value in response.headers
                if name.lower() != "transfer-encoding"
            ]
        return body

    return change


def _other_status(chosen: random.Random, response: Response, body: bytes) -> bytes:
    response.start = f"HTTP/1.1 {chosen.choice(_STATUSES + _STATUSES_TOO)} Any"
    return body


def _other_header(chosen: random.Random, response: Response, body: bytes) -> bytes:
    kind, at = chosen.randrange(3), chosen.randrange(len(response.headers)) if response.headers else None
    if kind == 0 or at is None:
        response.headers.append((chosen.choice(_ADDED), chosen.choice(_VALUES)))
    elif kind == 1:
        del response.headers[at]
    else:
        response.headers[at] = response.headers[at][0], chosen.choice(_VALUES)
    return body


def _other_body(chosen: random.Random, response: Response, body: bytes) -> bytes:
    del response
    kind = chosen.randrange(4)
    if kind == 0 or not body:
        return chosen.choice(_BODIES)
    if kind == 1:
        return body[: chosen.randrange(len(body))]
    if kind == 2:
        at = chosen.randrange(len(body))
        return body[:at] + bytes([chosen.randrange(256)]) + body[at + 1 :]
    pattern, text = chosen.choice(_TEXTS)
    found = list(re.finditer(pattern, body))
    if not found:
        return chosen.choice(_BODIES)
    one = chosen.choice(found)
    return body[: one.start()] + text + body[one.end() :]
