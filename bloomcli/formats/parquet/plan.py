"""Plans changes of a Parquet file: filters that are added, removed or folded. To remove or fold, no column is read.

Before filters are added, the whole footer is checked, because metadata of other columns can conflict with them. New
filters are written where the footer was. If a chunk or a filter of another column claims bytes there, a reader would
read the new filters in its place. `validate` also refuses files with unreadable metadata. Filters are therefore added
only if `validate` can read the metadata of every column chunk and nothing claims bytes after the data. Faults within
the data (overlapping pages, a damaged page, a filter that lacks values) don't prevent adding: they remain.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, Final, NamedTuple

from bloomcli import kernels, limits
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, FilterExists, KeyMissing, NoValues, UsageError, WriteError
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import LEAVE_OUT, ChangeResult, Plan, Tick
from bloomcli.formats.filters_in_flight import BuildQueue, Job
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import splice, values
from bloomcli.formats.parquet.bloom_filter import (
    CURRENT,
    Filters,
    field_of,
    filter_class,
    parse_header,
    unfilterable,
    write_header,
)
from bloomcli.formats.parquet.footer import FILTER, Footer, extension_remarks, refuse_extensions
from bloomcli.formats.parquet.pages import HEADER_WINDOW, chunk_range, dictionary_entries, refuse_damaged_pages
from bloomcli.formats.parquet.spec import FOOTER_TAIL_BYTES, Location
from bloomcli.formats.parquet.splice import Part, Values
from bloomcli.formats.parquet.statistics import non_null_values, width_of
from bloomcli.formats.size_rule import Folding, SizeRule
from bloomcli.hints import removing
from bloomcli.model.change import FilterChange, StructureChange
from bloomcli.model.file import ChunkKey, Column, ColumnChunk
from bloomcli.rules.writer_table import dictionaries_hold_values_only
from bloomcli.storage.base import STEP_BYTES, KeptRange, Pieces, PlacedBytes, Source
from bloomcli.words import counted, were


class HashBuffer:
    """The hashes of a column chunk, up to a maximum size.

    Args:
        most: the maximum number of bytes. If there are more hashes, all are dropped.

    Attributes:
        complete: all inserted hashes are in the buffer.
    """

    def __init__(self, most: int) -> None:
        self.complete = most > 0
        self._most = most
        self._parts: list[tuple[bytes | bytearray, int]] = []
        self._bytes = 0

    def insert_hashes(self, hashes: bytes | bytearray, count: int) -> None:
        """Keep `count` hashes, little-endian uint64s. The buffer isn't copied, so it must not change afterwards."""
        self._bytes += len(hashes)
        if self._bytes > self._most:
            self.complete = False
            self._parts.clear()
        if self.complete:
            self._parts.append((hashes, count))

    def filter(self, nbytes: int) -> SplitBlockFilter:
        """A filter of `nbytes` bytes with all hashes."""
        bits = SplitBlockFilter.empty(nbytes)
        for hashes, count in self._parts:
            bits.insert_hashes(hashes, count)
        return bits


HEADER_BOUND: Final = 32
"""The maximum size of a filter's header."""


class _Digest(NamedTuple):
    """The size and the digest of a written filter or page index, which `verify` compares."""

    bytes: int
    """The size; of a filter with its header."""
    digest: int
    """The XXH64 of the bitset, or of the page index."""


def refuse_signed(footer: Footer) -> None:
    """Raise UnsupportedError if the footer is signed, and its key isn't known: every change breaks the signature."""
    if (error := footer.signed_error) is not None:
        raise error


def key_missing(footer: Footer, chunk: ColumnChunk) -> KeyMissing:
    """The error about a change of an encrypted chunk without its key."""
    return KeyMissing(
        f"column {chunk.column.path} is encrypted in row group {chunk.row_group}, and its key isn't given",
        path=footer.path,
        field=field_of(chunk),
        hint=chunk.key_hint,
    )


