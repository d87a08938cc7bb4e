"""A small Iceberg REST catalog for Spark's client, whose answers can fail.

PyIceberg applies the commits: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata

LOST_BEFORE: Final = "lost-before"
"""A commit isn't made, and its request gets no answer."""
LOST_AFTER: Final = "lost-after"
"""A commit is made, and its answer is lost."""
FAILED: Final = "failed"
"""A commit isn't made, and the answer has the status 500."""
UNSURE: Final = "unsure"
"""A commit is made, and the answer has the status 502."""

VIEW: Final = "a_view"
"""The name of a view in every namespace."""


class RestCatalog:
    """Tables in memory.

    Args:
        folder: the folder of metadata files.
        location: the folder of data files; by default `folder`.
    """

    def __init__(self, folder: Path, location: str | None = None) -> None:
        self.folder = folder
        self.location = location or str(folder)
        self.tables: dict[str, TableMetadata] = {}
        self.fault: str | None = None
        """What happens to the next commit."""
        self.refusing = False
        """Whether the user may not load tables."""
        self.lock = threading.Lock()

    def create(self, body: bytes) -> tuple[int, Any]:
        """Create a table."""
        asked = CreateTableRequest.model_validate_json(body)
        self.tables[asked.name] = new_table_metadata(
            asked.table_schema,
            asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            asked.write_order or UNSORTED_SORT_ORDER,
            asked.location or f"{self.location}/{asked.name}",
            asked.properties,
        )
        return self.load(asked.name)

    def load(self, name: str) -> tuple[int, Any]:
        """A table's metadata."""
        if self.refusing:
            return 403, _error("ForbiddenException", 403)
        if name not in self.tables:
            return 404, _error("NoSuchTableException", 404)
        metadata = self.tables[name]
        text = metadata.model_dump_json()
        path = self.folder / name / "metadata" / f"{hashlib.sha256(text.encode()).hexdigest()}.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return 200, {"metadata-location": str(path), "metadata": json.loads(text)}

    def commit(self, name: str, body: bytes) -> tuple[int, Any] | None:
        """Commit to a table. Returns None if the request gets no answer."""
        identifier = {"namespace": ["db"], "name": name}  # Java's client leaves it out
        asked = CommitTableRequest.model_validate({"identifier": identifier, **json.loads(body)})
        fault = None
        if any(update.action == "add-snapshot" for update in asked.updates):
            fault, self.fault = self.fault, None
        if fault == LOST_BEFORE:
            return None
        if fault == FAILED:
            return 500, _error("ServerError", 500)
        with self.lock:
            try:
                for requirement in asked.requirements:
                    requirement.validate(self.tables[name])
            except CommitFailedException:
                return 409, _error("CommitFailedException", 409)
            self.tables[name] = update_table_metadata(self.tables[name], asked.updates)
        if fault == LOST_AFTER:
            return None
        return (502, _error("ServerError", 502)) if fault == UNSURE else self.load(name)


def _error(kind: str, code: int) -> Any:
    return {"error": {"message": kind, "type": kind, "code": code}}


def _view(folder: Path) -> Any:
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "select 1 id", "dialect": "spark"}],
    }
    metadata = {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": f"{folder}/view",
        "current-version-id": 1,
        "versions": [version],
        "version-log": [{"timestamp-ms": 1, "version-id": 1}],
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "int"}]}
        ],
        "properties": {},
    }
    return {"metadata-location": f"{folder}/view/metadata/1.json", "metadata": metadata}


def _handler(catalog: RestCatalog) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path).path.strip("/").split("/")
            if parts == ["v1", "config"]:
                endpoints = [
                    "GET /v1/{prefix}/namespaces/{namespace}",
                    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                    "POST /v1/{prefix}/namespaces/{namespace}/tables",
                    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
                ]
                self._answer(200, {"defaults": {}, "overrides": {}, "endpoints": endpoints})
            elif len(parts) == 3:
                self._answer(200, {"namespace": [parts[2]], "properties": {}})
            elif len(parts) == 5 and parts[3] == "tables":
                self._answer(*catalog.load(parts[4]))
            elif len(parts) == 5 and parts[3:] == ["views", VIEW]:
                self._answer(200, _view(catalog.folder))
            else:
                self._answer(404, _error("NoSuchViewException", 404))

        def do_POST(self) -> None:
            parts = urlsplit(self.path).path.strip("/").split("/")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if len(parts) == 4:
                self._answer(*catalog.create(body))
            elif len(parts) == 5:
                answer = catalog.commit(parts[4], body)
                if answer is None:
                    self.close_connection = True
                else:
                    self._answer(*answer)
            else:
                self._answer(204, None)

        def _answer(self, status: int, content: Any) -> None:
            data = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's
            del format, args

    return Handler


@contextmanager
def served(folder: Path, location: str | None = None) -> Iterator[tuple[RestCatalog, str]]:
    """A catalog, and the URI of its server."""
    catalog = RestCatalog(folder, location)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(catalog))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield catalog, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
