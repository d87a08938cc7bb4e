"""The traffic between a command and an object store, as in reports: requests, and bytes in each direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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


class TrafficFields(Protocol):
    """A report on one file that contains its traffic."""

    @property
    def requests(self) -> int | None:
        """Requests to the object store; None for local files."""

    @property
    def bytes_downloaded(self) -> int | None:
        """Bytes of objects that came from the store."""

    @property
    def bytes_uploaded(self) -> int | None:
        """Bytes of objects that went to the store."""

    @property
    def bytes_copied_by_store(self) -> int | None:
        """Bytes that the store copied from object to object."""


def traffic_of(report: TrafficFields) -> Traffic | None:
    """The traffic of a report; None for local files."""
    if report.requests is None:
        return None
    return Traffic(
        report.requests,
        report.bytes_downloaded or 0,
        report.bytes_uploaded or 0,
        report.bytes_copied_by_store or 0,
    )