class Change(Plan):
    """A change to a file: removes the filters and page indexes of some chunks, may add others and set other fields of
    the metadata, and verifies the finished file."""

    def __init__(
        self,
        filters: Filters,
        removed: set[ChunkKey],
        *,
        puts: bool,
        appends: bool = False,
        indexes: Collection[Part] = (),
    ) -> None:
        """`removed`: the chunks whose filters are removed; `indexes`: the page indexes that are removed. `puts`: the
        change adds filters or page indexes.

        `appends`: keep the whole file, with its footer, and append new parts and footer.
        """
        refuse_signed(filters.footer)
        self._gone: set[Part] = {Part(FILTER, key) for key in removed}.union(indexes)
        self.values: dict[ChunkKey | None, Values] = {}
        """Other fields that are set in the metadata, of the file under None."""
        for key in sorted(removed):
            if filters.footer.sealed(key):
                raise key_missing(filters.footer, filters.footer.chunk(key))
        if self._gone:
            refuse_extensions(filters.footer)
        if puts:
            refuse_damaged_footer(filters.source, filters.footer, removed)
        self.filters = filters
        self.removed = removed
        self.lengths = filters.unwritten_lengths if self._gone else {}
        filters.source.will_read(filters.headers(None, unwritten=True))
        self.appends = appends
        self._earlier: int | None = None
        """The size of an earlier version of the file, if the change restores it."""
        plan = splice.plan(filters.footer, {}, self._gone, self.lengths, appends=appends)
        self.keep = plan.keep
        self._erased = [r for r in plan.unused if r.kind == FILTER and filters.gives_away(r.key)]
        self.bytes_to_copy = sum(length for _, length in self.keep)
        self.variant = CURRENT
        self._new: dict[Part, _Digest] = {}
        self._new_bytes = 0

    def bound(self, sizes: Iterable[int], chunks: int) -> int:
        """The upper bound of the bytes that aren't copied: filters of these sizes, and the footer."""
        return sum(size + HEADER_BOUND for size in sizes) + 20 * chunks + self.footer_bound(chunks)

    def footer_bound(self, chunks: int) -> int:
        """The upper bound of the bytes of the new footer without new fields, and of what the encryption of `chunks`
        new parts adds."""
        footer = self.filters.footer
        return len(footer.raw) + FOOTER_TAIL_BYTES + splice.overhead(footer, chunks)

    def outline(self) -> Iterator[KeptRange | int]:
        """Yield the ranges that are kept, then the maximum size of new parts and footer."""
        for piece in self.kept():
            yield piece if isinstance(piece, KeptRange) else len(piece)
        yield self.new_bytes_bound

    def kept(self) -> Iterator[KeptRange | bytes]:
        """Yield the ranges that are copied, with zeros for the bits that an encrypted column gave away."""
        for start, length in self.keep:
            end = start + length
            for region in self._erased:
                if start <= region.start and region.end <= end:
                    if start < region.start:
                        yield KeptRange(start, region.start - start)
                    for at in range(region.start, region.end, _SLICE_BYTES):
                        yield bytes(min(_SLICE_BYTES, region.end - at))
                    start = region.end
            if start < end:
                yield KeptRange(start, end - start)

    def give_back(self) -> None:
        """Plan to restore an earlier version of the file, if only the removed filters were appended to it."""
        if self.filters.footer.encryption is not None:
            return  # a footer that is encrypted again is another one
        plan = splice.plan(self.filters.footer, {}, self._gone, self.lengths)
        self._earlier = splice.earlier_size(self.filters.source, self.filters.footer, self.removed, plan.tail)
        if self._earlier is not None:
            self.keep = ((0, self._earlier - len(plan.tail)),)
            self.bytes_to_copy = self._earlier - len(plan.tail)

    def put_filter(self, key: ChunkKey, bits: SplitBlockFilter, *, early: bool = False) -> Pieces:
        """Yield the next filter, as `put` does."""
        yield from self.put(Part(FILTER, key), [write_header(bits.nbytes, self.variant), bits.bitset], early=early)

    def put(self, part: Part, plaintext: Sequence[bytes | bytearray], *, early: bool = False) -> Pieces:
        """Yield the next part: a filter's header and bits, or a page index. With `early`, the body isn't complete
        yet, and the part is placed after it."""
        stored = splice.sealed(self.filters.footer, part, plaintext)
        at = self.bytes_to_copy + self._new_bytes
        self._new[part] = _Digest(sum(map(len, stored)), kernels.xxh64(plaintext[-1]))
        self._new_bytes += self._new[part].bytes
        for data in stored:
            yield PlacedBytes(at, data) if early else data
            at += len(data)

    def finish(
        self,
        changes: Iterable[FilterChange],
        decoded: int,
        remarks: tuple[str, ...] = (),
        structures: Iterable[StructureChange] = (),
    ) -> Pieces:
        """Check the patched footer, and yield it."""
        footer, new = self.filters.footer, self._new
        sizes = {part: written.bytes for part, written in new.items()}
        write_lengths = self.variant == CURRENT
        plan = splice.plan(
            footer,
            sizes,
            self._gone,
            self.lengths,
            values=self.values,
            write_lengths=write_lengths,
            appends=self.appends,
        )
        if self._earlier is not None:
            plan = plan._replace(keep=tuple(self.keep), unreclaimed=0)
        moved = not self.appends and (len(plan.keep) > 1 or plan.copied_bytes != footer.start)
        splice.check(footer, plan.footer, plan.changed, moved)
        tail = plan.tail if footer.encryption is None else splice.tail(self.filters.source, footer, plan.footer)
        size = plan.copied_bytes + plan.new_bytes + len(tail)

        def verify(written: Source) -> None:
            if written.size != size:
                raise WriteError(f"{counted(written.size, 'byte')} {were(written.size)} written, {size} were planned")
            again, view = splice.reopened(written, footer)
            filters = Filters(view, again)
            if not splice.same(again, plan.footer):
                raise WriteError("the footer that was written isn't the one that was planned")
            written.will_read((offset, new[part].bytes) for part, offset in plan.offsets.items())
            for part, offset in plan.offsets.items():
                key = part.key
                if part.kind != FILTER:
                    where = (part.kind, offset, new[part].bytes)
                    match = where in again.index_extents(key, again.metadata(key))
                    if not match or splice.digest(footer, part, written.read_at(*where[1:])) != new[part].digest:
                        raise WriteError(
                            f"the {part.kind.replace('_', ' ')} at {offset} isn't the one that was built"
                        )
                    continue
                loaded = filters.load(again.chunk(key))
                if loaded.offset != offset or kernels.xxh64(loaded.bits.bitset) != new[part].digest:
                    raise WriteError(f"the filter at {offset} isn't the one that was built")
                del loaded  # the next one may be as large

        yield tail
        self._result = ChangeResult(
            changes=tuple(changes),
            bytes_decoded=decoded,
            verify=verify,
            bytes_unreclaimed=plan.unreclaimed,
            remarks=remarks,
            structures=tuple(structures),
        )


