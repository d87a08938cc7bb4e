"""Samples of a stream of hashes in bounded memory: distinct values at random, and a theta sketch.

Both depend only on the set of values, not on their order or frequency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from bloomcli.extras import needed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

_SKETCH_SEED: Final = 9001
"""DataSketches' default seed of hashes."""
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F
_F1: Final = 0xFF51AFD7ED558CCD
_F2: Final = 0xC4CEB9FE1A85EC53


def numpy() -> Any:
    """Import NumPy, a package of the extra. Raises UnsupportedError."""
    with needed("advise needs", "advice"):
        import numpy as np
    return np


def datasketches() -> Any:
    """Import DataSketches. Raises UnsupportedError."""
    with needed("advise needs", "advice"):
        import datasketches as found
    return found


def mixed(hashes: Hashes) -> Hashes:
    """Murmur3's finalizer, a permutation of the 64-bit numbers. Source: Appleby, MurmurHash3.cpp, fmix64."""
    out: Hashes = hashes ^ (hashes >> 33)  # type: ignore[assignment]  # NumPy's stubs treat 33 as a signed array
    out *= _F1
    out ^= out >> 33
    out *= _F2
    out ^= out >> 33
    return out


def sketch_hashes(values: Hashes) -> Hashes:
    """The hashes that DataSketches computes for int64 values.

    Source: Apache DataSketches, theta_update_sketch_base::hash_and_screen and MurmurHash3.h: the upper 63 bits of the
    first half of MurmurHash3 x64_128 of 8 bytes.
    """
    first = values * _C1
    first = (first << 31) | (first >> 33)  # type: ignore[assignment]  # likewise
    first *= _C2
    first ^= _SKETCH_SEED
    first ^= 8
    second = _SKETCH_SEED ^ 8
    first += second
    other = first + second
    return (mixed(first) + mixed(other)) >> 1  # type: ignore[return-value]  # likewise


class Sketch:
    """A theta sketch of hashes. DataSketches accepts one value at a time, so values that it would discard are
    filtered out before, by the same hash.

    Source: Dasgupta, Lang, Rhodes and Thaler, "A Framework for Estimating Stream Expression Cardinalities" (2016).
    """

    def __init__(self, bits: int) -> None:
        self._sketch = datasketches().update_theta_sketch(bits)
        self._np = numpy()

    def add(self, hashes: Hashes) -> None:
        """Add values."""
        np = self._np
        kept = hashes[sketch_hashes(hashes) < np.uint64(self._sketch.theta64)]
        for value in np.unique(kept).view(np.int64).tolist():
            self._sketch.update(value)

    def packed(self) -> bytes:
        """The sketch's bytes."""
        return bytes(self._sketch.compact().serialize())


class ValueSample:
    """A random sample of up to `most` distinct values: those whose hashes come first in an order that the seed
    selects.

    Source: Cohen and Kaplan, "Summarizing data using bottom-k sketches" (2007): a simple random sample without
    replacement of the distinct values.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._np = numpy()
        self._most = most
        self._salt = self._np.uint64(seed & (1 << 64) - 1)
        self._kept: dict[int, object] = {}
        self._limit = self._np.uint64((1 << 64) - 1)

    def add(self, hashes: Hashes, key: Callable[[int], object]) -> None:
        """Add values. `key` returns the value at a position."""
        np = self._np
        ranks = mixed(hashes ^ self._salt)
        places = np.flatnonzero(ranks <= self._limit)
        if not len(places):
            return
        lowest, first = np.unique(ranks[places], return_index=True)
        for rank, at in zip(lowest[: self._most].tolist(), first[: self._most].tolist(), strict=True):
            if rank not in self._kept:
                self._kept[rank] = key(int(places[at]))
        if len(self._kept) >= self._most:
            self._kept = dict(sorted(self._kept.items())[: self._most])
            self._limit = np.uint64(max(self._kept))

    def keys(self) -> list[object]:
        """The values, in a random order."""
        return [key for _, key in sorted(self._kept.items())]
