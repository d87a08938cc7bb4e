"""The filters of a Parquet file: their headers, which chunks have one, and how to read one.

    BloomFilterHeader (Thrift compact, 12 to 20 bytes) | bitset (numBytes, a multiple of 32)

Only this module decides whether a filter can be used: `Filters.load` returns a filter, or raises a `FilterProblem`
with the fault and its stable id.

A header has one of four forms, which its bytes distinguish:

    parquet                numBytes, BLOCK, XXHASH, UNCOMPRESSED as Thrift             today's
    parquet-2018-12byte    u32 LE numBytes, u32 0 (hash), u32 0 (algorithm)            parquet-mr's branch
    parquet-2018-header    BloomFilterHeader without field 4                           the first draft
    parquet-2018-page      the same as field 9 of a PageHeader whose type is 4         the second draft

The drafts hash with Murmur3 and pick blocks by a mask. Their hash union's member 1 was MURMUR3 and is XXHASH
today, so the header doesn't name the hash: the missing field 4 does. Thrift starts with 0x15, a 12-byte
header with a multiple of 32; in a PageHeader field 2 is an integer, in a BloomFilterHeader a structure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile
from bloomcli.filters.split_block import (
    MaskedSplitBlockFilter,
    SplitBlockFilter,
    UnreadFilter,
    block_ranges,
    is_sparse,
)
from bloomcli.formats.answer import WRONG, Bits
from bloomcli.formats.base import EncryptedFilter, FilterProblem
from bloomcli.formats.parquet import codecs, spec, statistics
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.hints import removing
from bloomcli.model.file import ChunkKey, Column, ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import are, counted

CURRENT: Final = "parquet"
TWELVE_BYTES: Final = "parquet-2018-12byte"
HEADER: Final = "parquet-2018-header"
PAGE: Final = "parquet-2018-page"
DRAFTS: Final = (TWELVE_BYTES, HEADER, PAGE)

_DRAFT_HASH: Final = "MURMUR3"
DRAFT_SEED: Final = 1361930890
"""Seed of the drafts' hash. No draft's text mentions it; parquet-mr and parquet-cpp used the same."""
_NO_COMPRESSION: Final = "UNCOMPRESSED"
_TWELVE: Final = 12
_BLOCK: Final = 32

_FIRST: Final = b"\x15"
"""Field 1, numBytes."""
_REST: Final = b"\x1c\x1c\x00\x00" * 3
"""Fields 2 to 4, the algorithm, the hash and the compression: member 1 of each, empty."""
_USUAL: Final = re.compile(_FIRST + rb"[\x80-\xff]{0,3}[\x00-\x7f]" + _REST + b"\x00")
"""The current header as writers usually encode it. Others, and numbers of five bytes, are walked."""
_NEWER: Final = re.compile(_FIRST + rb"(?:[\x80-\xff]{1,4}[\x01-\x7f]|[\x00-\x7f])" + _REST + rb".*\x00", re.DOTALL)
"""The same, with numBytes in as few bytes as possible, and unknown fields after the known ones."""


class FilterHeader(NamedTuple):
    """A filter's header: names as in the specification's unions, sizes in bytes."""

    num_bytes: int
    header_bytes: int
    algorithm: str
    hash: str
    compression: str
    variant: str = CURRENT

    @property
    def length(self) -> int:
        """The bytes of header and bitset."""
        return self.header_bytes + self.num_bytes

    @property
    def draft(self) -> bool:
        """Whether it is a header of the 2018 drafts: Murmur3, blocks selected by a mask."""
        return self.variant != CURRENT


def parse_header(data: bytes, location: Location) -> FilterHeader:
    """Parse the header, of any variant, at the start of `data`. The bitset after it isn't read.

    Raises CorruptFile.
    """
    if len(data) >= _TWELVE and data[0] % _BLOCK == 0:
        num_bytes, hash_code, algorithm = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8))
        if num_bytes and hash_code == algorithm == 0:
            return FilterHeader(
                num_bytes=num_bytes,
                header_bytes=_TWELVE,
                algorithm="BLOCK",
                hash=_DRAFT_HASH,
                compression=_NO_COMPRESSION,
                variant=TWELVE_BYTES,
            )
    usual = _USUAL.match(data)
    if usual is not None:
        return FilterHeader(
            num_bytes=kernels.compact_int(data, 1),
            header_bytes=usual.end(),
            algorithm="BLOCK",
            hash="XXHASH",
            compression=_NO_COMPRESSION,
        )
    outer = Struct("PageHeader", data, 0, location)
    second = outer.span("uncompressed_page_size")
    if second is not None and second.kind == spec.I32:
        kind = spec.enum_name("PageType", outer.required_int("type"))
        if kind != "BLOOM_FILTER_PAGE":
            raise location.fault(f"a page header of type {kind} where a filter should be", 0)
        inner = outer.struct("bloom_filter_page_header", "BloomFilterHeader")
        if inner is None:
            raise location.fault("the page header has no bloom_filter_page_header", 0)
        return _thrift(inner, outer.end, PAGE)
    return _thrift(Struct("BloomFilterHeader", data, 0, location), None, HEADER)


def is_usual(raw: bytes) -> bool:
    """Whether a header of the current variant is encoded as by all writers, except for newer fields."""
    return _NEWER.fullmatch(raw) is not None


def _thrift(walked: Struct, end: int | None, draft: str) -> FilterHeader:
    compression = _member(walked, "compression", "BloomFilterCompression")
    is_draft = compression == "missing" or draft == PAGE
    hash_name = _member(walked, "hash", "BloomFilterHash")
    return FilterHeader(
        num_bytes=walked.required_int("numBytes", minimum=-(1 << 31)),
        header_bytes=walked.end if end is None else end,
        algorithm=_member(walked, "algorithm", "BloomFilterAlgorithm"),
        hash=_DRAFT_HASH if is_draft and hash_name == "XXHASH" else hash_name,
        compression=_NO_COMPRESSION if is_draft else compression,
        variant=draft if is_draft else CURRENT,
    )


def _member(header: Struct, field: str, union: str) -> str:
    """The name of the union's member that is set; ``unknown (5)`` if the specification doesn't have it."""
    walked = header.struct(field, union)
    if walked is None:
        return "missing"
    names = {number: name for name, number in spec.field_ids(union).items()}
    ids = list(walked.spans)
    if len(ids) != 1:
        return "empty" if not ids else "several"
    return names.get(ids[0], f"unknown ({ids[0]})")


def write_header(num_bytes: int, variant: str = CURRENT) -> bytes:
    """The header of a bitset of `num_bytes`, 12 to 32 bytes."""
    if variant == TWELVE_BYTES:
        return num_bytes.to_bytes(4, "little") + bytes(8)
    if variant == CURRENT:
        return _FIRST + spec.zigzag(num_bytes) + _REST + b"\x00"
    # member 1 of the hashes, which was MURMUR3
    header = {"numBytes": num_bytes, "algorithm": {"BLOCK": {}}, "hash": {"XXHASH": {}}}
    if variant == HEADER:
        return spec.encoded("BloomFilterHeader", header)
    sizes = {"uncompressed_page_size": num_bytes, "compressed_page_size": num_bytes}
    return spec.encoded("PageHeader", {"type": "BLOOM_FILTER_PAGE", **sizes, "bloom_filter_page_header": header})


def filter_class(variant: str) -> type[SplitBlockFilter]:
    """The class of the variant's filters, which differ in how a hash selects a block."""
    return SplitBlockFilter if variant == CURRENT else MaskedSplitBlockFilter


