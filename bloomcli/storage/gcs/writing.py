"""Writes an object: composes it from the source and a new tail, or uploads the whole content.

Compose concatenates whole objects of one bucket. A content that begins with the whole source is composed of the
source and a temporary object with the rest, which is always removed. Any other content is uploaded completely. Both
requests are conditional on a generation, and the store's CRC32C of the result is compared with the expected one.

The names of temporary objects are

    .NAME.bloom-RANDOM-MACHINE-PROCESS-START.tmp    next to NAME; listings skip hidden names

A sweep removes temporary objects of this machine's ended processes, and those older than a day.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import google_crc32c

from bloomcli.errors import BloomError, UsageError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.base import KeptRange, SweepResult
from bloomcli.storage.gcs.api import Request, document_in
from bloomcli.storage.gcs.client import GcsClient, info_of, precondition_parameters
from bloomcli.storage.gcs.uploads import CHUNK_BYTES, combined, decoded, encoded, insert
from bloomcli.storage.objects.client import Conflict, Location, ObjectInfo, ObjectNotFound
from bloomcli.storage.objects.network import size_in
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.writing import NewObject, Writer, WritingClient

OLD_SECONDS: Final = 24 * 3600
"""Age beyond which a temporary object is removed: no run needs one for so long."""
_NAME_CHARACTERS: Final = 120
_NAME: Final = re.compile(
    r"\..{1,120}\.bloom-[0-9a-f]{12}-(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-(?P<start>\d+)\.tmp", re.DOTALL
)


def temporary_key(key: str) -> str:
    """A new, hidden name in the directory of an object, unique to this run."""
    directory, slash, name = key.rpartition("/")
    process = os.getpid()
    owner = f"{_machine_hash()}-{process}-{_start_ticks(process) or 0}"
    return f"{directory}{slash}.{name[:_NAME_CHARACTERS]}.bloom-{secrets.token_hex(6)}-{owner}.tmp"


def _has_ended(name: re.Match[str]) -> bool:
    """Whether the process that made a temporary object of this name ran on this machine, and has ended."""
    here = name["machine"] == _machine_hash()
    return here and _start_ticks(int(name["process"])) != int(name["start"])


@cache
def _machine_hash() -> str:
    """A hash that distinguishes this machine, container and boot from others."""
    identity = socket.gethostname()
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            identity += Path(path).read_text() if path.startswith("/proc/sys") else os.readlink(path)  # noqa: PTH115
        except OSError:
            continue
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _start_ticks(process: int) -> int | None:
    """Start time of a process, in ticks since the machine's start; 0 if the system doesn't report it; None if no such
    process exists."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, IndexError, ValueError):
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return 0


_KEPT: Final = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "contexts",
    "customTime",
    "metadata",
    "storageClass",
)
_REWRITTEN_BYTES: Final = 1 << 20
"""The number of bytes that each request copies at least: the least value of maxBytesRewrittenPerCall."""
_REWRITES: Final = 100
"""Additional requests for copying an object."""
_HOLDS: Final = {"temporaryHold": "a temporary hold", "eventBasedHold": "an event-based hold"}


