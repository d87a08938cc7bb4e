"""The lookup of values in the filters and bounds of many local files of one schema, before `find` opens them.

Compiled code reads the footers and the filters: most files are never opened. Small chunks of the others, whose pages
are as usual, are decoded at once: most files whose filters have a false positive are then ruled out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.arrays import as_int64s
from bloomcli.storage.base import Source

_CHECK_SECONDS: Final = 0.1
"""Compiled code returns after this time, so that it can be cancelled."""


class FilterAnswer(NamedTuple):
    """The answer of one file's filters, or of several files that can't have the values."""

    files: int
    row_groups: int
    chunk_bytes: int
    """Compressed bytes of the column."""
    scan_bytes: int
    """Compressed bytes of the searched column and of the columns of records in the whole file."""
    bytes_read: int
    possible: tuple[int, ...] | None
    """Numbers of the row groups that may have a value; None if the file has to be opened to determine them."""
    forms: Mapping[int, pa.Int64Array] | None
    """If many values are looked up, and the file may have one: for each of `possible`, the ascending positions of the
    forms in `WantedValues` that its filter has."""
    stamp: tuple[int, int]
    """Size and modification time (nanoseconds) of the file; of the last one, if there are several."""
    format: str
    pages: tuple[int, ...] = ()
    """Data pages of the column in each of `possible`, if their headers are sound and whole chunks can be decoded."""
    whole_bytes: int = 0
    """The bytes that `may_match` reads: the footer again, and these chunks. `bytes_read` has them after `decoded`."""
    may_match: Callable[[Source], bool] | None = None
    """Reads the column in `possible`, and returns whether it may have a value; None if only `ColumnSearch` can, and
    after `decoded`."""
    absent: bool = False
    """Whether the column was decoded, and has none of the values."""

    @property
    def ruled_out(self) -> bool:
        """Whether no row group has a value."""
        return self.possible == () or self.absent

    def decoded(self, source: Source) -> FilterAnswer:
        """The answer after the column was decoded, if `may_match` can do so. `source`: the open file."""
        if self.may_match is None:
            return self
        absent = not self.may_match(source)
        return self._replace(bytes_read=self.bytes_read + self.whole_bytes, may_match=None, absent=absent)


class FilterLookup:
    """Looks the values of a search up in the filters of files with the same schema as a file that was searched.

    Args:
        name: the format of these files.
        query: compiled code that reads the filters of one file.
        positions: for many values, the position of each hash's form. None for few.
        may_match: reads the column in row groups of an open file, which have a number of values, as
            `FilterAnswer.may_match`. They are those that `query` says can be decoded whole.
    """

    def __init__(
        self,
        name: str,
        query: kernels.FilterQuery,
        positions: pa.Int64Array | None,
        may_match: Callable[[Source, Sequence[int], int], bool],
    ) -> None:
        self._format, self._query, self._positions, self._may_match = name, query, positions, may_match

    @property
    def can_batch(self) -> bool:
        """Whether `look_up_all` can be called: its answers have no forms."""
        return self._positions is None

    def look_up(self, source: Source, row_groups: Collection[int] | None = None) -> FilterAnswer | None:
        """Look the values up in the filters of an open file; None if the file isn't local.

        `row_groups`: those to look at, by an index; all if None.
        """
        descriptor = source.fileno()
        if descriptor is None:
            return None
        chosen = (
            None if row_groups is None else bytes(i in row_groups for i in range(max(row_groups, default=-1) + 1))
        )
        outcome = self._query.file(descriptor, source.size, chosen)
        forms = None if outcome[6] is None else dict(zip(outcome[5] or (), map(self._forms, outcome[6]), strict=True))
        return self._answer(outcome)._replace(forms=forms, stamp=(source.size, source.fingerprint.mtime_ns))

    def _answer(self, outcome: kernels.Outcome) -> FilterAnswer:
        possible, (pages, values, size) = outcome[5], outcome[8]

        def may_match(source: Source) -> bool:
            return self._may_match(source, possible or (), values)

        answer = FilterAnswer(*outcome[:6], None, outcome[7], self._format, pages)
        return answer._replace(whole_bytes=size, may_match=may_match) if pages and self.can_batch else answer

    def look_up_all(self, names: Sequence[bytes], stop: Stop) -> Iterator[FilterAnswer]:
        """Look the values up in the filters of local files, in order. Files that are ruled out may share an answer.

        Only if `can_batch`.

        Raises:
            Stopped: cancelled.
        """
        ended = b"".join(name + b"\0" for name in names)
        at = 0
        while at < len(ended):
            stop.check()
            answers, at = self._query.files(ended, at, _CHECK_SECONDS)
            yield from map(self._answer, answers)

    def _forms(self, hits: bytes) -> pa.Int64Array:
        """The ascending positions of the forms of hashes at these positions, int64s."""
        assert self._positions is not None  # noqa: S101  only many values have positions
        forms = self._positions.take(as_int64s(hits))
        return forms.take(pc.array_sort_indices(forms))
