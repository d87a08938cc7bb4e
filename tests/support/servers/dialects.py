"""Names of the requests of S3, Google Cloud Storage and Azure, and the forms of their errors."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from support.servers.messages import Request, Response


class Dialect(ABC):
    """One vendor's requests."""

    @abstractmethod
    def kind(self, request: Request) -> str:
        """The request's name in the vendor's documentation."""

    @abstractmethod
    def error(self, status: int) -> tuple[Response, bytes]:
        """The vendor's answer on an internal error (500) or overload (503, 429)."""

    def failed_completion(self) -> tuple[Response, bytes]:
        """The answer 200 with an error in its body, if the vendor has one."""
        raise NotImplementedError


class Web(Dialect):
    """A web server's."""

    def kind(self, request: Request) -> str:
        """The method."""
        return request.method

    def error(self, status: int) -> tuple[Response, bytes]:
        """A text."""
        return _answer(status, "injected", "text/plain")


class S3(Dialect):
    """Amazon's, with the bucket in the path."""

    def kind(self, request: Request) -> str:
        """The names of S3's API reference."""
        query, method = request.query, request.method
        in_bucket = "/" not in request.path.strip("/")
        if "uploads" in query:
            return "CreateMultipartUpload" if method == "POST" else "ListMultipartUploads"
        if "uploadId" in query:
            if method == "PUT":
                return "UploadPartCopy" if request.get("x-amz-copy-source") else "UploadPart"
            names = {"POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload", "GET": "ListParts"}
            return names[method]
        if "delete" in query and method == "POST":
            return "DeleteObjects"
        if "list-type" in query:
            return "ListObjectsV2"
        for key, name in _SUBRESOURCES.items():
            if key in query:
                verb = {"GET": "Get", "PUT": "Put", "DELETE": "Delete", "HEAD": "Head"}[method]
                return f"{verb}{'Bucket' if in_bucket else 'Object'}{name}"
        if in_bucket:
            names = {"GET": "ListObjects", "HEAD": "HeadBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}
            return names[method]
        if method == "PUT" and request.get("x-amz-copy-source"):
            return "CopyObject"
        return {"GET": "Get", "HEAD": "Head", "PUT": "Put", "DELETE": "Delete"}[method] + "Object"

    def error(self, status: int) -> tuple[Response, bytes]:
        """An XML document with a code."""
        return _answer(status, _s3_error(_S3_CODES[status]), "application/xml")

    def failed_completion(self) -> tuple[Response, bytes]:
        """As S3 documents it for CompleteMultipartUpload and UploadPartCopy."""
        return _answer(200, _s3_error("InternalError"), "application/xml")


class Azure(Dialect):
    """Azure's blobs."""

    def kind(self, request: Request) -> str:
        """The names of the REST reference."""
        query, method = request.query, request.method
        comp, in_container = query.get("comp", ""), query.get("restype") == "container"
        if comp == "list":
            return "List Blobs" if in_container else "List Containers"
        if in_container:
            return {"GET": "Get", "HEAD": "Get", "PUT": "Create", "DELETE": "Delete"}[method] + " Container"
        if comp == "block":
            return "Put Block From URL" if request.get("x-ms-copy-source") else "Put Block"
        if comp == "blocklist":
            return "Put Block List" if method == "PUT" else "Get Block List"
        if comp:
            return f"{'Set' if method == 'PUT' else 'Get'} Blob {comp.capitalize()}"
        if method == "PUT" and request.get("x-ms-copy-source"):
            return "Copy Blob"
        return {"GET": "Get Blob", "HEAD": "Get Blob Properties", "PUT": "Put Blob", "DELETE": "Delete Blob"}[method]

    def error(self, status: int) -> tuple[Response, bytes]:
        """An XML document with a code, which is in a header, too."""
        code = {
            500: "InternalError",
            503: "ServerBusy",
            429: "TooManyRequests",
            403: "AuthorizationPermissionMismatch",
        }[status]
        text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>injected</Message></Error>'
        response, body = _answer(status, text, "application/xml")
        response.headers += [("x-ms-error-code", code), ("x-ms-request-id", "injected")]
        return response, body


class Gcs(Dialect):
    """Google's JSON API."""

    def kind(self, request: Request) -> str:
        """The methods of the JSON API."""
        method, path = request.method, request.path
        if path.startswith("/upload/") or "uploadType" in request.query or "upload_id" in request.query:
            kind = request.query.get("uploadType", "resumable")
            return f"objects.insert ({kind}{', start' if kind == 'resumable' and method == 'POST' else ''})"
        if path.endswith("/compose"):
            return "objects.compose"
        if "/rewriteTo/" in path or "/copyTo/" in path:
            return "objects.rewrite"
        _, _, name = path.partition("/o/")
        if not name:
            if path.rstrip("/").endswith("/o"):
                return "objects.list"
            return (
                f"buckets.{ {'GET': 'get', 'POST': 'insert', 'DELETE': 'delete', 'PATCH': 'patch'}.get(method, '') }"
            )
        if method == "GET":
            return "objects.get (media)" if request.query.get("alt") == "media" else "objects.get"
        return f"objects.{ {'DELETE': 'delete', 'PATCH': 'patch', 'PUT': 'update'}.get(method, method) }"

    def error(self, status: int) -> tuple[Response, bytes]:
        """A JSON document."""
        reason = {500: "internalError", 503: "backendError", 429: "rateLimitExceeded", 403: "forbidden"}[status]
        return self.refusal(status, reason, "injected")

    def refusal(self, status: int, reason: str, message: str) -> tuple[Response, bytes]:
        """An error with a reason."""
        inside = {"message": message, "domain": "global", "reason": reason}
        text = json.dumps({"error": {"code": status, "message": message, "errors": [inside]}})
        return _answer(status, text, "application/json; charset=UTF-8")


_SUBRESOURCES = {
    "tagging": "Tagging",
    "acl": "Acl",
    "retention": "Retention",
    "legal-hold": "LegalHold",
    "object-lock": "LockConfiguration",
    "versioning": "Versioning",
    "versions": "Versions",
    "location": "Location",
    "policy": "Policy",
    "lifecycle": "Lifecycle",
    "encryption": "Encryption",
    "attributes": "Attributes",
}
_S3_CODES = {500: "InternalError", 503: "SlowDown", 429: "TooManyRequests", 403: "AccessDenied"}
_REASONS = {200: "OK", 304: "Not Modified", 404: "Not Found", 412: "Precondition Failed", 429: "Too Many Requests"}


def _s3_error(code: str) -> str:
    inside = f"<Code>{code}</Code><Message>injected</Message><RequestId>INJECTED</RequestId><HostId>proxy</HostId>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inside}</Error>'


def _answer(status: int, text: str, content_type: str) -> tuple[Response, bytes]:
    body = text.encode()
    reason = _REASONS.get(status, "Error")
    headers = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
    return Response(f"HTTP/1.1 {status} {reason}", headers), body