class WritingGcsClient(GcsClient, WritingClient):
    """Requests to Google Cloud Storage, with those that write objects of any size."""

    appends_only = True  # compose can only concatenate whole objects

    def check_replaceable(self, at: Location, info: ObjectInfo | None = None, *, force: bool) -> ObjectInfo | None:
        """Refuse objects with holds, retention or a customer's encryption key. Raises UsageError."""
        del info, force  # answers to reads don't have these properties, and the store refuses such objects anyway
        details = self.resource(at)
        if details is None:
            return None
        why = next((text for name, text in _HOLDS.items() if details.get(name)), None)
        with self.api.answers.checked(at):
            until = details.get("retentionExpirationTime") or (details.get("retention") or {}).get("retainUntilTime")
            if why is None and until and dt.datetime.fromisoformat(until) > dt.datetime.now(dt.UTC):
                why = f"it has to be retained until {until}"
            current = info_of(details)
        if why is None and details.get("customerEncryption"):
            why = "it is encrypted with a key of the customer's, which bloom doesn't have"
        if why is not None:
            raise UsageError(f"can't be replaced: {why}", path=at.uri, hint="-o writes a copy")
        return current

    def writer(self, new: NewObject) -> Writer:
        """A writer that composes the object or uploads it."""
        return _GcsWriter(self, new)

    def keeps_ranges(self, ranges: Sequence[KeptRange], origin: ObjectSource, at: Location) -> bool:
        """Whether the kept ranges are the whole source."""
        del at
        return bool(ranges) and (ranges[0].offset, sum(r.length for r in ranges)) == (0, origin.size)

    def sweep(self, locations: Collection[Location]) -> SweepResult:
        """Remove the temporary objects of killed runs in the objects' directories."""
        removed: list[str] = []
        remaining: list[str] = []
        directories = {at._replace(key="".join(at.key.rpartition("/")[:2]) + "."): None for at in locations}
        for directory in directories:
            with suppress(BloomError):  # a user without permission to list may still have permission to write
                self._sweep(directory, removed, remaining)
        return SweepResult(removed, remaining)

    def _sweep(self, directory: Location, removed: list[str], remaining: list[str]) -> None:
        for page in self.list_pages(directory, "name,generation,timeCreated", delimiter=True):
            for item in page.get("items", []):
                name, place = _NAME.fullmatch(item["name"].rpartition("/")[2]), directory._replace(key=item["name"])
                if name is None:
                    continue
                with self.api.answers.checked(place):
                    age = time.time() - dt.datetime.fromisoformat(item["timeCreated"]).timestamp()
                    generation = str(item["generation"])
                deleted = (age > OLD_SECONDS or _has_ended(name)) and self.try_delete(place, generation)
                (removed if deleted else remaining).append(place.uri)


