"""Determines which of millions of values a file may have, by the hashes of all values of the file's column.

    hashes of the column  ->  filter of all values to find ->  parts, in order of hashes    ->  the few values
    (page by page)            (memory)                        (temporary file)                  that the file may have

The file is then searched for these few values. The time for a file depends on its own values, and
hardly on the number of values to find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.commands.stored_values import hashes_of, is_keyed, keys_of, selected_entries
from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.finding import Candidates, WantedValues
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bloomcli.commands.stored_values import StoredParts
    from bloomcli.formats.finding import ColumnSearch

_BITS: Final = 12
"""Bits of the filter for each value: about one hash in 200 passes it without being in the parts."""
_FILTER_MOST: Final = 32 << 20
_BLOCK: Final = 32
_FOUND_MOST: Final = 1 << 18
"""Most values that are found for a file."""
_FOUND_BYTES: Final = 32 << 20
_BATCH_HASHES: Final = 1 << 18
"""Number of hashes that pass the filter before they are looked up in the parts, all together."""


class FoundValues(NamedTuple):
    """The values that a file may have, after its column was read."""

    wanted: WantedValues
    """The values."""
    row_groups: Sequence[Candidates]
    """All row groups, without values."""
    pages: dict[tuple[int | None, int], int]
    """The number of pages that were read, by stripe and row group."""

    @property
    def any_value(self) -> bool:
        """Whether the file may have one of the values."""
        return len(self.wanted.forms) > 0 or self.wanted.nan is not None


class ValueLookup:
    """Looks hashes of a column up among all values to find. Several threads may use it.

    Args:
        parts: the values, as `ValueParts.of` stores them.
    """

    def __init__(self, parts: StoredParts) -> None:
        self._parts = [parts.mapped(at) for at in range(len(parts))]
        self._count = sum(part.num_rows for part in self._parts)
        blocks = -(-self._count * _BITS // (8 * _BLOCK))
        self._bits = bytearray(_BLOCK * max(min(blocks, _FILTER_MOST // _BLOCK), 1))
        keys: list[tuple[Any, Any] | None] = []
        for at in range(len(parts)):
            part = parts.mapped(at)  # a second mapping: pages of `_parts` that are read here would stay in memory
            kernels.sbbf_insert(self._bits, hashes_of(part), part.num_rows)
            if part.num_rows:
                keys.append(_range(part))
        self._ranges = [ends for ends in keys if ends is not None] if None not in keys else None

    def look_up(self, search: ColumnSearch, stop: Stop) -> FoundValues | None:
        """The values that a file may have; None if they are too many, or if a lookup of all values in the file's
        filters takes less time. Raises Stopped."""
        row_groups: list[Candidates] = []
        pages: dict[tuple[int | None, int], int] = {}
        positions = _Positions(self._parts)
        try:
            hashed_groups = search.row_group_hashes(self._count, self._ranges, stop)
            if hashed_groups is None:
                return None
            for group in hashed_groups:
                row_groups.append(group.candidates)
                if group.hashes is None:
                    continue
                unit = group.candidates.stripe, group.candidates.row_group
                pages[unit] = 0
                for batch in group.hashes:
                    pages[unit] += batch.pages
                    positions.look_up(self._passed(batch.hashes, batch.values))
                    if positions.too_many:
                        return None
        except (CorruptFile, UnsupportedError):  # the search raises it, if it reads these pages
            return None
        wanted = positions.wanted()
        return None if wanted is None else FoundValues(wanted, row_groups, pages)

    def _passed(self, hashes: bytes | bytearray, count: int) -> pa.UInt64Array:
        """The hashes that pass the filter."""
        positions = kernels.sbbf_find(self._bits, hashes, count)
        all_hashes = pa.Array.from_buffers(pa.uint64(), count, [None, pa.py_buffer(hashes)])
        return all_hashes.take(
            pa.Array.from_buffers(pa.int64(), len(positions) // 8, [None, pa.py_buffer(positions)])
        )


class _Positions:
    """Collects the positions of found values in each part."""

    def __init__(self, parts: Sequence[pa.RecordBatch]) -> None:
        self._parts = parts
        self._found: list[list[pa.Int64Array]] = [[] for _ in parts]
        self._waiting: list[pa.UInt64Array] = []
        self._waiting_count = 0
        self._count = 0

    @property
    def too_many(self) -> bool:
        """Whether more than `_FOUND_MOST` values were found. A value that was found twice counts twice."""
        return self._count > _FOUND_MOST

    def look_up(self, hashes: pa.UInt64Array) -> None:
        """Add hashes; looks them up if enough are waiting."""
        if len(hashes):
            self._waiting.append(hashes)
            self._waiting_count += len(hashes)
        if self._waiting_count >= _BATCH_HASHES:
            self._find()

    def _find(self) -> None:
        hashes = pc.unique(pa.concat_arrays(self._waiting))
        ascending = memoryview(hashes.take(pc.array_sort_indices(hashes)).buffers()[1]).cast("B")
        self._waiting, self._waiting_count = [], 0
        for part, found in zip(self._parts, self._found, strict=True):
            if not part.num_rows:
                continue
            positions = kernels.hashes_among(hashes_of(part), part.num_rows, ascending, len(hashes))
            if positions:
                found.append(pa.Array.from_buffers(pa.int64(), len(positions) // 8, [None, pa.py_buffer(positions)]))
                self._count += len(positions) // 8
            if self.too_many:
                return

    def wanted(self) -> WantedValues | None:
        """The values that were found, in the order of the parts; None if they are too many."""
        if self._waiting:
            self._find()
        if self.too_many:
            return None
        return selected_entries(self._parts, list(map(_each_once, self._found)), _FOUND_BYTES)


def _each_once(found: Sequence[pa.Int64Array]) -> pa.Int64Array | None:
    """Sort positions, and drop duplicates; None for no positions."""
    if len(found) < 2:
        return found[0] if found else None
    distinct = pc.unique(pa.concat_arrays(found))
    return distinct.take(pc.array_sort_indices(distinct))


def _range(part: pa.RecordBatch) -> tuple[Any, Any] | None:
    """The least and the greatest key of a part; None if the keys have no order."""
    if not is_keyed(part):
        return None
    try:
        ends = pc.min_max(keys_of(part))
    except pa.ArrowNotImplementedError:
        return None
    return ends["min"].as_py(), ends["max"].as_py()
