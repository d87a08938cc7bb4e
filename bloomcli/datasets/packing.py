"""Packs tasks into parts of similar weight, so that all parts finish at about the same time.

Longest processing time first (Graham 1969): the heaviest item goes to the part that is lightest so far. The
heaviest part is then at most 4/3 of what the best packing has.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_FILE_BYTES: Final = 1 << 20
"""The cost of opening, syncing and renaming a file, in bytes read: thousands of tiny files are work too."""

_PART_BYTES: Final = 256 << 20
"""The least weight of a part: Spark takes some 70 ms to run a Python task that does nothing."""

_WAVES: Final = (2, 8)
"""Parts for each core, at least and at most: the last wave is short, and a repeated part is small."""

_MOST_FILES: Final = 256
"""The most files of a part, so that little has to be repeated when a machine is lost."""


def parts_for(items: Sequence[T], size: Callable[[T], int], cores: int, part_bytes: int = _PART_BYTES) -> int:
    """The number of parts that keeps so many cores busy to the end, each of `part_bytes` or more where there are as
    many as cores."""
    weights = _weights(items, size)
    least, most = _WAVES
    waves = min(max(sum(weights) // part_bytes // cores, least), most)
    return min(len(items), max(cores * waves, -(-len(items) // _MOST_FILES)))


def pack(items: Sequence[T], size: Callable[[T], int], parts: int) -> list[list[T]]:
    """At most `parts` lists, heaviest first, each with its largest item first.

    Args:
        items: the things to pack.
        size: bytes of an item, negative where it isn't known; such an item counts as an average one.
        parts: how many lists.
    """
    weights = _weights(items, size)
    lists: list[list[T]] = [[] for _ in range(min(parts, len(items)))]
    loads = [(0, i) for i in range(len(lists))]
    for at in sorted(range(len(items)), key=weights.__getitem__, reverse=True):
        load, i = loads[0]
        lists[i].append(items[at])
        heapq.heapreplace(loads, (load + weights[at], i))
    heaviest = sorted(loads, key=lambda entry: (-entry[0], entry[1]))
    return [lists[i] for _, i in heaviest]


def _weights(items: Sequence[T], size: Callable[[T], int]) -> list[int]:
    sizes = [size(item) for item in items]
    known = [s for s in sizes if s >= 0]
    average = sum(known) // len(known) if known else 0
    return [(s if s >= 0 else average) + _FILE_BYTES for s in sizes]