_HEADER_MIN: Final = 12
_ONE_READ_BYTES: Final = 8 << 20
"""Larger filters are read in two reads, so that their bits aren't copied."""

DRAFT_REASON: Final = (
    "a filter of the 2018 drafts (Murmur3): today's readers take its hash for XXH64, or can't read it, and lose rows"
)


def plaintext_problem(path: str, offset: int, field: str, column: str) -> FilterProblem:
    """The error about a filter in plain text of an encrypted column."""
    return FilterProblem(
        "the column is encrypted, and its filter isn't: anybody can look guesses up",
        path=path,
        offset=offset,
        field=field,
        hint=removing(column, after=" takes it out"),
        id="filter-plaintext",
    )


class LoadedFilter(NamedTuple):
    """A filter in memory: its offset, its header, the header's bytes and its bits."""

    offset: int
    header: FilterHeader
    header_raw: bytes
    bits: SplitBlockFilter


def field_of(chunk: ColumnChunk) -> str:
    """The field path of a chunk's filter offset."""
    return f"{chunk.key.field}.meta_data.bloom_filter_offset"


class ProbedFilter(NamedTuple):
    """A filter for the lookup of a few hashes: its header, and its bits, which may be read later."""

    header: FilterHeader
    bits: Bits


_Read = TypeVar("_Read", LoadedFilter, ProbedFilter)


