"""Looks up a few values in single pages of a column chunk, before Arrow decodes them.

Compiled code hashes a page's values as for filters, in every encoding. A page that has none of the hashes has none of
the values, regardless of its nesting levels. A page that can't be read here is decoded anyway, so that Arrow reports
the error.
"""

from __future__ import annotations

from typing import Final

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet.encodings import slices
from bloomcli.formats.parquet.pages import ChunkReader, Page, read_page

MOST: Final = 256
"""The maximum number of values; with more, most pages have one of them."""
_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")


class PageLookup:
    """The lookup of a few values in the pages of a chunk.

    Args:
        hashes: the XXH64 of each form of the values, uint64s in native order.

    Attributes:
        left_out: the number of data pages without any of them.
    """

    def __init__(self, hashes: bytes) -> None:
        self._hashes = hashes
        self._in_dictionary = True
        self.left_out = 0

    def in_dictionary(self, reader: ChunkReader, at: int) -> bool:
        """Whether the dictionary page at the file offset `at` may have a value. Keeps the reader's position."""
        self._in_dictionary = self._may_have(reader, at)
        return self._in_dictionary

    def in_page(self, reader: ChunkReader, at: int) -> bool:
        """Whether the data page at the file offset `at` may have a value. Keeps the reader's position."""
        found = self._may_have(reader, at)
        self.left_out += not found
        return found

    def _may_have(self, reader: ChunkReader, at: int) -> bool:
        back, reader.position = reader.position, at
        try:
            page = read_page(reader, self._skip)
            return page is None or self._has(page, reader)
        except (CorruptFile, UnsupportedError):
            return True
        finally:
            reader.position = back

    def _skip(self, encoding: str) -> bool:
        """Whether a data page's values needn't be read: those of the dictionary answer for it."""
        return encoding in _DICTIONARY

    def _has(self, page: Page, reader: ChunkReader) -> bool:
        if not page.dictionary and page.encoding in _DICTIONARY:
            return self._in_dictionary
        return any(
            kernels.has_any(part.hashes, part.hashed, self._hashes) for part in slices(page, reader.chunk.column)
        )
