"""Replaces an object once the whole content of the new one is known and verified.

Until then nothing is sent to the store, so that nothing has to be taken back where a piece can't be made: kept ranges
are noted, and new bytes go to a temporary file of this machine. A store of this kind has only to upload the content
on a condition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Final

from bloomcli.concurrency.signals import terminable
from bloomcli.model.traffic import Traffic
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import Cancelled, KeptRange, Pieces, Progress, Source, Verify
from bloomcli.storage.entries import output_exists
from bloomcli.storage.objects.client import Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content, PlannedSource
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import ObjectStore, source_of

PART_BYTES: Final = 8 << 20
"""Bytes that are uploaded in one request, at most."""
_REQUESTS: Final = 5
"""Those for the objects' properties before, for the new object, and for what was written."""


class NewObject(NamedTuple):
    """A new object that is to be written."""

    at: Location
    content: Content
    precondition: Precondition | str
    """The condition: the tag of the object that is replaced, if that is the source."""
    origin: ObjectSource | None
    """The source, if it is an object of this store."""
    progress: Progress | None
    leftovers: list[str]
    """Temporary objects that couldn't be removed: who uploads adds their URIs."""

    @property
    def in_place(self) -> bool:
        """Whether the source is the object that is replaced."""
        return isinstance(self.precondition, str)

    @property
    def is_copy(self) -> bool:
        """Whether the content is exactly the source's."""
        kept, size = self.content.segments, self.content.source.size
        return size != 0 and [(s.offset, s.length, s.kept) for s in kept] == [(0, size, True)]


class WholeObjectStore(ObjectStore):
    """A store that uploads an object when its whole content is known."""

    def __init__(self) -> None:
        super().__init__()
        self._leftovers: dict[str, list[str]] = {}

    def leftover_files(self, path: str) -> Sequence[str]:
        """The temporary objects that `replace` couldn't remove."""
        return self._leftovers.pop(path, ())

    @abstractmethod
    def check_replaceable(self, at: Location, known: ObjectInfo | None = None) -> None:
        """Refuse an object that can't be replaced, before anything is read.

        Args:
            at: the object.
            known: its information from opening it, if it was opened.

        Raises:
            UsageError: it can't be replaced.
        """

    @abstractmethod
    def upload(self, new_object: NewObject) -> None:
        """Write a new object, with the properties of the source if that is an object of this store.

        Raises:
            Conflict: the condition isn't met, or the source isn't the object any more that was opened.
            WriteError: the store refuses. Nothing is left, unless the error says so.
        """

    @abstractmethod
    def keeps_ranges(self, ranges: Sequence[KeptRange], source: ObjectSource, at: Location) -> bool:
        """Whether kept ranges of a source stay in the store, about. A dry run asks."""

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """Requests for what the objects are, for the new bytes in parts, and for the new object."""
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
        """Look at what is there. Raises UsageError."""
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
        """Take all pieces, verify the content, and upload it on its condition."""
        del cancelled, force  # nothing is copied before the last piece; no condition can be left out
        at = self.client.locate(path)
        with closing(pieces), closing(Content(source)) as content, terminable():
            origin = source_of(source, self.client)
            precondition = self._precondition(at, origin, overwrite=overwrite, path=path)
            for piece in pieces:
                content.add(piece)
                del piece  # a filter may be large, and the next one is built where it was
            content.finish()
            if verify is not None:
                verify(PlannedSource(path, content))
            if origin is None:  # else `upload` looks at the object whose properties it takes over
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
