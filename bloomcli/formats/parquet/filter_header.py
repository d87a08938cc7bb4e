"""Reads a filter: the header, and the bitset that follows it.

    BloomFilterHeader (Thrift compact, 12 to 20 bytes) | bitset (numBytes, a multiple of 32)

Only this module decides whether a filter can be used: `load` returns a filter, or raises a `FilterProblem` with the
fault and its stable id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from bloomcli import limits
from bloomcli.errors import CorruptFile
from bloomcli.filters.split_block import SplitBlockFilter, UnreadFilter, block_ranges, is_sparse
from bloomcli.formats import base
from bloomcli.formats.answer import Bits
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location
from bloomcli.formats.parquet.variants import FilterHeader, filter_class, parse_header
from bloomcli.hints import replacing
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import are, counted

_HEADER_MIN: Final = 12
_ONE_READ_BYTES: Final = 8 << 20
"""Larger filters are read in two reads, so that their bits aren't copied."""

DRAFT_REASON: Final = (
    "a filter of the 2018 drafts (Murmur3): today's readers take its hash for XXH64, or can't read it, and lose rows"
)
HINT_REPLACE: Final = replacing()


class FilterProblem(base.FilterProblem):
    """A filter that can't be used, although the metadata name it. `id` is the finding's stable id."""

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        hint: str | None = HINT_REPLACE,
        id: str = "filter-header",  # noqa: A002  it is the finding's id
    ) -> None:
        super().__init__(reason, path=path, offset=offset, field=field, hint=hint)
        self.id = id


class LoadedFilter(NamedTuple):
    """A filter in memory: its offset, its header, the header's bytes and its bits."""

    offset: int
    header: FilterHeader
    header_raw: bytes
    bits: SplitBlockFilter

    @property
    def length(self) -> int:
        """Bytes on disk, header included."""
        return self.header.header_bytes + self.header.num_bytes


def field_of(chunk: ColumnChunk) -> str:
    """The field path of a chunk's filter offset."""
    return f"row_groups[{chunk.row_group}].columns[{chunk.column.index}].meta_data.bloom_filter_offset"


def load(source: Source, chunk: ColumnChunk, data_end: int) -> LoadedFilter:
    """Read a chunk's filter: in one read if its length is known and at most 8 MiB, else in two.

    `data_end` is where data must end: the footer's first byte. Raises FilterProblem.
    """
    header, data = _start(source, chunk, data_end, _ONE_READ_BYTES)
    offset = chunk.bloom_filter_offset
    assert offset is not None  # noqa: S101  _start raises
    start, size = header.header_bytes, header.num_bytes
    whole = len(data) >= start + size
    return LoadedFilter(
        offset=offset,
        header=header,
        header_raw=data[:start],
        bits=filter_class(header.variant).from_bytes(
            data[start : start + size] if whole else source.read_at(offset + start, size)
        ),
    )


def load_header(source: Source, chunk: ColumnChunk, data_end: int) -> FilterHeader:
    """The header of a chunk's filter, without its bits. Raises FilterProblem as `load` does."""
    return _start(source, chunk, data_end, parquet_limits.FILTER_HEADER_MAX_BYTES)[0]


def _start(source: Source, chunk: ColumnChunk, data_end: int, most: int) -> tuple[FilterHeader, bytes]:
    """A filter's header, and the bytes from its start on: all bytes of the filter if they are at most `most`."""
    offset = chunk.bloom_filter_offset
    if offset is None:
        raise ValueError("the chunk has no filter")
    field = field_of(chunk)

    def problem(reason: str, id: str, at: int = offset) -> FilterProblem:  # noqa: A002
        return FilterProblem(reason, path=source.path, offset=at, field=field, id=id)

    if chunk.encrypted:
        raise FilterProblem(
            "the filter is encrypted with its column",
            path=source.path,
            offset=offset,
            field=field,
            hint="bloom has no keys; decrypt the file with the engine that wrote it",
            id="filter-encrypted",
        )
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
    try:
        header = parse_header(data[: parquet_limits.FILTER_HEADER_MAX_BYTES], Location(source.path, offset, field))
    except CorruptFile as error:
        raise FilterProblem(
            f"no filter header at the filter's offset: {error.reason}",
            path=source.path,
            offset=error.offset,
            field=field,
            id="filter-header",
        ) from None
    _check_header(header, chunk, room, problem)
    return header, data


