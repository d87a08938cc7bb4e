"""The one family of errors. Whatever is wrong with a file or a request, it is one of these.

    BloomError                  base: path, byte offset, field path, what to do
    ├── UsageError              the request can't be meant (exit 2)
    │   ├── UnknownColumn       no such leaf column; near names are offered
    │   ├── LiteralError        a typed value that isn't of the column's type
    │   ├── PolicyError         something in a policy file can't be meant; several things are a line each
    │   └── FilterExists        a chunk has a filter already and --replace wasn't given
    ├── UnreadableError         the input can't be read (exit 3)
    │   ├── CorruptFile         the bytes contradict the format
    │   │   └── UnknownFormat   the bytes are of no format that we know
    │   └── SourceChanged       the file changed while it was being worked on
    ├── UnsupportedError        valid, but not something we handle (exit 4)
    └── WriteError              the output could not be written (exit 3)

Anything else that escapes from bloomcli is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from bloomcli.model.file import Finding


class BloomError(Exception):
    """Base of every error that bloomcli raises on purpose.

    Attributes:
        reason: what is wrong, one sentence, no trailing period needed.
        path: the file it is about, as the user named it.
        offset: byte offset in that file where the trouble shows, when there is one.
        field: field path within the file's metadata, such as ``row_groups[3].columns[1]``.
        hint: what the user can do about it.
        findings: what `validate` had found in the file until then.
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
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.offset = offset
        self.field = field
        self.hint = hint
        self.findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        where = ""
        if self.path is not None:
            where = f"{self.path}: "
        text = where + self.reason
        places = []
        if self.field is not None:
            places.append(f"at {self.field}")
        if self.offset is not None:
            places.append(f"byte {self.offset}")
        if places:
            text += f" ({', '.join(places)})"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the keyword attributes: errors cross process borders in the engines."""
        return (_rebuild, (type(self), self.reason, self.path, self.offset, self.field, self.hint))


def _rebuild(
    kind: type[BloomError],
    reason: str,
    path: str | None,
    offset: int | None,
    field: str | None,
    hint: str | None,
) -> BloomError:
    return kind(reason, path=path, offset=offset, field=field, hint=hint)


class UsageError(BloomError):
    """The request contradicts itself or the file's schema."""

    exit_code = 2


class UnknownColumn(UsageError):
    """A column name or glob that matches no leaf column of the file."""


class LiteralError(UsageError):
    """A typed value that can't be read as the column's type (not: one that the type can't hold)."""


class PolicyError(UsageError):
    """A policy file that can't be meant. Where several things are wrong, each is a line of the reason."""


class FilterExists(UsageError):
    """A column chunk already has a filter and replacing it wasn't asked for."""


class UnreadableError(BloomError):
    """The input can't be read."""

    exit_code = 3


class CorruptFile(UnreadableError):
    """The bytes of the input contradict its format."""


class UnknownFormat(CorruptFile):
    """Neither the file's start nor its end is of a format that we know."""


class SourceChanged(UnreadableError):
    """The input's size, modification time or inode changed while it was being worked on."""


class UnsupportedError(BloomError):
    """The input is valid but uses something that bloomcli doesn't handle (encryption, a codec, ...)."""

    exit_code = 4


class WriteError(BloomError):
    """The output could not be written; nothing is there under its name, unless the reason says so."""

    exit_code = 3


def near_names(name: str, known: Iterable[str], *, n: int = 3, cutoff: float = 0.6) -> list[str]:
    """Up to `n` names that a mistyped one may stand for, the nearest first; `cutoff`: how alike, 0 to 1."""
    from difflib import get_close_matches  # needed only when something went wrong

    return get_close_matches(name, list(known), n, cutoff)
