"""The stores of Amazon, Google and Microsoft, and the files of web servers.

A vendor's SDK, or urllib3, is imported when its client is first used.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from bloomcli.errors import UnsupportedError, needed
from bloomcli.model.paths import shown
from bloomcli.storage.base import FileEntry, Fingerprint, Kind, ManagedTable, ReadOnlyStore, Source
from bloomcli.storage.objects.source import ObjectSource, fingerprint_of, object_from_parts
from bloomcli.storage.objects.store import ObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.azure.writing import WritingAzureClient
    from bloomcli.storage.gcs.writing import WritingGcsClient
    from bloomcli.storage.https_client import HttpClient
    from bloomcli.storage.s3.writing import WritingS3Client


class S3Store(ObjectStore):
    """A store of objects with s3://, s3a:// and s3n:// URIs."""

    @cached_property
    def client(self) -> WritingS3Client:
        """The client. Raises UnsupportedError if boto3 isn't installed."""
        with needed("S3 needs", "s3"):
            from bloomcli.storage.s3.writing import WritingS3Client

        return WritingS3Client()


class GcsStore(ObjectStore):
    """A store of objects with gs:// and gcs:// URIs."""

    mtime_step_ns = 1_000  # generations are microseconds

    @cached_property
    def client(self) -> WritingGcsClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Google Cloud Storage needs", "gcs"):
            from bloomcli.storage.gcs.writing import WritingGcsClient

        return WritingGcsClient()


class AzureStore(ObjectStore):
    """A store of blobs with az://, abfs:// and abfss:// URIs."""

    @cached_property
    def client(self) -> WritingAzureClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Azure's blobs need", "azure"):
            from bloomcli.storage.azure.writing import WritingAzureClient

        return WritingAzureClient()


_WILDCARDS: Final = frozenset("*[")
"""Without the question mark, which begins the query."""


class HttpStore(ReadOnlyStore):
    """A read-only store of files with http:// and https:// URIs."""

    remote = True
    mtime_step_ns = 1_000_000_000  # Last-Modified has whole seconds

    @cached_property
    def client(self) -> HttpClient:
        """The client. Raises UnsupportedError if urllib3 isn't installed."""
        with needed("https:// and http:// need", "https"):
            from bloomcli.storage.https_client import HttpClient
        return HttpClient()

    def open(self, path: str) -> Source:
        """Open a file by one request. Raises UnreadableError, UnsupportedError, UsageError."""
        at = self.client.locate(path)
        return ObjectSource(self.client, at, shown(path))

    def open_from_parts(
        self, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]]
    ) -> Source | None:
        """Open a file without a request. Later reads are conditional on the tag."""
        return object_from_parts(self.client, path, fingerprint, parts, shown(path))

    def kind(self, path: str) -> Kind | None:
        """FILE, or None if the file doesn't exist. Raises UnreadableError, UnsupportedError."""
        return None if self.fingerprint(path) is None else Kind.FILE

    def fingerprint(self, path: str) -> Fingerprint | None:
        """A file's size, change time and tag. Raises UnreadableError, UnsupportedError."""
        info = self.client.head(self.client.locate(path))
        return None if info is None else fingerprint_of(info)

    def is_dataset(self, path: str) -> bool:
        """Whether a URI looks like a directory or a pattern. Sends no request."""
        name = _name(path)
        return not name or name.endswith("/") or not _WILDCARDS.isdisjoint(name)

    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """List the named file. Raises UnsupportedError for directories and patterns."""
        del tables
        if self.is_dataset(path):
            raise UnsupportedError(
                "a web server's files can't be listed",
                path=shown(self.client.locate(path).uri),
                hint="name the files, or put their URIs into a file for --files-from",
            )
        yield FileEntry(path, -1, PurePosixPath(urllib.parse.unquote(_name(path))).name, walked=False)


def _name(uri: str) -> str:
    """The path of a URI, even if its host is invalid."""
    return re.split(r"[?#]", uri.partition("://")[2].partition("/")[2], maxsplit=1)[0]
