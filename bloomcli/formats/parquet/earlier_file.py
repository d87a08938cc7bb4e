"""Finds the earlier version of a file in an object store that can only append to whole objects (see `splice`).

    body | footer | length | PAR1 | filters | footer'| length | PAR1

The earlier file ends with the first PAR1 after the body. It may itself have been made from an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import layout, spec
from bloomcli.formats.parquet.footer import ChunkKey, Footer, read_footer
from bloomcli.storage.base import Fingerprint, Source

_MOST: Final = 100
"""The maximum number of earlier footers that are read."""


def earlier_size(source: Source, footer: Footer, removed: set[ChunkKey], tail: bytes) -> int | None:
    """The size in bytes of the earlier file that the file becomes without some filters; None if there is none.

    That is a file that ends with `tail`, byte for byte, and contains everything that the tail refers to.

    Args:
        source: the file.
        footer: its footer.
        removed: the chunks whose filters are removed.
        tail: footer, length and magic of the file without these filters.
    """
    claims = layout.regions(footer, lambda _: None)
    needed = max((c.end for c in claims if c.kind != layout.FILTER or c.key not in removed), default=len(spec.MAGIC))
    waiting = [start for start in _starts(claims, removed) if start <= footer.start]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        end = waiting.pop()
        if end in seen or end - len(tail) < needed:
            continue
        seen.add(end)
        if source.read_at(end - len(tail), len(tail)) == tail:
            return end
        try:
            earlier = read_footer(_Beginning(source, end))
            waiting += [start for start in _starts(layout.regions(earlier, lambda _: None), None) if start < end]
        except CorruptFile:
            continue  # no footer ends here
    return None


def _starts(claims: list[layout.Region], keys: set[ChunkKey] | None) -> Iterator[int]:
    """Yield the starts of filters (None: of any chunk) that follow no other range that the footer locates."""
    ends = {claim.end for claim in claims}
    for claim in claims:
        if claim.kind == layout.FILTER and (keys is None or claim.key in keys) and claim.start not in ends:
            yield claim.start


class _Beginning(Source):
    """The first bytes of a file, as a file."""

    def __init__(self, source: Source, size: int) -> None:
        self.path, self.size, self._source = source.path, size, source

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the whole file."""
        return self._source.fingerprint

    def _current(self) -> Fingerprint:
        return self.fingerprint

    def _read(self, offset: int, length: int) -> bytes:
        return self._source.read_at(offset, length)

    def close(self) -> None:
        """Do nothing: the caller closes the file."""
