"""From what a user names, files, directories, globs and lists, to the files that are meant.

In a directory, names that start with ``.`` or ``_`` are left alone (``_SUCCESS``, checksums, temporary files),
as Spark and Hive do; a Hive partition such as ``_p=1`` is not such a name. What is named is always taken.
A pattern takes such names only where it spells them. Links to directories are followed where they are named, not
where they are found: they may lead out of the tree, and in circles. Mirrored trees keep the Hive partitions that
lead to a directory or file that is named, and what a pattern's wildcards stand for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from bloomcli.errors import BloomError, UnreadableError, UnsupportedError
from bloomcli.storage.os_errors import is_directory, is_link, is_there, reason, refused
from bloomcli.storage.patterns import has_wildcard, matches


class Listed(NamedTuple):
    """A file to work on."""

    path: str
    size: int
    """Bytes; -1 where it could not be told."""
    relative: str
    """Path below the directory that was named, for a mirrored tree; a named file's name, after its partitions."""
    walked: bool
    """It was found in a directory, not named."""
    matched: bool = False
    """It was found by a pattern, not named as it is."""
    linked: bool = False
    """It is a link to a directory, found in a directory: it is not followed."""
    problem: BloomError | None = None
    """What was named can't be listed: there is no file to open, but a row with this error."""


def is_uri(path: str) -> bool:
    """``s3://...`` and the like; not ``file:``, and not a file that has such a name."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.isidentifier() and len(scheme) > 1 and scheme != "file"


def local_path(path: str) -> str:
    """A ``file:`` URI of this machine as a path, anything else as it is.

    As Hadoop's ``Path`` has it, what follows the scheme is the path as it is: ``#`` and ``?`` are part of it, and so
    is ``%3A``, which Spark writes into the names of partitions. Only where there is no such path, but one without
    the encoding, as other programs write URIs, that one is meant.
    """
    if not path.startswith("file:"):
        return path
    rest = path.removeprefix("file:")
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        if host not in {"", "localhost"}:
            return path
        rest = slash + below
    decoded = unquote(rest)
    return decoded if decoded != rest and not _is_there(rest) and _is_there(decoded) else rest


def _is_there(path: str) -> bool:
    """There is something of that name or, where it is a pattern, something that matches it."""
    return is_there(path) or (has_wildcard(path) and any(matches(path, lambda _: None)))


def is_dataset(paths: Sequence[str]) -> bool:
    """Whether the paths mean more than one named file: several, a directory, a glob.

    Raises:
        UnreadableError: the system can't tell.
    """
    if len(paths) != 1:
        return True
    (path,) = paths
    if is_uri(path):
        return has_wildcard(path) or path.endswith("/")
    path = local_path(path)
    return is_directory(path) or _is_pattern(path)


def _is_pattern(path: str) -> bool:
    return has_wildcard(path) and not is_there(path)


def read_list(lines: Iterable[str]) -> list[str]:
    """Paths of a list, one a line; empty lines are left out."""
    return [text for line in lines if (text := line.rstrip("\r\n"))]


def expand(paths: Sequence[str]) -> list[Listed]:
    """The files that the paths mean, each once, in order of their paths within each.

    A file that is named but isn't there is listed all the same: it becomes a row with its error. So does, beside
    other files, a directory that can't be read, a glob that matches nothing, a URI that can't be listed.

    Raises:
        UnreadableError: a glob matches nothing, or a directory can't be read, and there is nothing else.
        UnsupportedError: a URI's file system can't be listed here, and there is nothing else.
    """
    found: dict[str, Listed] = {}
    spell = spelling()
    for path in paths:
        try:
            with refused(path):
                for item in _expand_one(path):
                    found.setdefault(spell(item.path), item)
        except BloomError as error:
            found.setdefault(path, _unlisted(path, error))
    problems = [item.problem for item in found.values() if item.problem is not None]
    if problems and len(problems) == len(found):
        raise problems[0]
    return list(found.values())


def _unlisted(path: str, problem: BloomError) -> Listed:
    return Listed(path=path, size=-1, relative=PurePosixPath(path).name, walked=False, problem=problem)


def spelling() -> Callable[[str], str]:
    """A function that gives one spelling for each name of a file; links to files stay names of their own."""
    real = cache(os.path.realpath)

    def spell(path: str) -> str:
        if is_uri(path):
            return path
        folder, name = os.path.split(path)
        return os.path.join(real(folder), name)  # noqa: PTH118  there are thousands of files

    return spell


def _expand_one(path: str) -> Iterator[Listed]:
    if is_uri(path):
        yield from _remote(path)
        return
    path = local_path(path)
    if is_directory(path):
        yield from _walk(Path(path), _above_partitions(Path(path)))
    elif _is_pattern(path):
        base = _above_partitions(_before_wildcards(path))
        problems: list[Listed] = []
        found = sorted(m for m in set(matches(path, _failing(problems, path))) if _meant(m, path))
        yield from problems
        if not found and not problems:
            raise UnreadableError("the pattern matches no file", path=path, hint="check it, and quote it")
        for match in found:
            yield from _matched(match, base)
    else:
        yield _named(path, _above_partitions(Path(path).parent))


def _matched(match: str, base: Path) -> Iterator[Listed]:
    """What a pattern matched, and what is below it."""
    try:
        directory = is_directory(match)
    except UnreadableError as error:
        yield _unlisted(match, error)
        return
    if directory:
        yield from _walk(Path(match), base)
    else:
        yield _named(match, base, matched=True)


def _failing(problems: list[Listed], path: str) -> Callable[[OSError], None]:
    """Takes what is wrong with a directory, and puts a row about it to the others."""

    def failed(error: OSError) -> None:
        folder = path if error.filename is None else os.fspath(error.filename)
        problem = UnreadableError(
            f"the directory can't be read: {reason(error)}", path=folder, hint="check who may read it"
        )
        problems.append(_unlisted(folder, problem))

    return failed


def _before_wildcards(pattern: str) -> Path:
    """The directory that a pattern's first wildcard is in."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if has_wildcard(part))
    return Path(*parts[:first])


