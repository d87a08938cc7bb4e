"""The temporary copies of a trial: with filters, without filters, and of files in stores.

They are in a temporary folder, which is removed at the end, also when Ctrl-C or SIGTERM stops the trial. A local file
that needs no copy has a link there: otherwise readers would derive partitions, patterns or checksums from its name
and folder. A trial holds a lock on its folder, so that the next trial can remove the folders of killed ones.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from bloomcli import limits
from bloomcli.commands import change
from bloomcli.commands.options import AddOptions, RemoveOptions
from bloomcli.concurrency.signals import deferred, terminable
from bloomcli.errors import UnsupportedError, WriteError
from bloomcli.storage.local.locks import lock
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import open_source, store_of
from bloomcli.words import size

_PREFIX: Final = "bloom-trial-"
_MADE_SECONDS: Final = 60.0
"""The trial of a younger folder may not have locked it yet."""
_PIECE_BYTES: Final = 8 << 20
_ANY_READER: Final = ("arrow-rs",)
"""A reader that loses no rows by filters. With it, `add` leaves no column out: the trial shows which readers lose
rows."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end of the block, also after an error or a signal.

    Raises:
        WriteError: the folder can't be made.
    """
    with terminable():
        _remove_left_folders()
        with convert_os_errors(tempfile.gettempdir()):
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        descriptor = -1
        try:
            with convert_os_errors(str(folder)):
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                lock(descriptor)
            yield folder
        finally:
            with deferred():
                shutil.rmtree(folder, ignore_errors=True)
                if descriptor >= 0:
                    os.close(descriptor)


def _remove_left_folders() -> None:
    """Remove the folders of killed trials: those of this user that no process holds a lock on."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another trial removes it at the same time, or holds its lock
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                about = os.fstat(descriptor)
                old = time.time() - about.st_mtime > _MADE_SECONDS
                if about.st_uid == os.getuid() and old and lock(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


class Copies:
    """Makes the copies of one file."""

    def __init__(self, folder: Path, path: str, file_format: str) -> None:
        """Create `folder`, which holds the copies of this file only, and in it a link to the file, or a copy of an
        object in a store.

        Raises:
            UnsupportedError: the object is larger than `limits.TRIAL_DOWNLOAD_MAX_BYTES`.
            WriteError: there isn't enough space, or the folder can't be written.
        """
        self._folder, self._path, self._suffix = folder, path, f".{file_format}"
        with convert_os_errors(str(folder)):
            folder.mkdir()
        self.original = self._original()
        """The local path of the unchanged file."""

    def _original(self) -> str:
        store, link = store_of(self._path), self._folder / f"original{self._suffix}"
        with open_source(self._path) as source:
            if not store.remote and Path(source.path).is_file():
                with convert_os_errors(str(link)):
                    link.symlink_to(Path(source.path).resolve())
                return str(link)
            if source.size > limits.TRIAL_DOWNLOAD_MAX_BYTES:
                most = limits.TRIAL_DOWNLOAD_MAX_BYTES >> 20
                raise UnsupportedError(
                    f"readers run on local files, and a file of {source.size >> 20:,} MiB isn't copied from a store:"
                    f" {most:,} MiB is the most",
                    path=self._path,
                    hint="copy it to this machine, or try a smaller file of the dataset",
                )
            self._check_space(source.size)
            with convert_os_errors(str(link)), link.open("wb") as output:
                for at in range(0, source.size, _PIECE_BYTES):
                    output.write(source.read_at(at, min(_PIECE_BYTES, source.size - at)))
        return str(link)

    def with_filters(self, columns: tuple[str, ...], fpp: float) -> str:
        """Write a copy with the file's filters and new ones of these columns, and return its path.

        Raises: as `bloomcli.add`, and WriteError.
        """
        output = self._folder / f"with-filters{self._suffix}"
        options = AddOptions(columns=columns, fpp=fpp, output=output, readers=_ANY_READER)
        self._check_space(change.run(self.original, replace(options, dry_run=True)).bytes_after)
        change.run(self.original, options)
        return str(output)

    def without_filters(self, path: str) -> str:
        """Write a copy of `path`, one of these files, without any filter, and return the copy's path.

        Raises: as `bloomcli.remove`, and WriteError.
        """
        output = self._folder / f"without-filters{self._suffix}"
        self._check_space(Path(path).stat().st_size)
        change.run(path, RemoveOptions(output=output))
        return str(output)

    def _check_space(self, needed: int) -> None:
        """Raise WriteError if a new file of `needed` bytes is larger than the free space."""
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise WriteError(
                f"a temporary copy needs {size(needed)} and {self._folder.parent.parent} has {size(free)} free",
                path=self._path,
                hint="TMPDIR=/a/folder/with/space bloom trial ...",
            )
