"""Results of a store's functions: types and sizes of paths, entries of listings, files that killed runs left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from pathlib import PurePosixPath
from typing import NamedTuple

from bloomcli.errors import BloomError, UsageError


class Fingerprint(NamedTuple):
    """Identity of a file's content: two fingerprints of a path differ if the file has changed.

    A store fills in the fields that it knows.
    """

    size: int
    mtime_ns: int
    inode: int = 0
    device: int = 0
    tag: str = ""
    """An object's ETag or generation."""

    def has_content_of(self, other: Fingerprint) -> bool:
        """Whether the content is the same: equal sizes, and equal tags (or equal times where there are no tags)."""
        tagged = self.tag or other.tag
        return self.size == other.size and (self.tag == other.tag if tagged else self.mtime_ns == other.mtime_ns)


class Kind(Enum):
    """The type of a path's target."""

    FILE = auto()
    DIRECTORY = auto()
    OTHER = auto()
    """A device, a pipe, a socket."""


class Status(NamedTuple):
    """A store's information about a path. Links are followed."""

    kind: Kind
    size: int
    mtime_ns: int


class SweepResult(NamedTuple):
    """Temporary files that a sweep found in a directory."""

    removed: Sequence[str] = ()
    """Temporary files of killed runs, which the sweep removed."""
    remaining: Sequence[str] = ()
    """Temporary files of running writers, and files of unknown origin."""
    remarks: Sequence[str] = ()
    """Remarks for the user on the remaining files, such as unfinished uploads and the commands that end them."""

    @classmethod
    def joined(cls, sweeps: Iterable[SweepResult]) -> SweepResult:
        """The results of several sweeps as one, in their order."""
        found = list(sweeps)
        return cls(*([name for each in found for name in each[field]] for field in range(len(cls._fields))))


class FileEntry(NamedTuple):
    """An entry of a listing: a file to work on, or the reason why a path isn't one."""

    path: str
    size: int
    """Bytes; -1 if unknown."""
    relative: str
    """Path below the directory that was named, for a mirrored tree. Of a named file: its partitions and its name."""
    walked: bool
    """The file was found in a directory, not named."""
    matched: bool = False
    """The file was found by a pattern, not named."""
    linked: bool = False
    """The path is a link to a directory, found in a directory. Such links aren't followed."""
    empty: bool = False
    """The path is a directory without files, named together with other paths."""
    problem: BloomError | None = None
    """The error of a named path that can't be listed. It becomes a row with this error; no file is opened."""
    mtime_ns: int = 0
    """Time of the last change of a file of this machine; 0 if unknown."""
    tag: str = ""
    """ETag or generation of an object, as `Fingerprint.tag`; empty if the listing has none."""

    @property
    def skipped(self) -> bool:
        """Whether the entry isn't a file, and becomes a skipped row."""
        return self.linked or self.empty


def failed_entry(path: str, problem: BloomError) -> FileEntry:
    """The entry of a path that can't be listed."""
    return FileEntry(path=path, size=-1, relative=PurePosixPath(path).name, walked=False, problem=problem)


def output_exists(path: str, hint: str = "--overwrite replaces it") -> UsageError:
    """The error for an output that exists and may not be replaced."""
    return UsageError("the output exists already", path=path, hint=hint)
