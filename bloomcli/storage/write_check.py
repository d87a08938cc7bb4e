"""Detects that another program wrote to a file while it was read. The bytes may then be of two versions."""

from __future__ import annotations

import os

from bloomcli.storage.base import Source
from bloomcli.storage.local.source import fingerprint_of
from bloomcli.storage.os_errors import cannot_read


def check_not_written(source: Source) -> None:
    """Raise SourceChanged if the size or the modification time of an open local file changed after it was opened.

    A file that was renamed over it doesn't matter: it isn't the open one. Other stores return the bytes of one
    version, or raise.

    Raises:
        SourceChanged: the file changed.
        UnreadableError: the system can't look it up.
    """
    descriptor = source.fileno()
    if descriptor is None:
        return
    try:
        same = fingerprint_of(os.fstat(descriptor)) == source.fingerprint
    except OSError as error:
        raise cannot_read(source.path, error) from None
    if not same:
        raise source.changed("changed")
