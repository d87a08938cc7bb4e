"""Packages that only some commands need, and that bloom's extras install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bloomcli.errors import UnsupportedError


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
        raise UnsupportedError(
            f"{what} packages that aren't installed ({error.name})", hint=f"pip install 'bloomcli[{extra}]'"
        ) from None
