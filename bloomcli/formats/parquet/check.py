"""Checks a Parquet file's filters, statistics and page indexes: by the metadata, and by the values."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, groupby
from typing import Final, NamedTuple

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.answer import WRONG
from bloomcli.formats.base import HINT_REPLACE, DeepCheck, FilterProblem, Tick
from bloomcli.formats.deep_check import FilterCheck, filter_finding, missing_bound_message
from bloomcli.formats.filters_in_flight import Job, in_order
from bloomcli.formats.parquet import page_index, proof, statistics, values
from bloomcli.formats.parquet.bloom_filter import DRAFT_REASON, Filters, LoadedFilter, is_usual
from bloomcli.formats.parquet.encodings import Slice
from bloomcli.formats.parquet.footer import COLUMN_INDEX, FILTER, OFFSET_INDEX, Region, regions
from bloomcli.formats.parquet.measured import Measure, values_of
from bloomcli.formats.parquet.pages import BadChecksum, chunk_range, first_headers
from bloomcli.formats.parquet.statistics import non_null_values
from bloomcli.hints import removing, repairing
from bloomcli.model.file import UNVERIFIED, Column, ColumnChunk, FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.values.literals import render
from bloomcli.words import counted

_NO_FILTER: Final = -1
"""The lowest bloom_filter_offset that writers are known to write for chunks without a filter."""
_DAMAGED: Final = "the column's pages are damaged; get the file from its source again"


def _about(chunk: ColumnChunk, offset: int | None) -> Callable[..., Finding]:
    """What makes findings about a chunk."""
    return partial(filter_finding, row_group=chunk.row_group, column=chunk.column.path, offset=offset)


def unusable(filters: Filters, chunk: ColumnChunk, problem: FilterProblem) -> Iterator[Finding]:
    """The finding about a filter that can't be used."""
    del filters
    yield _about(chunk, problem.offset)(problem.id, problem.reason, hint=problem.hint)


def page_headers(filters: Filters, chunk: ColumnChunk) -> Finding | None:
    """The finding about first page headers that contradict the chunk's metadata; None if they agree."""
    fault = first_headers(filters.source, chunk)
    return None if fault is None else _about(chunk, fault.offset)("page-header", fault.reason, hint=_DAMAGED)


def without_location(chunk: ColumnChunk, offset: int | None, length: int | None) -> Iterator[Finding]:
    """Yield the finding about metadata that name a filter but not its location.

    Readers treat such a chunk as one without a filter, so no row is lost, but no writer does this on purpose. Writers
    without filters have written 0 and -1 (PARQUET-1979).
    """
    if not length and (offset is None or offset >= _NO_FILTER):
        return
    with_offset = "without a bloom_filter_offset" if offset is None else f"with a bloom_filter_offset of {offset}"
    size = f"a bloom_filter_length of {length} " if length else "a chunk "
    message = f"{size}{with_offset}: there was a filter, which readers can no longer find"
    yield _about(chunk, None)("filter-offset", message)


def sound(
    filters: Filters, chunk: ColumnChunk, loaded: LoadedFilter, facts: Sequence[FilterFacts]
) -> Iterator[Finding]:
    """Yield findings about a readable filter: its bits, header and size, and its length in the metadata."""
    finding = _about(chunk, loaded.offset)
    if loaded.bits.set_bits == 0 and filters.footer.counts_values(chunk):
        values = counted(non_null_values(chunk), "value")
        yield finding(
            "filter-boolean" if chunk.column.physical == "BOOLEAN" else "filter-all-zero",
            f"no bit is set, though the chunk has {values}: a reader loses all of them",
        )
    if loaded.header.draft:
        yield finding("filter-draft", DRAFT_REASON)
        return
    for which, bound in statistics.lost(chunk, loaded.bits) if facts[0].untrusted == WRONG else ():
        yield finding("value-missing", missing_bound_message(which), missing=(render(bound, chunk.column),))
    if not is_usual(loaded.header_raw):
        yield finding(
            "filter-header",
            "no writer encodes the header like this: one of its bytes has changed, and readers may refuse it",
            severity=Severity.WARNING,
        )
    if loaded.bits.nbytes & (loaded.bits.nbytes - 1):
        message = f"the bitset's {loaded.bits.nbytes} bytes are not a power of two"
        yield finding("filter-not-power-of-two", message)
    if chunk.bloom_filter_length is None:
        yield finding(
            "filter-no-length",
            "bloom_filter_length isn't written: readers need two reads, parquet-java 1.14.0 to 1.15.2 may lose rows",
        )


