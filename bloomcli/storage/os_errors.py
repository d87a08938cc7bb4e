"""Converts errors of the operating system to subclasses of `BloomError`.

Code that knows the operation and the file raises its own error. `convert_os_errors` converts all others: `stat` of an
open file may fail because a mount was removed, `close` because the disk is full. Every command's function runs within
it, so that bloomcli raises no OSError.

The functions that look up names distinguish "no file has the name" from "the system can't tell". Those of os.path
return False in both cases: a file that they can't look up would be left out silently.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeVar

from bloomcli.errors import BloomError, UnreadableError, WriteError

F = TypeVar("F", bound=Callable[..., Any])

_BUGS: Final = frozenset({errno.EBADF, errno.EFAULT})
"""Errors of a closed descriptor and of an invalid address, which are bugs of the program."""

_WRITING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
"""Errors that only writing causes."""

NO_FILE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Errors of a name that no file has, or that none can have."""

_READ_BYTES: Final = 1 << 20

_HINTS: Final = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check who may read it, and search the directories above it",
    errno.EPERM: "check who may read it",
    errno.EISDIR: "name a file in it",
    errno.ENOSPC: "the disk is full; free some room",
    errno.EDQUOT: "the quota is used up; free some room",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.ENOMEM: "the system has no memory left: --jobs 1 and --threads 1 need the least",
    errno.ESTALE: "the file server no longer knows the file: mount the directory again",
    errno.EIO: "the disk or the file server fails; look into the system's log",
}


def reason(error: OSError) -> str:
    """The system's message in lower case, such as "no such file or directory"."""
    return (error.strerror or str(error).partition("\n")[0]).lower()


def hint(error: OSError) -> str | None:
    """The hint for an error; None if it has none."""
    return _HINTS.get(error.errno or 0)


def error_of(error: OSError, path: str | os.PathLike[str] | None = None) -> BloomError:
    """Convert an error of the system to one of bloomcli's.

    Args:
        error: the system's error. If it names a file, the new error has that path.
        path: otherwise, the path of the new error.
    """
    named = path if error.filename is None or isinstance(error.filename, int) else error.filename
    where = None if named is None else os.fsdecode(named)
    if error.errno in _WRITING:
        return WriteError(f"can't be written: {reason(error)}", path=where, hint=hint(error))
    return UnreadableError(f"a file operation failed: {reason(error)}", path=where, hint=hint(error))


def out_of_memory(path: str | os.PathLike[str] | None = None) -> UnreadableError:
    """The error for a failed allocation of memory."""
    where = None if path is None else os.fsdecode(path)
    return UnreadableError("there is not enough memory", path=where, hint=_HINTS[errno.ENOMEM])


@contextmanager
def convert_temporary_file_errors(what: str) -> Iterator[None]:
    """Convert an OSError of an unnamed temporary file to an error that names its directory, so that it isn't taken
    for an error of the command's input or output.

    Args:
        what: the content of the file, such as ``rows``.

    Raises:
        WriteError: the block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        import tempfile

        raise WriteError(
            f"{what} can't be kept in a temporary file: {reason(error)}",
            path=tempfile.gettempdir(),
            hint="TMPDIR names another directory",
        ) from error


@contextmanager
def convert_os_errors(path: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Convert an OSError or a MemoryError of the block to an error of bloomcli.

    The original error is its cause, which BLOOM_DEBUG shows.
    A BrokenPipeError isn't converted: it means that the program that reads the output has closed it.

    Args:
        path: the path of the new error, unless the system's error names another.

    Raises:
        UnreadableError, WriteError: the block raised an OSError or a MemoryError.
        RuntimeError: the program used a closed descriptor or an invalid address.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _BUGS:
            raise RuntimeError(f"{error}: this is a bug of the program, not an error of a file") from error
        raise error_of(error, path) from error
    except MemoryError as error:
        raise out_of_memory(path) from error


def convert_os_errors_of_file(function: F) -> F:
    """Decorate a function with `convert_os_errors`. The function's first argument is the path."""

    @wraps(function)
    def inside(path: Any, *arguments: Any, **options: Any) -> Any:
        with convert_os_errors(path):
            return function(path, *arguments, **options)

    return inside  # type: ignore[return-value]


def status(path: str | os.PathLike[str], *, follow: bool = True) -> os.stat_result | None:
    """The status of a path; None if it doesn't exist.

    Raises:
        UnreadableError: the system can't tell.
    """
    try:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116  there are thousands of files
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise UnreadableError(
            f"its status can't be read: {reason(error)}", path=os.fsdecode(path), hint=hint(error)
        ) from error
    except ValueError:  # a null byte: no file can have such a name
        return None


def read_file(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """A file's content, or its first `most` bytes.

    If a read would block (EAGAIN), it raises the error; Python's streams treat it as the end of the file.

    Raises:
        OSError: it can't be read.
        ValueError: no file can have such a name.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        parts: list[bytes] = []
        left = most
        while left is None or left > 0:
            part = os.read(fd, _READ_BYTES if left is None else min(left, _READ_BYTES))
            if not part:
                break
            parts.append(part)
            left = None if left is None else left - len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def cannot_read(path: str, error: OSError) -> UnreadableError:
    """The error for a source that can't be read."""
    return UnreadableError(f"can't be read: {reason(error)}", path=path, hint=hint(error))


def option_file_error(error: OSError, path: str, what: str) -> UnreadableError | None:
    """The error for a file that an option names and that can't be read.

    None if the file doesn't exist or is a directory: then the option is wrong.

    Args:
        error: the system's error.
        path: the file, as the user named it.
        what: a description of the file, such as "the policy".
    """
    if error.errno in NO_FILE or isinstance(error, IsADirectoryError):
        return None
    return UnreadableError(f"{what} can't be read: {reason(error)}", path=path, hint=hint(error))


def path_exists(path: str | os.PathLike[str]) -> bool:
    """Whether a path exists, even as a broken link. Raises UnreadableError."""
    return status(path, follow=False) is not None


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a directory, or a link to one. Raises UnreadableError."""
    info = status(path)
    return info is not None and stat.S_ISDIR(info.st_mode)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a regular file, or a link to one. Raises UnreadableError."""
    info = status(path)
    return info is not None and stat.S_ISREG(info.st_mode)


def is_link(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a symbolic link. Raises UnreadableError."""
    info = status(path, follow=False)
    return info is not None and stat.S_ISLNK(info.st_mode)
