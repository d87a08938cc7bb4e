"""The store for S3."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from bloomcli.extras import needed
from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import Cancelled, KeptRange, Pieces, Progress, Source, SweepResult, Verify, output_exists
from bloomcli.storage.objects.content import outline_segments
from bloomcli.storage.objects.store import ObjectStore, source_of
from bloomcli.storage.s3.client import S3Client


class S3Store(ObjectStore):
    """A store of objects with s3://, s3a:// and s3n:// URIs.

    Args:
        put_most: maximum size of an object that is written in one request, in bytes; by default
            `replacing.PUT_MOST_BYTES`.
    """

    def __init__(self, put_most: int | None = None) -> None:
        self._put_most = put_most

    @cached_property
    def client(self) -> S3Client:
        """The client. Raises UnsupportedError if boto3 isn't installed."""
        with needed("S3 needs", "s3"):
            import boto3  # noqa: F401
        return S3Client()

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Check that the object can be written. Raises UsageError, UnreadableError."""
        del makes_directories
        from bloomcli.storage.s3.properties import check_no_loss

        at = self.client.locate(path)
        found = self.client.head(at)
        if found is None:
            return
        if not overwrite:
            raise output_exists(path)
        if not force:
            check_no_loss(at, found.details or {})

    def replace(
        self,
        path: str,
        pieces: Pieces,
        *,
        source: Source,
        overwrite: bool,
        verify: Verify | None = None,
        cancelled: Cancelled | None = None,
        progress: Progress | None = None,
        force: bool = False,
    ) -> int:
        """Write the object by a multipart upload or one request. `bloomcli.storage.s3` describes the steps."""
        from bloomcli.storage.s3 import replacing

        most = replacing.PUT_MOST_BYTES if self._put_most is None else self._put_most
        request = replacing.ReplaceRequest(self.client, path, source, overwrite, force, progress, most)
        return replacing.replace(request, pieces, verify=verify, cancelled=cancelled)

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """The traffic of a multipart upload or a single request, including those that read the object."""
        from bloomcli.storage.s3 import replacing
        from bloomcli.storage.s3.replacing import of_parts, of_put

        del path
        segments = outline_segments(outline)
        copies = source_of(source, self.client) is not None
        put_most = replacing.PUT_MOST_BYTES if self._put_most is None else self._put_most
        return of_put(segments, source, put_most, copies=copies) or of_parts(segments, source, copies=copies)

    def sweep(self, path: str) -> SweepResult:
        """Report unfinished uploads to the object."""
        return self.sweep_for([path])

    def sweep_for(self, paths: Iterable[str]) -> SweepResult:
        """Report unfinished uploads to the objects."""
        from bloomcli.storage.s3.upload import sweep

        return sweep(self.client, [*map(self.client.locate, paths)])
