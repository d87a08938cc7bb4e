"""The local file system as a store. Modules that only writing needs are imported when a file is written.

Listings of directories leave out names that start with ``.`` or ``_`` (``_SUCCESS``, checksums, temporary files), as
Spark and Hive do, but not Hive partitions such as ``_p=1``. A path that the user names is never left out. A pattern
matches such names only if it spells the dot or underscore. Links to directories are followed if the user names them,
but not within a directory: they may lead out of the tree, or in circles. Relative paths, used for mirrored trees,
keep the Hive partitions above a named directory or file, and the parts that a pattern's wildcards match.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from errno import EACCES, ELOOP
from functools import cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError, WriteError
from bloomcli.model.paths import shown
from bloomcli.storage.base import (
    FileEntry,
    Fingerprint,
    Kind,
    ManagedTable,
    Replacement,
    Store,
    SweepResult,
    failed_entry,
)
from bloomcli.storage.local.paths import is_pattern, local_path, matches, names_of
from bloomcli.storage.local.source import LocalSource, fingerprint_of
from bloomcli.storage.names import has_wildcard, is_hidden, is_uri
from bloomcli.storage.os_errors import hint, is_directory, is_link, reason, status

_LINKED: Final = "a link to a directory: these are followed only where they are named"


class LocalStore(Store):
    """The store of local paths, also as ``file:`` URIs."""

    def has(self, path: str) -> bool:
        """Whether a path is local: it isn't a URI, or a local file has it as its name."""
        return not is_uri(path) or os.path.exists(path)  # noqa: PTH110  unlike Path.exists it never raises

    def open(self, path: str) -> LocalSource:
        """Open a file. Raises UnreadableError; UnsupportedError for the URI of another machine's file."""
        local = local_path(path)
        if local.startswith("file:") and local == path:
            host = path.removeprefix("file://").partition("/")[0]
            raise UnsupportedError(f"a file: URI of another machine, {host}", path=path)
        return LocalSource(path, Path(local))

    def kind(self, path: str) -> Kind | None:
        """The type of a path; None if it doesn't exist. Raises UnreadableError."""
        info = status(local_path(path))
        if info is None:
            return None
        return Kind.FILE if S_ISREG(info.st_mode) else Kind.DIRECTORY if S_ISDIR(info.st_mode) else Kind.OTHER

    def fingerprint(self, path: str) -> Fingerprint | None:
        """The fingerprint of a file; None if it doesn't exist. Follows links. Raises UnreadableError."""
        info = status(local_path(path))
        return None if info is None else fingerprint_of(info)

    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """The files of a path: see `files`. Raises UnreadableError."""
        del tables
        return files(local_path(path))

    def is_dataset(self, path: str) -> bool:
        """Whether a path is a directory or a pattern. Raises UnreadableError."""
        local = local_path(path)
        return is_directory(local) or is_pattern(local)

    def spelling(self) -> Callable[[str], str]:
        """Return a function that follows links to directories, not to files; it looks up each link once."""

        @cache
        def real(folder: str) -> str:
            return os.path.join(os.path.realpath(folder), "")  # noqa: PTH118  there are thousands of files

        def spell(path: str) -> str:
            end = path.rfind("/") + 1
            return real(path[:end]) + path[end:]

        return spell

    def normal(self, path: str) -> str:
        """The path without a scheme and without needless slashes and dots."""
        return str(Path(local_path(path)))

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """Yield the directories above the named path, above the link's target, and above each link between them."""
        for name in names_of(Path(path)):
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
        output = _output_path(output)
        try:
            info = Path(output).stat()
        except (FileNotFoundError, NotADirectoryError):
            info = None
        except OSError as error:
            if error.errno == ELOOP:
                return str(Path(output))  # links that form a circle: writing reports them
            raise WriteError(
                f"can't be written: {reason(error)}",
                path=str(Path(output)),
                hint="check who may search the directories above it" if error.errno == EACCES else None,
            ) from None
        except ValueError as error:  # a null byte
            raise UsageError(f"the output can't have such a name: {error}", path=path) from None
        if info is not None and _is_file(Path(path), info):
            raise UsageError("the output is the input", path=path, hint="--in-place replaces a file safely")
        if info is not None and S_ISDIR(info.st_mode):
            raise UsageError(
                f"the output {str(Path(output))!r} is a directory", path=path, hint="name the file to write"
            )
        if output.endswith("/"):
            raise UsageError(
                f"the output {shown(output)!r} names a directory", path=path, hint="name the file to write"
            )
        return str(Path(output))

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
        local = local_path(path)
        return os.path.realpath(local) if os.path.islink(local) else None  # noqa: PTH114  unlike Path's it never raises

    def check_output(
        self, path: str, *, overwrite: bool, makes_directories: bool = False, force: bool = False
    ) -> None:
        """Check the file and its directory. Raises UsageError, WriteError."""
        del force  # replacing a local file loses nothing
        from bloomcli.storage.local.atomic import check_output

        check_output(Path(path), overwrite=overwrite, makes_directories=makes_directories)

    def _replace(self, wanted: Replacement) -> int:
        """Write a temporary file and give it the path: see `bloomcli.storage.local` for the steps."""
        from bloomcli.storage.local.atomic import replace

        return replace(wanted)  # `force` changes nothing: replacing a local file loses nothing

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Write a temporary file and give it the path. Raises UsageError, WriteError."""
        from bloomcli.storage.local.atomic import write_file

        write_file(Path(path), data, overwrite=overwrite)

    def sweep_for(self, paths: Iterable[str]) -> SweepResult:
        """Remove the temporary files of killed runs in the files' directories, or give them their names back."""
        from bloomcli.storage.local.temporary import sweep

        return SweepResult.joined(map(sweep, dict.fromkeys(Path(path).parent for path in paths)))


