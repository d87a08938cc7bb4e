"""Whether something wrote to a file while it was read: what was read may be of two versions then."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bloomcli.storage.local.source import fingerprint_of
from bloomcli.storage.os_errors import cannot_read

if TYPE_CHECKING:
    from bloomcli.storage.base import Source


def check_not_written(source: Source) -> None:
    """Raise SourceChanged if the size or the time of modification of an open file aren't what they were when it was
    opened, and UnreadableError if the system can't tell.

    A file that was renamed over it isn't the one that is open. Stores give the bytes of one version, or refuse.
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