def bitset_bytes_in(length: int) -> int:
    """The bitset's size in a filter of `length` bytes: a header has 12 to 43 bytes, a bitset a multiple of 32."""
    return max(length - _HEADER_MIN, 0) // limits.FILTER_MIN_BYTES * limits.FILTER_MIN_BYTES


def unknown_kind(header: FilterHeader) -> tuple[str, str] | None:
    """(reason, id of the finding) for a filter whose algorithm, hash or compression is unknown; else None."""
    if header.algorithm != "BLOCK":
        return f"the filter's algorithm is {header.algorithm}; only BLOCK is known", "filter-algorithm"
    if header.hash != ("MURMUR3" if header.draft else "XXHASH"):
        return f"the filter's hash is {header.hash}; only XXHASH is known", "filter-hash"
    if header.compression != "UNCOMPRESSED":
        return (
            f"the bitset's compression is {header.compression}; the specification has only UNCOMPRESSED",
            "filter-compression",
        )
    return None


def _check_header(
    header: FilterHeader, chunk: ColumnChunk, room: int, problem: Callable[[str, str], FilterProblem]
) -> None:
    if (unknown := unknown_kind(header)) is not None:
        raise problem(*unknown)
    size = header.num_bytes
    if size <= 0:
        raise problem(f"the bitset has {counted(size, 'byte')}", "filter-num-bytes")
    if size % limits.FILTER_MIN_BYTES:
        raise problem(f"the bitset's {counted(size, 'byte')} {are(size)} not a multiple of 32", "filter-num-bytes")
    if size > limits.FILTER_MAX_BYTES:
        raise problem(
            f"the bitset's {counted(size, 'byte')} are more than {limits.FILTER_MAX_BYTES}", "filter-too-large"
        )
    if header.draft and size & (size - 1):
        raise problem(
            f"the bitset's {counted(size, 'byte')} {are(size)} not a power of two, as a draft's have to be",
            "filter-num-bytes",
        )
    total = header.length
    if total > room:
        raise problem(
            f"header and bitset take {counted(total, 'byte')}, {room} {are(room)} left before the footer",
            "filter-num-bytes",
        )
    claimed = chunk.bloom_filter_length
    if claimed is not None and claimed != total:
        raise problem(
            f"bloom_filter_length is {claimed}, the header says {total} (header included): not to be trusted",
            "filter-length",
        )


def unfilterable(column: Column) -> str | None:
    """Why a column can't have a filter, as a noun phrase; None if it can."""
    if column.physical != "BOOLEAN":
        return None
    return "BOOLEAN: it has two values, no reader uses a filter on it, and one that is wrongly written loses rows"


def unreadable(footer: Footer, column: Column) -> str | None:
    """Why a column's values can't be read in a row group; None if the metadata show no reason."""
    for chunk in footer.chunks({column.index}):
        if chunk.encrypted:
            return f"encrypted: {chunk.key_hint}"
        if not codecs.supported(chunk.codec):
            return f"compressed by {chunk.codec}, which isn't known here"
    return None


