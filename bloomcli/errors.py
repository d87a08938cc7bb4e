"""The errors that bloomcli raises. Every problem with a file or a request is one of these classes.

    BloomError                  base: path, byte offset, field path, what to do
    ├── UsageError              the request is invalid (exit 2)
    │   ├── UnknownColumn       no such leaf column; similar names are suggested
    │   ├── NothingToFilter     globs match no column that can have a filter
    │   ├── LiteralError        a value on the command line isn't of the column's type
    │   ├── PolicyError         a policy file is invalid; its reason has one line per problem
    │   └── FilterExists        a chunk already has a filter and --replace wasn't given
    ├── UnreadableError         the input can't be read (exit 3)
    │   ├── CorruptFile         the bytes contradict the format
    │   │   ├── UnknownFormat   the file is in no format that bloomcli reads
    │   │   └── NoValues        a column's pages have no values, and its statistics count some
    │   └── SourceChanged       the file changed during the command
    ├── UnsupportedError        the input is valid, but bloomcli doesn't support it (exit 4)
    │   └── KeyMissing          the footer or a column is encrypted, and its key isn't given
    └── WriteError              the output can't be written (exit 3)

Any other exception that leaves bloomcli is a bug.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from bloomcli.hints import completed, extended
from bloomcli.model.paths import shown

if TYPE_CHECKING:
    from bloomcli.model.validate import Finding


class BloomError(Exception):
    """The base class of every error that bloomcli raises deliberately.

    Attributes:
        reason: what is wrong, in one sentence without a trailing period.
        path: the path of the file, as the user wrote it; without a password or a signature.
        offset: the byte offset of the problem in that file, where known.
        field: the field path within the file's metadata, such as ``row_groups[3].columns[1]``.
        hint: what the user can do, where possible as a command line.
        findings: the findings that `validate` had collected in the file before the error.
    """

    exit_code: ClassVar[int] = 3

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(reason)  # pickled with the attributes: worker processes send errors to their parent
        self.reason = reason
        self.path = None if path is None else shown(path)
        self.offset = offset
        self.field = field
        self.hint = completed(hint, self.path)
        self.findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        hint = completed(self.hint, self.path)
        return self.message if hint is None else f"{self.message}\nhint: {hint}"

    def add_to_hint(self, texts: Iterable[str]) -> None:
        """Put further texts after the hint."""
        self.hint = extended(self.hint, texts)

    @property
    def message(self) -> str:
        """The reason with its place: path, field and offset. `str(error)` has the hint, too."""
        text = self.reason if self.path is None else f"{shown(self.path)}: {self.reason}"
        location = []
        if self.field is not None:
            location.append(f"at {self.field}")
        if self.offset is not None:
            location.append(f"byte {self.offset}")
        return f"{text} ({', '.join(location)})" if location else text


class UsageError(BloomError):
    """The request contradicts itself or the file's schema."""

    exit_code = 2


class UnknownColumn(UsageError):
    """A column name or glob matches no leaf column of the file."""


class NothingToFilter(UsageError):
    """Globs match columns of the file, but none that can have a filter."""


class LiteralError(UsageError):
    """A value on the command line can't be parsed by the column's type. A value out of the type's range isn't an
    error.

    Attributes:
        text: the value as the user wrote it.
    """

    def __init__(
        self,
        reason: str,
        *,
        text: str | None = None,
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(reason, path=path, offset=offset, field=field, hint=hint)
        self.text = text

    def of_file(self, path: str) -> LiteralError:
        """The same error about the column of another file."""
        return LiteralError(self.reason, text=self.text, path=path, hint=self.hint)


class PolicyError(UsageError):
    """A policy file is invalid. The reason has one line for each problem."""


class FilterExists(UsageError):
    """A column chunk already has a filter and the request doesn't replace filters."""


class UnreadableError(BloomError):
    """The input can't be read."""

    exit_code = 3


class CorruptFile(UnreadableError):
    """The bytes of the input contradict its format."""


class UnknownFormat(CorruptFile):
    """Neither the start nor the end of the file belongs to a format that bloomcli reads."""


class NoValues(CorruptFile):
    """The pages of a column hold no value, and its statistics count some: its filter would have no bit set.

    Attributes:
        column: the column's path.
    """

    def __init__(
        self,
        reason: str,
        *,
        column: str = "",
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        hint: str | None = "the file is damaged; get it again, or leave the column out with --exclude",
    ) -> None:
        super().__init__(reason, path=path, offset=offset, field=field, hint=hint)
        self.column = column


class SourceChanged(UnreadableError):
    """The input's size, modification time or inode changed during the command."""


class UnsupportedError(BloomError):
    """The input is valid but uses a feature that bloomcli doesn't support (encryption, a codec, ...)."""

    exit_code = 4


class KeyMissing(UnsupportedError):
    """The footer or a column is encrypted, and its key isn't given."""


class WriteError(BloomError):
    """The output can't be written. No file of its name exists, unless the reason says so."""

    exit_code = 3


def near_names(name: str, names: Iterable[str], *, n: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return up to `n` known names similar to `name`, the most similar first; `cutoff` is from 0 to 1."""
    from difflib import get_close_matches  # imported only for error messages

    return get_close_matches(name, list(names), n, cutoff)


def install(extra: str, package: str = "") -> str:
    """The command that installs the packages of an extra, as the installed metadata of bloomcli name them.

    The name ``bloomcli[extra]`` would need an index that has bloomcli. It is used only if there are no metadata.

    Args:
        extra: bloomcli's extra.
        package: one of its packages, to install that alone; by default all.
    """
    from importlib import metadata

    try:
        requirements = metadata.requires("bloomcli") or []
    except metadata.PackageNotFoundError:
        requirements = []
    of_extra = re.compile(rf"""(?P<requirement>{package}[^;]*);\s*extra\s*==\s*["']{extra}["']""")
    names = [match["requirement"].strip() for entry in requirements if (match := of_extra.fullmatch(entry))]
    return shlex.join(["pip", "install", *(names or [f"bloomcli[{extra}]"])])


@contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Convert the ImportError for a missing package to an UnsupportedError that names the extra.

    Args:
        what: the beginning of the sentence: "Azure's blobs need".
        extra: bloomcli's extra that installs the package.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").startswith("bloomcli"):
            raise
        raise UnsupportedError(f"{what} packages that aren't installed ({error.name})", hint=install(extra)) from None
