"""The half of a store that follows from a client's requests: opening, listing, names, and small files."""

from __future__ import annotations

import fnmatch
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bloomcli.errors import UnreadableError, UsageError
from bloomcli.storage.base import Kind, Listed, Source, Status, Store
from bloomcli.storage.names import has_wildcard, is_hidden
from bloomcli.storage.objects.client import Client, Conflict, Location, Need
from bloomcli.storage.objects.source import ObjectSource

EXISTS: Final = "the output exists already"


class ObjectStore(Store):
    """Objects by their URIs. A directory is what keys have in common up to a slash."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client, made when it is first needed. Raises UnsupportedError where the store's package is missing."""

    def open(self, path: str) -> Source:
        """Open an object: one request. Raises UnreadableError, UnsupportedError, UsageError."""
        return ObjectSource(self.client, self.client.locate(path), path)

    def status(self, path: str) -> Status | None:
        """An object's, or that of a directory. Raises UnreadableError, UnsupportedError, UsageError."""
        at = self.client.locate(path)
        if at.key and not at.key.endswith("/"):
            found = self.client.head(at)
            if found is not None:
                return Status(Kind.FILE, found.size, found.mtime_ns)
        return Status(Kind.DIRECTORY, 0, 0) if self._has_below(at) else None

    def list(self, path: str) -> Iterator[Listed]:
        """The object itself, those below a directory, those that match a pattern. Raises UnreadableError."""
        if has_wildcard(path):
            yield from self._matching(path)
            return
        at = self.client.locate(path)
        if at.key and not at.key.endswith("/"):
            found = self.client.head(at)
            if found is not None or not self._has_below(at):
                size = -1 if found is None else found.size
                yield Listed(path=path, size=size, relative=at.key.rpartition("/")[2], walked=False)
                return
        prefix = _directory_key(at.key)
        for key, size in self._keys(at.root, prefix):
            relative = key[len(prefix) :]
            if relative and not key.endswith("/") and not any(map(is_hidden, relative.split("/"))):
                yield Listed(path=f"{at.root}/{key}", size=size, relative=relative, walked=True)

    def is_dataset(self, path: str) -> bool:
        """Whether a URI has wildcards or ends with a slash, or there is no such object but a directory."""
        if has_wildcard(path) or path.endswith("/"):
            return True
        status = self.status(path)
        return status is not None and status.kind is Kind.DIRECTORY

    def spelling(self) -> Callable[[str], str]:
        """A key has one spelling, a bucket may have several (`Client.identity`)."""
        client = self.client
        return lambda path: client.identity(client.locate(path))

    def normal(self, path: str) -> str:
        """Return the path unchanged."""
        return path

    def check_changes(self, path: str) -> None:
        """Objects can be replaced."""

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """What the key has up to each slash, and the bucket."""
        at = self.client.locate(path)
        parts = at.key.split("/")[:-1]
        for count in range(len(parts), max(len(parts) - levels, -1), -1):
            yield "/".join((at.root, *parts[:count]))

    def directory(self, path: str) -> str:
        """Return the part before the last slash."""
        return path.rpartition("/")[0]

    def join(self, directory: str, name: str) -> str:
        """The URI of a name in a directory."""
        return f"{directory.rstrip('/')}/{name}"

    def names(self, directory: str) -> Sequence[str]:
        """The names in a directory, hidden ones too. Raises UnreadableError."""
        at = self.client.locate(directory)
        prefix = _directory_key(at.key)
        found = []
        for page in self.client.pages(Location(at.root, prefix), delimiter=True):
            found += [key[len(prefix) :].rstrip("/") for key in (*(e.key for e in page.entries), *page.prefixes)]
        return [name for name in found if name]

    def may_search(self, directory: str) -> bool:
        """Nothing tells that the user may not."""
        del directory
        return True

    def destination(self, output: str, path: str) -> str:
        """The object to write. Raises UsageError."""
        at = self.client.locate(output)
        if at.key == "" or at.key.endswith("/"):
            raise UsageError(f"the output {output!r} names a directory", path=path, hint="name the object")
        if self._is_same(output, path):
            raise UsageError("the output is the input", path=path, hint="--in-place replaces an object safely")
        if self._has_below(at):
            raise UsageError(f"the output {output!r} is a directory", path=path, hint="name the object")
        return output

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Put an object. Raises UsageError, WriteError."""
        try:
            self.client.put(self.client.locate(path), data, Need.NOTHING if overwrite else Need.ABSENT)
        except Conflict:
            raise UsageError(EXISTS, path=path, hint="--overwrite replaces it") from None

    def _matching(self, pattern: str) -> Iterator[Listed]:
        at = self.client.locate(pattern)
        parts = at.key.split("/")
        fixed = next(number for number, part in enumerate(parts) if has_wildcard(part))
        beginning = parts[fixed][: min(i for i, c in enumerate(parts[fixed]) if c in "*?[")]
        prefix = "/".join([*parts[:fixed], beginning])
        found = False
        for key, size in self._keys(at.root, prefix):
            names = key.split("/")
            if len(names) == len(parts) and _matches(names[fixed:], parts[fixed:]):
                found = True
                relative = "/".join(names[fixed:])
                yield Listed(f"{at.root}/{key}", size, relative, walked=False, matched=True)
        if not found:
            raise UnreadableError("no object matches the pattern", path=pattern, hint="check the path")

    def _is_same(self, output: str, path: str) -> bool:
        """Whether a path, which may be one of another store, is that of the output."""
        try:
            return self.client.identity(self.client.locate(path)) == self.client.identity(self.client.locate(output))
        except UsageError:
            return False

    def _keys(self, root: str, prefix: str) -> Iterator[tuple[str, int]]:
        for page in self.client.pages(Location(root, prefix)):
            yield from page.entries

    def _has_below(self, at: Location) -> bool:
        pages = self.client.pages(Location(at.root, _directory_key(at.key)), limit=1)
        return any(page.entries for page in pages)


def _directory_key(key: str) -> str:
    return key if not key or key.endswith("/") else f"{key}/"


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether each name matches its pattern; a pattern that doesn't begin with a dot leaves hidden names out."""
    return all(
        fnmatch.fnmatchcase(name, pattern) and (not is_hidden(name) or is_hidden(pattern))
        for name, pattern in zip(names, patterns, strict=True)
    )
