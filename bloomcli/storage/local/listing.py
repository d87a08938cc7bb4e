"""Resolves a local path, directory or pattern to files.

Listings of directories leave out names that start with ``.`` or ``_`` (``_SUCCESS``, checksums, temporary files), as
Spark and Hive do, but not Hive partitions such as ``_p=1``. A path that the user names is never left out. A pattern
matches such names only if it spells the dot or underscore. Links to directories are followed if the user names them,
but not within a directory: they may lead out of the tree, or in circles. Relative paths, used for mirrored trees,
keep the Hive partitions above a named directory or file, and the parts that a pattern's wildcards match.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from bloomcli.errors import UnreadableError
from bloomcli.storage.base import FileEntry, failed_entry
from bloomcli.storage.local.paths import is_pattern, matches
from bloomcli.storage.names import has_wildcard, is_hidden
from bloomcli.storage.os_errors import is_directory, is_link, reason


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
        found = sorted(m for m in set(matches(path, _error_collector(problems, path))) if _is_meant(m, path))
        yield from problems
        if not found and not problems:
            raise UnreadableError("the pattern matches no file", path=path, hint="check it, and quote it")
        for match in found:
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
                yield FileEntry(path=str(directory), size=0, relative=relative, walked=True, linked=True)
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