def _meant(match: str, pattern: str) -> bool:
    """Whether the pattern asks for the hidden names that its wildcards stand for."""
    start = len(_before_wildcards(pattern).parts)
    spelled = {part[0] for part in Path(pattern).parts[start:]}
    return all(part[0] in spelled for part in Path(match).parts[start:] if _hidden(part))


def _above_partitions(directory: Path) -> Path:
    """The directory that the Hive partitions which lead to this one are in."""
    while "=" in directory.name:
        directory = directory.parent
    return directory


def _named(path: str, base: Path, *, matched: bool = False) -> Listed:
    try:
        size = Path(path).stat().st_size
    except (OSError, ValueError):
        size = -1
    return Listed(path=path, size=size, relative=str(Path(path).relative_to(base)), walked=False, matched=matched)


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _walk(root: Path, base: Path) -> Iterator[Listed]:
    """Files below a directory, their relative paths from `base` on; links to directories are told, not followed."""
    problems: list[Listed] = []
    for folder, directories, names in os.walk(root, onerror=_failing(problems, str(root))):
        yield from problems
        problems.clear()
        directories[:] = sorted(d for d in directories if not _hidden(d))
        for name in directories:
            path = Path(folder, name)
            try:
                linked = is_link(path)
            except UnreadableError as error:
                yield _unlisted(str(path), error)
                continue
            if linked:
                relative = str(path.relative_to(base))
                yield Listed(path=str(path), size=0, relative=relative, walked=True, linked=True)
        for name in sorted(names):
            if not _hidden(name):
                path = Path(folder, name)
                try:
                    size = path.stat().st_size
                except OSError:
                    size = -1
                yield Listed(path=str(path), size=size, relative=str(path.relative_to(base)), walked=True)
    yield from problems


def _remote(uri: str) -> Iterator[Listed]:
    """A URI: the file itself, or what lies below it, through pyarrow's file systems."""
    import pyarrow as pa
    from pyarrow import fs

    if has_wildcard(uri):
        raise UnsupportedError("patterns in URIs can't be listed", path=uri, hint="name the directory")
    try:
        system, name = fs.FileSystem.from_uri(uri)
        info = system.get_file_info(name)
        if info.type != fs.FileType.Directory:
            yield Listed(path=uri, size=info.size or -1, relative=PurePosixPath(name).name, walked=False)
            return
        below = system.get_file_info(fs.FileSelector(name, recursive=True))
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]  # libhdfs lists each place where it looked for Java
        raise UnsupportedError(f"can't be listed here ({reason})", path=uri, hint="mount it, or copy it") from None
    for item in sorted(below, key=lambda i: i.path):
        relative = PurePosixPath(item.path).relative_to(name)
        if item.type == fs.FileType.File and not any(map(_hidden, relative.parts)):
            yield Listed(path=f"{uri.rstrip('/')}/{relative}", size=item.size, relative=str(relative), walked=True)
