"""Base class of object stores: opens, lists, names and writes objects through a client.

An object is written in these steps:

    condition -> pieces -> content -> verify -> upload on the condition

Most stores are sent nothing before the whole content is known and verified, so nothing has to be undone if a piece
can't be produced: kept ranges are recorded, and new bytes are written to a local temporary file. A `Writer` may begin
earlier, and then has to end what it began.

Patterns match keys of objects as `bloomcli.storage.local` matches files: ``*``, ``?`` and ``[...]`` match characters
within one name, ``**`` matches any number of directories. A hidden name matches only if the pattern spells its dot or
underscore. A key below a matching directory matches too.
"""

from __future__ import annotations

import fnmatch
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from enum import Enum, auto
from typing import Final

from bloomcli.concurrency.signals import terminable
from bloomcli.errors import UnreadableError, UsageError, WriteError
from bloomcli.model.paths import shown
from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import (
    FileEntry,
    Fingerprint,
    KeptRange,
    Kind,
    ManagedTable,
    Replacement,
    Source,
    Store,
    SweepResult,
    output_exists,
    root_of_mark,
)
from bloomcli.storage.names import has_wildcard, is_hidden
from bloomcli.storage.objects.client import (
    AccessDenied,
    Client,
    Conflict,
    Entry,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Page,
    Precondition,
)
from bloomcli.storage.objects.content import Content, PlannedSource
from bloomcli.storage.objects.source import ObjectSource, Tail, fingerprint_of, object_from_parts, read_tail
from bloomcli.storage.objects.writing import NewObject, Writer, WritingClient

_ANY_DEPTH: Final = "**"


class Match(Enum):
    """How a key matches."""

    NAME = auto()
    """The pattern matches the whole key."""
    BELOW = auto()
    """The pattern matches a directory above the key."""


class Pattern:
    """A wildcard pattern for keys.

    Attributes:
        directory: the directory that contains the first wildcard, with a slash at its end; empty for the bucket.
        prefix: the common prefix of all keys that can match.
    """

    def __init__(self, pattern: str) -> None:
        parts = pattern.split("/")
        fixed = next(number for number, part in enumerate(parts) if has_wildcard(part))
        self.directory = "".join(f"{part}/" for part in parts[:fixed])
        self.prefix = self.directory + re.split(r"[*?\[]", parts[fixed])[0]
        wild = parts[fixed:]
        if wild[-1] == "":  # matches directories, not objects
            wild.pop()
            self._directories = True
        else:
            self._directories = False
        self._parts = [part if part == _ANY_DEPTH else re.compile(fnmatch.translate(part)) for part in wild]
        self._dotted = [part.startswith(".") for part in wild]
        self._spelled = {part[0] for part in wild if part}

    def match(self, key: str) -> Match | None:
        """How a key matches; None if it doesn't."""
        if not key.startswith(self.directory):
            return None
        names = key[len(self.directory) :].split("/")
        for count in range(len(names), 0, -1):
            whole = count == len(names)
            if whole and self._directories:
                continue
            if self._matches(names[:count], 0, 0) and self._is_meant(names[:count]):
                if whole:
                    return Match.NAME
                if not any(map(is_hidden, names[count:])):
                    return Match.BELOW
        return None

    def _matches(self, names: Sequence[str], name: int, part: int) -> bool:
        if part == len(self._parts):
            return name == len(names)
        wanted = self._parts[part]
        if isinstance(wanted, str):  # any number of directories
            if self._matches(names, name, part + 1):
                return True
            return name < len(names) and not names[name].startswith(".") and self._matches(names, name + 1, part)
        if name == len(names) or wanted.match(names[name]) is None:
            return False
        if names[name].startswith(".") and not self._dotted[part]:
            return False
        return self._matches(names, name + 1, part + 1)

    def _is_meant(self, names: Sequence[str]) -> bool:
        """Whether the pattern spells the first character of each hidden name."""
        return all(name[0] in self._spelled for name in names if is_hidden(name))


_TAIL_SECONDS: Final = 5.0
"""How long `open` may reuse the tail that `is_dataset` read."""


def source_of(source: Source, client: Client) -> ObjectSource | None:
    """The source if it reads an object through this client; None for others."""
    return source if isinstance(source, ObjectSource) and source._client is client else None


