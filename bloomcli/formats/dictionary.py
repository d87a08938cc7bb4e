"""The entries of a column's dictionary: where every value is an entry, `probe` excludes all other values.

A format proves that every value of a unit is one of its dictionary's entries, and reads them. It gives a
`DictionaryLookup` (`formats/answer.py`), which is called only where neither the filter nor the statistics exclude the
value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

_HASH_BYTES: Final = 8


class DictionaryEntries:
    """The hashes of a dictionary's entries. Values with the same hash count as equal: the answer is then maybe."""

    def __init__(self, hashes: bytes | bytearray, others: Iterable[int] = ()) -> None:
        """`hashes` are uint64s in native order, `others` are added to them."""
        self._hashes = hashes
        self._others = frozenset(others)

    def check(self, value: int) -> bool:
        """Whether an entry has this hash. A search is faster than making a set: few values are looked up."""
        wanted = value.to_bytes(_HASH_BYTES, sys.byteorder)
        at = -1
        while (at := self._hashes.find(wanted, at + 1)) >= 0:
            if at % _HASH_BYTES == 0:  # else parts of two hashes
                return True
        return value in self._others


class ReadBudget:
    """The bytes of dictionaries that may still be read from a file. A larger dictionary isn't read."""

    def __init__(self, size: int) -> None:
        self._remaining = size

    def take(self, size: int) -> bool:
        """Return whether a dictionary of `size` bytes may be read; if so, deduct them."""
        if size > self._remaining:
            return False
        self._remaining -= size
        return True
