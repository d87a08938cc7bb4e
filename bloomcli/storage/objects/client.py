"""The requests that every object store answers, as one interface over the vendors' SDKs.

A client counts each request, retries included, at `traffic.current()`, and turns the SDK's errors into those of
bloomcli's family, with the store's request id. It raises `ObjectNotFound` and `Conflict` as they are: only the caller
knows what they mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from bloomcli.errors import UnreadableError
from bloomcli.named_tuple import NamedTuple


class ObjectNotFound(Exception):
    """No object has the name."""


class Conflict(Exception):
    """A precondition failed: the object isn't the one that was meant, or there is one already."""


class AccessDenied(UnreadableError):
    """The credentials don't permit a request."""


class Location(NamedTuple):
    """A URI in two parts: ``root/key`` is the URI."""

    root: str
    """The scheme and the bucket, container or host, without a slash at its end: ``s3://lake``."""
    key: str
    """The object's name, or the beginning of names; empty for the bucket itself. It doesn't begin with a slash."""

    @property
    def uri(self) -> str:
        """The URI."""
        return f"{self.root}/{self.key}"


class ObjectInfo(NamedTuple):
    """A store's information about an object."""

    size: int
    tag: str
    """Changes with each content: the ETag, or the generation."""
    mtime_ns: int
    details: Mapping[str, Any] | None = None
    """The rest of the answer, such as headers and metadata, by the SDK's names."""


class Entry(NamedTuple):
    """An object in a listing."""

    key: str
    size: int
    tag: str = ""
    """As `ObjectInfo.tag`; empty if the listing has none."""


class Page(NamedTuple):
    """Part of a listing, in order of keys."""

    entries: Sequence[Entry]
    prefixes: Sequence[str]
    """With a delimiter: what keys with a further slash have in common, with that slash at the end."""
    last: bool = False
    """No page follows. A client that doesn't know leaves it out."""


class Precondition(Enum):
    """A condition for writing an object. A tag in its place means: the existing object must have that tag."""

    NONE = auto()
    """No condition."""
    NO_OBJECT = auto()
    """No object has the name yet."""


class Client(ABC):
    """The requests to a store. Threads may call it at once; a process that was forked makes its own.

    All methods raise UnreadableError, and those that write WriteError, with what the store answered.
    """

    @abstractmethod
    def locate(self, uri: str) -> Location:
        """Parse a URI. Raises UsageError."""

    def identity(self, at: Location) -> str:
        """A name that all spellings of a location have in common."""
        return at.uri

    @abstractmethod
    def head(self, at: Location) -> ObjectInfo | None:
        """An object's size and tag; None if it doesn't exist."""

    @abstractmethod
    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """The last bytes of an object, all of a shorter one, and what it is, in one request. Raises Absent."""

    @abstractmethod
    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """A range of the object that has this tag.

        Raises:
            Absent: there is no such object any more.
            Conflict: it has another tag.
        """

    @abstractmethod
    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> Iterator[Page]:
        """The objects whose keys begin with a key, a page for each request.

        Args:
            at: the bucket, and the beginning of keys.
            delimiter: stop at the next slash, and list what comes up to it as prefixes.
            limit: entries and prefixes to ask for in a page; the store's own where it is None.
        """

    @abstractmethod
    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Write an object in one request. Raises Conflict where the condition isn't met."""
