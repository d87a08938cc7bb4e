"""Tells, in compiled code, which row groups of Parquet files can't have some values by their filters alone, and which
of many values a file may have.

These are files of this machine with the schema of a file that was opened. A file in which anything isn't as writers
write it, or that may have a value, is opened: then `search.py` decides about the values that are left.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from bloomcli import kernels
from bloomcli.formats.filter_answer import FalsePositives, FileRows, FilterAnswer, FilterLookup
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.spec import field_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.concurrency.cancellation import Stop
    from bloomcli.formats.finding import WantedValues
    from bloomcli.formats.parquet.footer import Footer
    from bloomcli.formats.parquet.row_scan import RowScan
    from bloomcli.model.file import Column
    from bloomcli.storage.base import Source
    from bloomcli.values.literals import Literal

_SAME: Final = ("schema", "created_by", "column_orders")
"""Fields of the footer that say which columns there are, and which of their bounds can be trusted."""
_CHECK_SECONDS: Final = 0.1
"""After so long compiled code returns, so that cancellation is noticed."""


class ParquetFilterLookup(FilterLookup):
    """Files like one that was opened.

    Args:
        footer: of this file.
        column: is searched.
        hashes: of the values, as its filters have them; ascending, if they are many.
        owners: of each hash the position of its text, if they are many: then it is told which a file may have.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
        scan: finds the rows in files with small row groups, without their filters; None: nothing does.
        remaining_scan: makes what searches the row groups that filters left, where few values are looked for.
    """

    format = "parquet"

    def __init__(
        self,
        footer: Footer,
        column: Column,
        hashes: bytes | kernels.Ascending,
        owners: pa.Int64Array | None,
        summed: set[int] | None,
        scan: RowScan | None = None,
        remaining_scan: Callable[[], kernels.RowScan | None] = lambda: None,
    ) -> None:
        ids = field_ids("FileMetaData")
        self.can_batch = owners is None
        self._owners = owners
        self._scan = scan
        self._remaining_scan = cache(remaining_scan)
        self._query = kernels.FilterQuery(
            parquet_limits.THRIFT_MAX_DEPTH,
            {ids[field]: footer.top.raw(field) for field in _SAME},
            array("i", (n for numbers in footer.usual_chunks.numbers for n in numbers)),
            column.index,
            None if summed is None else bytes(c.index in summed for c in footer.columns),
            hashes,
        )

    @property
    def scans(self) -> bool:
        """Whether a scan of small row groups may find rows."""
        return self._scan is not None and not self._scan.gave_up

    def rows(self, source: Source) -> FileRows | None:
        """The rows of an open file, where a scan of small row groups finds them."""
        return None if self._scan is None else self._scan.rows(source)

    def rows_of(self, names: Sequence[bytes], rows: int, size: int) -> FileRows | None:
        """The rows of files of this machine, up to one in which a scan of small row groups doesn't find them."""
        return None if self._scan is None else self._scan.rows_of(names, rows, size)

    def false_positives(self, source: Source, row_groups: Container[int]) -> FalsePositives | None:
        """What was read of some row groups of an open file; None where one has the values, or it isn't known."""
        descriptor, scan = source.fileno(), self._remaining_scan()
        if descriptor is None or scan is None:
            return None
        found = scan.file(descriptor, source.size, row_groups)
        if found is None:
            return None
        _, searched, _, _, bytes_read, pages, _, rows, *_ = found
        return None if rows else FalsePositives(searched, bytes_read, pages)

    def look_up(self, source: Source, row_groups: Iterable[int] | None = None) -> FilterAnswer | None:
        """What the filters of an open file tell of some row groups; None for a file that isn't of this machine."""
        descriptor = source.fileno()
        if descriptor is None:
            return None
        groups = None if row_groups is None else array("q", sorted(row_groups))
        found = self._query.file(descriptor, source.size, groups)
        left = found[6]
        texts = None if left is None else self._texts(left)
        return FilterAnswer(*found[:6], texts, (source.size, source.fingerprint.mtime_ns))

    def look_up_all(self, names: Sequence[bytes], stop: Stop) -> Iterator[FilterAnswer]:
        """What the filters of files of this machine tell, in order; files that are ruled out are summed up."""
        ended = b"".join(name + b"\0" for name in names)
        at = 0
        while at < len(ended):
            stop.check()
            found, at = self._query.files(ended, at, _CHECK_SECONDS)
            yield from map(FilterAnswer._make, found)

    def _texts(self, left: bytes) -> pa.Int64Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        assert self._owners is not None  # noqa: S101  few values aren't told one by one
        forms = pa.Array.from_buffers(pa.int64(), len(left) // 8, [None, pa.py_buffer(left)])
        texts = pc.unique(self._owners.take(forms))
        return texts.take(pc.array_sort_indices(texts))


def _ascending(wanted: WantedValues) -> tuple[kernels.Ascending, pa.Int64Array]:
    """The hashes in ascending order, and their owners."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return kernels.Ascending(wanted.hashes), wanted.owners
    except ValueError:
        hashes = pa.Array.from_buffers(pa.uint64(), len(wanted.forms), [None, pa.py_buffer(wanted.hashes)])
        order = pc.array_sort_indices(hashes)
        ascending = hashes.take(order).buffers()[1].to_pybytes()[: 8 * len(order)]
        return kernels.Ascending(ascending), wanted.owners.take(order)


def filter_lookup(
    footer: Footer,
    column: Column,
    wanted: WantedValues,
    summed: set[int] | None,
    scan: Callable[[], RowScan | None] = lambda: None,
) -> ParquetFilterLookup | None:
    """What tells of files like an open one whether they can't have the values; None where filters can't tell."""
    if wanted.nan is not None or not _filters_can_answer(footer, column, wanted.literals or ()):
        return None
    if wanted.literals is not None:
        return ParquetFilterLookup(footer, column, wanted.hashes, None, summed)
    return ParquetFilterLookup(footer, column, *_ascending(wanted), summed, scan())


def filter_lookup_of_few(
    footer: Footer, column: Column, literals: Sequence[Literal], forms: Sequence[bytes], summed: set[int] | None
) -> ParquetFilterLookup | None:
    """The same for a few values, without Arrow: `forms` are what chunks may have stored for them."""
    if not _filters_can_answer(footer, column, literals):
        return None
    hashes = array("Q", map(kernels.xxh64, forms)).tobytes()

    def remaining_scan() -> kernels.RowScan | None:
        from bloomcli.formats.parquet.compiled_scan import few_values_scan

        return few_values_scan(footer, column, forms, hashes, summed)

    return ParquetFilterLookup(footer, column, hashes, None, summed, remaining_scan=remaining_scan)


def _filters_can_answer(footer: Footer, column: Column, literals: Iterable[Literal]) -> bool:
    return not (
        footer.signed
        or column.physical == "BOOLEAN"
        or len(footer.columns) != footer.column_count
        or any(literal.unknowable is not None for literal in literals)
    )
