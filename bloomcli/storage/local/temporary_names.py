"""Makes and parses the names of temporary files.

    .NAME.bloom-RANDOM.tmp            a new file, or a checksum file during the replacement of its file
    .NAME.bloom-RANDOM-NEW-OLD.tmp    a file that is exchanged with another one (see `exchange`)

NEW and OLD are marks (see `mark`) of the two files. A long NAME is cut, because names have at most 255 bytes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from bloomcli.storage.base import Fingerprint

_NAME_CHARACTERS: Final = 48
_MARK_CHARACTERS: Final = 12
_NAME: Final = re.compile(
    r"\.(?P<start>.{1,120})\.bloom-[0-9a-f]{12}(?:-(?P<new>[0-9a-f]{12})-(?P<old>[0-9a-f]{12}))?\.tmp", re.DOTALL
)
"""Matches the names that `temporary_name` makes."""


class Marks(NamedTuple):
    """Marks of two files that are exchanged, from a temporary name."""

    new: str
    old: str


def mark(info: os.stat_result | Fingerprint) -> str:
    """A hash of a file's inode, size and modification time: 12 hexadecimal digits.

    A rename of the file and a restart of the machine don't change it.
    """
    import hashlib  # takes 2 ms to import; only an exchange needs it

    if isinstance(info, os.stat_result):
        info = Fingerprint(size=info.st_size, mtime_ns=info.st_mtime_ns, inode=info.st_ino)
    text = f"{info.inode} {info.size} {info.mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_CHARACTERS]


def temporary_name(final: Path, marks: Marks | None = None) -> Path:
    """A new random hidden name in the directory of a file."""
    marked = "" if marks is None else f"-{marks.new}-{marks.old}"
    return final.with_name(f".{final.name[:_NAME_CHARACTERS]}.bloom-{os.urandom(6).hex()}{marked}.tmp")


def is_temporary(name: str) -> bool:
    """Whether `temporary_name` makes such names."""
    return _NAME.fullmatch(name) is not None


def may_be_for(name: str, final: str) -> bool:
    """Whether a temporary name may belong to a file: to several, if their long names were cut."""
    match = _NAME.fullmatch(name)
    return match is not None and final[:_NAME_CHARACTERS] == match["start"]


def marks_in(name: str) -> Marks | None:
    """The marks in a temporary name; None if it isn't the name of an exchange."""
    match = _NAME.fullmatch(name)
    return None if match is None or match["new"] is None else Marks(match["new"], match["old"])
