"""The interface of stores: they read ranges of files, list files, and replace them.

A store is a place for files: the local file system (`local`), an object store, or a file system that pyarrow reads
(`arrow_store`). `registry.store_of` finds the store of a path; nothing above this package knows it. Paths are texts,
as typed.

`Store.replace` takes the new content as pieces, so that a store moves no byte that it already has:

    KeptRange     a range of the source: a local copy_file_range, a part that an object store copies, a block it keeps
    bytes         new bytes, appended
    PlacedBytes   new bytes, written before the pieces that precede them in the file

Three conditions hold when the new file gets its name: the source is still the file that was read, the target may be
overwritten, and the new file passes `verify`. If one of them doesn't hold, or a piece can't be made, the target stays
as it was and no temporary file remains. ``tests/storage/suite`` tests this on every store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from enum import Enum, auto
from pathlib import PurePosixPath
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Self

from bloomcli.errors import BloomError, CorruptFile, SourceChanged, UsageError
from bloomcli.model.traffic import Traffic


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
        results = list(sweeps)
        return cls(*([name for each in results for name in each[field]] for field in range(len(cls._fields))))


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
    skip_reason: str | None = None
    """Why the path isn't a file, if it isn't an error. It becomes a skipped row."""
    problem: BloomError | None = None
    """The error of a named path that can't be listed. It becomes a row with this error; no file is opened."""
    mtime_ns: int = 0
    """Time of the last change of a file of this machine; 0 if unknown."""
    tag: str = ""
    """ETag or generation of an object, as `Fingerprint.tag`; empty if the listing has none."""

    @property
    def skipped(self) -> bool:
        """Whether the entry isn't a file, and becomes a skipped row."""
        return self.skip_reason is not None


def failed_entry(path: str, problem: BloomError) -> FileEntry:
    """The entry of a path that can't be listed."""
    return FileEntry(path=path, size=-1, relative=PurePosixPath(path).name, walked=False, problem=problem)


def output_exists(path: str, hint: str = "--overwrite replaces it") -> UsageError:
    """The error for an output that exists and may not be replaced."""
    return UsageError("the output exists already", path=path, hint=hint)


Range = tuple[int, int]
"""An offset and a length, in bytes."""


def united(ranges: Iterable[Range]) -> list[Range]:
    """The ranges in order; ranges that touch or overlap are merged."""
    union: list[Range] = []
    for offset, length in sorted(ranges):
        if union and offset <= sum(union[-1]):
            start, before = union[-1]
            union[-1] = start, max(before, offset + length - start)
        else:
            union.append((offset, length))
    return union


STEP_BYTES: Final = 16 << 20
"""Largest step in copying a kept range, in bytes. Between steps, a store reports progress and can stop."""


