"""What stores tell of paths: their types and sizes, the files that they mean, and what killed runs left there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from pathlib import PurePosixPath

from bloomcli.errors import BloomError, UsageError
from bloomcli.named_tuple import NamedTuple


class Fingerprint(NamedTuple):
    """Tells whether a file is still the one that was opened. A store fills in what it knows."""

    size: int
    mtime_ns: int
    inode: int = 0
    device: int = 0
    tag: str = ""
    """An object's ETag or generation."""

    def has_content_of(self, other: Fingerprint) -> bool:
        """Whether two fingerprints of a path are of one content, by size and tag, or time where there are no tags."""
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
    """Unfinished files in a directory, after a sweep."""

    removed: Sequence[str] = ()
    """Temporary files of killed runs."""
    remaining: Sequence[str] = ()
    """Temporary files of running writers, and those of unknown origin."""
    remarks: Sequence[str] = ()
    """What to tell the user of those that are left, such as unfinished uploads and the commands that end them."""

    @classmethod
    def joined(cls, sweeps: Iterable[SweepResult]) -> SweepResult:
        """What several sweeps have found, in their order."""
        found = list(sweeps)
        return cls(*([name for each in found for name in each[field]] for field in range(len(cls._fields))))


class FileEntry(NamedTuple):
    """A file to work on."""

    path: str
    size: int
    """Bytes; -1 where it isn't known."""
    relative: str
    """Path below the directory that was named, for a mirrored tree; a named file's name, after its partitions."""
    walked: bool
    """It was found in a directory, not named."""
    matched: bool = False
    """It was found by a pattern, not by its name."""
    linked: bool = False
    """It is a link to a directory, found in a directory: it is not followed."""
    empty: bool = False
    """It is a directory without files, named beside other paths."""
    problem: BloomError | None = None
    """The named path can't be listed: it becomes a row with this error, and no file is opened."""
    mtime_ns: int = 0
    """Of a file of this machine, the time of the last change; 0 where the listing doesn't tell."""
    tag: str = ""
    """Of an object, its ETag or generation, as `Fingerprint.tag`; empty where the listing doesn't tell."""

    @property
    def skipped(self) -> bool:
        """Whether it is no file, and becomes a skipped row."""
        return self.linked or self.empty


def failed_entry(path: str, problem: BloomError) -> FileEntry:
    """The row of a path that can't be listed."""
    return FileEntry(path=path, size=-1, relative=PurePosixPath(path).name, walked=False, problem=problem)


def output_exists(path: str, hint: str = "--overwrite replaces it") -> UsageError:
    """The error of an output that exists already and may not be replaced."""
    return UsageError("the output exists already", path=path, hint=hint)