class ObjectStore(Store):
    """A store of objects with URIs. A directory is a common prefix of keys that ends at a slash."""

    remote = True
    mtime_step_ns = 1_000_000_000  # Last-Modified has whole seconds

    _tail: tuple[float, str, Tail] | None = None
    """The tail that `is_dataset` read, with its time and path."""

    @property
    @abstractmethod
    def client(self) -> WritingClient:
        """The client, created on first use. Raises UnsupportedError if the store's package isn't installed."""

    def open(self, path: str) -> Source:
        """Open an object by one request. Raises UnreadableError, UnsupportedError, UsageError."""
        at = self.client.locate(path)
        if not at.key or at.key.endswith("/"):
            raise UnreadableError("can't be read: is a directory", path=path, hint="name an object in it")
        return ObjectSource(self.client, at, path, self._cached_tail(path))

    def open_end(self, path: str, length: int) -> Source:
        """Open an object and read its last bytes, by one request. Raises the errors of `open`."""
        at = self.client.locate(path)
        return ObjectSource(self.client, at, path, tail_bytes=length) if at.key else self.open(path)

    def open_from_parts(
        self, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]]
    ) -> Source | None:
        """Open an object without a request. Later reads are conditional on the tag."""
        return object_from_parts(self.client, path, fingerprint, parts)

    def kind(self, path: str) -> Kind | None:
        """Whether a URI names an object or a directory. Raises UnreadableError, UnsupportedError, UsageError."""
        at = self.client.locate(path)
        if self._head_object(at) is not None:
            return Kind.FILE
        return Kind.DIRECTORY if self._has_below(at) else None

    def fingerprint(self, path: str) -> Fingerprint | None:
        """An object's size, change time and tag. Raises UnreadableError, UnsupportedError, UsageError."""
        at = self.client.locate(path)
        info = self.client.head(at) if at.key else None
        return None if info is None else fingerprint_of(info)

    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """List an object, the objects below a directory, or those that match a pattern. Raises UnreadableError."""
        at = self.client.locate(path)
        info = self._head_object(at)
        if info is not None:
            yield _named_entry(path, at, info.size, info.tag)
        elif has_wildcard(path):
            yield from self._matching(at, path, tables)
        elif at.key and not at.key.endswith("/") and not self._has_below(at):
            yield _named_entry(path, at, -1, "")
        else:
            prefix = _directory_key(at.key)
            base = len(_above_partitions(prefix))
            for key, size, tag in self._keys(at.root, prefix, tables):
                names = key[len(prefix) :].split("/")
                if names[-1] and not any(map(is_hidden, names)):
                    yield FileEntry(f"{at.root}/{key}", size, key[base:], walked=True, tag=tag)

    def is_dataset(self, path: str) -> bool:
        """Whether a URI ends with a slash, or names no object and has wildcards or names a directory."""
        if path.endswith("/"):
            return True
        at = self.client.locate(path)
        tail = read_tail(self.client, at) if at.key else None
        if tail is not None:
            self._tail = (time.monotonic(), path, tail)
            return False
        return has_wildcard(path) or self._has_below(at)

    def _cached_tail(self, path: str) -> Tail | None:
        """The tail that `is_dataset` read for this path recently. It is returned only once."""
        entry, self._tail = self._tail, None
        if entry is None or entry[1] != path or time.monotonic() - entry[0] > _TAIL_SECONDS:
            return None
        return entry[2]

    def spelling(self) -> Callable[[str], str]:
        """The function from a path to its normal spelling: a bucket may have several (`Client.identity`)."""
        client = self.client
        return lambda path: client.identity(client.locate(path))

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """The directories above an object, from the nearest to the bucket."""
        at = self.client.locate(path)
        parts = at.key.split("/")[:-1]
        for count in range(len(parts), max(len(parts) - levels, -1), -1):
            yield "/".join((at.root, *parts[:count]))

    def names(self, directory: str) -> Iterator[str]:
        """The names in a directory, including hidden ones. Raises UnreadableError."""
        at = self.client.locate(directory)
        prefix = _directory_key(at.key)
        for page in self.client.pages(Location(at.root, prefix), delimiter=True):
            keys = (*(entry.key for entry in page.entries), *page.prefixes)
            yield from {key[len(prefix) :].rstrip("/") for key in keys} - {""}

    def existing(self, directory: str, wanted: Mapping[str, Kind]) -> Collection[str]:
        """The wanted names that exist in a directory. Raises UnreadableError.

        Sends one request, and in a directory of more than a page one more per wanted name.
        """
        at = self.client.locate(directory)
        root, prefix = at.root, _directory_key(at.key)
        keys = {name: f"{prefix}{name}{'/' if kind is Kind.DIRECTORY else ''}" for name, kind in wanted.items()}
        pages = iter(self.client.pages(Location(root, prefix), delimiter=True))
        page = next(pages, Page((), (), last=True))
        keys_found = {*page.prefixes, *(entry.key for entry in page.entries)}
        if page.last or next(pages, None) is None:
            return {name for name, key in keys.items() if key in keys_found}
        # the directory has more pages: look up each name
        return {
            name
            for name, key in keys.items()
            if key in keys_found or any(entry.key.startswith(key) for entry in self._first(root, key, wanted[name]))
        }

    def _first(self, root: str, key: str, kind: Kind) -> Sequence[Entry]:
        """The first object whose key begins with `key`; for a file, only the object with that key."""
        page = next(iter(self.client.pages(Location(root, key), limit=1)), Page((), ()))
        return [entry for entry in page.entries if kind is Kind.DIRECTORY or entry.key == key]

    def destination(self, output: str, path: str) -> str:
        """The URI of the object to write. Raises UsageError."""
        at = self.client.locate(output)
        if at.key == "" or at.key.endswith("/"):
            raise UsageError(f"the output {shown(output)!r} names a directory", path=path, hint="name the object")
        if self._is_same(output, path):
            raise UsageError("the output is the input", path=path, hint="--in-place replaces an object safely")
        if self._is_directory(at):
            raise UsageError(f"the output {shown(output)!r} is a directory", path=path, hint="name the object")
        return output

    def mirrored(self, output: str, relative: str) -> str:
        """The URI of an object below a directory. Raises UsageError if the output can't be a directory's URI."""
        at = self.client.locate(output)
        return f"{at.root}/{_directory_key(at.key)}{relative}"

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Put an object. Raises UsageError, WriteError."""
        try:
            self.client.put(
                self.client.locate(path), data, Precondition.NONE if overwrite else Precondition.NO_OBJECT
            )
        except Conflict:
            raise output_exists(path) from None

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

    def _matching(self, at: Location, path: str, tables: set[ManagedTable] | None) -> Iterator[FileEntry]:
        pattern = Pattern(at.key)
        base = len(_above_partitions(pattern.directory))
        any_match = False
        for key, size, tag in self._keys(at.root, pattern.prefix, tables):
            match = pattern.match(key)
            if match is not None and not key.endswith("/"):
                any_match = True
                named = match is Match.NAME
                yield FileEntry(f"{at.root}/{key}", size, key[base:], walked=not named, matched=named, tag=tag)
        if not any_match:
            raise UnreadableError("the pattern matches no object", path=path, hint="check it, and quote it")

    def _head_object(self, at: Location) -> ObjectInfo | None:
        """The information of the object at a location; None if it doesn't exist."""
        return self.client.head(at) if at.key and not at.key.endswith("/") else None

    def _is_same(self, output: str, path: str) -> bool:
        """Whether a path, possibly of another store, names the same object as the output."""
        try:
            return self.client.identity(self.client.locate(path)) == self.client.identity(self.client.locate(output))
        except UsageError:
            return False

    def _keys(self, root: str, prefix: str, tables: set[ManagedTable] | None) -> Iterator[Entry]:
        """The objects whose keys begin with a prefix. `tables` gets the tables whose metadata are among them."""
        for page in self.client.pages(Location(root, prefix)):
            if tables is not None:
                tables.update(table for entry in page.entries if (table := root_of_mark(f"{root}/{entry.key}")))
            yield from page.entries

    def _is_directory(self, at: Location) -> bool:
        """Whether objects exist below a key. False if listing is denied: they don't prevent writing the object."""
        try:
            return self._has_below(at)
        except AccessDenied:
            return False

    def _has_below(self, at: Location) -> bool:
        pages = self.client.pages(Location(at.root, _directory_key(at.key)), limit=1)
        return any(page.entries for page in pages)


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


def _directory_key(key: str) -> str:
    return key if not key or key.endswith("/") else f"{key}/"


def _named_entry(path: str, at: Location, size: int, tag: str) -> FileEntry:
    directory = at.key.rpartition("/")[0]
    relative = at.key[len(_above_partitions(f"{directory}/" if directory else "")) :]
    return FileEntry(path, size, relative, walked=False, tag=tag)


def _above_partitions(directory: str) -> str:
    """The directory without the Hive partitions at its end. Both end with a slash or are empty."""
    while "=" in directory.rstrip("/").rpartition("/")[2]:
        directory = directory.rstrip("/").rpartition("/")[0]
        directory += "/" if directory else ""
    return directory
