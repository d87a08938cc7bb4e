"""The lookup of values in the filters of many local files of one schema, before `find` opens them.

Compiled code reads the footers and the filters: most files are never opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

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
    texts: pa.Int64Array | None
    """Ascending positions of the texts that the file may have, if many are looked up and it may have one."""
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
        owners: for many values, the position of each hash's text: an answer then has the texts that the file may
            have. None for few.
    """

    def __init__(self, name: str, query: kernels.FilterQuery, owners: pa.Int64Array | None) -> None:
        self._format, self._query, self._owners = name, query, owners

    @property
    def can_batch(self) -> bool:
        """Whether `look_up_all` can be called: its answers have no texts."""
        return self._owners is None

    def look_up(self, source: Source) -> FilterAnswer | None:
        """Look the values up in the filters of an open file; None if the file isn't local."""
        descriptor = source.fileno()
        if descriptor is None:
            return None
        found = self._query.file(descriptor, source.size)
        texts = None if found[6] is None else self._texts(found[6])
        stamp = source.size, source.fingerprint.mtime_ns
        return FilterAnswer(*found[:6], texts, stamp, self._format)

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

    def _texts(self, remaining: bytes) -> pa.Int64Array:
        """The ascending positions of the texts of hashes at these positions, int64s."""
        assert self._owners is not None  # noqa: S101  only many values have positions
        forms = pa.Array.from_buffers(pa.int64(), len(remaining) // 8, [None, pa.py_buffer(remaining)])
        texts = pc.unique(self._owners.take(forms))
        return texts.take(pc.array_sort_indices(texts))