class Source(ABC):
    """A file that is open for reading.

    Attributes:
        path: the file, as the user named it.
        size: the file's bytes when it was opened.
        fingerprint: the file's fingerprint when it was opened.
        read_ahead_bytes: how many bytes of a stream to read at a time. They should stay in the processor's cache
            until they are decompressed; where each read is a request to a server, more are read.
        request_bytes: bytes that arrive in the time of a request. It and the next two are 0 without requests.
        part_bytes: largest number of bytes of announced ranges that one request reads.
        tail_bytes: bytes at the end that the opening request reads.
    """

    path: str
    size: int
    fingerprint: Fingerprint
    read_ahead_bytes: int = 512 << 10
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
        """Read exactly `length` bytes at `offset`. Several threads may read at the same time.

        Raises:
            CorruptFile: the range isn't inside the file. No memory was allocated.
            SourceChanged: the file became shorter after it was opened.
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
        """The descriptor of a local file with the bytes that `read_at` returns; None for other sources."""
        return None

    @property
    def stored(self) -> Source:
        """The file as its store has it, if this source shows other bytes."""
        return self

    def pieces(self, pieces: Pieces) -> Pieces:
        """Convert pieces with kept ranges of this source to pieces with kept ranges of the stored file."""
        return pieces

    def outline(self, outline: Iterable[KeptRange | int]) -> Iterable[KeptRange | int]:
        """Convert an outline as `pieces` converts pieces."""
        return outline

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:  # noqa: B027  most sources have nothing to do
        """Announce ranges that are about to be read, each an offset and a length.

        If each read is a request, the source merges near ranges, reads several at the same time, and keeps a bounded
        number of bytes. Ranges may lie outside the file: `read_at` checks each. Other sources ignore the ranges.
        """

    def estimate(self, ranges: Iterable[tuple[int, int]]) -> Traffic:
        """Estimate the requests for reading announced ranges, and their bytes; none by default."""
        del ranges
        return Traffic()

    def check_unchanged(self) -> None:
        """Raise SourceChanged if the file's fingerprint isn't what it was when the file was opened."""
        if self._current() != self.fingerprint:
            raise self.changed("changed")

    def changed(self, how: str) -> SourceChanged:
        """The error for a file that changed."""
        return SourceChanged(
            f"the file {how} while it was being worked on",
            path=self.path,
            hint="something else writes to it; try again when it is done. bloom wrote nothing to it",
        )

    @abstractmethod
    def _current(self) -> Fingerprint | None:
        """The fingerprint of the file that has the path now; None if no file has it, or it is another file."""

    @abstractmethod
    def _read(self, offset: int, length: int) -> bytes:
        """Read a range within the file. Returns fewer bytes if the file became shorter."""

    def close(self) -> None:  # noqa: B027  views of other sources have nothing to close
        """Close the file. Closing it twice does no harm."""


class KeptRange(NamedTuple):
    """A range of the source that is copied to the new file."""

    offset: int
    length: int


class PlacedBytes(NamedTuple):
    """New bytes for an offset after the pieces written so far, such as a filter that is ready early."""

    offset: int
    """In the new file."""
    data: bytes | bytearray


Piece = KeptRange | PlacedBytes | bytes | bytearray
"""Kept ranges and new bytes follow one another. Placed bytes come after all kept
ranges, including later ones; later new bytes follow the placed ones."""

Pieces = Generator[Piece, None, None]
"""The pieces of a new file, made while earlier ones are written. The consumer closes the generator."""


Verify = Callable[[Source], None]
"""Checks a new file; raises WriteError if it isn't what was planned."""

Cancelled = Callable[[], bool]
"""Whether the next piece will raise, so that copying may stop."""

Progress = Callable[[int], None]
"""Called with a number of bytes that were just copied."""


class Replacement(NamedTuple):
    """A file to write: the arguments of `Store.replace`."""

    path: str
    pieces: Pieces
    source: Source
    overwrite: bool
    verify: Verify | None
    cancelled: Cancelled | None
    progress: Progress | None
    force: bool