def overlaps(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Yield filters of these columns (all if None) that share bytes with pages, page indexes or other filters."""
    claims = regions(filters.footer, filters.unwritten_lengths.get)
    reach: Region | None = None
    for region in claims:
        if reach is not None and region.start < reach.end and FILTER in (region.kind, reach.kind):
            owner = region if region.kind == FILTER else reach
            if columns is None or owner.key.column in columns:
                yield Finding(
                    id="filter-overlap",
                    severity=Severity.ERROR,
                    message=f"the {region.name} at {region.start} overlaps the {reach.name} "
                    f"at {reach.start} to {reach.end}"
                    f" (row group {reach.key.row_group}, column {filters.footer.columns[reach.key.column].path})",
                    row_group=region.key.row_group,
                    column=filters.footer.columns[region.key.column].path,
                    offset=region.start,
                    hint=HINT_REPLACE,
                )
        if reach is None or region.end > reach.end:
            reach = region


def contradictions(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Yield what the statistics and the page indexes of these columns (of those with filters if None) show to be
    wrong by themselves."""
    filters.source.will_read(_index_ranges(filters, columns, None))
    for chunk in filters.proven(columns, None):
        if not chunk.encrypted:
            yield from (fault.finding(chunk) for fault in proof.contradictions(filters, chunk))


def closed(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Yield a finding for each of these columns (all if None) whose metadata are encrypted by a key that isn't known.
    A footer in plain text has their filters' places, and the filters are findings themselves."""
    encryption = filters.footer.encryption
    if encryption is None or encryption.plaintext_footer:
        return
    for index, path in sorted(encryption.closed.items()):
        if columns is None or index in columns:
            yield Finding(
                id="filter-encrypted",
                severity=Severity.WARNING,
                message="the column is encrypted, and its key isn't given: nothing is known of its filters",
                column=path,
                hint=encryption.hint(path),
            )


def unverified(filters: Filters) -> Iterator[Finding]:
    """Yield the finding about a signed footer whose key isn't given: a note, unless keys of columns are."""
    encryption, error = filters.footer.encryption, filters.footer.signed_error
    if error is not None and encryption is not None:
        yield Finding(
            id="footer-unverified",
            severity=Severity.WARNING if encryption.ciphers else Severity.NOTE,
            message=UNVERIFIED,
            offset=filters.footer.start,
            hint=error.hint,
        )


def rows(filters: Filters) -> Iterator[Finding]:
    """Yield the finding about a footer whose number of rows isn't that of its row groups."""
    footer = filters.footer
    rows = sum(footer.row_group(group).rows for group in range(footer.row_group_count))
    if rows != footer.rows:
        message = f"the footer's num_rows is {footer.rows}, and the row groups have {counted(rows, 'row')}"
        yield Finding(
            id="statistics-counts",
            severity=Severity.ERROR,
            message=message,
            offset=footer.start,
            hint=repairing(after=proof.ROWS_HINT),
        )


def _index_ranges(
    filters: Filters, columns: set[int] | None, units: Container[int] | None
) -> Iterator[tuple[int, int]]:
    for chunk in filters.proven(columns, units):
        yield from page_index.ranges(filters.footer, chunk.key, COLUMN_INDEX, OFFSET_INDEX)


def deep(
    filters: Filters, columns: set[int] | None, tick: Tick, units: Container[int] | None, threads: int
) -> Iterator[DeepCheck]:
    """Prove every chunk of these columns (of those with filters if None) by its values, `threads` chunks at the same
    time: its filter, its statistics and its page indexes."""
    stop = Stop()
    filters.source.will_read(
        chain(
            filters.ranges(columns),
            _index_ranges(filters, columns, units),
            map(chunk_range, filters.proven(columns, units)),
        )
    )
    together = _sorted_together(filters, filters.proven(columns, units))
    jobs = (Job(0, partial(_deep_some, filters, some, stop)) for some in together)
    for checks, read in in_order(jobs, threads, stop):
        yield from checks
        tick(read)


def _sorted_together(filters: Filters, chunks: Iterable[ColumnChunk]) -> Iterator[Sequence[ColumnChunk]]:
    """Yield the chunks, those of a row group's sorting columns together, the first sorting column last: the rows are
    compared by all of them."""
    for group, some in groupby(chunks, lambda chunk: chunk.row_group):
        by = [sorting.column for sorting in proof.sorting_columns(filters.footer, group)]
        together = []
        for chunk in some:
            if chunk.column.index in by:
                together.append(chunk)
            else:
                yield [chunk]
        if together:
            yield sorted(together, key=lambda chunk: chunk.column.index == by[0])


def _text(part: Slice, index: int) -> str:
    value = part.value(index)
    return f"(a value of {value} bytes)" if isinstance(value, int) else render(value, part.column)


class _ChunkCheck(NamedTuple):
    """A column chunk and its filter, which are compared."""

    filters: Filters
    chunk: ColumnChunk
    loaded: LoadedFilter
    stop: Stop

    def pages(self, *, unreferenced: bool = False) -> Iterator[Slice]:
        """The chunk's hashed values."""
        return values.hashed_slices(self.filters.source, self.chunk, unreferenced=unreferenced, stop=self.stop)

    def hashes(self, page: Slice) -> bytearray:
        """The hashes of a page's values that the filter must contain."""
        return values.draft_hashes(page) if self.loaded.header.draft else page.hashes


def _deep_some(filters: Filters, chunks: Sequence[ColumnChunk], stop: Stop) -> tuple[Sequence[DeepCheck], int]:
    """Read the values of a row group's chunks once, compare their metadata with them, and return their bytes, too."""
    orders: dict[int, kernels.Bounds] = {}
    checks = [_deep_one(filters, chunk, stop, orders) for chunk in chunks]
    return checks, sum(chunk.compressed_bytes for chunk in chunks)


def _deep_one(filters: Filters, chunk: ColumnChunk, stop: Stop, orders: dict[int, kernels.Bounds]) -> DeepCheck:
    """Read a chunk's values once, and compare its filter, its statistics and its page indexes with them. `orders`:
    the order of rows in the columns before it; gets that in this column."""
    loaded: LoadedFilter | None = None
    if chunk.bloom_filter_offset is not None:
        with suppress(FilterProblem):  # `unusable` reports it
            loaded = filters.load(chunk)
    check = DeepCheck(values=0)
    if chunk.encrypted:
        return check if chunk.bloom_filter_offset is not None else _unread(chunk, "they are encrypted")
    if loaded is not None and chunk.column.physical == "BOOLEAN":
        check, loaded = _deep_boolean(chunk, loaded), None
    damaged = page_headers(filters, chunk)
    if damaged is not None:
        return check._replace(proof=() if chunk.bloom_filter_offset is not None else (damaged,))
    measure = proof.measure_of(filters.footer, chunk)
    try:
        if loaded is not None:
            check = _compared(_ChunkCheck(filters, chunk, loaded, stop), measure)
        else:
            count = sum(page.count for page in values_of(filters, chunk, measure, stop))
            check = check._replace(values=count)
    except BadChecksum as error:
        damaged = _about(chunk, error.offset or 0)("page-checksum", error.reason, hint=_DAMAGED)
        return check._replace(proof=(damaged,))
    except UnsupportedError as error:
        if loaded is not None:
            raise
        return _unread(chunk, error.reason, *proof.contradictions(filters, chunk))
    except CorruptFile:
        # a num_values that is too high makes the pages of other chunks seem to be this one's
        row_faults = [fault for fault in proof.contradictions(filters, chunk) if fault.structure == proof.ROWS]
        if not row_faults:
            raise
        return check._replace(proof=tuple(fault.finding(chunk) for fault in row_faults))
    if measure.order is not None:
        orders[chunk.column.index] = measure.order
    faults = proof.faults(filters, chunk, measure, stop, orders)
    return check._replace(proof=tuple(fault.finding(chunk) for fault in faults), measured=measure.of_column())


def _unread(chunk: ColumnChunk, why: str, *faults: proof.Fault) -> DeepCheck:
    """The note about a chunk whose values can't be read, and the faults that are known without them."""
    message = f"the values can't be compared with the statistics: {why}"
    note = _about(chunk, chunk.data_offset or None)("statistics-not-checked", message, hint=None)
    return DeepCheck(values=0, proof=(note, *(fault.finding(chunk) for fault in faults)))


def _compared(work: _ChunkCheck, measure: Measure) -> DeepCheck:
    """Compare a filter with its chunk's values, which are measured. Raises BadChecksum."""
    _, chunk, loaded, _ = work
    # if the filter contains every dictionary entry, it doesn't matter which of them the pages refer to
    check = _rebuilt(work, values_of(work.filters, chunk, measure, work.stop))
    doubtful = check.has_missing_bits() or check.negative_zero
    if doubtful:
        check = _rebuilt(work, ())
        for page in work.pages():
            texts = partial(partial, _text, page)
            check.take(work.hashes(page), page.count, texts, has_zero=values.has_zero(page))
    stray = 0 if check.lost else check.stray_bits()
    if stray and doubtful:
        stray = check.stray_bits(_entries(work))
    if stray and values.is_interval(chunk.column):
        stray = check.stray_bits(_normal_forms(work))
    if stray and loaded.bits.nbytes & (loaded.bits.nbytes - 1):
        stray = _stray_but_folded(work, check)
    return check.result(_about(chunk, loaded.offset), stray)


def _deep_boolean(chunk: ColumnChunk, loaded: LoadedFilter) -> DeepCheck:
    """Check a BOOLEAN column's filter by the minimum and maximum; reads no page."""
    hint = removing(chunk.column.path, after=" takes it out: no reader uses it")
    finding = partial(_about(chunk, loaded.offset), hint=hint)
    for which, bound in statistics.lost(chunk, loaded.bits) if loaded.bits.set_bits else ():
        text = render(bound, chunk.column)
        return DeepCheck(values=0, finding=finding("value-missing", missing_bound_message(which), missing=(text,)))
    if not non_null_values(chunk) or (chunk.null_count is not None and chunk.min_value and chunk.max_value):
        return DeepCheck(values=0)
    message = "a BOOLEAN column without statistics: its values aren't looked up"
    return DeepCheck(values=0, finding=finding("filter-not-checked", message))


def _rebuilt(work: _ChunkCheck, pages: Iterable[Slice]) -> FilterCheck[SplitBlockFilter]:
    check = FilterCheck(work.loaded.bits, values.zero_hashes(work.chunk.column, draft=work.loaded.header.draft))
    for page in pages:
        check.insert(work.hashes(page), page.count, has_zero=values.has_zero(page))
    return check


def _stray_but_folded(work: _ChunkCheck, check: FilterCheck[SplitBlockFilter]) -> int:
    """The number of stray bits, without those that `fold --size tight` puts into a neighbouring block."""
    import numpy as np  # few filters have stray bits

    block = np.uint64((1 << 32) // work.loaded.bits.blocks << 32)
    for page in work.pages(unreferenced=True):
        hashes = np.frombuffer(page.hashes, np.uint64)
        for shifted in (hashes + block, hashes - block):
            check.allow(shifted.tobytes())
    return check.stray_bits()


def _entries(work: _ChunkCheck) -> bytearray:
    """The hashes of all dictionary entries, including those that no index refers to."""
    return next((work.hashes(page) for page in work.pages(unreferenced=True) if page.dictionary), bytearray())


def _normal_forms(work: _ChunkCheck) -> bytes:
    """The hashes of the normal forms of a chunk's intervals, which DuckDB also inserts."""
    hashes: set[int] = set()
    for page in work.pages():
        hashes.update(memoryview(values.interval_hashes(page)).cast("Q"))
    return array("Q", hashes).tobytes()


def without_normal_forms(filters: Filters, column: Column) -> Iterator[int]:
    """Yield the row groups whose filter has no hash of some interval's normal form."""
    for chunk in filters.locations({column.index}):
        try:
            loaded = filters.load(chunk)
        except FilterProblem:
            continue  # `unusable` reports it
        hashes = _normal_forms(_ChunkCheck(filters, chunk, loaded, Stop()))
        count = len(hashes) // 8
        if not loaded.header.draft and loaded.bits.check_hashes(hashes, count, bytearray(count)):
            yield chunk.row_group
