"""Google Cloud Storage's preconditions for fake-gcs-server, which ignores them.

https://cloud.google.com/storage/docs/request-preconditions: `ifGenerationMatch` (0: no such object exists),
`ifGenerationNotMatch` and `ifMetagenerationMatch` apply to the object that is read or written; compose has
preconditions for each of its sources, and rewrite for its source. `generation` names a version: without versioning
only the latest exists.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import urllib.parse
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple

from support.servers.dialects import Gcs
from support.servers.messages import Request, Response
from support.servers.proxy import Guard

_GCS: Final = Gcs()
_OBJECT: Final = re.compile(r"/b/([^/]+)/o/(.+?)(?:/compose|/(?:rewrite|copy)To/b/([^/]+)/o/(.+))?$")
_UPLOAD: Final = re.compile(r"/upload/(?:storage/v1/b/([^/]+)/o|resumable/(\w+))")


class _Start(NamedTuple):
    """How a resumable upload was started."""

    bucket: str
    name: str
    query: dict[str, str]


class Preconditions(Guard):
    """Checks generations before the emulator gets a request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = threading.RLock()
        self._uploads: dict[str, _Start] = {}

    def reads_body(self, request: Request) -> bool:
        """Whether the check needs the body: compose names its sources there, and an upload may name its object."""
        return request.path.endswith("/compose") or (
            request.path.startswith("/upload/") and request.query.get("uploadType") in {"multipart", "resumable"}
        )

    def alone(self, request: Request) -> AbstractContextManager[object]:
        """Held by a request that writes: no other request writes between its check and its effect."""
        return nullcontext() if request.method in {"GET", "HEAD"} else self._lock

    def refusal(self, request: Request, content: bytes) -> tuple[Response, bytes] | None:
        """The answer 412, 304 or 404 if a condition isn't met."""
        if found := _UPLOAD.search(request.path):
            return self._of_upload(request, content, found)
        raw = urllib.parse.urlsplit(request.start.split(" ", 2)[1]).path
        found = _OBJECT.search(raw)
        if found is None:
            return None
        bucket, name, to_bucket, to_name = (urllib.parse.unquote(part or "") for part in found.groups())
        if to_bucket:
            source = {"ifGenerationMatch": request.query.get("ifSourceGenerationMatch", "")}
            source["generation"] = request.query.get("sourceGeneration", "")
            refused = self._checked(bucket, name, source, reading=False)
            return refused or self._checked(to_bucket, to_name, dict(request.query), reading=False)
        if raw.endswith("/compose"):
            for part in json.loads(content).get("sourceObjects", []):
                wanted = str(part.get("objectPreconditions", {}).get("ifGenerationMatch", ""))
                conditions = {"ifGenerationMatch": wanted, "generation": str(part.get("generation", ""))}
                if refused := self._checked(bucket, part["name"], conditions, reading=False):
                    return refused
        return self._checked(bucket, name, dict(request.query), reading=request.method in {"GET", "HEAD"})

    def answered(self, request: Request, response: Response) -> None:
        """Remember the conditions of a resumable upload: they are checked when it ends."""
        upload = re.search(r"upload_id=(\w+)", response.get("location"))
        upload = upload or re.search(r"/upload/resumable/(\w+)", response.get("location"))
        started = getattr(request, "_started", None)
        if upload and started:
            with self._lock:
                self._uploads[upload.group(1)] = started

    def _of_upload(self, request: Request, content: bytes, found: re.Match[str]) -> tuple[Response, bytes] | None:
        upload = found.group(2) or request.query.get("upload_id", "")
        started = self._uploads.get(upload)
        if started is not None:
            return self._checked(started.bucket, started.name, started.query, reading=False)
        bucket = urllib.parse.unquote(found.group(1) or "")
        name = request.query.get("name") or _name_in(content)
        request._started = _Start(bucket, name, dict(request.query))  # type: ignore[attr-defined]
        return self._checked(bucket, name, dict(request.query), reading=False)

    def _checked(
        self, bucket: str, name: str, conditions: dict[str, str], *, reading: bool
    ) -> tuple[Response, bytes] | None:
        names = ("ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "generation")
        wanted = {key: conditions[key] for key in names if conditions.get(key)}
        if not wanted:
            return None
        now = self._current(bucket, name)
        generation, metageneration = str(now.get("generation", "0")), str(now.get("metageneration", "0"))
        if wanted.get("generation", generation) != generation:
            return _GCS.refusal(404, "notFound", f"No such object: {bucket}/{name}#{wanted['generation']}")
        if wanted.get("ifGenerationMatch", generation) != generation:
            # A read of an object that isn't there is 404, whatever the condition.
            return None if reading and not now else _unmet()
        if wanted.get("ifGenerationNotMatch") == generation:
            return _GCS.refusal(304, "notModified", "Not Modified") if reading else _unmet()
        if wanted.get("ifMetagenerationMatch", metageneration) != metageneration:
            return _unmet()
        return None

    def _current(self, bucket: str, name: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            quoted = urllib.parse.quote(name, safe="")
            connection.request("GET", f"/storage/v1/b/{urllib.parse.quote(bucket, safe='')}/o/{quoted}")
            answer = connection.getresponse()
            content = answer.read()
            return json.loads(content) if answer.status == 200 else {}
        finally:
            connection.close()


def _unmet() -> tuple[Response, bytes]:
    return _GCS.refusal(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")


def _name_in(content: bytes) -> str:
    """The object's name in the metadata of an upload: a JSON document, or the first part of several."""
    start, decoder = content.find(b"{"), json.JSONDecoder()
    if start < 0:
        return ""
    found, _ = decoder.raw_decode(content[start:].split(b"\r\n--")[0].decode())
    return str(found.get("name", ""))