def _output_path(output: str) -> str:
    """The local path of an output. Raises UsageError for the URI of another machine's file."""
    local = local_path(output)
    if local.startswith("file:"):
        raise UsageError(
            "outputs can't be written to another machine", path=output, hint="mount it, and name the mount"
        )
    return local


def _is_file(path: Path, info: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), info)
    except OSError:
        return False  # the input is open; whether it still has its name is checked before a replacement


def files(path: str) -> Iterator[FileEntry]:
    """The files of a local path: the file itself, the files below a directory, or those that match a pattern.

    Raises:
        UnreadableError: a pattern matches no file, or the system can't tell.
    """
    if is_directory(path):
        yield from _walk(Path(path), _above_partitions(Path(path)))
    elif is_pattern(path):
        base = _above_partitions(_before_wildcards(path))
        problems: list[FileEntry] = []
        paths = sorted(m for m in set(matches(path, _error_collector(problems, path))) if _is_meant(m, path))
        yield from problems
        if not paths and not problems:
            raise UnreadableError("the pattern matches no file", path=path, hint="check it, and quote it")
        for match in paths:
            yield from _matched(match, base)
    else:
        yield _named_entry(path, _above_partitions(Path(path).parent))


def _matched(match: str, base: Path) -> Iterator[FileEntry]:
    """Yield a match of a pattern: the file, or the files below the directory."""
    try:
        directory = is_directory(match)
    except UnreadableError as error:
        yield failed_entry(match, error)
        return
    if directory:
        yield from _walk(Path(match), base)
    else:
        yield _named_entry(match, base, matched=True)


def _error_collector(problems: list[FileEntry], path: str) -> Callable[[OSError], None]:
    """A function that adds an entry with the error of a directory that can't be read."""

    def failed(error: OSError) -> None:
        folder = path if error.filename is None else os.fspath(error.filename)
        problem = UnreadableError(
            f"the directory can't be read: {reason(error)}", path=folder, hint="check who may read it"
        )
        problems.append(failed_entry(folder, problem))

    return failed


def _before_wildcards(pattern: str) -> Path:
    """The path before the first part of a pattern that has a wildcard."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if has_wildcard(part))
    return Path(*parts[:first])


def _is_meant(match: str, pattern: str) -> bool:
    """Whether a pattern spells the dots and underscores of the hidden names in a match."""
    start = len(_before_wildcards(pattern).parts)
    spelled = {part[0] for part in Path(pattern).parts[start:]}
    return all(part[0] in spelled for part in Path(match).parts[start:] if is_hidden(part))


def _above_partitions(directory: Path) -> Path:
    """The directory that contains the Hive partitions at the end of this path."""
    while "=" in directory.name:
        directory = directory.parent
    return directory


def _named_entry(path: str, base: Path, *, matched: bool = False) -> FileEntry:
    try:
        info = Path(path).stat()
        size, mtime_ns = info.st_size, info.st_mtime_ns
    except (OSError, ValueError):
        size, mtime_ns = -1, 0
    relative = str(Path(path).relative_to(base))
    return FileEntry(path=path, size=size, relative=relative, walked=False, matched=matched, mtime_ns=mtime_ns)


def _walk(root: Path, base: Path) -> Iterator[FileEntry]:
    """Files below a directory, with paths relative to `base`. Links to directories are listed, but not followed."""
    problems: list[FileEntry] = []
    for folder, directories, names in os.walk(root, onerror=_error_collector(problems, str(root))):
        yield from problems
        problems.clear()
        directories[:] = sorted(d for d in directories if not is_hidden(d))
        for name in directories:
            directory = Path(folder, name)
            try:
                linked = is_link(directory)
            except UnreadableError as error:
                yield failed_entry(str(directory), error)
                continue
            if linked:
                relative = str(directory.relative_to(base))
                yield FileEntry(path=str(directory), size=0, relative=relative, walked=True, skip_reason=_LINKED)
        yield from _files_of(Path(folder), Path(folder).relative_to(base), names)
    yield from problems


def _files_of(folder: Path, relative: Path, names: list[str]) -> Iterator[FileEntry]:
    """The files in a directory, which may be a million."""
    above, below = _before_name(folder), _before_name(relative)
    for name in sorted(names):
        if is_hidden(name):
            continue
        path = above + name
        try:
            info = os.stat(path)  # noqa: PTH116  text in, text out
            size, mtime_ns = info.st_size, info.st_mtime_ns
        except OSError:
            size, mtime_ns = -1, 0
        yield FileEntry(path, size, below + name, walked=True, mtime_ns=mtime_ns)


def _before_name(folder: Path) -> str:
    """The prefix of the paths of files in a directory, as pathlib writes it: empty for the current directory."""
    return "" if str(folder) == "." else os.path.join(folder, "")  # noqa: PTH118
