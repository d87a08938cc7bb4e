"""The lookup of values in the filters and bounds of many local files of one schema, which leaves most files unopened.

Compiled code reads the footers and the filters. Small chunks that may have one of few values, and whose pages are as
usual, are decoded at once: most files whose filters have a false positive are then ruled out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.formats.arrays import as_int64s
from bloomcli.storage.base import Source


class FilterAnswer(NamedTuple):
    """The answer of one file's filters."""

    format: str
    bytes_read: int
    row_groups: int
    chunk_bytes: int
    """Compressed bytes of the column."""
    scan_bytes: int
    """Compressed bytes of the searched column and of the columns of records in the whole file."""
    possible: tuple[int, ...] | None
    """Numbers of the row groups that may have a value; None if the file has to be opened to determine them."""
    forms: Mapping[int, pa.Int64Array] | None
    """If many values are looked up: for each of `possible`, the ascending positions of the forms in `WantedValues`
    that its filter has."""
    pages: tuple[int, ...]
    """Data pages of the column in each of `possible`, if their headers are sound and whole chunks can be decoded."""
    absent: bool = False
    """Whether the column was decoded, and has none of the values."""

    @property
    def ruled_out(self) -> bool:
        """Whether no row group has a value."""
        return self.possible == () or self.absent


class FilterLookup:
    """Looks the values of a search up in the filters of files with the same schema as a file that was searched.

    Args:
        name: the format of these files.
        query: compiled code that reads the filters of one file.
        positions: for many values, the position of each hash's form. None for few.
        may_match: reads the column in row groups of an open file, which have a number of values, and returns whether
            it may have one of the values. They are row groups that `query` says can be decoded whole.
    """

    def __init__(
        self,
        name: str,
        query: kernels.FilterQuery,
        positions: pa.Int64Array | None,
        may_match: Callable[[Source, Sequence[int], int], bool],
    ) -> None:
        self._format, self._query, self._positions, self._may_match = name, query, positions, may_match

    def look_up(
        self, source: Source, row_groups: Collection[int] | None = None, *, decodes: bool = True
    ) -> FilterAnswer | None:
        """Look the values up in the filters of an open file; None if the file isn't local.

        Args:
            source: the file.
            row_groups: those to look at, by an index; all if None.
            decodes: whether to decode small chunks that may have one of few values.
        """
        descriptor = source.fileno()
        if descriptor is None:
            return None
        chosen = (
            None if row_groups is None else bytes(i in row_groups for i in range(max(row_groups, default=-1) + 1))
        )
        read, facts, possible, hits, (pages, values, size) = self._query.file(descriptor, source.size, chosen)
        forms = None if hits is None else dict(zip(possible or (), map(self._forms, hits), strict=True))
        absent = False
        if decodes and possible and pages and forms is None:
            absent = not self._may_match(source, possible, values)
            read += size
        return FilterAnswer(self._format, read, *facts, possible, forms, pages, absent)

    def _forms(self, hits: bytes) -> pa.Int64Array:
        """The ascending positions of the forms of hashes at these positions, int64s."""
        assert self._positions is not None  # noqa: S101  only many values have positions
        forms = self._positions.take(as_int64s(hits))
        return forms.take(pc.array_sort_indices(forms))
