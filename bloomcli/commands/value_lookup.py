"""Picks those of millions of values that a file has, by the hashes of all values of the file's column.

    hashes of the column  ->  filter of the sought hashes  ->  parts, which ascend by hash  ->  the few sought values
    (page by page)            (memory)                        (temporary file)                  that the file may have

The file is then searched for these few as for any values: its filters and statistics tell the same of each value. The
time that a file takes depends on its own values, and hardly on how many are looked for.
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
"""Bits of the filter for each value: about one hash in 200 is looked for in vain in the parts."""
_FILTER_MOST: Final = 32 << 20
_BLOCK: Final = 32
_FOUND_MOST: Final = 1 << 18
"""Values that are picked for a file, at most."""
_FOUND_BYTES: Final = 32 << 20
_BATCH_HASHES: Final = 1 << 18
"""Hashes that pass the filter wait for so many, and are looked up in the parts together."""


class FoundValues(NamedTuple):
    """What is known of a file after its column was read."""

    wanted: WantedValues
    """The values that it may have."""
    row_groups: Sequence[Candidates]
    """All of it, without values."""
    pages: dict[tuple[int | None, int], int]
    """Of each row group that was read, by the numbers of its stripe and itself, the pages."""

    @property
    def any_value(self) -> bool:
        """The file may have one of the values."""
        return len(self.wanted.forms) > 0 or self.wanted.nan is not None


class ValueLookup:
    """All sought values, by their hashes. Threads may use it at once.

    Args:
        parts: as `ValueParts.of` stores them.
    """

    def __init__(self, parts: StoredParts) -> None:
        self._parts = [parts.mapped(at) for at in range(len(parts))]
        self._count = sum(part.num_rows for part in self._parts)
        blocks = -(-self._count * _BITS // (8 * _BLOCK))
        self._bits = bytearray(_BLOCK * max(min(blocks, _FILTER_MOST // _BLOCK), 1))
        keys: list[tuple[Any, Any] | None] = []
        for at in range(len(parts)):
            part = parts.mapped(at)  # the pages of `_parts` that are read here would stay in memory
            kernels.sbbf_insert(self._bits, hashes_of(part), part.num_rows)
            if part.num_rows:
                keys.append(_range(part))
        self._ranges = [ends for ends in keys if ends is not None] if None not in keys else None

    def look_up(self, search: ColumnSearch, stop: Stop) -> FoundValues | None:
        """The values that a file may have; None where they are many, or where its filters and statistics are to be
        asked for all values. Raises Stopped."""
        row_groups: list[Candidates] = []
        pages: dict[tuple[int | None, int], int] = {}
        found = _Positions(self._parts)
        try:
            stored = search.row_group_hashes(self._count, self._ranges, stop)
            if stored is None:
                return None
            for group in stored:
                row_groups.append(group.candidates)
                if group.hashes is None:
                    continue
                place = group.candidates.stripe, group.candidates.row_group
                pages[place] = 0
                for some in group.hashes:
                    pages[place] += some.pages
                    found.look_up(self._passed(some.hashes, some.values))
                    if found.too_many:
                        return None
        except (CorruptFile, UnsupportedError):  # the search says so, if it reads that
            return None
        wanted = found.wanted()
        return None if wanted is None else FoundValues(wanted, row_groups, pages)

    def _passed(self, hashes: bytes | bytearray, count: int) -> pa.UInt64Array:
        """Those of some hashes that the filter has."""
        positions = kernels.sbbf_find(self._bits, hashes, count)
        every = pa.Array.from_buffers(pa.uint64(), count, [None, pa.py_buffer(hashes)])
        return every.take(pa.Array.from_buffers(pa.int64(), len(positions) // 8, [None, pa.py_buffer(positions)]))


class _Positions:
    """The positions in each part of the values that were found."""

    def __init__(self, parts: Sequence[pa.RecordBatch]) -> None:
        self._parts = parts
        self._found: list[list[pa.Int64Array]] = [[] for _ in parts]
        self._waiting: list[pa.UInt64Array] = []
        self._waiting_count = 0
        self._count = 0

    @property
    def too_many(self) -> bool:
        """More than are picked for a file; those that came several times count each time."""
        return self._count > _FOUND_MOST

    def look_up(self, hashes: pa.UInt64Array) -> None:
        """Find the values with these hashes, now or with later ones."""
        if len(hashes):
            self._waiting.append(hashes)
            self._waiting_count += len(hashes)
        if self._waiting_count >= _BATCH_HASHES:
            self._find()

    def _find(self) -> None:
        sought = pc.unique(pa.concat_arrays(self._waiting))
        ascending = memoryview(sought.take(pc.array_sort_indices(sought)).buffers()[1]).cast("B")
        self._waiting, self._waiting_count = [], 0
        for part, found in zip(self._parts, self._found, strict=True):
            if not part.num_rows:
                continue
            positions = kernels.hashes_among(hashes_of(part), part.num_rows, ascending, len(sought))
            if positions:
                found.append(pa.Array.from_buffers(pa.int64(), len(positions) // 8, [None, pa.py_buffer(positions)]))
                self._count += len(positions) // 8
            if self.too_many:
                return

    def wanted(self) -> WantedValues | None:
        """The values that were found, in the order of the parts; None if they are many."""
        if self._waiting:
            self._find()
        if self.too_many:
            return None
        return selected_entries(self._parts, list(map(_each_once, self._found)), _FOUND_BYTES)


def _each_once(found: Sequence[pa.Int64Array]) -> pa.Int64Array | None:
    """Positions that were found one time or several, ascending; None for none."""
    if len(found) < 2:
        return found[0] if found else None
    once = pc.unique(pa.concat_arrays(found))
    return once.take(pc.array_sort_indices(once))


def _range(part: pa.RecordBatch) -> tuple[Any, Any] | None:
    """The least and the greatest key of a part; None without an order."""
    if not is_keyed(part):
        return None
    try:
        ends = pc.min_max(keys_of(part))
    except pa.ArrowNotImplementedError:
        return None
    return ends["min"].as_py(), ends["max"].as_py()
