"""Tells, in compiled code, which row groups of Parquet files can't have some values by their filters alone, and which
of many values a file may have.

These are files of this machine with the schema of a file that was opened. A file in which anything isn't as writers
write it, or that may have a value, is opened: then `search.py` decides about the values that are left.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.formats.filter_answer import FileRows, FilterAnswer, LikeFiles
from bloomcli.formats.finding import Wanted
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.spec import field_ids

if TYPE_CHECKING:
    from bloomcli.concurrency.cancellation import Stop
    from bloomcli.formats.parquet.footer import Footer
    from bloomcli.formats.parquet.row_scan import RowScan
    from bloomcli.model.file import Column
    from bloomcli.storage.base import Source

_SAME: Final = ("schema", "created_by", "column_orders")
"""Fields of the footer that say which columns there are, and which of their bounds can be trusted."""
_CHECK_SECONDS: Final = 0.1
"""After so long compiled code returns, so that cancellation is noticed."""


class LikeParquetFiles(LikeFiles):
    """Files like one that was opened.

    Args:
        footer: of this file.
        column: is searched.
        wanted: the values. Of many, it is told which a file may have.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
        scan: finds the rows in files with small row groups, without their filters; None: nothing does.
    """

    format = "parquet"

    def __init__(
        self,
        footer: Footer,
        column: Column,
        wanted: Wanted,
        summed: set[int] | None,
        scan: RowScan | None = None,
    ) -> None:
        ids = field_ids("FileMetaData")
        self.together = wanted.literals is not None
        self._owners = wanted.owners
        self._scan = scan
        hashes: bytes | kernels.Ascending = wanted.hashes
        if not self.together:
            hashes, self._owners = _ascending(wanted)
        self._query = kernels.FilterQuery(
            parquet_limits.THRIFT_MAX_DEPTH,
            {ids[field]: footer.top.raw(field) for field in _SAME},
            array("i", (n for numbers in footer.usual_chunks.numbers for n in numbers)),
            column.index,
            None if summed is None else bytes(c.index in summed for c in footer.columns),
            hashes,
        )

    def rows(self, source: Source) -> FileRows | None:
        """The rows of an open file, where a scan of small row groups finds them."""
        return None if self._scan is None else self._scan.rows(source)

    def ask(self, source: Source) -> FilterAnswer | None:
        """What the filters of an open file tell; None for a file that isn't of this machine."""
        descriptor = source.fileno()
        if descriptor is None:
            return None
        found = self._query.file(descriptor, source.size)
        left = found[6]
        texts = None if left is None else self._texts(left)
        return FilterAnswer(*found[:6], texts, (source.size, source.fingerprint.mtime_ns))

    def ask_all(self, names: Sequence[bytes], stop: Stop) -> Iterator[FilterAnswer]:
        """What the filters of files of this machine tell, in order; files that are ruled out are summed up."""
        ended = b"".join(name + b"\0" for name in names)
        at = 0
        while at < len(ended):
            stop.check()
            found, at = self._query.files(ended, at, _CHECK_SECONDS)
            yield from map(FilterAnswer._make, found)

    def _texts(self, left: bytes) -> pa.Int64Array:
        forms = pa.Array.from_buffers(pa.int64(), len(left) // 8, [None, pa.py_buffer(left)])
        texts = pc.unique(self._owners.take(forms))
        return texts.take(pc.array_sort_indices(texts))


def _ascending(wanted: Wanted) -> tuple[kernels.Ascending, pa.Int64Array]:
    """The hashes in ascending order, and their owners."""
    try:
        return kernels.Ascending(wanted.hashes), wanted.owners
    except ValueError:
        hashes = pa.Array.from_buffers(pa.uint64(), len(wanted.forms), [None, pa.py_buffer(wanted.hashes)])
        order = pc.array_sort_indices(hashes)
        ascending = hashes.take(order).buffers()[1].to_pybytes()[: 8 * len(order)]
        return kernels.Ascending(ascending), wanted.owners.take(order)


def like_files(
    footer: Footer,
    column: Column,
    wanted: Wanted,
    summed: set[int] | None,
    scan: Callable[[], RowScan | None] = lambda: None,
) -> LikeParquetFiles | None:
    """What tells of files like an open one whether they can't have the values; None where filters can't tell."""
    literals = wanted.literals
    if (
        footer.signed
        or column.physical == "BOOLEAN"
        or len(footer.columns) != footer.column_count
        or wanted.nan is not None
        or any(literal.unknowable is not None for literal in literals or ())
    ):
        return None
    return LikeParquetFiles(footer, column, wanted, summed, scan())
