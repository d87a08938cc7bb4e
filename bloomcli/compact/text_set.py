"""A set of millions of texts that takes 24 to 48 bytes for each, and supports only additions and membership.

It stores 16 bytes of each text's BLAKE2b hash. The probability that two of ten million texts have the same hash is
about 10^-25.
"""

from __future__ import annotations

from typing import Final

_HASH_BYTES: Final = 16
_FIRST_SLOTS: Final = 1 << 10
_EMPTY: Final = bytes(_HASH_BYTES)


class TextSet:
    """A set of texts: an open-addressing table of hashes with linear probing."""

    def __init__(self) -> None:
        from hashlib import blake2b  # imported here, because most commands need no set

        self._hash = blake2b
        self._slots = bytearray(_FIRST_SLOTS * _HASH_BYTES)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text. Returns whether it was new."""
        digest = self._hash(text.encode(errors="surrogatepass"), digest_size=_HASH_BYTES).digest()
        if not self._put(digest):
            return False
        self._count += 1
        if self._count * _HASH_BYTES * 3 > len(self._slots) * 2:
            self._grow()
        return True

    def _put(self, digest: bytes) -> bool:
        slots = self._slots
        at = int.from_bytes(digest[:8], "little") * _HASH_BYTES % len(slots)
        while (found := slots[at : at + _HASH_BYTES]) != _EMPTY:
            if found == digest:
                return False
            at = (at + _HASH_BYTES) % len(slots)
        slots[at : at + _HASH_BYTES] = digest
        return True

    def _grow(self) -> None:
        old, self._slots = memoryview(self._slots), bytearray(2 * len(self._slots))
        for at in range(0, len(old), _HASH_BYTES):
            digest = bytes(old[at : at + _HASH_BYTES])
            if digest != _EMPTY:
                self._put(digest)
