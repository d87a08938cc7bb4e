"""Names of temporary files, and what they say.

    .NAME.bloom-RANDOM.tmp            a new file, or a checksum file that was renamed while its file is replaced
    .NAME.bloom-RANDOM-NEW-OLD.tmp    a file that is exchanged for another one (see `exchange`)

NEW and OLD are marks (see `mark`) of the two files. Names end at 255 bytes, so that a long NAME is cut.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import Fingerprint

_NAME_CHARACTERS: Final = 48
_MARK_CHARACTERS: Final = 12
_NAME: Final = re.compile(
    r"\.(?P<start>.{1,120})\.bloom-[0-9a-f]{12}(?:-(?P<new>[0-9a-f]{12})-(?P<old>[0-9a-f]{12}))?\.tmp", re.DOTALL
)
"""The names that `temporary_name` gives."""


class Marks(NamedTuple):
    """Marks of two files that are exchanged, as a temporary name has them."""

    new: str
    old: str


def mark(info: os.stat_result | Fingerprint) -> str:
    """A hash of a file's inode, size and modification time, 12 characters.

    Renaming the file doesn't change it, nor does a restart of the machine.
    """
    import hashlib  # takes 2 ms, and only an exchange needs it

    if isinstance(info, os.stat_result):
        info = Fingerprint(size=info.st_size, mtime_ns=info.st_mtime_ns, inode=info.st_ino)
    text = f"{info.inode} {info.size} {info.mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_CHARACTERS]


def temporary_name(final: Path, marks: Marks | None = None) -> Path:
    """A hidden name in the directory of a file, which no other run has chosen."""
    marked = "" if marks is None else f"-{marks.new}-{marks.old}"
    return final.with_name(f".{final.name[:_NAME_CHARACTERS]}.bloom-{os.urandom(6).hex()}{marked}.tmp")


def is_temporary(name: str) -> bool:
    """Whether a name is one that `temporary_name` gives."""
    return _NAME.fullmatch(name) is not None


def may_be_for(name: str, final: str) -> bool:
    """Whether a temporary name may be that of a file. Long names were cut, so it may be for several."""
    match = _NAME.fullmatch(name)
    return match is not None and final[:_NAME_CHARACTERS] == match["start"]


def marks_in(name: str) -> Marks | None:
    """The marks in a temporary name; None where it isn't one of an exchange."""
    match = _NAME.fullmatch(name)
    return None if match is None or match["new"] is None else Marks(match["new"], match["old"])
