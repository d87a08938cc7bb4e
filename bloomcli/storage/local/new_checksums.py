"""Replaces a file's checksum file (see `hadoop_crc`) when the file is replaced.

    the new checksum file is written under a temporary name, the old one is renamed to another temporary name
    -> the file is replaced     -> the new checksum file gets its name
       the file isn't replaced  -> the old checksum file gets its name back

This order is needed because Hadoop reads a file without checksums, but not one whose checksums are out of date.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomcli.errors import WriteError
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.attributes import copy_attributes
from bloomcli.storage.local.locks import FileLock
from bloomcli.storage.local.temporary import TemporaryFile, file_identity, rename_to_free_name, temporary_files
from bloomcli.storage.local.temporary_names import may_be_for, temporary_name


@contextmanager
def replacing_checksums(
    temporary: TemporaryFile, final: Path, known: hadoop_crc.Checksums | None, prefix: int
) -> Iterator[None]:
    """Replace the checksum file of a file, if it has one, while the block replaces the file itself.

    Args:
        temporary: the new file.
        final: its final name. The caller holds the lock of the file that has it.
        known: verified checksums of the file that the new one was made from.
        prefix: number of bytes at the start that are the same in both.

    Raises:
        UnreadableError: the checksum file exists, and can't be read.
        WriteError: neither checksum file could get the name. Both are left for a sweep.
        OSError: another system call failed. The old checksum file has its name.
    """
    checksums = hadoop_crc.checksum_file_of(final)
    old = hadoop_crc.load(checksums)
    if old is None:
        yield
        return
    before = file_identity(final)
    old_name = temporary_name(checksums)

    def settle() -> None:
        if temporary.placed:
            _place(new, checksums, temporary)
        elif file_identity(final) == before or _differs(old_name, old):
            _restore(old_name, checksums)
        with contextlib.suppress(OSError):  # a sweep will remove it
            old_name.unlink(missing_ok=True)

    with TemporaryFile(checksums) as new, contextlib.ExitStack() as locks:
        try:
            with os.fdopen(new.open(), "wb", closefd=False) as stream:
                stream.write(hadoop_crc.new_checksum_file(old, final, temporary.path, known, prefix))
                stream.flush()
                copy_attributes(new.fd, temporary.path)  # who may read the file may read its checksums
                os.fchmod(new.fd, os.fstat(new.fd).st_mode & 0o666)
                os.fsync(new.fd)
            locks.enter_context(FileLock(checksums))
            with contextlib.suppress(FileNotFoundError):  # another process is replacing the same file
                os.replace(checksums, old_name)  # noqa: PTH105
            yield
        finally:
            try:
                settle()
            except OSError as error:  # unknown which checksums match; a sweep compares them
                new.keep()
                raise _not_placed_error(checksums, error) from None
            except WriteError:
                raise
            except BaseException:  # interrupted
                settle()
                raise


def has_checksums(final: Path) -> bool:
    """Whether a file has a checksum file, or another run is replacing one."""
    checksums = hadoop_crc.checksum_file_of(final)
    return os.path.lexists(checksums) or any(
        may_be_for(p.name, checksums.name) for p in temporary_files(final.parent)
    )


def _not_placed_error(checksums: Path, error: OSError) -> WriteError:
    return WriteError(
        f"the checksums can't be put in place: {(error.strerror or str(error)).lower()}",
        path=str(checksums),
        hint="they have temporary names; the next bloom that writes to the directory restores those that match",
    )


def _place(new: TemporaryFile, checksums: Path, temporary: TemporaryFile) -> None:
    """Give the new checksum file its name, unless it has it already."""
    try:
        try:
            if not new.placed:
                rename_to_free_name(new.path, checksums)
        except FileExistsError:
            if temporary.placed:
                os.replace(new.path, checksums)  # noqa: PTH105
    except OSError as error:
        new.keep()
        raise WriteError(
            f"the checksums can't be written: {(error.strerror or str(error)).lower()}; the new file is in place",
            path=str(checksums),
            hint=f"they are kept as {new.path}; the next bloom that writes to the directory puts them in place",
        ) from None
    if not temporary.placed and new.placed:  # another run, which may have seen no checksums, replaced the file
        with contextlib.suppress(OSError):
            checksums.unlink()


def _restore(old_name: Path, checksums: Path) -> None:
    """Give the old checksum file its name back."""
    try:
        rename_to_free_name(old_name, checksums)
    except (FileExistsError, FileNotFoundError):  # another process made one, or the old one was never renamed
        return
    except OSError as error:
        raise WriteError(
            f"the checksums can't be put back: {(error.strerror or str(error)).lower()}; their file is unchanged",
            path=str(checksums),
            hint=f"they are kept as {old_name}; the next bloom that writes to the directory puts them in place",
        ) from None


def _differs(path: Path, content: bytes) -> bool:
    """Whether a checksum file has changed since it was read; False if it can't be read."""
    try:
        return path.read_bytes() != content
    except OSError:
        return False
