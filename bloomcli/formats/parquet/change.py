"""Drafts of changes to a Parquet file: filters added, removed, folded. Planned first, carried out later.

A draft knows from the footer alone which bytes of the original the new file keeps, so that they are
copied while columns are decoded in other threads. Filters come after the body in row-group, then schema order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bloomcli import limits
from bloomcli.errors import FilterExists, UnsupportedError, UsageError, WriteError
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import Built, Carried, Kept, Pieces, SizeRule, Tick
from bloomcli.formats.parquet import splice, values
from bloomcli.formats.parquet.describe import present_values
from bloomcli.formats.parquet.filter_header import FilterProblem, LoadedFilter, field_of, load
from bloomcli.formats.parquet.filterable import unfilterable
from bloomcli.formats.parquet.footer import ChunkPlace, read_footer
from bloomcli.formats.parquet.variants import CURRENT, DRAFTS, filter_class, write_header
from bloomcli.model import Column, ColumnChunk, FilterChange
from bloomcli.source import Source

if TYPE_CHECKING:
    from bloomcli.formats.parquet.file import ParquetFile

_HEADER_BOUND: Final = 32

_NewFilters = dict[ChunkPlace, SplitBlockFilter]


class _Change(Carried):
    """What the three drafts share: the splice, and the proof that the finished file is what was planned."""

    def __init__(self, file: ParquetFile, gone: set[ChunkPlace]) -> None:
        file.refuse_if_signed()
        self.file = file
        self.gone = gone
        self.lengths = file.filter_lengths if gone else {}
        self.keep = splice.plan(file.footer, {}, gone, self.lengths).keep
        self.bytes_to_copy = sum(length for _, length in self.keep)
        self.variant = CURRENT

    def finish(self, new: _NewFilters, changes: Iterable[FilterChange], decoded: int) -> Pieces:
        """What follows the kept bytes: filters, and a patched footer that was checked before it is given."""
        footer = self.file.footer
        blobs = {place: (write_header(bits.nbytes, self.variant), bits.bitset) for place, bits in new.items()}
        plan = splice.plan(footer, blobs, self.gone, self.lengths, write_lengths=self.variant == CURRENT)
        moved = len(plan.keep) > 1 or sum(n for _, n in plan.keep) != footer.start
        splice.check(footer, plan.footer, self.gone | new.keys(), moved)

        def verify(written: Source) -> None:
            if written.size != plan.total_bytes:
                raise WriteError(f"{written.size} bytes were written, {plan.total_bytes} were planned")
            again = read_footer(written)
            if again.raw != plan.footer:
                raise WriteError("the footer that was written isn't the one that was planned")
            places = again.chunk_places({place.column for place in plan.offsets})
            chunks = {(place.row_group, place.column): place for place in places}
            for place, offset in plan.offsets.items():
                chunk = again.chunk(chunks[place.row_group, place.column])
                loaded = load(written, chunk, again.start)
                if loaded.offset != offset or loaded.bits.bitset != new[place].bitset:
                    raise WriteError(f"the filter at {offset} isn't the one that was built")

        yield from plan.blobs
        yield plan.tail
        self._built = Built(
            changes=tuple(changes),
            bytes_decoded=decoded,
            verify=verify,
            bytes_unreclaimed=plan.unreclaimed,
        )


@dataclass(slots=True)
class _BuiltFilter:
    """A filter of one column chunk."""

    bits: SplitBlockFilter
    values: int
    decoded: int
    """Compressed bytes that were read for it."""


class AddDraft(_Change):
    """Filters for chosen columns, built from their values."""

    def __init__(
        self,
        file: ParquetFile,
        columns: Sequence[Column],
        rule: SizeRule,
        *,
        replace: bool,
        missing: bool = False,
    ) -> None:
        if rule.kind is not None:
            raise UsageError(
                "Parquet has one kind of filter", path=file.source.path, hint="leave --kind out: it is for ORC"
            )
        if rule.variant not in {None, CURRENT, *DRAFTS}:
            raise UsageError(f"no variant is called {rule.variant!r}", hint=", ".join((CURRENT, *DRAFTS)))
        for column in columns:
            if (reason := unfilterable(column)) is not None:
                raise UsageError(
                    f"column {column.path} is {reason}",
                    path=file.source.path,
                    hint="leave it out of --columns",
                )
        self.rule = rule
        self._stopped = False
        self._running: list[Future[_BuiltFilter]] = []
        self.chunks: dict[ChunkPlace, ColumnChunk] = {}
        gone: set[ChunkPlace] = set()
        for place in file.footer.chunk_places({c.index for c in columns}):
            chunk = file.footer.chunk(place)
            if chunk.encrypted:
                raise UnsupportedError(
                    f"column {chunk.column.path} is encrypted in row group {chunk.row_group}",
                    path=file.source.path,
                    field=field_of(chunk),
                    hint="bloom has no keys; leave the column out",
                )
            if chunk.bloom_filter_offset is not None:
                if missing:
                    continue
                if not replace:
                    raise FilterExists(
                        f"column {chunk.column.path} has a filter in row group {chunk.row_group} already",
                        path=file.source.path,
                        offset=chunk.bloom_filter_offset,
                        field=field_of(chunk),
                        hint="--replace builds new ones in place of all present ones",
                    )
                gone.add(place)
            self.chunks[place] = chunk
        super().__init__(file, gone)
        self.variant = rule.variant or CURRENT
        self._filters = filter_class(self.variant)
        self.estimate = tuple(self._estimate(place) for place in self.chunks)
        self.bytes_to_decode = sum(map(_bytes_to_read, self.chunks.values()))
        self.new_bytes_bound = (
            sum((c.bitset_bytes or 0) + _HEADER_BOUND for c in self.estimate)
            + len(file.footer.raw)
            + 20 * len(self.chunks)
        )

    def _upper_bound(self, chunk: ColumnChunk) -> int:
        if self.rule.ndv is not None:
            return sizing.bytes_for_ndv(self.rule.ndv, self.rule.fpp)
        count = present_values(chunk)
        if chunk.only_dictionary_encoded and chunk.dictionary_bytes is not None and chunk.codec == "UNCOMPRESSED":
            # no more values than the dictionary page has room for
            count = min(count, chunk.dictionary_bytes // (values.width_of(chunk.column) or 4))
        return sizing.upper_bound_bytes(count, self.rule.fpp)

    def _estimate(self, place: ChunkPlace) -> FilterChange:
        chunk = self.chunks[place]
        size = self._upper_bound(chunk)
        cap = self.rule.largest_split_block
        return FilterChange(
            row_group=place.row_group,
            column=chunk.column.path,
            action="replace" if place in self.gone else "add",
            bitset_bytes=min(size, cap),
            values=present_values(chunk),
            target_fpp=self.rule.fpp,
            misses_target=False,
            source="dictionary" if chunk.only_dictionary_encoded else "pages",
        )

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Hash the columns' values and build their filters, `threads` chunks at a time, while the body is copied."""

        def one(chunk: ColumnChunk) -> _BuiltFilter:
            built = self._build_one(chunk)
            tick(_bytes_to_read(chunk))
            return built

        with ThreadPoolExecutor(threads, thread_name_prefix="bloom-decode") as pool:
            self._running = [pool.submit(one, chunk) for chunk in self.chunks.values()]
            try:
                yield from itertools.starmap(Kept, self.keep)
                results = [future.result() for future in self._running]
            except BaseException:
                self._stopped = True
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        new: _NewFilters = {}
        changes = []
        for (place, chunk), built in zip(self.chunks.items(), results, strict=True):
            new[place] = built.bits
            changes.append(self._changed(place, chunk, built))
        yield from self.finish(new, changes, sum(built.decoded for built in results))

    def failed(self) -> bool:
        """Some column could not be read."""
        return any(future.done() and future.exception() is not None for future in self._running)

    def _changed(self, place: ChunkPlace, chunk: ColumnChunk, built: _BuiltFilter) -> FilterChange:
        bits = built.bits
        old = None
        if place in self.gone:
            try:
                old = self.file.load(chunk).bits.nbytes
            except FilterProblem:
                old = None  # it is replaced because it can't be read
        return FilterChange(
            row_group=place.row_group,
            column=chunk.column.path,
            action="replace" if place in self.gone else "add",
            bitset_bytes=bits.nbytes,
            old_bitset_bytes=old,
            values=built.values,
            fpp=bits.fpp,
            target_fpp=self.rule.fpp,
            misses_target=bits.fpp > self.rule.fpp,
            source="dictionary" if chunk.only_dictionary_encoded else "pages",
        )

    def _build_one(self, chunk: ColumnChunk) -> _BuiltFilter:
        built = self._filled(chunk, None)
        built.bits = self.rule.fitted(built.bits, lambda size: self._filled(chunk, size).bits)
        return built

    def _filled(self, chunk: ColumnChunk, size: int | None) -> _BuiltFilter:
        """A filter of `size` bytes (None: of the upper bound) with the chunk's values."""
        bits: SplitBlockFilter | None = None
        count = decoded = 0
        zero = False
        current = self.variant == CURRENT
        file = self.file
        for page in values.hashed_pages(
            file.source, chunk, file.footer.start, unreferenced=file.dictionaries_hold_values_only
        ):
            if self._stopped:
                break
            if bits is None:
                # a dictionary that stands for the whole chunk bounds the filter better than the row count
                only = chunk.only_dictionary_encoded and self.rule.ndv is None
                bound = sizing.upper_bound_bytes(page.count, self.rule.fpp) if only else self._upper_bound(chunk)
                bits = self._filters.empty(size or bound)
            bits.insert_hashes(page.hashes if current else page.draft_hashes(), page.count)
            count += page.count
            zero = zero or page.has_zero
            decoded = page.end - chunk.data_offset
        if bits is None:
            bits = self._filters.empty(limits.FILTER_MIN_BYTES if self.rule.ndv is None else self._upper_bound(chunk))
        if zero:
            for value in values.zero_hashes(chunk.column, draft=not current):
                bits.insert(value)
        if not chunk.only_dictionary_encoded:
            decoded = _bytes_to_read(chunk)
        return _BuiltFilter(bits, count, decoded)