class Store(ABC):
    """A place for files, such as the local file system. A store without writing is a `ReadOnlyStore`.

    Attributes:
        remote: each operation is a request to a server.
        mtime_step_ns: resolution of modification times. A file may have changed this long after its recorded time.
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
        """Open a file and read its last `length` bytes with the request that opens it. Raises as `open`."""
        del length
        return self.open(path)

    def open_from_parts(
        self, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]]
    ) -> Source | None:
        """Open a file without a request; None if the store can't. Reads raise SourceChanged if the file has changed.

        Args:
            path: the file.
            fingerprint: the file's fingerprint.
            parts: known ranges, in order: each an offset and its bytes. The last one is the end of the file.
        """
        del path, fingerprint, parts
        return None

    @abstractmethod
    def kind(self, path: str) -> Kind | None:
        """The type of what has a path, behind links; None if nothing has it.

        Raises:
            UnreadableError: the store can't look it up.
            UnsupportedError: the store can't be read here.
        """

    @abstractmethod
    def fingerprint(self, path: str) -> Fingerprint | None:
        """The fingerprint of the file that has a path; None if no file has it. Raises UnreadableError."""

    @abstractmethod
    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """List the files that a path names: the file itself, the files below a directory, the matches of a pattern.

        Skips hidden names in directories. Lists a named file even if it doesn't exist.

        Args:
            path: a file, a directory or a pattern.
            tables: if the store is remote, gets the tables whose metadata the listing comes across, at no request.

        Raises:
            UnreadableError: a pattern matches no file.
            UnsupportedError: the store can't be listed here.
        """

    @abstractmethod
    def is_dataset(self, path: str) -> bool:
        """Whether a path is a directory or a pattern, not a single file. Raises UnreadableError."""

    def spelling(self) -> Callable[[str], str]:
        """A function that maps all paths of a file to one spelling. It caches directories: don't keep it."""
        return self.normal

    def normal(self, path: str) -> str:
        """The path of a file to write, in the form that reports show: by default the same one."""
        return path

    def check_changes(self, path: str) -> None:  # noqa: B027  most stores can change all files
        """Raise UsageError if files in this store can't be changed."""

    @abstractmethod
    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """The directories above a file: the nearest `levels` for each of its names (links), the nearest first."""

    def directory(self, path: str) -> str:
        """The directory that a file is in: the part of a URI before the last slash."""
        return path.rpartition("/")[0]

    def join(self, directory: str, name: str) -> str:
        """The path, or the URI, of a name in a directory."""
        return f"{directory.rstrip('/')}/{name}"

    @abstractmethod
    def names(self, directory: str) -> Iterable[str]:
        """The names in a directory, including hidden ones. Raises UnreadableError, also during the iteration."""

    def existing(self, directory: str, wanted: Mapping[str, Kind]) -> Collection[str]:
        """The wanted names that exist in a directory and have the wanted kind. Raises UnreadableError."""
        return [name for name, kind in wanted.items() if self.kind(self.join(directory, name)) is kind]

    def may_search(self, directory: str) -> bool:
        """Whether the user may look up names in a directory. True in stores where only a request could show it."""
        del directory
        return True

    @abstractmethod
    def destination(self, output: str, path: str) -> str:
        """The path to write for a file, for an output that a user names.

        Raises:
            UsageError: the output is the file itself, or a directory, or can't be a file's name.
            WriteError: the store can't look it up.
        """

    def mirrored(self, output: str, relative: str) -> str:
        """The path to write for a file of a tree that is mirrored below an output directory.

        Args:
            output: the directory, as the user typed it.
            relative: the file's path in its tree, with slashes.

        Raises:
            UsageError: no file in this store can have such a path, or it isn't below the directory.
        """
        return self.join(self.normal(output), relative)

    def make_directory(self, path: str) -> None:  # noqa: B027  most stores have nothing to make
        """Make the directory of a file to write, and those above it. Raises WriteError."""

    def link_target(self, path: str) -> str | None:
        """The target of a symbolic link; None if the path isn't a link."""
        del path
        return None

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Raise the errors of `replace` that can be found without writing.

        Args:
            path: the file to write.
            overwrite: whether an existing file may be replaced.
            makes_directories: missing directories are created first.
            force: as in `replace`.

        Raises:
            UsageError: the file exists and `overwrite` is false, or it can't be replaced safely.
            WriteError: the directory doesn't exist or isn't writable.
        """
        del makes_directories, force
        if not overwrite and self.fingerprint(path) is not None:
            raise output_exists(path)

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
        """Write a file, which gets its path when it is complete and verified. Returns the number of its bytes.

        Args:
            path: the file to write, from `normal` or `destination`.
            pieces: the new content. The generator is closed before the new file is verified.
            source: the file of the kept ranges. It must not change meanwhile.
            overwrite: whether an existing file may be replaced.
            verify: checks the new file; its exception stops the replacement. If None, only the size is checked.
            cancelled: copying stops when it returns true; the next piece raises.
            progress: called with the number of bytes that were just copied.
            force: replace the file even if an object lock is lost, or if the store can't detect another writer.

        Raises:
            UsageError: the file exists and `overwrite` is false, or the store can't replace it without `force`.
            SourceChanged: the source changed after it was opened.
            CorruptFile: the source doesn't match its stored checksums.
            UnreadableError: the source, or its checksums, can't be read.
            WriteError: the store refused to write. No temporary file remains, unless the error says so.
        """
        with closing(pieces):
            return self._replace(Replacement(path, pieces, source, overwrite, verify, cancelled, progress, force))

    @abstractmethod
    def _replace(self, wanted: Replacement) -> int:
        """Do what `replace` describes, which closes the pieces afterwards."""

    def estimate(self, path: str, outline: Iterable[KeptRange | int], *, source: Source) -> Traffic:
        """Estimate the requests and bytes of `replace`, without those for computing the new bytes.

        Args:
            path: the file to write.
            outline: kept ranges of the source, and numbers of new bytes between and after them.
            source: the file of the kept ranges.
        """
        del path
        return source.estimate(piece for piece in outline if isinstance(piece, KeptRange))

    def appends_only(self, source: Source, path: str) -> bool:
        """Whether `replace` avoids moving kept bytes only if the new file begins with the whole source.

        A plan then appends to the source. Bytes that it would leave out stay in the file, unused.
        """
        del source, path
        return False

    @abstractmethod
    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Write a small file, such as a baseline, completely or not at all.

        Raises:
            UsageError: the file exists and `overwrite` is false, or the store is read-only.
            WriteError: the store refused to write. No temporary file remains, unless the error says so.
        """

    def sweep_for(self, paths: Iterable[str]) -> SweepResult:
        """Remove the temporary files of killed runs from the directories of files to write, once for each directory.

        By default there are none. Files of running writers and of other programs stay.
        """
        del paths
        return SweepResult()


