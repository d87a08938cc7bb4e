"""A store whose files are read and listed, but not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from bloomcli.errors import UsageError
from bloomcli.storage.base import Cancelled, Pieces, Progress, Source, Store, SweepResult, Verify


class ReadOnlyStore(Store):
    """The half of `Store` that changes files: all of it raises UsageError, but for what has nothing to do."""

    def spelling(self) -> Callable[[str], str]:
        """Each path is a file of its own."""
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
        """Raise UsageError: who asks is about to change the file."""
        del levels
        self.check_changes(path)

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
        """Nothing tells that the user may not."""
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
        """Nothing is written here, so nothing is left."""
        del path
        return SweepResult()


def _scheme(path: str) -> str:
    return path.partition(":")[0]


def _not_written(path: str) -> UsageError:
    return UsageError(
        f"outputs can't be written to {_scheme(path)}: URIs", path=path, hint="write to a local path: -o FILE"
    )