class ProbedFilter(NamedTuple):
    """A filter for the lookup of a few hashes: its header, and its bits, which may be read later."""

    header: FilterHeader
    bits: Bits


def load_for(source: Source, chunk: ColumnChunk, data_end: int, hashes: int) -> ProbedFilter:
    """Read as much of a chunk's filter as a lookup of `hashes` hashes needs: single blocks, if that is less.

    Checks everything that `load` checks, because all of it is in the header. Raises FilterProblem.
    """
    claimed = chunk.bloom_filter_length
    if claimed is not None and not is_sparse(hashes, claimed):
        loaded = load(source, chunk, data_end)
        return ProbedFilter(loaded.header, loaded.bits)
    header = load_header(source, chunk, data_end)
    kind, size = filter_class(header.variant), header.num_bytes
    start = (chunk.bloom_filter_offset or 0) + header.header_bytes
    if is_sparse(hashes, size):
        bits: Bits = UnreadFilter(kind, size, lambda at, length: source.read_at(start + at, length))
    else:
        bits = kind.from_bytes(source.read_at(start, size))
    return ProbedFilter(header, bits)


def bitset_bytes_in(length: int) -> int:
    """The bitset's size in a filter of `length` bytes: a header has 12 to 43 bytes, a bitset a multiple of 32."""
    return max(length - _HEADER_MIN, 0) // limits.FILTER_MIN_BYTES * limits.FILTER_MIN_BYTES


def ranges_for(chunk: ColumnChunk, hashes: Sequence[int], assumed: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each range that `load_for` reads; only the header if the length isn't known.

    Args:
        chunk: a chunk with a filter.
        hashes: the hashes that are looked up.
        assumed: the length of the filter with its header, if the metadata have none.
    """
    offset, claimed = chunk.bloom_filter_offset, chunk.bloom_filter_length
    if offset is None:
        return
    if claimed is None:
        claimed = assumed
    if claimed is not None and not is_sparse(len(hashes), claimed):
        yield offset, claimed
        return
    yield offset, parquet_limits.FILTER_HEADER_MAX_BYTES
    size = 0 if claimed is None else bitset_bytes_in(claimed)
    if 0 < size <= limits.FILTER_MAX_BYTES and claimed is not None:
        yield from block_ranges(SplitBlockFilter, size, hashes, offset + claimed - size)


def blocks_for(header: FilterHeader, offset: int, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each block that `load_for` reads after the header, or of the whole bitset."""
    start = offset + header.header_bytes
    if is_sparse(len(hashes), header.num_bytes):
        yield from block_ranges(filter_class(header.variant), header.num_bytes, hashes, start)
    else:
        yield start, header.num_bytes


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


def _check_header(header: FilterHeader, chunk: ColumnChunk, room: int, problem: _Problem) -> None:
    if (unknown := unknown_kind(header)) is not None:
        raise problem(*unknown)
    size = header.num_bytes
    if size <= 0:
        raise problem(f"the bitset has {counted(size, 'byte')}", "filter-num-bytes")
    if size % limits.FILTER_MIN_BYTES:
        raise problem(f"the bitset's {counted(size, 'byte')} are not a multiple of 32", "filter-num-bytes")
    if size > limits.FILTER_MAX_BYTES:
        raise problem(
            f"the bitset's {counted(size, 'byte')} are more than {limits.FILTER_MAX_BYTES}", "filter-too-large"
        )
    if header.draft and size & (size - 1):
        raise problem(
            f"the bitset's {counted(size, 'byte')} are not a power of two, as a draft's have to be",
            "filter-num-bytes",
        )
    total = header.header_bytes + size
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


class _Problem(Protocol):
    """The type of the function `problem` in `_start`, for mypy."""

    def __call__(self, reason: str, id: str, at: int = ...) -> FilterProblem: ...  # noqa: A002