class _GcsWriter(Writer):
    def __init__(self, client: GcsClient, new: NewObject) -> None:
        super().__init__(new)
        self._client = client
        self._source: dict[str, Any] = {}
        """The API's description of the source; empty if the source isn't in this store."""
        self._crc = 0
        """The CRC32C of the content."""
        self._leftovers: list[str] = []
        """Remarks on temporary objects that couldn't be removed."""

    def complete(self) -> None:
        """Compose the object or upload it. Raises Conflict, WriteError."""
        content, origin = self.new.content, self.new.origin
        if origin is not None:
            resource = self._client.resource(origin.at)
            if resource is None or str(resource["generation"]) != origin.info.tag:
                raise Conflict
            self._source = resource
        first = next(iter(content.segments), None)
        size = content.source.size
        if origin and size and first is not None and (first.offset, first.length, first.kept) == (0, size, True):
            self._compose(origin)
        else:
            properties, params = _kept_properties(self._source), self._params()
            self._commit(
                lambda: insert(
                    self._client.api, self.new.at, content.size, lambda: self._chunks(0), properties, params
                )
            )

    def abort(self, error: BaseException) -> None:
        """Add the temporary objects that couldn't be removed to the error's hint."""
        if isinstance(error, BloomError):
            error.add_to_hint(self._leftovers)

    def _compose(self, origin: ObjectSource) -> None:
        """Compose the object from the source and a temporary object with the rest of the content."""
        at, content, source, client = self.new.at, self.new.content, self._source, self._client
        temporary: list[Location] = []
        try:
            parts = [{"name": source["name"], "generation": source["generation"]}]
            if origin.at.bucket != at.bucket:
                copied = at._replace(key=temporary_key(at.key))
                temporary.append(copied)
                generation = _rewrite(client, origin.at, source, copied)
                parts = [{"name": copied.key, "generation": generation}]
            with client.api.answers.checked(at, writing=True):
                crc, tail = decoded(source["crc32c"]), content.size - content.source.size
            self._crc = crc
            if tail:
                new = at._replace(key=temporary_key(at.key))
                temporary.append(new)
                described = {key: source[key] for key in ("storageClass",) if key in source}
                # No condition: the name is unique to this run, and a retry after a lost answer must not fail.
                done = insert(
                    client.api, new, tail, lambda: self._chunks(content.source.size), described, _key(source)
                )
                parts.append({"name": new.key, "generation": done["generation"]})
                self._crc = combined(crc, self._crc, tail)
            for part in parts:
                part["objectPreconditions"] = {"ifGenerationMatch": part["generation"]}
            body = json.dumps(
                {"kind": "storage#composeRequest", "sourceObjects": parts, "destination": _kept_properties(source)}
            )
            url = f"{client.api.url(at.bucket, at.key)}/compose"
            request = Request("POST", url, self._params(), {"Content-Type": "application/json"}, body.encode())
            self._commit(lambda: client.api.send_for_object(at, request, writing=True))
        finally:
            left = [place.uri for place in temporary if not client.try_delete(place)]
            self._leftovers += [
                f"the temporary object {uri} couldn't be removed: `gcloud storage rm '{uri}'`" for uri in left
            ]
        traffic.current().remark(*self._leftovers)
        traffic.current().count(requests=0, copied=content.source.size)
        self.new.report(0, content.source.size)

    def _params(self) -> dict[str, str]:
        return {**precondition_parameters(self.new.precondition), **_key(self._source)}

    def _chunks(self, start: int) -> Iterator[bytes]:
        """The content from offset `start`, in chunks of `CHUNK_BYTES`. `_crc` becomes the CRC32C of all of them."""
        content = self.new.content
        self._crc = 0  # each attempt of an upload starts at the first byte
        for at in range(start, content.size, CHUNK_BYTES):
            length = min(CHUNK_BYTES, content.size - at)
            data = content.read(at, length)
            self._crc = int(google_crc32c.extend(self._crc, data))
            yield data
            self.new.report(at, length)

    def _commit(self, work: Callable[[], dict[str, Any]]) -> None:
        """Call `work`, which writes the new object and returns the API's description of it, and compare the stored
        size and CRC32C with the content's.

        After an error, such as a lost answer, the stored object shows whether it was written nevertheless.

        Raises:
            Conflict: the precondition failed.
            WriteError: the store refused the object, or the stored one differs from the content.
        """
        new = self.new
        try:
            resource = work()
        except (ObjectNotFound, Conflict, WriteError):
            stored = self._client.resource(new.at)
            if stored is None or str(stored["generation"]) == new.precondition or not self._matches(stored):
                raise
            return
        if not self._matches(resource):
            uri, generation = new.at.uri, self._source.get("generation")
            back = f"gcloud storage cp '{uri}#{generation}' '{uri}', where the bucket keeps versions"
            raise WriteError(
                "the object in the store isn't what was written",
                path=uri,
                hint=back if new.in_place else "delete it, and try again",
            )

    def _matches(self, resource: dict[str, Any]) -> bool:
        """Whether a stored object has the content's size and CRC32C."""
        return int(resource["size"]) == self.new.content.size and resource.get("crc32c") == encoded(self._crc)


def _rewrite(client: GcsClient, origin: Location, source: dict[str, Any], to: Location) -> str:
    """Copy the source within the store to a temporary object of another bucket. Returns its generation."""
    url = f"{client.api.url(origin.bucket, origin.key)}/rewriteTo/b/{to.bucket}/o/"
    params: dict[str, str] = {
        "sourceGeneration": source["generation"],
        "ifSourceGenerationMatch": source["generation"],
        "ifGenerationMatch": "0",
    }
    body = json.dumps({key: source[key] for key in ("storageClass",) if key in source}).encode()
    target = client.api.url(to.bucket, to.key).rpartition("/")[2]
    for _ in range(int(source["size"]) // _REWRITTEN_BYTES + _REWRITES):
        answer = client.api.send(
            to, Request("POST", url + target, params, {"Content-Type": "application/json"}, body), writing=True
        )
        with client.api.answers.checked(to, writing=True):
            document = document_in(answer)
            if document.get("done"):
                return str(size_in(document["resource"]["generation"]))
            params["rewriteToken"] = str(document["rewriteToken"])
    raise client.api.answers.foreign(to, writing=True, why="copying doesn't come to an end")


def _kept_properties(source: dict[str, Any]) -> dict[str, Any]:
    return {key: source[key] for key in _KEPT if source.get(key)}


def _key(source: dict[str, Any]) -> dict[str, str]:
    """The request parameter for the source's Cloud KMS key, without the key's version."""
    name = source.get("kmsKeyName", "").partition("/cryptoKeyVersions/")[0]
    return {"kmsKeyName": name} if name else {}
