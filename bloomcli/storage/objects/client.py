"""The requests that every object store answers, as one interface over the vendors' SDKs.

A client counts each request, including retries, in `traffic.current()`. It converts the SDK's errors to bloomcli's,
with the store's request id, except `ObjectNotFound` and `Conflict`: only the caller knows what they mean.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from bloomcli.errors import UnreadableError

_RANGE: Final = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})", re.ASCII)
_LENGTH: Final = re.compile(r"\d{1,18}", re.ASCII)


class ContentRange(NamedTuple):
    """The range of a file that an answer contains."""

    start: int
    end: int
    """Offset of the first byte after the range; 0 for an answer without a range."""
    size: int
    """Size of the file in bytes."""


def content_range(headers: Mapping[str, str]) -> ContentRange | None:
    """The range from the Content-Range header; None if the header is missing or has no file size."""
    match = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if match is None:
        return None
    first, last, size = match.groups()
    return ContentRange(int(first or 0), int(last) + 1 if last else 0, int(size))


def content_length(headers: Mapping[str, str]) -> int:
    """The size of an answer's body in bytes; 0 if unknown."""
    match = _LENGTH.fullmatch(headers.get("Content-Length", "").strip())
    return int(match.group()) if match else 0


class ObjectNotFound(Exception):
    """No object has the name."""


class Conflict(Exception):
    """A precondition failed: the object has another tag, or an object has the name already."""


class AccessDenied(UnreadableError):
    """The credentials don't permit a request."""


class Location(NamedTuple):
    """A URI in two parts, ``root/key``."""

    root: str
    """The scheme and the bucket, container or host, without a slash at its end: ``s3://lake``."""
    key: str
    """The object's name or a prefix of names, without a slash at its start; empty for the bucket itself."""

    @property
    def bucket(self) -> str:
        """The bucket or the container, as the URI spells it."""
        return self.root.partition("://")[2]

    @property
    def uri(self) -> str:
        """The URI."""
        return f"{self.root}/{self.key}"


class ObjectInfo(NamedTuple):
    """A store's information about an object."""

    size: int
    tag: str
    """The ETag or generation: it changes whenever the content changes."""
    mtime_ns: int
    details: Mapping[str, Any] | None = None
    """The rest of the answer, such as headers and metadata, under the SDK's names."""


class Entry(NamedTuple):
    """An object in a listing."""

    key: str
    size: int
    tag: str = ""
    """See `ObjectInfo.tag`; empty if the listing has no tags."""


class Page(NamedTuple):
    """Part of a listing, sorted by key."""

    entries: Sequence[Entry]
    prefixes: Sequence[str]
    """With a delimiter: the directories, each with a slash at its end."""
    last: bool = False
    """True if no page follows; False if one follows or the client doesn't know."""


class Precondition(Enum):
    """A condition for writing an object. Where a tag (str) is passed instead, the object must have that tag."""

    NONE = auto()
    """No condition."""
    NO_OBJECT = auto()
    """No object has the name yet."""


class Client(ABC):
    """The requests that read objects of a store. Thread-safe; a forked process creates its own connections.

    All methods raise UnreadableError, and those of `WritingClient` that write raise WriteError, with the store's
    answer.
    """

    @abstractmethod
    def locate(self, uri: str) -> Location:
        """Parse a URI. Raises UsageError."""

    def identity(self, at: Location) -> str:
        """A name that is the same for all spellings of a location."""
        return at.uri

    @abstractmethod
    def head(self, at: Location) -> ObjectInfo | None:
        """An object's size and tag; None if it doesn't exist."""

    @abstractmethod
    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read the last bytes of an object, or all if it is shorter, and its information, in one request.

        Raises:
            ObjectNotFound: the object doesn't exist.
        """

    @abstractmethod
    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range of an object on the condition that it has this tag.

        Raises:
            ObjectNotFound: the object doesn't exist any more.
            Conflict: the object has another tag.
        """