_HINT: Final = "the file is damaged; get it from its source again"


def refuse_damaged_footer(source: Source, footer: Footer, removed: AbstractSet[ChunkKey]) -> None:
    """Raise CorruptFile if filters can't be added to the file.

    Raises UnsupportedError for a chunk whose data is in another file. The change removes the filters of the chunks
    in `removed`.
    """
    footer.check_groups()
    for key in footer.chunk_keys():
        _look_at(source, footer, key, removed)


def _look_at(source: Source, footer: Footer, key: ChunkKey, removed: AbstractSet[ChunkKey]) -> None:
    metadata = footer.metadata(key)
    pages, claim = footer.extents(key, metadata)
    footer.index_extents(key, metadata)
    if pages is not None and pages.stop > footer.start:
        meta = footer.meta_struct(key)
        raise CorruptFile(
            f"the metadata locate the pages of column {footer.columns[key.column].path} in row group {key.row_group} "
            f"at {pages.start} to {pages.stop}, outside the file's data, which end at {footer.start}, where new "
            "filters go",
            path=footer.path,
            offset=meta.location.base + meta.start,
            field=f"{meta.location.field}.total_compressed_size",
            hint=_HINT,
        )
    footer.check(key, metadata)
    if claim is not None and key not in removed:
        _refuse_filter(source, footer, key, *claim)


