"""What a command asked of an object store: requests, and bytes each way, as in reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests and bytes between this machine and an object store, retries included.

    Bytes are those of objects' contents, without headers and without the text of requests.
    """

    requests: int = 0
    bytes_downloaded: int = 0
    bytes_uploaded: int = 0
    bytes_copied_by_store: int = 0
    """Bytes that the store copied from object to object: they don't pass through this machine."""

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.requests + other.requests,
            self.bytes_downloaded + other.bytes_downloaded,
            self.bytes_uploaded + other.bytes_uploaded,
            self.bytes_copied_by_store + other.bytes_copied_by_store,
        )

    def __bool__(self) -> bool:
        return self != Traffic()
