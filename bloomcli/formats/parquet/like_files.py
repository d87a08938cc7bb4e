"""Looks up values in the filters of many Parquet files, in compiled code: which row groups can't have any of the
values and, of many values, which ones a file may have.

These are local files with the schema of a file that was opened before. A file that may have a value, or isn't encoded
as writers usually do, is opened; `search.py` then searches it for the remaining values.
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
"""Footer fields that determine the columns, and whose bounds can be trusted."""
_CHECK_SECONDS: Final = 0.1
"""Compiled code returns after this time, so that it can be cancelled."""


class ParquetFilterLookup(FilterLookup):
    """Looks values up in files with the schema of a file that was opened.

    Args:
        footer: the footer of that file.
        column: the searched column.
        hashes: the hashes of the values, as filters contain them; in ascending order if there are many values.
        owners: for many values, the position of each hash's text; they are returned for each file. None for few.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
        scan: finds the rows in files with small row groups, without their filters; None: the filters are always read.
        remaining_scan: creates the scan of the row groups that filters don't exclude, for few values.
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
        """The rows of an open file, if its small row groups can be scanned."""
        return None if self._scan is None else self._scan.rows(source)

    def rows_of(self, names: Sequence[bytes], rows: int, size: int) -> FileRows | None:
        """The rows of local files, up to the first one whose row groups can't be scanned."""
        return None if self._scan is None else self._scan.rows_of(names, rows, size)

    def false_positives(self, source: Source, row_groups: Container[int]) -> FalsePositives | None:
        """The reads of row groups of an open file without a matching row; None if rows match, or it isn't known."""
        descriptor, scan = source.fileno(), self._remaining_scan()
        if descriptor is None or scan is None:
            return None
        result = scan.file(descriptor, source.size, row_groups)
        if result is None:
            return None
        _, searched, _, _, bytes_read, pages, _, rows, *_ = result
        return None if rows else FalsePositives(searched, bytes_read, pages)

    def look_up(self, source: Source, row_groups: Iterable[int] | None = None) -> FilterAnswer | None:
        """Look up the values in the filters of an open file's row groups; None if the file isn't local."""
        descriptor = source.fileno()
        if descriptor is None:
            return None
        groups = None if row_groups is None else array("q", sorted(row_groups))
        result = self._query.file(descriptor, source.size, groups)
        remaining = result[6]
        texts = None if remaining is None else self._texts(remaining)
        return FilterAnswer(*result[:6], texts, (source.size, source.fingerprint.mtime_ns))

    def look_up_all(self, names: Sequence[bytes], stop: Stop) -> Iterator[FilterAnswer]:
        """Look up the values in the filters of local files, in order. Consecutive excluded files are one answer."""
        ended = b"".join(name + b"\0" for name in names)
        at = 0
        while at < len(ended):
            stop.check()
            answers, at = self._query.files(ended, at, _CHECK_SECONDS)
            yield from map(FilterAnswer._make, answers)

    def _texts(self, remaining: bytes) -> pa.Int64Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        assert self._owners is not None  # noqa: S101  only many values have positions
        forms = pa.Array.from_buffers(pa.int64(), len(remaining) // 8, [None, pa.py_buffer(remaining)])
        texts = pc.unique(self._owners.take(forms))
        return texts.take(pc.array_sort_indices(texts))


def _ascending(wanted: WantedValues) -> tuple[kernels.Ascending, pa.Int64Array]:
    """The hashes in ascending order, and the position of each one's text."""
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
    """The lookup in files like an open one; None if their filters can't answer it."""
    if wanted.nan is not None or not _filters_can_answer(footer, column, wanted.literals or ()):
        return None
    if wanted.literals is not None:
        return ParquetFilterLookup(footer, column, wanted.hashes, None, summed)
    return ParquetFilterLookup(footer, column, *_ascending(wanted), summed, scan())


def filter_lookup_of_few(
    footer: Footer, column: Column, literals: Sequence[Literal], forms: Sequence[bytes], summed: set[int] | None
) -> ParquetFilterLookup | None:
    """The lookup of a few values, without Arrow. `forms`: the bytes that chunks may store for them."""
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