def _refuse_filter(source: Source, footer: Footer, key: ChunkKey, offset: int, length: int | None) -> None:
    """Raise CorruptFile if a filter that stays in the file claims bytes after the data."""
    size = _size(source, footer, offset) if length is None else length
    if offset < footer.start and size <= footer.start - offset:
        return
    name = footer.columns[key.column].path
    to = f" to {offset + size}" if size else ""
    raise CorruptFile(
        f"the metadata locate a filter of column {name} in row group {key.row_group} at {offset}{to}, outside the "
        f"file's data, which end at {footer.start}, where new filters go: readers would take these for its bits",
        path=footer.path,
        offset=offset,
        field=f"{key.field}.meta_data.bloom_filter_offset",
        hint=removing(name, after=" takes it out"),
    )


def _size(source: Source, footer: Footer, offset: int) -> int:
    """The length of a filter, from its header; 0 if it can't extend beyond the data."""
    room = footer.start - offset
    if room <= 0 or room >= limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
        return 0  # no filter is so large
    data = source.read_at(offset, min(parquet_limits.FILTER_HEADER_MAX_BYTES, room))
    try:
        header = parse_header(data, Location(footer.path, offset, ""))
    except CorruptFile:
        # a header that the footer cuts off would continue in the new filters
        return 0 if len(data) == parquet_limits.FILTER_HEADER_MAX_BYTES else room + 1
    return header.header_bytes + max(header.num_bytes, 0)


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
        self.chunks = list(_chosen(filters, columns, replace=replace, missing=missing))
        removed = {chunk.key for chunk in self.chunks if chunk.bloom_filter_offset is not None}
        appends = appends and not any(map(filters.gives_away, removed))  # appending would keep the old bits
        super().__init__(filters, removed, puts=True, appends=appends)
        if self.chunks:
            self.remarks = extension_remarks(filters.footer, "filters")
        self.variant = rule.choice("variant") or CURRENT
        self._filters = filter_class(self.variant)
        self.bytes_to_decode = sum(map(_bytes_to_read, self.chunks))

    @cached_property
    def planned(self) -> tuple[FilterChange, ...]:  # type: ignore[override]
        """Computed on demand, because it reads the headers of dictionaries."""
        self.filters.source.will_read(
            (chunk.data_offset, HEADER_WINDOW) for chunk in self.chunks if self._is_of_dictionary(chunk)
        )
        return tuple(map(self._estimate, self.chunks))

    @property
    def new_bytes_bound(self) -> int:  # type: ignore[override]
        """The upper bound of the new file's bytes that aren't copied."""
        return self.bound([c.bitset_bytes or 0 for c in self.planned], len(self.chunks))

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

    def _estimate(self, chunk: ColumnChunk) -> FilterChange:
        size = self._upper_bound(chunk)
        count = self._most_values(chunk)
        if self._is_of_dictionary(chunk):
            filters = self.filters
            entries = dictionary_entries(filters.source, chunk)
            if entries is not None:
                count = min(count, entries << self._has_normal_forms(chunk))
                size = min(size, self._bytes_for(chunk, count))
        if self.rule.tight and self.rule.ndv is None:
            bound = sizing.tight_bound_bytes(count, self._rate(chunk))
            size = min(size, max(bound, self.rule.smallest_split_block))
        return self._change(chunk, min(size, self.rule.largest_split_block), non_null_values(chunk))

    def _change(self, chunk: ColumnChunk, bitset_bytes: int, count: int, **measured: Any) -> FilterChange:
        return FilterChange(
            row_group=chunk.row_group,
            column=chunk.column.path,
            action="replace" if chunk.key in self.removed else "add",
            bitset_bytes=bitset_bytes,
            values=count,
            target_fpp=self._rate(chunk),
            source="dictionary" if chunk.only_dictionary_encoded else "pages",
            **measured,
        )

    def reads(self) -> Iterator[tuple[int, int]]:
        """The chosen columns' chunks."""
        return map(chunk_range, self.chunks)

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Hash the columns' values and build their filters, `threads` chunks at a time, while the body is copied.

        Filters are written in order and then freed: during the copy if the next filters need the memory, else after
        it.
        """
        changes: list[FilterChange] = []
        decoded = 0
        source, removed = self.filters.source, self.removed
        source.will_read(itertools.chain(self.reads(), (self.filters.header(key) for key in removed)))
        chunks = iter(self.chunks)

        def following(*, early: bool = False) -> Pieces:
            nonlocal decoded
            chunk = next(chunks)
            built = queue.take()
            if built.bits is None:
                built = self._build_one(chunk, grows=True)
            bits = built.bits
            assert bits is not None  # noqa: S101  with `grows` the filter is always built
            self._refuse_missing(chunk, built.values)
            changes.append(self._changed(chunk, built.values, bits))
            decoded += built.decoded
            yield from self.put_filter(chunk.key, bits, early=early)

        jobs = (self._job(chunk, tick) for chunk in self.chunks)
        with BuildQueue(jobs, threads, lambda built: built.held, self._stop) as queue:
            self._queue = queue
            queue.start_jobs()
            for piece in itertools.chain.from_iterable(map(slices, self.kept())):
                yield piece
                queue.start_jobs()
                while queue.full and queue.ready:
                    yield from following(early=True)
                    queue.start_jobs()
            while queue:
                yield from following()
                queue.start_jobs()
        yield from self.finish(changes, decoded, queue.remarks)

    def _job(self, chunk: ColumnChunk, tick: Tick) -> Job[_BuiltFilter]:
        def build() -> _BuiltFilter:
            built = self._build_one(chunk)
            tick(_bytes_to_read(chunk))
            return built

        return Job(self._memory(chunk), build)

    def _memory(self, chunk: ColumnChunk) -> int:
        """The maximum memory, in bytes, for building a chunk's filter: filter, first fold, kept hashes, decoding."""
        size = self._upper_bound(chunk)
        return size + size // 2 + self._hashes_to_keep(chunk) + decoding_bytes(chunk)

    def _hashes_to_keep(self, chunk: ColumnChunk) -> int:
        """The size of a chunk's hashes if its filter is built at several sizes; 0 for other or too large chunks."""
        hashes = 8 * self._most_values(chunk) if self.rule.tight and self.rule.ndv is None else 0
        return hashes if hashes <= parquet_limits.HASHES_KEPT_BYTES else 0

    def _refuse_missing(self, chunk: ColumnChunk, count: int) -> None:
        """Refuse pages without values if the statistics count some: `validate` would report an empty filter."""
        if count or not self.filters.footer.counts_values(chunk):
            return
        raise NoValues(
            f"the pages hold no value of {chunk.column.path}, and the statistics count {non_null_values(chunk)}",
            column=chunk.column.path,
            path=self.filters.source.path,
            offset=chunk.data_offset,
            field=chunk.key.field,
        )

    def _changed(self, chunk: ColumnChunk, count: int, bits: SplitBlockFilter) -> FilterChange:
        # None if it is replaced because it can't be read
        old = self.filters.bitset_bytes(chunk) if chunk.key in self.removed else None
        missed = bits.fpp > self._rate(chunk)
        return self._change(chunk, bits.nbytes, count, old_bitset_bytes=old, fpp=bits.fpp, misses_target=missed)

    def _build_one(self, chunk: ColumnChunk, *, grows: bool = False) -> _BuiltFilter:
        """Build a chunk's filter; without bits if it has to be larger than expected, unless `grows` is true."""
        refuse_damaged_pages(self.filters.source, chunk)
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
        """A filter of `size` bytes (of the upper bound if None) with the chunk's values, their number, and the
        bytes read."""
        bits: SplitBlockFilter | None = None
        count = decoded = 0
        zero = False
        current = self.variant == CURRENT
        normal_forms = self._has_normal_forms(chunk)
        filters = self.filters
        for page in values.hashed_slices(
            filters.source,
            chunk,
            unreferenced=dictionaries_hold_values_only(filters.footer.created_by),
            stop=self._stop,
            checked=size is None,
        ):
            if bits is None:
                # if all pages use the dictionary, its size is a better bound than the row count
                only = chunk.only_dictionary_encoded and self.rule.ndv is None
                bound = self._bytes_for(chunk, page.count << normal_forms) if only else self._upper_bound(chunk)
                bits = self._filters.empty(size or bound)
            hashes = page.hashes if current else values.draft_hashes(page)
            bits.insert_hashes(hashes, page.count)
            kept.insert_hashes(hashes, page.count)
            if normal_forms:
                more = values.interval_hashes(page)
                bits.insert_hashes(more, len(more) // 8)
                kept.insert_hashes(more, len(more) // 8)
            count += page.count
            zero = zero or values.has_zero(page)
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
            raise UsageError(f"column {column.path} is {reason}", path=path, hint=LEAVE_OUT)


def _chosen(filters: Filters, columns: Sequence[Column], *, replace: bool, missing: bool) -> Iterator[ColumnChunk]:
    """Yield the chunks that get a filter; with `missing`, only those without one.

    Raises:
        UnsupportedError: a chunk is encrypted.
        FilterExists: a chunk has a filter, and neither `missing` nor `replace` is set.
    """
    footer, path = filters.footer, filters.source.path
    for chunk in footer.chunks({c.index for c in columns}):
        if chunk.encrypted:
            raise key_missing(footer, chunk)
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
        yield chunk


def slices(piece: KeptRange | bytes) -> Iterator[KeptRange | bytes]:
    """Yield a range in parts that are copied one after the other. Only a single part is shorter than a slice."""
    if isinstance(piece, bytes):
        yield piece
        return
    offset, length = piece
    while length >= 2 * _SLICE_BYTES:
        yield KeptRange(offset, _SLICE_BYTES)
        offset += _SLICE_BYTES
        length -= _SLICE_BYTES
    yield KeptRange(offset, length)


def decoding_bytes(chunk: ColumnChunk) -> int:
    """The maximum memory, in bytes, for decoding a chunk."""
    return min(2 * chunk.uncompressed_bytes + 8 * chunk.num_values, parquet_limits.DECODING_BYTES)


def _bytes_to_read(chunk: ColumnChunk) -> int:
    """The size of a chunk's pages; 0 without values."""
    return chunk.compressed_bytes if chunk.num_values else 0


class RemovePlan(Change):
    """The plan that removes filters."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters, set(filters.filter_keys(columns)), puts=False)
        filters.source.will_read(filters.headers(columns))
        self.give_back()
        chunks = (filters.footer.chunk(key) for key in sorted(self.removed))
        self.planned = tuple(
            FilterChange(
                row_group=chunk.row_group,
                column=chunk.column.path,
                action="remove",
                bitset_bytes=None,
                old_bitset_bytes=filters.bitset_bytes(chunk),
            )
            for chunk in chunks
        )
        self.bytes_to_decode = 0
        self.new_bytes_bound = self.footer_bound(len(self.removed))

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The file without the filters. No column is read."""
        del threads, tick
        yield from self.kept()
        yield from self.finish(self.planned, 0)


class FoldPlan(Change):
    """The plan that halves filters as often as their measured rate allows."""

    def __init__(self, filters: Filters, columns: set[int] | None, rule: SizeRule) -> None:
        footer = filters.footer
        folding = self._folding = Folding[ChunkKey](rule, lambda key: filters.load(footer.chunk(key)).bits)
        changes: list[FilterChange] = []
        filters.source.will_read(filters.ranges(columns))
        for key in filters.filter_keys(columns):
            chunk = footer.chunk(key)
            loaded = filters.load(chunk)
            # a filter of the 2018 drafts isn't folded: it has to be replaced
            foldable = not loaded.header.draft
            changes.append(folding.fold(key, loaded.bits, chunk.row_group, chunk.column.path, foldable=foldable))
            del loaded  # the next one may be as large
        super().__init__(filters, set(folding.sizes), puts=bool(folding.sizes))
        self.planned = tuple(changes)
        self.bytes_to_decode = 0
        self.new_bytes_bound = self.bound(folding.sizes.values(), len(folding.sizes))

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The rest of the file, then the folded filters."""
        del threads, tick
        yield from self.kept()
        for key in self._folding.sizes:
            bits = self._folding.take(key)
            yield from self.put_filter(key, bits)
            del bits  # the next one may be as large
        yield from self.finish(self.planned, 0)
