"""The store for Google Cloud Storage. The SDK is imported when the client is first used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli.errors import BloomError
from bloomcli.extras import needed
from bloomcli.storage.base import KeptRange, Source, SweepResult
from bloomcli.storage.objects.client import Location, ObjectInfo
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import source_of
from bloomcli.storage.objects.whole_object_store import NewObject, WholeObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.gcs.client import GcsClient


class GcsStore(WholeObjectStore):
    """A store of objects with gs:// and gcs:// URIs."""

    mtime_step_ns = 1_000  # generations are microseconds

    @cached_property
    def client(self) -> GcsClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Google Cloud Storage needs", "gcs"):
            from bloomcli.storage.gcs.client import GcsClient
        return GcsClient()

    def check_replaceable(self, at: Location, known: ObjectInfo | None = None) -> None:
        """Refuse objects with holds, retention or a customer's encryption key. Raises UsageError."""
        del known  # answers to reads don't have these properties
        from bloomcli.storage.gcs.writing import check_replaceable

        check_replaceable(self.client, at)

    def upload(self, new_object: NewObject) -> None:
        """Compose the object or upload it. Raises Conflict, WriteError."""
        from bloomcli.storage.gcs.writing import write

        write(self.client, new_object)

    def keeps_ranges(self, ranges: Sequence[KeptRange], source: ObjectSource, at: Location) -> bool:
        """Whether the kept ranges are the whole source."""
        del at
        return bool(ranges) and (ranges[0].offset, sum(r.length for r in ranges)) == (0, source.size)

    def appends_only(self, source: Source, path: str) -> bool:
        """Whether the source is an object of this store: compose can only concatenate whole objects."""
        del path
        return source_of(source, self.client) is not None

    def sweep(self, path: str) -> SweepResult:
        """Remove the temporary objects of killed runs in the object's directory."""
        from bloomcli.storage.gcs.writing import OLD_SECONDS, owner_of

        at = self.client.locate(path)
        directory = Location(at.root, f"{at.key.rpartition('/')[0]}/." if "/" in at.key else ".")
        removed: list[str] = []
        remaining: list[str] = []
        with suppress(BloomError):  # a user without permission to list may still have permission to write
            for page in self.client.list_pages(directory, "name,generation,timeCreated", delimiter=True):
                for item in page.get("items", []):
                    owner, place = owner_of(item["name"]), Location(at.root, item["name"])
                    if owner is None:
                        continue
                    with self.client.api.checked_answer(place):
                        age = time.time() - datetime.fromisoformat(item["timeCreated"]).timestamp()
                        generation = str(item["generation"])
                    ended = age > OLD_SECONDS or (owner.is_here and not owner.is_alive)
                    deleted = ended and self.client.try_delete(place, generation)
                    (removed if deleted else remaining).append(place.uri)
        return SweepResult(removed, remaining)
