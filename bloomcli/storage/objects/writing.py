"""What a vendor's client does to write objects: the interface for `ObjectStore`, which takes the steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import STEP_BYTES, KeptRange, Progress, Source, SweepResult
from bloomcli.storage.objects.client import Client, Location, ObjectInfo, Page, Precondition
from bloomcli.storage.objects.content import Content, within
from bloomcli.storage.objects.source import ObjectSource

PART_BYTES: Final = 8 << 20
"""Maximum number of bytes that one request uploads."""

_REQUESTS: Final = 5
"""Requests of a replacement besides those that upload or copy content: for properties, completion and checks."""


class NewObject(NamedTuple):
    """A new object to write."""

    at: Location
    path: str
    """Its name in messages."""

    content: Content
    precondition: Precondition | str
    """The tag of the object to replace if that is the source, else a condition without a tag."""

    previous: ObjectInfo | None
    """The object to replace; None if there is none."""

    origin: ObjectSource | None
    """The source if it is an object of this store."""

    progress: Progress | None
    force: bool

    @property
    def in_place(self) -> bool:
        """Whether the source is the object to replace."""
        return isinstance(self.precondition, str)

    def report(self, start: int, length: int) -> None:
        """Report the kept bytes in a range of the content, which were just written, in steps of `STEP_BYTES`."""
        if self.progress is not None:
            for segment in within(self.content.segments, start, start + length):
                for at in range(0, segment.length if segment.kept else 0, STEP_BYTES):
                    self.progress(min(STEP_BYTES, segment.length - at))


class Writer(ABC):
    """Writes a new object, with the source's properties if the source is an object of this store.

    Attributes:
        new: the new object.
    """

    def __init__(self, new: NewObject) -> None:
        self.new = new

    def add(self) -> None:  # noqa: B027  most writers wait for the whole content
        """Begin to write what is final of the content so far."""

    def finish(self) -> None:  # noqa: B027  as above
        """Write the rest of the content, which is complete, but not the object itself."""

    @abstractmethod
    def complete(self) -> None:
        """Write the verified object on its precondition.

        Raises:
            Conflict: the precondition failed, or the source has changed.
            WriteError: the store refused the object. Nothing was left in the store unless the error says so.
        """

    def abort(self, error: BaseException) -> None:  # noqa: B027  most writers have nothing to end
        """End what was begun after an error, which is extended if something is left in the store."""


class WritingClient(Client):
    """A client that lists objects, and writes objects of any size.

    Attributes:
        appends_only: see `Store.appends_only`, for sources in the same store.
    """

    appends_only = False

    @abstractmethod
    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> Iterator[Page]:
        """List the objects whose keys begin with a prefix, one page per request.

        Args:
            at: the bucket and the prefix.
            delimiter: list directories as prefixes instead of the objects in them.
            limit: maximum number of entries and prefixes in a page; None for the store's default.
        """

    @abstractmethod
    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Write an object in one request. Raises Conflict if the precondition fails."""

    @abstractmethod
    def check_replaceable(self, at: Location, info: ObjectInfo | None = None, *, force: bool) -> ObjectInfo | None:
        """Check that an object can be replaced, before anything is read.

        Args:
            at: the object.
            info: its information if it was opened.
            force: replace the object even if a lock is lost.

        Returns:
            Its information; None if it doesn't exist.

        Raises:
            UsageError: the object can't be replaced.
        """

    @abstractmethod
    def writer(self, new: NewObject) -> Writer:
        """The writer of a new object."""

    def keeps_ranges(self, ranges: Sequence[KeptRange], origin: ObjectSource, at: Location) -> bool:
        """Estimate for a dry run whether kept ranges of a source can be copied within the store."""
        del ranges, origin, at
        return False

    def estimate(
        self, at: Location, outline: Iterable[KeptRange | int], source: Source, origin: ObjectSource | None
    ) -> Traffic:
        """The traffic of a replacement: properties, reading and uploading content, and completion."""
        pieces = list(outline)
        ranges = [piece for piece in pieces if isinstance(piece, KeptRange)]
        kept = sum(piece.length for piece in ranges)
        new = sum(piece for piece in pieces if not isinstance(piece, KeptRange))
        if origin is not None and self.keeps_ranges(ranges, origin, at):
            return Traffic(_REQUESTS + -(-new // PART_BYTES), 0, new, kept)
        reading = source.estimate(ranges)
        return reading + Traffic(_REQUESTS + -(-(kept + new) // PART_BYTES), 0, kept + new, 0)

    def sweep(self, locations: Collection[Location]) -> SweepResult:
        """Remove what killed runs left of objects to write: see `Store.sweep_for`. By default there is nothing."""
        del locations
        return SweepResult()
