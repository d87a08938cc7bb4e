"""Writes objects: the steps that the vendors' stores share.

    condition -> pieces -> content -> verify -> upload on the condition

Most stores are sent nothing before the whole content is known and verified, so nothing has to be undone if a piece
can't be produced: kept ranges are recorded, and new bytes are written to a local temporary file. A `Writer` may begin
earlier, and then has to end what it began.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from bloomcli.concurrency.signals import terminable
from bloomcli.errors import WriteError
from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import KeptRange, Progress, Replacement, Source, SweepResult, output_exists
from bloomcli.storage.objects.client import Client, Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content, PlannedSource
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import ObjectStore, source_of

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


class Writer(ABC):
    """Writes a new object, with the source's properties if the source is an object of this store.

    Attributes:
        new: the new object.
        leftovers: URIs of temporary objects that couldn't be removed.
    """

    def __init__(self, new: NewObject) -> None:
        self.new = new
        self.leftovers: list[str] = []

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
    """A client that writes objects of any size.

    Attributes:
        appends_only: see `Store.appends_only`, for sources in the same store.
    """

    appends_only = False

    @abstractmethod
    def check_replaceable(self, at: Location, known: ObjectInfo | None = None, *, force: bool) -> ObjectInfo | None:
        """Check that an object can be replaced, before anything is read.

        Args:
            at: the object.
            known: its information if it was opened.
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


class WritableObjectStore(ObjectStore):
    """A store that writes objects by a vendor's client."""

    def __init__(self) -> None:
        self._leftovers: dict[str, list[str]] = {}

    @property
    @abstractmethod
    def client(self) -> WritingClient:
        """The client, created on first use. Raises UnsupportedError if the store's package isn't installed."""

    def leftover_files(self, path: str) -> Sequence[str]:
        """URIs of the temporary objects that `replace` couldn't remove."""
        return self._leftovers.pop(path, ())

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """The traffic of a replacement, including the requests that read the source."""
        client = self.client
        return client.estimate(client.locate(path), outline, source, source_of(source, client))

    def appends_only(self, source: Source, path: str) -> bool:
        """Whether the source is an object of this store, which can only append to it."""
        del path
        return self.client.appends_only and source_of(source, self.client) is not None

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Check that the output can be written. Raises UsageError."""
        super().check_output(path, overwrite=overwrite, makes_directories=makes_directories, force=force)
        if overwrite:
            self.client.check_replaceable(self.client.locate(path), force=force)

    def sweep_for(self, paths: Iterable[str]) -> SweepResult:
        """Remove or report what killed runs left of these objects."""
        return self.client.sweep([*map(self.client.locate, paths)])

    def _replace(self, wanted: Replacement) -> int:
        """Collect all pieces, verify the content, and upload it on a condition."""
        with closing(Content(wanted.source)) as content, terminable():
            writer = self.client.writer(self._new_object(wanted, content))
            try:
                with closing(wanted.pieces):  # ends their threads before the object is verified
                    _add_pieces(wanted, content, writer)
                writer.finish()
                if wanted.verify is not None:
                    wanted.verify(PlannedSource(wanted.path, content))
                if writer.new.origin is None:  # otherwise, the writer checks the source
                    wanted.source.check_unchanged()
                self._complete(writer, wanted.source)
            except BaseException as error:
                writer.abort(error)
                raise
            return content.size

    def _complete(self, writer: Writer, source: Source) -> None:
        new = writer.new
        try:
            writer.complete()
        except (ObjectNotFound, Conflict):
            if new.precondition is Precondition.NO_OBJECT and self.client.head(new.at) is not None:
                raise output_exists(new.path) from None
            raise source.changed("changed") from None
        finally:
            if writer.leftovers:
                self._leftovers[new.path] = writer.leftovers

    def _new_object(self, wanted: Replacement, content: Content) -> NewObject:
        """The object to write, with its precondition. Raises UsageError if it can't be replaced."""
        client, path, force = self.client, wanted.path, wanted.force
        at, origin = client.locate(path), source_of(wanted.source, client)
        precondition: Precondition | str = Precondition.NONE
        if not wanted.overwrite:
            if client.head(at) is not None:
                raise output_exists(path)
            precondition, previous = Precondition.NO_OBJECT, None
        elif origin is not None and client.identity(origin.at) == client.identity(at):
            precondition, previous = origin.info.tag, client.check_replaceable(at, origin.info, force=force)
        else:
            previous = client.check_replaceable(at, force=force)
        return NewObject(at, path, content, precondition, previous, origin, wanted.progress, force)


def _add_pieces(wanted: Replacement, content: Content, writer: Writer) -> None:
    skipped = False
    for piece in wanted.pieces:
        if isinstance(piece, KeptRange) and wanted.cancelled is not None and wanted.cancelled():
            skipped = True  # producing the next piece raises
            continue
        content.add(piece)
        del piece  # a filter may be large: free it before the next one is built
        if not skipped:
            writer.add()
    if skipped:
        raise WriteError("copying was cancelled", path=content.source.path)
    content.finish()
