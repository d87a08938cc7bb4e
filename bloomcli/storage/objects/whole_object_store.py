"""Base class of stores that replace an object after the whole new content is known and verified.

Until then nothing is sent to the store, so nothing has to be undone if a piece can't be produced: kept ranges are
recorded, and new bytes are written to a local temporary file. A subclass only uploads the content on a condition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from bloomcli.concurrency.signals import terminable
from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import Cancelled, KeptRange, Pieces, Progress, Source, Verify, output_exists
from bloomcli.storage.objects.client import Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content, PlannedSource
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import ObjectStore, source_of

PART_BYTES: Final = 8 << 20
"""Maximum number of bytes that one request uploads."""
_REQUESTS: Final = 5
"""Requests of a replacement besides those that upload or copy content: for properties, completion and checks."""


class NewObject(NamedTuple):
    """A new object to upload."""

    at: Location
    content: Content
    precondition: Precondition | str
    """The tag of the object to replace if that is the source, else a condition without a tag."""
    origin: ObjectSource | None
    """The source if it is an object of this store."""
    progress: Progress | None
    leftovers: list[str]
    """URIs of temporary objects that couldn't be removed; `upload` appends to it."""

    @property
    def in_place(self) -> bool:
        """Whether the source is the object to replace."""
        return isinstance(self.precondition, str)

    @property
    def is_copy(self) -> bool:
        """Whether the content is the whole source, unchanged."""
        kept, size = self.content.segments, self.content.source.size
        return size != 0 and [(s.offset, s.length, s.kept) for s in kept] == [(0, size, True)]


class WholeObjectStore(ObjectStore):
    """A store that uploads an object after its whole content is known."""

    def __init__(self) -> None:
        super().__init__()
        self._leftovers: dict[str, list[str]] = {}

    def leftover_files(self, path: str) -> Sequence[str]:
        """URIs of the temporary objects that `replace` couldn't remove."""
        return self._leftovers.pop(path, ())

    @abstractmethod
    def check_replaceable(self, at: Location, known: ObjectInfo | None = None) -> None:
        """Check that an object can be replaced, before anything is read.

        Args:
            at: the object.
            known: its information if it was opened.

        Raises:
            UsageError: the object can't be replaced.
        """

    @abstractmethod
    def upload(self, new_object: NewObject) -> None:
        """Write a new object, with the source's properties if the source is an object of this store.

        Raises:
            Conflict: the precondition failed, or the source has changed.
            WriteError: the store refused the object. Nothing was left in the store unless the error says so.
        """

    @abstractmethod
    def keeps_ranges(self, ranges: Sequence[KeptRange], source: ObjectSource, at: Location) -> bool:
        """Estimate for a dry run whether kept ranges of a source can be copied within the store."""

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """The traffic of a replacement: properties, reading and uploading content, and completion."""
        pieces = list(outline)
        ranges = [piece for piece in pieces if isinstance(piece, KeptRange)]
        kept = sum(piece.length for piece in ranges)
        new = sum(piece for piece in pieces if not isinstance(piece, KeptRange))
        origin, at = source_of(source, self.client), self.client.locate(path)
        if origin is not None and self.keeps_ranges(ranges, origin, at):
            return Traffic(_REQUESTS + -(-new // PART_BYTES), 0, new, kept)
        reading = source.estimate(ranges)
        return reading + Traffic(_REQUESTS + -(-(kept + new) // PART_BYTES), 0, kept + new, 0)

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Check that the output can be written. Raises UsageError."""
        super().check_output(path, overwrite=overwrite, makes_directories=makes_directories, force=force)
        self.check_replaceable(self.client.locate(path))

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
        """Collect all pieces, verify the content, and upload it on a condition."""
        del cancelled, force  # nothing is copied before the last piece; conditions can't be left out
        at = self.client.locate(path)
        with closing(pieces), closing(Content(source)) as content, terminable():
            origin = source_of(source, self.client)
            precondition = self._precondition(at, origin, overwrite=overwrite, path=path)
            for piece in pieces:
                content.add(piece)
                del piece  # a filter may be large: free it before the next one is built
            content.finish()
            if verify is not None:
                verify(PlannedSource(path, content))
            if origin is None:  # otherwise `upload` checks the source when it reads the properties
                source.check_unchanged()
            leftovers: list[str] = []
            try:
                self.upload(NewObject(at, content, precondition, origin, progress, leftovers))
            except (ObjectNotFound, Conflict):
                if precondition is Precondition.NO_OBJECT and self.client.head(at) is not None:
                    raise output_exists(path) from None
                raise source.changed("changed") from None
            finally:
                if leftovers:
                    self._leftovers[path] = leftovers
            return content.size

    def _precondition(
        self, at: Location, origin: ObjectSource | None, *, overwrite: bool, path: str
    ) -> Precondition | str:
        if not overwrite:
            if self.client.head(at) is not None:
                raise output_exists(path)
            return Precondition.NO_OBJECT
        if origin is not None and self.client.identity(origin.at) == self.client.identity(at):
            self.check_replaceable(at, origin.info)
            return origin.info.tag
        self.check_replaceable(at)
        return Precondition.NONE
