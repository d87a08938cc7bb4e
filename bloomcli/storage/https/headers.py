"""Parses the headers of answers (RFC 9110)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

_IDS: Final = ("x-request-id", "x-amz-request-id", "x-ms-request-id", "x-guploader-uploadid", "cf-ray")
_SECONDS: Final = re.compile(r"\d{1,12}", re.ASCII)


def tag_of(headers: Mapping[str, str]) -> str:
    """The strong ETag, else the Last-Modified time, else an empty string. Only an ETag begins with a quote."""
    tag = headers.get("ETag", "").strip()
    return tag if tag.startswith('"') else headers.get("Last-Modified", "").strip()


def condition_headers(tag: str) -> dict[str, str]:
    """The headers that make a range request conditional on the file's tag."""
    if not tag:
        return {}
    if tag.startswith('"'):
        return {"If-Match": tag, "If-Range": tag}
    return {"If-Unmodified-Since": tag, "If-Range": tag}


def modified_ns(headers: Mapping[str, str]) -> int:
    """The Last-Modified time in nanoseconds since the epoch; 0 if it is missing or invalid."""
    try:
        return int(parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp()) * 1_000_000_000
    except (ValueError, TypeError, OverflowError):
        return 0


def request_id(headers: Mapping[str, str]) -> str:
    """The request's id as a suffix for messages; empty if the server sends none."""
    return next((f", request {headers[name]}" for name in _IDS if headers.get(name)), "")


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """The pause that a server asks for by Retry-After, as a number of seconds or as a time; 0 without a valid one."""
    text = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return 0.0
