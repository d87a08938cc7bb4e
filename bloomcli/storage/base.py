"""The interface of stores: they read ranges of files, list files, and replace them.

A store is where files lie: the local file system (`local`), or what pyarrow reads behind URIs (`arrow_store`).
Nothing above this package knows which one a path is in: `registry.store_of` does. Paths are text, as they are typed.

A replacement is described by its pieces, so that a store moves no byte that it has already:

    KeptRange     a range of the source: a local copy_file_range, a part that an object store copies, a block it keeps
    bytes         new bytes, appended
    PlacedBytes   new bytes, written ahead of the pieces that come before them in the file

and by its conditions: the source is still the file that was read, the target may be overwritten, and the new file
passes `verify`. If one of them fails, or a piece can't be made, the target stays as it was and nothing is left.
``tests/storage/suite`` holds every store to that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from bloomcli.errors import CorruptFile, SourceChanged
from bloomcli.model.traffic import Traffic
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.entries import FileEntry, Fingerprint, Kind, Status, SweepResult, failed_entry, output_exists

__all__ = ["FileEntry", "Fingerprint", "Kind", "Status", "SweepResult", "failed_entry"]

STEP_BYTES: Final = 16 << 20
"""Bytes of a kept range that are copied at a time, at most: between steps a store reports progress and may stop."""


class Source(ABC):
    """A file that is open for reading.

    Attributes:
        path: the file, as the user named it.
        size: bytes, when it was opened.
        read_ahead_bytes: how many bytes of a stream to read at a time: so many that they stay in the processor's
            cache until they are decompressed; more where each read is a request to a server.
        streams: how many long ranges may be read at a time; None where it doesn't matter.
        request_bytes: bytes that arrive in the time that a request takes. It and the next two are 0 without any.
        part_bytes: bytes that one request reads of announced ranges, at most.
        tail_bytes: bytes of the file's end that the request reads which opens it.
    """

    path: str
    size: int
    read_ahead_bytes: int = 512 << 10
    streams: int | None = None
    request_bytes: int = 0
    part_bytes: int = 0
    tail_bytes: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset` on. Threads may read at once.

        Raises:
            CorruptFile: the range isn't inside the file; nothing was allocated.
            SourceChanged: the file has become shorter since it was opened.
            UnreadableError: the store can't read it.
        """
        self.check_range(offset, length)
        data = self._read(offset, length) if length else b""
        if len(data) != length:
            raise self.changed("became shorter")
        return data

    def check_range(self, offset: int, length: int) -> None:
        """Raise CorruptFile if a range isn't inside the file."""
        if offset < 0 or length < 0 or offset > self.size - length:
            raise CorruptFile(
                f"bytes {offset} to {offset + length} were looked for, the file has {self.size}",
                path=self.path,
                offset=offset,
                hint="the file is cut off or damaged; get it from its source again",
            )

    def fileno(self) -> int | None:
        """The descriptor of a file of this machine, whose bytes are those that `read_at` gives; None of others."""
        return None

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:  # noqa: B027  most sources have nothing to do
        """Announce ranges, each an offset and a length, that are about to be read.

        Where each read is a request, the source reads near ones together and several at once, and keeps a bounded
        number of bytes. Ranges may lie outside the file: `read_at` checks each when it is read. Other sources do
        nothing, and don't look at the ranges.
        """

    def estimate(self, ranges: Iterable[tuple[int, int]]) -> Traffic:
        """The requests that reading announced ranges takes, and their bytes; none by default."""
        del ranges
        return Traffic()

    def check_unchanged(self) -> None:
        """Raise SourceChanged if the file's fingerprint isn't what it was when the file was opened."""
        if self._current() != self.fingerprint:
            raise self.changed("changed")

    def changed(self, how: str) -> SourceChanged:
        """The error of a file that changed."""
        return SourceChanged(
            f"the file {how} while it was being worked on",
            path=self.path,
            hint="something else writes to it; try again when it is done. bloom wrote nothing to it",
        )

    @property
    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """The file's fingerprint when it was opened."""

    @abstractmethod
    def _current(self) -> Fingerprint | None:
        """The fingerprint of the file that has the path now; None if there is none, or it can't be the same."""

    @abstractmethod
    def _read(self, offset: int, length: int) -> bytes:
        """The bytes of a range within the file; fewer where the file has become shorter."""

    @abstractmethod
    def close(self) -> None:
        """Close the file. Closing it twice does no harm."""


