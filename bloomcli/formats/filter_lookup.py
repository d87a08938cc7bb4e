"""The lookup of values in the filters of many local files of one schema, before `find` opens them.

Compiled code reads the footers and the filters: most files are never opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.formats.arrays import as_int64s

if TYPE_CHECKING:
    from bloomcli import kernels
    from bloomcli.concurrency.threads import Stop
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
    """As `ColumnSearch.scanned_bytes`."""
    bytes_read: int
    possible: tuple[int, ...] | None
    """Numbers of the row groups that may have a value; None if the file has to be opened to determine them."""
    forms: Mapping[int, pa.Int64Array] | None
    """If many values are looked up, and the file may have one: for each of `possible`, the ascending positions of the
    forms in `WantedValues` that its filter has."""
    stamp: tuple[int, int]
    """Size and modification time (nanoseconds) of the file; of the last one, if there are several."""
    format: str

    @property
    def ruled_out(self) -> bool:
        """Whether no row group can have a value."""
        return self.possible == ()


class FilterLookup:
    """Looks the values of a search up in the filters of files with the same schema as a file that was searched.

    Args:
        name: the format of these files.
        query: compiled code that reads the filters of one file.
        positions: for many values, the position of each hash's form. None for few.
    """

    def __init__(self, name: str, query: kernels.FilterQuery, positions: pa.Int64Array | None) -> None:
        self._format, self._query, self._positions = name, query, positions

    @property
    def can_batch(self) -> bool:
        """Whether `look_up_all` can be called: its answers have no forms."""
        return self._positions is None

    def look_up(self, source: Source) -> FilterAnswer | None:
        """Look the values up in the filters of an open file; None if the file isn't local."""
        descriptor = source.fileno()
        if descriptor is None:
            return None
        found = self._query.file(descriptor, source.size)
        forms = None if found[6] is None else dict(zip(found[5] or (), map(self._forms, found[6]), strict=True))
        stamp = source.size, source.fingerprint.mtime_ns
        return FilterAnswer(*found[:6], forms, stamp, self._format)

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
            for facts in answers:
                yield FilterAnswer(*facts, self._format)

    def _forms(self, hits: bytes) -> pa.Int64Array:
        """The ascending positions of the forms of hashes at these positions, int64s."""
        assert self._positions is not None  # noqa: S101  only many values have positions
        forms = self._positions.take(as_int64s(hits))
        return forms.take(pc.array_sort_indices(forms))