def _bytes_to_read(chunk: ColumnChunk) -> int:
    """Of a chunk that is decoded."""
    return chunk.compressed_bytes if chunk.num_values else 0


class RemoveDraft(_Change):
    """Filters taken out."""

    def __init__(self, file: ParquetFile, columns: set[int] | None) -> None:
        super().__init__(file, set(file.places(columns)))
        self.estimate = tuple(
            FilterChange(
                row_group=place.row_group,
                column=file.columns[place.column].path,
                action="remove",
                bitset_bytes=None,
                old_bitset_bytes=_old_size(file, place),
            )
            for place in sorted(self.gone)
        )
        self.bytes_to_decode = 0
        self.new_bytes_bound = len(file.footer.raw) + 8

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Nothing has to be read."""
        del threads, tick
        yield from itertools.starmap(Kept, self.keep)
        yield from self.finish({}, self.estimate, 0)


def _old_size(file: ParquetFile, place: ChunkPlace) -> int | None:
    try:
        return file.load(file.footer.chunk(place)).bits.nbytes
    except FilterProblem:
        return None


class FoldDraft(_Change):
    """Filters halved as often as their measured rate allows. No column is read."""

    def __init__(self, file: ParquetFile, columns: set[int] | None, rule: SizeRule) -> None:
        self.rule = rule
        self.folded: _NewFilters = {}
        estimate = []
        for place in file.places(columns):
            loaded = file.load(file.footer.chunk(place))
            # filters of the drafts are to be replaced, not kept in use
            bits = loaded.bits if loaded.header.draft else loaded.bits.folded_to(rule.fpp, rule.largest_split_block)
            if bits.nbytes < loaded.bits.nbytes:
                self.folded[place] = bits
            estimate.append(self._changed(file.columns[place.column].path, place, loaded, bits))
        super().__init__(file, set(self.folded))
        self.estimate = tuple(estimate)
        self.bytes_to_decode = 0
        self.new_bytes_bound = (
            sum(bits.nbytes + _HEADER_BOUND for bits in self.folded.values())
            + len(file.footer.raw)
            + 20 * len(self.folded)
            + 8
        )

    def _changed(self, column: str, place: ChunkPlace, loaded: LoadedFilter, bits: SplitBlockFilter) -> FilterChange:
        return FilterChange(
            row_group=place.row_group,
            column=column,
            action="fold" if bits.nbytes < loaded.bits.nbytes else "keep",
            bitset_bytes=bits.nbytes,
            old_bitset_bytes=loaded.bits.nbytes,
            fpp=bits.fpp,
            target_fpp=self.rule.fpp,
            misses_target=bits.fpp > self.rule.fpp,
        )

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The folded filters are ready; only the footer is left to patch."""
        del threads, tick
        yield from itertools.starmap(Kept, self.keep)
        yield from self.finish(self.folded, self.estimate, 0)
