"""Parses the headers of answers (RFC 9110)."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

_IDS: Final = ("x-request-id", "x-amz-request-id", "x-ms-request-id", "x-guploader-uploadid", "cf-ray")


def tag_of(headers: Mapping[str, str]) -> str:
    """A strong ETag, or the time of the last change; empty where there is neither. Only ETags have quotes."""
    tag = headers.get("ETag", "").strip()
    return tag if tag.startswith('"') else headers.get("Last-Modified", "").strip()


def condition_headers(tag: str) -> dict[str, str]:
    """The headers by which a server sends a range only of the file that has a tag."""
    if not tag:
        return {}
    if tag.startswith('"'):
        return {"If-Match": tag, "If-Range": tag}
    return {"If-Unmodified-Since": tag, "If-Range": tag}


def modified_ns(headers: Mapping[str, str]) -> int:
    """The time of the last change, in nanoseconds; 0 if the server doesn't send it."""
    try:
        return int(parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp()) * 1_000_000_000
    except (ValueError, TypeError, OverflowError):
        return 0


def request_id(headers: Mapping[str, str]) -> str:
    """The request's id, where the server gives one; else empty."""
    return next((f", request {headers[name]}" for name in _IDS if headers.get(name)), "")
