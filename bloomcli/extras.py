"""Packages that only some commands need: bloom's extras install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bloomcli.errors import UnsupportedError


@contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Turn the ImportError of a package that isn't installed into an UnsupportedError, which names the extra.

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
