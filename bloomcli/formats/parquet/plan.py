"""The plan that adds filters to a Parquet file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import FilterExists, NoValues, UnsupportedError, UsageError
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import Tick
from bloomcli.formats.filters_in_flight import BuildQueue, Job
from bloomcli.formats.parquet import extension, values
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.describe import non_null_values
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.filter_header import field_of
from bloomcli.formats.parquet.filterable import unfilterable
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.hash_buffer import HashBuffer
from bloomcli.formats.parquet.page_check import dictionary_entries, refuse_damaged_pages
from bloomcli.formats.parquet.pages import HEADER_WINDOW, chunk_range
from bloomcli.formats.parquet.plan_base import HEADER_BOUND, Change, refuse_signed
from bloomcli.formats.parquet.variants import CURRENT, filter_class
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.change import FilterChange
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.rules.writer_table import dictionaries_hold_values_only
from bloomcli.storage.base import STEP_BYTES, KeptRange, Pieces

_SLICE_BYTES: Final = 2 * STEP_BYTES
"""Bytes of the body that are copied at a time. Finished filters may be written after each slice."""


class _BuiltFilter(NamedTuple):
    """The new filter of a column chunk."""

    bits: SplitBlockFilter | None
    """None if it has to be larger than expected: then it is built when it is written."""
    values: int
    decoded: int
    """Compressed bytes that were read for it."""

    @property
    def held(self) -> int:
        """Bytes of memory."""
        return 0 if self.bits is None else self.bits.nbytes


class _Outgrown(Exception):
    """A filter needs more memory than was reserved for it."""


class AddPlan(Change):
    """The plan to build filters for columns from their values."""

    def __init__(
        self,
        filters: Filters,
        columns: Sequence[Column],
        rule: SizeRule,
        *,
        replace: bool,
        missing: bool = False,
        appends: bool = False,
    ) -> None:
        _refuse(filters, columns)
        self.rule = rule
        self._stop = Stop()
        self._ahead: BuildQueue[_BuiltFilter] | None = None
        self.chunks = dict(_chosen(filters, columns, replace=replace, missing=missing))
        removed = {key for key, chunk in self.chunks.items() if chunk.bloom_filter_offset is not None}
        super().__init__(filters, removed, puts=True, appends=appends)
        found = extension.of_footer(filters.footer)
        if found is not None and self.chunks:
            self.remarks = (
                f"the footer has {found.text}, such as FlatBuffers metadata: a reader that uses it in place of the "
                "footer doesn't see the new filters",
            )
        self.variant = rule.choice("variant") or CURRENT
        self._filters = filter_class(self.variant)
        self.bytes_to_decode = sum(map(_bytes_to_read, self.chunks.values()))

    @cached_property
    def _estimated(self) -> tuple[FilterChange, ...]:  # type: ignore[override]
        """Computed on demand, because it reads the headers of dictionaries."""
        self.filters.source.will_read(
            (chunk.data_offset, HEADER_WINDOW) for chunk in self.chunks.values() if self._is_of_dictionary(chunk)
        )
        return tuple(self._estimate(key) for key in self.chunks)

    @property
    def new_bytes_bound(self) -> int:  # type: ignore[override]
        """The upper bound of the new file's bytes that aren't copied."""
        filters = sum((c.bitset_bytes or 0) + HEADER_BOUND for c in self._estimated)
        return filters + len(self.filters.footer.raw) + 20 * len(self.chunks)

    def _is_of_dictionary(self, chunk: ColumnChunk) -> bool:
        """Whether a filter has at most as many values as the chunk's dictionary has entries, which is usually far
        fewer than the number of rows. The number of entries is in the dictionary's header."""
        return bool(chunk.only_dictionary_encoded and chunk.num_values and self.rule.ndv is None)

    def _has_normal_forms(self, chunk: ColumnChunk) -> bool:
        """Whether the filter has a second hash of each value: the hash of its normal form."""
        return (
            self.variant == CURRENT and values.is_interval(chunk.column) and self.filters.footer.normalises_intervals
        )

    def _bytes_for(self, chunk: ColumnChunk, count: int) -> int:
        return max(sizing.upper_bound_bytes(count, self._rate(chunk)), self.rule.smallest_split_block)

    def _rate(self, chunk: ColumnChunk) -> float:
        """The target rate of the chunk's filter."""
        return self.rule.of(chunk.column.path).fpp

    def _upper_bound(self, chunk: ColumnChunk) -> int:
        if self.rule.ndv is not None:
            wanted = self.rule.size_of(self.rule.ndv << self._has_normal_forms(chunk), self._rate(chunk))
            return max(wanted, self.rule.smallest_split_block)
        return self._bytes_for(chunk, self._most_values(chunk))

    def _most_values(self, chunk: ColumnChunk) -> int:
        """The upper bound of the number of hashes in a chunk's filter."""
        count = non_null_values(chunk)
        if chunk.only_dictionary_encoded and chunk.dictionary_bytes is not None and chunk.codec == "UNCOMPRESSED":
            # the dictionary page has room for no more values
            count = min(count, chunk.dictionary_bytes // (width_of(chunk.column) or 4))
        return count << self._has_normal_forms(chunk)

    def _estimate(self, key: ChunkKey) -> FilterChange:
        chunk = self.chunks[key]
        size = self._upper_bound(chunk)
        cap = self.rule.largest_split_block
        count = self._most_values(chunk)
        if self._is_of_dictionary(chunk):
            filters = self.filters
            entries = dictionary_entries(filters.source, chunk, filters.footer.start)
            if entries is not None:
                count = min(count, entries << self._has_normal_forms(chunk))
                size = min(size, self._bytes_for(chunk, count))
        if self.rule.tight and self.rule.ndv is None:
            bound = sizing.tight_bound_bytes(count, self._rate(chunk))
            size = min(size, max(bound, self.rule.smallest_split_block))
        return FilterChange(
            row_group=key.row_group,
            column=chunk.column.path,
            action="replace" if key in self.removed else "add",
            bitset_bytes=min(size, cap),
            values=non_null_values(chunk),
            target_fpp=self._rate(chunk),
            misses_target=False,
            source="dictionary" if chunk.only_dictionary_encoded else "pages",
        )

    def reads(self) -> Iterator[tuple[int, int]]:
        """The chosen columns' chunks."""
        return map(chunk_range, self.chunks.values())

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Hash the columns' values and build their filters, `threads` chunks at a time, while the body is copied.

        Filters are written in order and then freed: during the copy if the next filters need the memory, else after
        it.
        """
        changes: list[FilterChange] = []
        decoded = 0
        source, removed = self.filters.source, self.removed
        source.will_read(itertools.chain(self.reads(), (self.filters.header(key) for key in removed)))
        chunks = iter(self.chunks.items())

        def following(*, early: bool = False) -> Pieces:
            nonlocal decoded
            key, chunk = next(chunks)
            built = ahead.take()
            if built.bits is None:
                built = self._build_one(chunk, grows=True)
            bits = built.bits
            assert bits is not None  # noqa: S101  with `grows` the filter is always built
            self._refuse_missing(chunk, built.values)
            changes.append(self._changed(key, chunk, built.values, bits))
            decoded += built.decoded
            yield from self.put(key, bits, early=early)

        with BuildQueue((self._job(chunk, tick) for chunk in self.chunks.values()), threads, _held) as ahead:
            self._ahead = ahead
            try:
                ahead.start_jobs()
                for piece in itertools.chain.from_iterable(itertools.starmap(_slices, self.keep)):
                    yield piece
                    ahead.start_jobs()
                    while ahead.full and ahead.ready:
                        yield from following(early=True)
                        ahead.start_jobs()
                while ahead:
                    yield from following()
                    ahead.start_jobs()
            except BaseException:
                self._stop.requested = True
                raise
        yield from self.finish(changes, decoded, ahead.remarks)

    def _job(self, chunk: ColumnChunk, tick: Tick) -> Job[_BuiltFilter]:
        def one() -> _BuiltFilter:
            built = self._build_one(chunk)
            tick(_bytes_to_read(chunk))
            return built

        return Job(self._memory(chunk), one)

    def _memory(self, chunk: ColumnChunk) -> int:
        """The maximum memory, in bytes, for building a chunk's filter: filter, first fold, kept hashes, decoding."""
        size = self._upper_bound(chunk)
        kept = self._hashes_to_keep(chunk)
        return (
            size
            + size // 2
            + kept
            + min(2 * chunk.uncompressed_bytes + 8 * chunk.num_values, parquet_limits.DECODING_BYTES)
        )

    def _hashes_to_keep(self, chunk: ColumnChunk) -> int:
        """The size of a chunk's hashes if its filter is built at several sizes; 0 for other or too large chunks."""
        hashes = 8 * self._most_values(chunk) if self.rule.tight and self.rule.ndv is None else 0
        return hashes if hashes <= parquet_limits.HASHES_KEPT_BYTES else 0

    def failed(self) -> bool:
        """Whether a column couldn't be read."""
        return self._ahead is not None and self._ahead.failed()

    def _refuse_missing(self, chunk: ColumnChunk, count: int) -> None:
        """Refuse pages without values if the statistics count some: `validate` would report an empty filter."""
        values = non_null_values(chunk)
        if count or chunk.null_count is None or not values:
            return
        raise NoValues(
            f"the pages hold no value of {chunk.column.path}, and the statistics count {values}",
            column=chunk.column.path,
            path=self.filters.source.path,
            offset=chunk.data_offset,
            field=f"row_groups[{chunk.row_group}].columns[{chunk.column.index}]",
        )

    def _changed(self, key: ChunkKey, chunk: ColumnChunk, count: int, bits: SplitBlockFilter) -> FilterChange:
        return FilterChange(
            row_group=key.row_group,
            column=chunk.column.path,
            action="replace" if key in self.removed else "add",
            bitset_bytes=bits.nbytes,
            # None if it is replaced because it can't be read
            old_bitset_bytes=self.filters.bitset_bytes(chunk) if key in self.removed else None,
            values=count,
            fpp=bits.fpp,
            target_fpp=self._rate(chunk),
            misses_target=bits.fpp > self._rate(chunk),
            source="dictionary" if chunk.only_dictionary_encoded else "pages",
        )

    def _build_one(self, chunk: ColumnChunk, *, grows: bool = False) -> _BuiltFilter:
        """Build a chunk's filter; without bits if it has to be larger than expected, unless `grows` is true."""
        refuse_damaged_pages(self.filters.source, chunk, self.filters.footer.start)
        count = decoded = 0
        room = self._upper_bound(chunk) + parquet_limits.DECODING_BYTES
        kept = HashBuffer(self._hashes_to_keep(chunk))

        def build(size: int | None) -> SplitBlockFilter:
            nonlocal count, decoded
            if size is not None and size > room and not grows:
                raise _Outgrown
            if size is not None and kept.complete:
                return kept.filter(size)
            bits, count, decoded = self._filled(chunk, size, kept)
            return bits

        try:
            rule = self.rule.of(chunk.column.path)
            return _BuiltFilter(rule.build_filter(build, lambda: kept.complete), count, decoded)
        except _Outgrown:
            return _BuiltFilter(None, count, decoded)

    def _filled(self, chunk: ColumnChunk, size: int | None, kept: HashBuffer) -> tuple[SplitBlockFilter, int, int]:
        """(filter of `size` bytes, None: of the upper bound, with the chunk's values; their number; bytes read)."""
        bits: SplitBlockFilter | None = None
        count = decoded = 0
        zero = False
        current = self.variant == CURRENT
        normal_forms = self._has_normal_forms(chunk)
        filters = self.filters
        for page in values.hashed_pages(
            filters.source,
            chunk,
            filters.footer.start,
            unreferenced=dictionaries_hold_values_only(filters.footer.created_by),
            stop=self._stop,
            checked=size is None,
        ):
            if bits is None:
                # if all pages use the dictionary, its size is a better bound than the row count
                only = chunk.only_dictionary_encoded and self.rule.ndv is None
                bound = self._bytes_for(chunk, page.count << normal_forms) if only else self._upper_bound(chunk)
                bits = self._filters.empty(size or bound)
            hashes = page.hashes if current else page.draft_hashes()
            bits.insert_hashes(hashes, page.count)
            kept.insert_hashes(hashes, page.count)
            if normal_forms:
                more = page.interval_hashes()
                bits.insert_hashes(more, len(more) // 8)
                kept.insert_hashes(more, len(more) // 8)
            count += page.count
            zero = zero or page.has_zero
            decoded = page.end - chunk.data_offset
        if bits is None:
            smallest = self._bytes_for(chunk, 0) if self.rule.ndv is None else self._upper_bound(chunk)
            bits = self._filters.empty(smallest)
        if zero:
            for value in values.zero_hashes(chunk.column, draft=not current):
                bits.insert(value)
                kept.insert_hashes(value.to_bytes(8, "little"), 1)
        if not chunk.only_dictionary_encoded:
            decoded = _bytes_to_read(chunk)
        return bits, count, decoded


def _refuse(filters: Filters, columns: Sequence[Column]) -> None:
    """Raise if the footer is signed or a column can't have a filter."""
    path = filters.source.path
    refuse_signed(filters.footer)  # checked first: in a signed file, no column can have a filter
    for column in columns:
        if (reason := unfilterable(column)) is not None:
            raise UsageError(f"column {column.path} is {reason}", path=path, hint="leave it out of --columns")


def _chosen(
    filters: Filters, columns: Sequence[Column], *, replace: bool, missing: bool
) -> Iterator[tuple[ChunkKey, ColumnChunk]]:
    """Yield the chunks that get a filter; with `missing`, only those without one.

    Raises:
        UnsupportedError: a chunk is encrypted.
        FilterExists: a chunk has a filter, and neither `missing` nor `replace` is set.
    """
    footer, path = filters.footer, filters.source.path
    for key in footer.chunk_keys({c.index for c in columns}):
        chunk = footer.chunk(key)
        if chunk.encrypted:
            raise UnsupportedError(
                f"column {chunk.column.path} is encrypted in row group {chunk.row_group}",
                path=path,
                field=field_of(chunk),
                hint="bloom has no keys; leave the column out",
            )
        if chunk.bloom_filter_offset is not None:
            if missing:
                continue
            if not replace:
                raise FilterExists(
                    f"column {chunk.column.path} has a filter in row group {chunk.row_group} already",
                    path=path,
                    offset=chunk.bloom_filter_offset,
                    field=field_of(chunk),
                    hint="--replace builds new ones in place of all existing ones",
                )
        yield key, chunk


def _held(built: _BuiltFilter) -> int:
    return built.held


def _slices(offset: int, length: int) -> Iterator[KeptRange]:
    """Yield a range in parts that are copied one after the other. Only a single part is shorter than a slice."""
    while length >= 2 * _SLICE_BYTES:
        yield KeptRange(offset, _SLICE_BYTES)
        offset += _SLICE_BYTES
        length -= _SLICE_BYTES
    yield KeptRange(offset, length)


def _bytes_to_read(chunk: ColumnChunk) -> int:
    """The size of a chunk's pages; 0 without values."""
    return chunk.compressed_bytes if chunk.num_values else 0