ICEBERG_METADATA: Final = (".metadata.json", ".metadata.json.gz")
"""Suffixes of Iceberg's metadata files. Old releases wrote compressed ones with the second (TableMetadataParser)."""


class TableKind(Enum):
    """The kinds of metadata that describe other files. A value is the name of a kind in texts."""

    DELTA = "a Delta table"
    ICEBERG = "an Iceberg table"
    HUDI = "a Hudi table"
    PAIMON = "a Paimon table"
    SUMMARY = "a summary of footers"


_RECORDS: Final = {
    TableKind.DELTA: "its log records each file's size",
    TableKind.ICEBERG: "its manifests record each file's size",
    TableKind.HUDI: "its commits record each file's size",
    TableKind.PAIMON: "its manifests record each file's size",
}
"""What the metadata of each kind of table record about its files."""


class ManagedTable(NamedTuple):
    """A table, or a summary of footers, that describes the files below a directory."""

    kind: TableKind
    path: str
    """The table's directory, or the summary's file."""

    @property
    def why_not_changed(self) -> str:
        """The reason not to change one of its files in place."""
        if self.kind is TableKind.SUMMARY:
            return f"{self.path} holds copies of the footers of the files below it"
        return f"{self.path} is {self.kind.value}: {_RECORDS[self.kind]}"

    @property
    def keeps_filters(self) -> bool:
        """Whether filters may lie beside the table's files, where they can be written again."""
        return self.kind is TableKind.PAIMON

    @property
    def name(self) -> str | None:
        """The table's name for ``--table``; None for a summary, and for a table that `bloom` doesn't open.

        An Iceberg table's files don't contain its name, so the result is a template for the user to fill in.
        """
        if self.kind is TableKind.DELTA:
            root = self.path.replace("`", "``")
            return f"delta.`{root}`"
        return "CATALOG.DATABASE.TABLE" if self.kind is TableKind.ICEBERG else None

    @property
    def name_to_read(self) -> str | None:
        """The table's name for commands that read it; None if `bloom` doesn't open it."""
        return self.path if self.kind is TableKind.ICEBERG else self.name


def root_of_mark(path: str) -> ManagedTable | None:
    """The table of which a listing shows a file of its metadata; None for another file."""
    for mark, kind in (("/_delta_log/", TableKind.DELTA), ("/.hoodie/", TableKind.HUDI)):
        root, separator, _ = path.partition(mark)
        if separator:
            return ManagedTable(kind, root)
    root, separator, name = path.rpartition("/snapshot/snapshot-")
    if separator and name.isdecimal():
        return ManagedTable(TableKind.PAIMON, root)
    if path.endswith(ICEBERG_METADATA):
        directory, _, _ = path.rpartition("/")
        if directory.endswith("/metadata"):
            return ManagedTable(TableKind.ICEBERG, directory.removesuffix("/metadata"))
    return None


class ReadOnlyStore(Store):
    """A store that doesn't write: methods that change files raise UsageError, or do nothing."""

    def check_changes(self, path: str) -> NoReturn:
        """Raise UsageError: files can't be changed."""
        raise UsageError(
            f"files at {_scheme(path)}: URIs can be read, but not changed", path=path, hint="-o writes a changed copy"
        )

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """Return none: they aren't looked up, because no file in them can be changed."""
        del path, levels
        return iter(())

    def names(self, directory: str) -> Sequence[str]:
        """Raise UsageError, as `directories_above`."""
        self.check_changes(directory)

    def destination(self, output: str, path: str) -> str:
        """Raise UsageError: nothing is written here."""
        del path
        raise _not_written(output)

    def mirrored(self, output: str, relative: str) -> str:
        """Raise UsageError, as `destination`."""
        del relative
        raise _not_written(output)

    def _replace(self, wanted: Replacement) -> NoReturn:
        """Raise UsageError."""
        self.check_changes(wanted.path)

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Raise UsageError."""
        del data, overwrite
        raise _not_written(path)


def _scheme(path: str) -> str:
    return path.partition(":")[0]


def _not_written(path: str) -> UsageError:
    return UsageError(
        f"outputs can't be written to {_scheme(path)}: URIs", path=path, hint="write to a local path: -o FILE"
    )
