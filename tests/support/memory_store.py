"""A store in this process's memory, for tests that look at objects and not at requests."""

from __future__ import annotations

from typing import Final

from support.object_stores import MemoryObjects, Stored, Upload

SCHEME: Final = "memory"


class MemoryStore(MemoryObjects):
    """Objects by their URIs."""

    mtime_step_ns = 1

    @property
    def objects(self) -> dict[str, Stored]:
        """The objects."""
        return self.client.objects

    @property
    def uploads(self) -> dict[int, Upload]:
        """The uploads that aren't completed, by their numbers."""
        return self.client.uploads

    def put(self, path: str, data: bytes) -> None:
        """Write an object, or replace it, as another program does."""
        self.client.store(path, data)

    def begin(self, path: str, *, alive: bool = True) -> int:
        """Begin an upload. Returns its number."""
        return self.client.begin(path, alive=alive)
