"""The temporary copies of a trial: with filters, without filters, and of files in stores.

They lie in a folder of their own, which is removed at the end, also when Ctrl-C or SIGTERM stops the trial. A file of
this machine that is read as it is has a link there, so that no reader takes anything from its name or its folder:
partitions, patterns, checksums. A trial holds the lock of its folder: the next one removes those of killed trials.
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
from bloomcli.commands import add, remove
from bloomcli.commands.options import AddOptions, RemoveOptions
from bloomcli.concurrency.signals import deferred, terminable
from bloomcli.errors import UnsupportedError, WriteError
from bloomcli.storage.local.locks import lock
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import open_source, store_of
from bloomcli.words import size

_PREFIX: Final = "bloom-trial-"
_MADE_SECONDS: Final = 60.0
"""A folder that is younger may be one that its trial has not locked yet."""
_PIECE_BYTES: Final = 8 << 20
_ANY_READER: Final = ("arrow-rs",)
"""A reader that loses no rows by filters: a trial is to show which others do, so no column is left out for them."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end of the block, whatever ends it.

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
    """Remove the folders of killed trials: this user's, whose lock nobody holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another trial removes it too, or has its lock
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                about = os.fstat(descriptor)
                old = time.time() - about.st_mtime > _MADE_SECONDS
                if about.st_uid == os.getuid() and old and lock(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


class Copies:
    """The copies of one file."""

    def __init__(self, folder: Path, path: str, file_format: str) -> None:
        """`folder` is made, for this file only."""
        self._folder, self._path, self._suffix = folder, path, f".{file_format}"
        with convert_os_errors(str(folder)):
            folder.mkdir()
        self.original = self._original()
        """The file as it is."""

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
        """A copy that has filters of these columns too. Raises: as `bloomcli.add`, and WriteError."""
        output = self._folder / f"with-filters{self._suffix}"
        options = AddOptions(columns=columns, fpp=fpp, output=output, readers=_ANY_READER)
        self._check_space(add.run(self.original, replace(options, dry_run=True)).bytes_after)
        add.run(self.original, options)
        return str(output)

    def without_filters(self, path: str) -> str:
        """A copy of one of these files without any filter. Raises: as `bloomcli.remove`, and WriteError."""
        output = self._folder / f"without-filters{self._suffix}"
        self._check_space(Path(path).stat().st_size)
        remove.run(path, RemoveOptions(output=output))
        return str(output)

    def _check_space(self, needed: int) -> None:
        """Raises WriteError if a new file would be larger than what is free."""
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise WriteError(
                f"a temporary copy needs {size(needed)} and {self._folder.parent.parent} has {size(free)} free",
                path=self._path,
                hint="TMPDIR=/a/folder/with/space bloom trial ...",
            )
