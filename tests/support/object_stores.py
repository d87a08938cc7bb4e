"""An object store in this process's memory, behind the interface of vendors' SDKs, which counts requests.

`MemoryClient` answers requests like a server, with tags that change with each content, and keeps a list of the
requests. It replaces an object by an upload in parts, as in S3. `MemoryObjects` is a store of such objects.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from bloomcli.model.traffic import Traffic
from bloomcli.storage import traffic
from bloomcli.storage.base import KeptRange, Source, SweepResult
from bloomcli.storage.objects.client import (
    Conflict,
    Entry,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Page,
    Precondition,
)
from bloomcli.storage.objects.content import Segment
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import ObjectStore
from bloomcli.storage.objects.writing import NewObject, Writer, WritingClient

SCHEME: Final = "memory"


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


class Upload(NamedTuple):
    """An upload that isn't completed."""

    path: str
    alive: bool
    """Whether its process is running."""


class MemoryClient(WritingClient):
    """Objects by their URIs, and the requests for them. `on_request` is called before each answer."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[int, Upload] = {}
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
        self.count(Request("HEAD", at.key))
        found = self.objects.get(at.uri)
        return None if found is None else found.info

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read a range from the end."""
        found = self.objects.get(at.uri)
        if found is None:
            self.count(Request("GET", at.key))
            raise ObjectNotFound
        data = found.data[-length:]
        self.count(Request("GET", at.key, len(found.data) - len(data), len(data)), downloaded=len(data))
        return data, found.info

    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range, if the object has the tag."""
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.count(Request("GET", at.key, offset, length))
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
        self.count(Request("LIST", at.key))
        keys = sorted(self.locate(uri).key for uri in self.objects if uri.startswith(at.uri))
        inner = {
            at.key + k.removeprefix(at.key).partition("/")[0] + "/" for k in keys if "/" in k.removeprefix(at.key)
        }
        shown = [k for k in keys if not (delimiter and "/" in k.removeprefix(at.key))]
        entries = [Entry(key, *self.objects[f"{at.root}/{key}"].info[:2]) for key in shown[:limit]]
        yield Page(entries, sorted(inner) if delimiter else ())

    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Write an object, if the condition is met."""
        self.count(Request("PUT", at.key, 0, len(data)), uploaded=len(data))
        return self.commit(at, data, precondition)

    def check_replaceable(self, at: Location, known: ObjectInfo | None = None, *, force: bool) -> ObjectInfo | None:
        """Every object can be replaced."""
        del at, force
        return known

    def writer(self, new: NewObject) -> Writer:
        """A writer that copies the kept ranges within the store, and uploads the rest as one part."""
        return _PartsWriter(self, new)

    def estimate(
        self, at: Location, outline: Iterable[KeptRange | int], source: Source, origin: ObjectSource | None
    ) -> Traffic:
        """One request for each kept range and one for the rest."""
        del at, source
        pieces = list(outline)
        kept = [piece for piece in pieces if isinstance(piece, KeptRange)]
        new = sum(piece for piece in pieces if isinstance(piece, int))
        if origin is None:
            return Traffic(1, 0, new + sum(piece.length for piece in kept), 0)
        return Traffic(len(kept) + 1, 0, new, sum(piece.length for piece in kept))

    def sweep(self, locations: Collection[Location]) -> SweepResult:
        """End the uploads of dead processes to the objects' directories."""
        directories = {at.uri.rpartition("/")[0] for at in locations}
        here = {n: u for n, u in self.uploads.items() if u.path.rpartition("/")[0] in directories}
        dead = [n for n, upload in here.items() if not upload.alive]
        for number in dead:
            del self.uploads[number]
        return SweepResult([here[n].path for n in dead], [u.path for u in here.values() if u.alive])

    def begin(self, path: str, *, alive: bool = True) -> int:
        """Begin an upload without a request. Returns its number."""
        number = next(self._tags)
        self.uploads[number] = Upload(path, alive)
        return number

    def commit(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Store an object without a request, if the condition is met."""
        with self._lock:
            found = self.objects.get(at.uri)
            if precondition is Precondition.NO_OBJECT and found is not None:
                raise Conflict
            if isinstance(precondition, str) and (found is None or found.info.tag != precondition):
                raise Conflict
            return self.store(at.uri, data)

    def count(self, request: Request, *, downloaded: int = 0, uploaded: int = 0, copied: int = 0) -> None:
        """Record a request."""
        self.requests.append(request)
        self.on_request(request)
        traffic.current().count(downloaded=downloaded, uploaded=uploaded, copied=copied)


class _PartsWriter(Writer):
    def __init__(self, client: MemoryClient, new: NewObject) -> None:
        super().__init__(new)
        self._client, self._upload = client, client.begin(new.at.uri)

    def complete(self) -> None:
        """Copy and upload the parts, and complete the upload."""
        new, data, uploaded = self.new, bytearray(), 0
        for part in new.content.segments:
            if part.kept and new.origin is not None:
                data += self._copied(new.origin, part)
            else:
                data += new.content.read(part.start, part.length)
                uploaded += part.length
            new.report(part.start, part.length)
        self._client.count(Request("PUT", new.at.key, 0, uploaded), uploaded=uploaded)
        if new.origin is not None:
            self._unchanged(new.origin)
        self._client.commit(new.at, bytes(data), new.precondition)
        del self._client.uploads[self._upload]

    def abort(self, error: BaseException) -> None:
        """End the upload."""
        del error
        self._client.uploads.pop(self._upload, None)

    def _copied(self, origin: ObjectSource, part: Segment) -> bytes:
        """A part that the store copies."""
        self._client.count(Request("COPY", self.new.at.key, part.offset, part.length), copied=part.length)
        return self._unchanged(origin).data[part.offset : part.offset + part.length]

    def _unchanged(self, origin: ObjectSource) -> Stored:
        found = self._client.objects.get(origin.at.uri)
        if found is None or found.info.tag != origin.info.tag:
            raise Conflict
        return found


class MemoryObjects(ObjectStore):
    """A store in memory. A replacement copies kept ranges within the store, and uploads the rest as one part."""

    mtime_step_ns = 1

    def __init__(self) -> None:
        self._client = MemoryClient()

    @property
    def client(self) -> MemoryClient:
        """The client."""
        return self._client
