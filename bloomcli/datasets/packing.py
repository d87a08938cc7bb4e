"""Packs items, such as the tasks of a run, into parts of similar weight.

Longest processing time first (Graham 1969): the heaviest item goes to the part that is lightest so far. The heaviest
part is then at most 4/3 as heavy as in the best packing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_FILE_BYTES: Final = 1 << 20
"""The cost of opening, syncing and renaming a file, in bytes read: it dominates for thousands of tiny files."""

_PART_BYTES: Final = 256 << 20
"""The smallest weight of a part: Spark takes about 70 ms to run a Python task that does nothing."""

_WAVES: Final = (2, 8)
"""Parts for each core, at least and at most. More parts make the last wave shorter and a repeated part smaller."""

_MOST_FILES: Final = 256
"""The most files of a part, so that losing a machine repeats little work."""


def parts_for(items: Sequence[T], size: Callable[[T], int], cores: int, part_bytes: int = _PART_BYTES) -> int:
    """The number of parts: 2 to 8 for each core, so that a part has `part_bytes` or more where possible, and more
    parts where one would have more than 256 files."""
    weights = _weights(items, size)
    least, most = _WAVES
    waves = min(max(sum(weights) // part_bytes // cores, least), most)
    return min(len(items), max(cores * waves, -(-len(items) // _MOST_FILES)))


def pack(items: Sequence[T], size: Callable[[T], int], parts: int) -> list[list[T]]:
    """Pack items into at most `parts` lists, heaviest first, each with its largest item first.

    Args:
        items: the things to pack.
        size: bytes of an item, negative if unknown; such an item counts as an average one.
        parts: the most lists.
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
    known_sizes = [s for s in sizes if s >= 0]
    average = sum(known_sizes) // len(known_sizes) if known_sizes else 0
    return [(s if s >= 0 else average) + _FILE_BYTES for s in sizes]