_ASSUMED_BYTES: Final = 1 << 20
"""The maximum number of bytes that are read ahead for a filter of unknown length: a filter of a million values."""


class Filters:
    """The filters that a footer names. Each is read on demand.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, source: Source, footer: Footer) -> None:
        self.source = source
        self.footer = footer

    def filter_keys(self, columns: set[int] | None) -> Iterator[ChunkKey]:
        """Yield the keys of the chunks with a filter in these columns (all if None)."""
        return (key for key, _, _ in self.footer.filtered(columns))

    def locations(self, columns: set[int] | None, units: Container[int] | None = None) -> Iterator[ColumnChunk]:
        """Yield the chunks with a filter, in row-group then schema order; of all row groups or of `units`."""
        for key, _, metadata in self.footer.filtered(columns):
            if units is None or key.row_group in units:
                yield self.footer.chunk(key, metadata)

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the filters of these columns (all if None), to read them ahead.

        If the length isn't written, the range ends at the next filter at the latest; if it is impossible, after the
        header.
        """
        filters = [(offset, metadata.bloom_filter_length) for _, offset, metadata in self.footer.filtered(columns)]
        starts = sorted(offset for offset, _ in filters)
        for offset, length in filters:
            if length is None:
                following = bisect_right(starts, offset)
                end = starts[following] if following < len(starts) else self.footer.start
                yield offset, min(end - offset, _ASSUMED_BYTES)
            elif 0 < length <= limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
                yield offset, length
            else:
                yield offset, parquet_limits.FILTER_HEADER_MAX_BYTES

    def headers(self, columns: set[int] | None, *, unwritten: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the ranges of these filters' headers; with `unwritten`, only if the metadata have no length."""
        for _, offset, metadata in self.footer.filtered(columns):
            if not (unwritten and metadata.bloom_filter_length is not None):
                yield offset, parquet_limits.FILTER_HEADER_MAX_BYTES

    def header(self, key: ChunkKey) -> tuple[int, int]:
        """The range that is read for a filter's header."""
        return self.footer.chunk(key).bloom_filter_offset or 0, parquet_limits.FILTER_HEADER_MAX_BYTES

    def location(self, column: int, row_group: int, stripe: int) -> ColumnChunk | None:
        """A column's chunk in a row group; None if it has no filter."""
        del stripe
        (chunk,) = self.footer.chunks({column}, row_group)
        return None if chunk.bloom_filter_offset is None else chunk

    def load(self, chunk: ColumnChunk) -> LoadedFilter:
        """Read a chunk's filter: in one read if its length is known and at most 8 MiB, else in two. Raises
        FilterProblem."""
        header, offset, data = self._start(chunk, _ONE_READ_BYTES)
        start, size = header.header_bytes, header.num_bytes
        whole = len(data) >= start + size
        bitset = data[start : start + size] if whole else self.source.read_at(offset + start, size)
        return LoadedFilter(offset, header, data[:start], filter_class(header.variant)(bitset))

    def _header(self, chunk: ColumnChunk) -> FilterHeader:
        """The header of a chunk's filter, without its bits. Raises FilterProblem as `load` does."""
        return self._start(chunk, parquet_limits.FILTER_HEADER_MAX_BYTES)[0]

    def header_of(self, chunk: ColumnChunk) -> FilterHeader | None:
        """The header of a chunk's filter; None if it can't be read."""
        try:
            return self._header(chunk)
        except FilterProblem:
            return None

    def _start(self, chunk: ColumnChunk, most: int) -> tuple[FilterHeader, int, bytes]:
        """A filter's header, its offset, and the bytes from there on: all bytes of the filter if they are at most
        `most`."""
        source, data_end = self.source, self.footer.start
        offset = chunk.bloom_filter_offset
        if offset is None:
            raise ValueError("the chunk has no filter")
        field = field_of(chunk)

        def problem(reason: str, id: str, at: int | None = offset) -> FilterProblem:  # noqa: A002
            return FilterProblem(reason, path=source.path, offset=at, field=field, id=id)

        if offset < len(spec.MAGIC) or offset >= data_end:
            raise problem(f"the filter's offset, {offset}, is outside the file's data", "filter-offset")
        room = data_end - offset
        claimed = chunk.bloom_filter_length
        if claimed is not None and not 0 < claimed <= room:
            raise problem(
                f"bloom_filter_length is {claimed}, but {counted(room, 'byte')} {are(room)} left before the footer",
                "filter-length",
            )
        if claimed is not None and claimed > limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
            raise problem(
                f"bloom_filter_length is {claimed}, more than a filter may have ({limits.FILTER_MAX_BYTES})",
                "filter-too-large",
            )
        first = min(parquet_limits.FILTER_HEADER_MAX_BYTES if claimed is None or claimed > most else claimed, room)
        data = source.read_at(offset, first)
        if chunk.encrypted:
            # arrow-rs writes the filters of encrypted columns in plain text; modules begin with their length
            raise (
                plaintext_problem(source.path, offset, field, chunk.column.path)
                if _USUAL.match(data)
                else EncryptedFilter(
                    "the filter is encrypted with its column",
                    path=source.path,
                    offset=offset,
                    field=field,
                    hint=chunk.key_hint,
                    id="filter-encrypted",
                )
            )
        try:
            header = parse_header(
                data[: parquet_limits.FILTER_HEADER_MAX_BYTES], Location(source.path, offset, field)
            )
        except CorruptFile as error:
            reason = f"no filter header at the filter's offset: {error.reason}"
            raise problem(reason, "filter-header", error.offset) from None
        _check_header(header, chunk, room, problem)
        return header, offset, data

    def usable(self, chunk: ColumnChunk, load: Callable[[ColumnChunk], _Read]) -> tuple[_Read | None, str | None]:
        """A chunk's filter, or why it can't be used; (None, None) without a filter. Those of the 2018 drafts aren't
        compared with the statistics.

        Args:
            chunk: the chunk.
            load: reads its filter, for a lookup of the bounds too.
        """
        if chunk.bloom_filter_offset is None:
            return None, None
        try:
            filter_ = load(chunk)
        except FilterProblem as problem:
            return None, problem.reason
        if not filter_.header.draft and any(statistics.lost(chunk, filter_.bits)):
            return None, WRONG
        return filter_, None

    def load_for(self, chunk: ColumnChunk, hashes: int) -> ProbedFilter:
        """Read as much of a chunk's filter as a lookup of `hashes` hashes needs: single blocks, if that is less.

        Checks everything that `load` checks, because all of it is in the header. Raises FilterProblem.
        """
        claimed = chunk.bloom_filter_length
        if claimed is not None and not is_sparse(hashes, claimed):
            loaded = self.load(chunk)
            return ProbedFilter(loaded.header, loaded.bits)
        header = self._header(chunk)
        kind, size = filter_class(header.variant), header.num_bytes
        start = (chunk.bloom_filter_offset or 0) + header.header_bytes
        if is_sparse(hashes, size):
            bits: Bits = UnreadFilter(kind, size, lambda at, length: self.source.read_at(start + at, length))
        else:
            bits = kind(self.source.read_at(start, size))
        return ProbedFilter(header, bits)

    def will_look_up(self, lookups: Callable[[], Iterable[tuple[ColumnChunk, Sequence[int]]]]) -> None:
        """Announce the lookups that follow, with `load_for`: each chunk with its hashes."""
        self.source.will_read(r for chunk, hashes in lookups() for r in self._ranges_for(chunk, hashes))
        self.source.will_read(r for chunk, hashes in lookups() for r in self._blocks(chunk, hashes))

    @cached_property
    def _assumed_lengths(self) -> dict[int, int]:
        """The lengths of filters for which the metadata have none, by the filters' offsets, as far as they can be
        inferred: writers of such files store bitsets whose size is a power of two, so that filter and header end
        where the next filter or the footer begins. A wrong length only causes a needless read."""
        filters = [(offset, metadata.bloom_filter_length) for _, offset, metadata in self.footer.filtered(None)]
        starts = sorted({offset for offset, _ in filters})
        lengths = {start: end - start for start, end in pairwise((*starts, self.footer.start))}
        unwritten = (offset for offset, length in filters if length is None)
        sizes = ((offset, lengths[offset], bitset_bytes_in(lengths[offset])) for offset in unwritten)
        return {offset: length for offset, length, size in sizes if size and not size & (size - 1)}

    def _ranges_for(self, chunk: ColumnChunk, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of each range that `load_for` reads; only the header if the length isn't
        known."""
        offset = chunk.bloom_filter_offset
        if offset is None:
            return
        length = chunk.bloom_filter_length
        if length is None:
            length = self._assumed_lengths.get(offset)
        if length is not None and not is_sparse(len(hashes), length):
            yield offset, length
            return
        yield offset, parquet_limits.FILTER_HEADER_MAX_BYTES
        size = 0 if length is None else bitset_bytes_in(length)
        if 0 < size <= limits.FILTER_MAX_BYTES and length is not None:
            yield from block_ranges(SplitBlockFilter, size, hashes, offset + length - size)

    def _blocks(self, chunk: ColumnChunk, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield what `load_for` reads after the header of a filter whose length is only there."""
        if chunk.bloom_filter_offset is None or chunk.bloom_filter_length is not None:
            return
        header = self.header_of(chunk)  # the lookup reports what is wrong with it
        if header is None:
            return
        start, size = chunk.bloom_filter_offset + header.header_bytes, header.num_bytes
        if is_sparse(len(hashes), size):
            yield from block_ranges(filter_class(header.variant), size, hashes, start)
        else:
            yield start, size

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {key.column for key in self.filter_keys(None)}

    def proven(self, columns: set[int] | None, units: Container[int] | None) -> Iterator[ColumnChunk]:
        """Yield the chunks of these columns (of those with a filter anywhere if None) in the row groups `units`,
        whose values prove the filters and the other metadata by which readers skip: those of a path in a VARIANT
        prove nothing without the null count of its values of other types."""
        chosen = self.columns() if columns is None else columns
        chosen = chosen | {c.untyped for c in self.footer.columns if c.index in chosen and c.untyped is not None}
        for key in self.footer.chunk_keys(chosen):
            if units is None or key.row_group in units:
                yield self.footer.chunk(key)

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the chunks that `proven` yields."""
        return sum(chunk.compressed_bytes for chunk in self.proven(columns, units))

    @cached_property
    def unwritten_lengths(self) -> dict[ChunkKey, int]:
        """The lengths of the filters for which the metadata have none, from their headers as far as they can be
        read."""
        self.source.will_read(self.headers(None, unwritten=True))
        unwritten = (entry for entry in self.footer.filtered(None) if entry[2].bloom_filter_length is None)
        headers = ((key, self.header_of(self.footer.chunk(key, metadata))) for key, _, metadata in unwritten)
        return {key: header.length for key, header in headers if header is not None}

    def gives_away(self, key: ChunkKey) -> bool:
        """Whether a chunk is encrypted and its filter isn't."""
        chunk = self.footer.chunk(key)
        if self.footer.encryption is None and not chunk.encrypted:
            return False
        try:
            self._header(chunk)
        except FilterProblem as error:
            return error.id == "filter-plaintext"
        return False

    def bitset_bytes(self, chunk: ColumnChunk) -> int | None:
        """The size of a filter's bitset, from the header; None if it can't be read."""
        header = self.header_of(chunk)
        return None if header is None else header.num_bytes


def draft_hash(data: bytes) -> int:
    """The hash of a value's PLAIN bytes in the filters of the 2018 drafts: the first (least significant) 64 bits of
    MurmurHash3 x64_128."""
    import mmh3

    return int(mmh3.hash64(data, DRAFT_SEED, signed=False)[0])
