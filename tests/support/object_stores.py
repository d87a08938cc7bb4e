"""An object store in this process's memory, behind the interface of vendors' SDKs, which counts requests.

`MemoryClient` answers requests like a server, with tags that change with each content, and keeps a list of the
requests. `MemoryObjects` is a store of such objects. It replaces an object by an upload in parts, as in S3.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

from bloomcli.errors import UsageError
from bloomcli.model.traffic import Traffic
from bloomcli.storage import traffic
from bloomcli.storage.base import KeptRange, PlacedBytes, Replacement, Source
from bloomcli.storage.objects.client import (
    Client,
    Conflict,
    Entry,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Page,
    Precondition,
)
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import ObjectStore

SCHEME: Final = "counted"


class Stored(NamedTuple):
    """An object."""

    data: bytes
    info: ObjectInfo


class Request(NamedTuple):
    """A request."""

    kind: str
    key: str
    offset: int = 0
    length: int = 0


class MemoryClient(Client):
    """Objects by their URIs, and the requests for them. `on_request` is called before each answer."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.requests: list[Request] = []
        self.on_request: Callable[[Request], None] = lambda _: None
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        self._tags = itertools.count(1)

    def store(self, uri: str, data: bytes) -> ObjectInfo:
        """Put an object without a request, as another program does."""
        info = ObjectInfo(len(data), f"tag-{next(self._tags)}", time.time_ns())
        self.objects[uri] = Stored(data, info)
        return info

    def locate(self, uri: str) -> Location:
        """The bucket is the first part."""
        scheme, _, rest = uri.partition("://")
        bucket, _, key = rest.partition("/")
        return Location(f"{scheme}://{bucket}", key)

    def head(self, at: Location) -> ObjectInfo | None:
        """An object's size and tag."""
        self._count(Request("HEAD", at.key))
        found = self.objects.get(at.uri)
        return None if found is None else found.info

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read a range from the end."""
        found = self.objects.get(at.uri)
        if found is None:
            self._count(Request("GET", at.key))
            raise ObjectNotFound
        data = found.data[-length:]
        self._count(Request("GET", at.key, len(found.data) - len(data), len(data)), downloaded=len(data))
        return data, found.info

    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range, if the object has the tag."""
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self._count(Request("GET", at.key, offset, length))
            found = self.objects.get(at.uri)
            if found is None:
                raise ObjectNotFound
            if found.info.tag != tag:
                raise Conflict
            data = found.data[offset : offset + length]
            traffic.current().count(requests=0, downloaded=len(data))
            return data
        finally:
            with self._lock:
                self.at_once -= 1

    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> Iterator[Page]:
        """List objects, in one page."""
        self._count(Request("LIST", at.key))
        keys = sorted(self.locate(uri).key for uri in self.objects if uri.startswith(at.uri))
        inner = {
            at.key + k.removeprefix(at.key).partition("/")[0] + "/" for k in keys if "/" in k.removeprefix(at.key)
        }
        shown = [k for k in keys if not (delimiter and "/" in k.removeprefix(at.key))]
        entries = [Entry(key, self.objects[f"{at.root}/{key}"].info.size) for key in shown[:limit]]
        yield Page(entries, sorted(inner) if delimiter else ())

    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Write an object, if the condition is met."""
        self._count(Request("PUT", at.key, 0, len(data)), uploaded=len(data))
        found = self.objects.get(at.uri)
        if precondition is Precondition.NO_OBJECT and found is not None:
            raise Conflict
        if isinstance(precondition, str) and (found is None or found.info.tag != precondition):
            raise Conflict
        return self.store(at.uri, data)

    def _count(self, request: Request, *, downloaded: int = 0, uploaded: int = 0, copied: int = 0) -> None:
        self.requests.append(request)
        self.on_request(request)
        traffic.current().count(downloaded=downloaded, uploaded=uploaded, copied=copied)

    def copy_part(self, at: Location, piece: KeptRange, source: ObjectSource) -> bytes:
        """A part of an upload that the store copies."""
        self._count(Request("COPY", at.key, piece.offset, piece.length), copied=piece.length)
        found = self.objects[source.at.uri]
        if found.info.tag != source.info.tag:
            raise Conflict
        return found.data[piece.offset : piece.offset + piece.length]

    def upload_part(self, at: Location, data: bytes) -> None:
        """A part of an upload whose bytes the client sends."""
        self._count(Request("PUT", at.key, 0, len(data)), uploaded=len(data))


class MemoryObjects(ObjectStore):
    """A store in memory. A replacement copies kept ranges within the store, and uploads the rest as one part."""

    def __init__(self) -> None:
        super().__init__()
        self._client = MemoryClient()

    @property
    def client(self) -> MemoryClient:
        """The client."""
        return self._client

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """One request for each kept range and one for the rest, and one to read back the new file's tail."""
        del path
        pieces = list(outline)
        kept = [piece for piece in pieces if isinstance(piece, KeptRange)]
        new = sum(piece for piece in pieces if isinstance(piece, int))
        if not isinstance(source, ObjectSource):
            return Traffic(1, 0, new + sum(piece.length for piece in kept), 0)
        return Traffic(len(kept) + 3, new, new, sum(piece.length for piece in kept))

    def _replace(self, wanted: Replacement) -> int:
        """Copy the kept ranges, upload the rest, and complete the upload if the source still has its tag."""
        path, source = wanted.path, wanted.source
        at = self.client.locate(path)
        if not wanted.overwrite and self.client.head(at) is not None:
            raise UsageError("the output exists already", path=path, hint="--overwrite replaces it")
        new, fresh, placed = bytearray(), bytearray(), dict[int, bytes]()
        with closing(wanted.pieces):
            for piece in wanted.pieces:
                if isinstance(piece, PlacedBytes):
                    placed[piece.offset] = bytes(piece.data)
                elif isinstance(piece, KeptRange):
                    new += self._kept(at, piece, source)
                    if wanted.progress is not None:
                        wanted.progress(piece.length)
                else:
                    while (ahead := placed.pop(len(new), None)) is not None:
                        new += ahead
                        fresh += ahead
                    new += piece
                    fresh += piece
        self.client.upload_part(at, bytes(fresh))
        if self.client.objects[source.path].info.tag != getattr(source, "info", None).tag:  # type: ignore[union-attr]
            raise source.changed("changed")
        self.client.store(at.uri, bytes(new))
        if wanted.verify is not None:
            with self.open(path) as written:
                wanted.verify(written)
        return len(new)

    def _kept(self, at: Location, piece: KeptRange, source: Source) -> bytes:
        if not isinstance(source, ObjectSource):
            return source.read_at(piece.offset, piece.length)
        try:
            return self.client.copy_part(at, piece, source)
        except Conflict:
            raise source.changed("changed") from None
