"""The base class of stores that read and list files, but don't write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from bloomcli.errors import UsageError
from bloomcli.storage.base import Cancelled, Pieces, Progress, Source, Store, SweepResult, Verify


class ReadOnlyStore(Store):
    """A store that doesn't write: methods that change files raise UsageError, or do nothing."""

    def spelling(self) -> Callable[[str], str]:
        """Return a function that returns each path unchanged: a file has one path."""
        return lambda path: path

    def normal(self, path: str) -> str:
        """Return the path unchanged."""
        return path

    def check_changes(self, path: str) -> NoReturn:
        """Raise UsageError: files can't be changed."""
        raise UsageError(
            f"files at {_scheme(path)}: URIs can be read, but not changed", path=path, hint="-o writes a changed copy"
        )

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """Return none: they aren't looked up, because no file in them can be changed."""
        del path, levels
        return iter(())

    def directory(self, path: str) -> str:
        """Return the part before the last slash."""
        return path.rpartition("/")[0]

    def join(self, directory: str, name: str) -> str:
        """The URI of a name in a directory."""
        return f"{directory.rstrip('/')}/{name}"

    def names(self, directory: str) -> Sequence[str]:
        """Raise UsageError, as `directories_above`."""
        self.check_changes(directory)

    def may_search(self, directory: str) -> bool:
        """Return True: only a request could show that the user may not."""
        del directory
        return True

    def destination(self, output: str, path: str) -> str:
        """Raise UsageError: nothing is written here."""
        del path
        raise _not_written(output)

    def mirrored(self, output: str, relative: str) -> str:
        """Raise UsageError, as `destination`."""
        del relative
        raise _not_written(output)

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
        """Raise UsageError."""
        del source, overwrite, verify, cancelled, progress, force
        pieces.close()
        self.check_changes(path)

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Raise UsageError."""
        del data, overwrite
        raise _not_written(path)

    def sweep(self, path: str) -> SweepResult:
        """Do nothing: no run leaves temporary files in this store."""
        del path
        return SweepResult()


def _scheme(path: str) -> str:
    return path.partition(":")[0]


def _not_written(path: str) -> UsageError:
    return UsageError(
        f"outputs can't be written to {_scheme(path)}: URIs", path=path, hint="write to a local path: -o FILE"
    )
