"""The local file system as a store. Modules that only writing needs are imported when a file is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError, WriteError
from bloomcli.storage.base import (
    Cancelled,
    FileEntry,
    Fingerprint,
    Kind,
    Pieces,
    Progress,
    Source,
    Status,
    Store,
    SweepResult,
    Verify,
)
from bloomcli.storage.local import listing, paths
from bloomcli.storage.local.source import LocalSource, fingerprint_of
from bloomcli.storage.names import is_uri
from bloomcli.storage.os_errors import hint, is_directory, reason, status
from bloomcli.storage.table_kinds import ManagedTable


class LocalStore(Store):
    """The store of local paths, also as ``file:`` URIs."""

    def has(self, path: str) -> bool:
        """Whether a path is local: it isn't a URI, or a local file has it as its name."""
        return not is_uri(path) or os.path.exists(path)  # noqa: PTH110  unlike Path.exists it never raises

    def open(self, path: str) -> LocalSource:
        """Open a file. Raises UnreadableError; UnsupportedError for the URI of another machine's file."""
        local = paths.local_path(path)
        if local.startswith("file:") and local == path:
            host = path.removeprefix("file://").partition("/")[0]
            raise UnsupportedError(f"a file: URI of another machine, {host}", path=path)
        return LocalSource(path, Path(local))

    def status(self, path: str) -> Status | None:
        """Kind, size and modification time of a path; None if it doesn't exist. Raises UnreadableError."""
        info = status(paths.local_path(path))
        if info is None:
            return None
        kind = Kind.FILE if S_ISREG(info.st_mode) else Kind.DIRECTORY if S_ISDIR(info.st_mode) else Kind.OTHER
        return Status(kind=kind, size=info.st_size, mtime_ns=info.st_mtime_ns)

    def fingerprint(self, path: str) -> Fingerprint | None:
        """The fingerprint of a file; None if it doesn't exist. Follows links. Raises UnreadableError."""
        info = status(paths.local_path(path))
        return None if info is None else fingerprint_of(info)

    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """The files of a path: see `listing.files`. Raises UnreadableError."""
        del tables
        return listing.files(paths.local_path(path))

    def is_dataset(self, path: str) -> bool:
        """Whether a path is a directory or a pattern. Raises UnreadableError."""
        local = paths.local_path(path)
        return is_directory(local) or paths.is_pattern(local)

    def spelling(self) -> Callable[[str], str]:
        """Return a function that follows links to directories; it looks up each link once."""
        return paths.spelling()

    def normal(self, path: str) -> str:
        """The path without a scheme and without needless slashes and dots."""
        return str(Path(paths.local_path(path)))

    def check_changes(self, path: str) -> None:
        """Do nothing: the store allows changes of any file."""

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """Yield the directories above the named path, above the link's target, and above each link between them."""
        for name in paths.names_of(Path(path)):
            yield from map(str, list(name.parents)[:levels])

    def directory(self, path: str) -> str:
        """The directory of a path. Doesn't follow links."""
        return str(Path(path).parent)

    def join(self, directory: str, name: str) -> str:
        """The path of a name in a directory."""
        return os.path.join(directory, name)  # noqa: PTH118  text in, text out

    def names(self, directory: str) -> Sequence[str]:
        """The names in a directory. Raises UnreadableError."""
        try:
            return os.listdir(directory)  # noqa: PTH208  names do
        except OSError as error:
            raise UnreadableError(f"the directory can't be read: {reason(error)}", path=directory) from error

    def may_search(self, directory: str) -> bool:
        """Whether the user may search a directory, by access(2)."""
        return os.access(directory, os.X_OK)

    def destination(self, output: str, path: str) -> str:
        """The path to write for an output. Raises UsageError, WriteError."""
        return paths.destination(_output_path(output), path)

    def mirrored(self, output: str, relative: str) -> str:
        """The path below a directory. Raises UsageError if a part of `relative` can't be a file name."""
        wrong = next((part for part in relative.split("/") if part in {"", ".", ".."} or "\0" in part), None)
        if wrong is not None:
            raise UsageError(
                f"{relative!r} can't be a path below a directory: a part of it is {wrong!r}",
                hint="name this object alone, with -o FILE",
            )
        return str(Path(_output_path(output), relative))

    def make_directory(self, path: str) -> None:
        """Make the directory of a file that will be written. Raises WriteError."""
        folder = Path(path).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(
                f"the directory can't be made: {reason(error)}", path=str(folder), hint=hint(error)
            ) from None

    def link_target(self, path: str) -> str | None:
        """The file that a symbolic link leads to; None for any other path."""
        local = paths.local_path(path)
        return os.path.realpath(local) if os.path.islink(local) else None  # noqa: PTH114  unlike Path's it never raises

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Check the file and its directory. Raises UsageError, WriteError."""
        del force  # replacing a local file loses nothing
        from bloomcli.storage.local.write_errors import check_output

        check_output(Path(path), overwrite=overwrite, makes_directories=makes_directories)

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
        """Write a temporary file and give it the path: see `bloomcli.storage.local` for the steps."""
        del force  # replacing a local file loses nothing
        from bloomcli.storage.local.atomic import replace

        return replace(
            Path(path),
            pieces,
            source=source,
            overwrite=overwrite,
            verify=verify,
            cancelled=cancelled,
            progress=progress,
        )

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Write a temporary file and give it the path. Raises UsageError, WriteError."""
        from bloomcli.storage.local.atomic import write_file

        write_file(Path(path), data, overwrite=overwrite)

    def sweep(self, path: str) -> SweepResult:
        """Remove the temporary files of killed runs in the file's directory, or give them their names back."""
        from bloomcli.storage.local.temporary import sweep

        return sweep(Path(path).parent)


def _output_path(output: str) -> str:
    """The local path of an output. Raises UsageError for the URI of another machine's file."""
    local = paths.local_path(output)
    if local.startswith("file:"):
        raise UsageError(
            "outputs can't be written to another machine", path=output, hint="mount it, and name the mount"
        )
    return local