class KeptRange(NamedTuple):
    """A range of the source that is copied to the new file."""

    offset: int
    length: int


class PlacedBytes(NamedTuple):
    """New bytes for an offset beyond the pieces written so far: a filter that is ready while the body is copied."""

    offset: int
    """In the new file."""
    data: bytes | bytearray


Piece = KeptRange | PlacedBytes | bytes | bytearray
"""Kept ranges and new bytes follow one another. Placed bytes come after all kept
ranges, including later ones; later new bytes follow the placed ones."""

Pieces = Generator[Piece, None, None]
"""The pieces of a new file, made while earlier ones are written. The consumer closes the generator."""


Verify = Callable[[Source], None]
"""Looks at a new file; raises WriteError when it isn't what was planned."""

Cancelled = Callable[[], bool]
"""Whether the next piece will raise, so that copying may stop."""

Progress = Callable[[int], None]
"""Called with a number of bytes that were just copied."""


class Store(ABC):
    """A place for files, such as the local file system. A store without writing is a `ReadOnlyStore`.

    Attributes:
        remote: each operation is a request to a server, which takes its time.
        mtime_step_ns: the step of modification times. A file may have changed so long after the time that it has.
    """

    remote: bool = False
    mtime_step_ns: int = 1

    @abstractmethod
    def open(self, path: str) -> Source:
        """Open a file for reading.

        Raises:
            UnreadableError: it doesn't exist, isn't a file, or may not be read.
            UnsupportedError: the store can't be read here.
        """

    def open_end(self, path: str, length: int) -> Source:
        """Open a file of which so many last bytes are read: by the request that opens it. Raises as `open`."""
        del length
        return self.open(path)

    def open_from_parts(
        self, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]]
    ) -> Source | None:
        """Open a file without a request; None where that can't be done. Reads raise SourceChanged if it has changed.

        Args:
            path: the file.
            seen: its fingerprint.
            parts: known ranges, each an offset and the bytes, in order; the last one ends where the file ends.
        """
        del path, fingerprint, parts
        return None

    @abstractmethod
    def status(self, path: str) -> Status | None:
        """What has a path; None where there is nothing.

        Raises:
            UnreadableError: the store can't tell.
            UnsupportedError: the store can't be read here.
        """

    def fingerprint(self, path: str) -> Fingerprint | None:
        """The fingerprint of the file that has a path; None where there is none. Raises UnreadableError."""
        info = self.status(path)
        return None if info is None else Fingerprint(size=info.size, mtime_ns=info.mtime_ns)

    @abstractmethod
    def list(self, path: str) -> Iterator[FileEntry]:
        """The files that a path means: the file itself, those below a directory, those that match a pattern.

        Skips hidden names in directories. Lists a named file even if it doesn't exist.

        Raises:
            UnreadableError: a pattern matches no file.
            UnsupportedError: the store can't be listed here.
        """

    @abstractmethod
    def is_dataset(self, path: str) -> bool:
        """Whether a path means more than one named file: a directory, a pattern. Raises UnreadableError."""

    @abstractmethod
    def spelling(self) -> Callable[[str], str]:
        """A function that gives one spelling for all paths of a file. It remembers directories: don't keep it."""

    @abstractmethod
    def normal(self, path: str) -> str:
        """The path of a file to write, as reports show it."""

    @abstractmethod
    def check_changes(self, path: str) -> None:
        """Raise UsageError if files in this store can't be changed."""

    @abstractmethod
    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """The directories above a file: for each of its names (links) the nearest `levels`, the nearest first."""

    @abstractmethod
    def directory(self, path: str) -> str:
        """The directory that a file is in."""

    @abstractmethod
    def join(self, directory: str, name: str) -> str:
        """The path of a name in a directory."""

    @abstractmethod
    def names(self, directory: str) -> Iterable[str]:
        """The names in a directory, hidden ones too. Raises UnreadableError, also while they are iterated over."""

    def existing(self, directory: str, wanted: Mapping[str, Kind]) -> Collection[str]:
        """Those of some names in a directory that something of the wanted kind has. Raises UnreadableError."""
        statuses = ((name, kind, self.status(self.join(directory, name))) for name, kind in wanted.items())
        return [name for name, kind, status in statuses if status is not None and status.kind is kind]

    @abstractmethod
    def may_search(self, directory: str) -> bool:
        """Whether the user may look up names in a directory."""

    @abstractmethod
    def destination(self, output: str, path: str) -> str:
        """The path to write for a file, where a user names an output.

        Raises:
            UsageError: the output is the file itself, or a directory, or can't be a file's name.
            WriteError: the store can't tell.
        """

    def mirrored(self, output: str, relative: str) -> str:
        """The path to write for a file of a tree that is mirrored below a directory.

        Args:
            output: the directory, as a user names it.
            relative: the file's path in its tree, with slashes.

        Raises:
            UsageError: no file in this store can have such a path, or it isn't below the directory.
        """
        return self.join(self.normal(output), relative)

    def make_directory(self, path: str) -> None:  # noqa: B027  most stores have nothing to make
        """Make the directory of a file to write, and those above it. Raises WriteError."""

    def link_target(self, path: str) -> str | None:
        """The file that a symbolic link leads to; None if the path isn't a link's."""
        del path
        return None

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Raise the error that `replace` would raise before it writes, as far as that can be known; write nothing.

        Args:
            path: the file to write.
            overwrite: whether there may be such a file already.
            makes_directories: missing directories would be made first.
            force: as in `replace`.

        Raises:
            UsageError: there is such a file and `overwrite` is false; the file can't be replaced safely.
            WriteError: the directory doesn't exist or isn't writable.
        """
        del makes_directories, force
        if not overwrite and self.fingerprint(path) is not None:
            raise output_exists(path)

    @abstractmethod
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
        """Write a file that has its path only when it is whole and verified; gives its bytes.

        Args:
            path: the file to write, as `normal` or `destination` gave it.
            pieces: the new content. The generator is closed before the new file is verified.
            source: the file that kept ranges are taken from. It must not change meanwhile.
            overwrite: whether there may be such a file already.
            verify: looks at the new file; what it raises stops the replacement. None: only its size is checked.
            cancelled: copying stops when it returns true; the next piece raises.
            progress: called with numbers of bytes that were just copied.
            force: replace a file that loses something by it, such as an object lock, and use a store that can't
                refuse the replacement when another program replaces the file at the same time.

        Raises:
            UsageError: there is such a file and `overwrite` is false; files can't be replaced in this store, or only
                with `force`.
            SourceChanged: the source isn't the file any more that was opened.
            CorruptFile: the source isn't what the checksums say that are kept with it.
            UnreadableError: the source, or its checksums, can't be read.
            WriteError: the store refused to write. Nothing is left, unless the error says so.
        """

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """The requests and bytes that `replace` takes, about; reading what the new bytes are made of isn't included.

        Args:
            path: the file to write.
            outline: the kept ranges of the source and, between and behind them, numbers of new bytes.
            source: the file that kept ranges are taken from.
        """
        del path
        return source.estimate(piece for piece in outline if isinstance(piece, KeptRange))

    def appends_only(self, source: Source, path: str) -> bool:
        """Whether `replace` moves no byte of a kept range only if the new file begins with the whole source.

        A plan then appends what it can, and leaves what it would have left out in the file, unused.
        """
        del source, path
        return False

    @abstractmethod
    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Write a small file of bloom's own, such as a baseline, whole or not at all.

        Raises:
            UsageError: there is such a file and `overwrite` is false; files can't be written in this store.
            WriteError: the store refused to write. Nothing is left behind, unless the error says so.
        """

    def leftover_files(self, path: str) -> Sequence[str]:
        """The temporary files that the last `replace` of a file couldn't remove; tells of them once."""
        del path
        return ()

    @abstractmethod
    def sweep(self, path: str) -> SweepResult:
        """Remove what killed runs have left in the directory of a file to write.

        What another run is writing stays, and so does what other programs have made.
        """

    def sweep_for(self, paths: Iterable[str]) -> SweepResult:
        """`sweep` for files to write: each directory once. The paths may be iterated over several times."""
        directories: dict[str, str] = {}
        for path in paths:
            directories.setdefault(self.directory(path), path)
        return SweepResult.joined(self.sweep(path) for path in directories.values())
