"""Indexes of filters for tests: their units, and the answers of the filters themselves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bloomcli import kernels
from bloomcli.index.ends import packed_end
from bloomcli.index.reader import Index
from bloomcli.index.writer import IndexWriter
from bloomcli.model.index import ChunkState, ColumnType, IndexedChunk, IndexedColumn, IndexedFile
from bloomcli.storage.registry import open_source

COLUMN: Final = "id"
IDS: Final = IndexedColumn(path=COLUMN, type=ColumnType(physical="INT64"))
_SHARED: Final = [random.Random(f"value {number}").randbytes(8) for number in range(1000)]
"""Hashes that several units have."""


def made(number: int, row_groups: int) -> IndexedFile:
    """The file with a number."""
    return IndexedFile(
        path=f"lake/part-{number:05}.parquet",
        size=1000 + number,
        mtime_ns=1_700_000_000_000_000_000 + number,
        tag=f"tag {number}",
        rows=tuple(range(number % 7, number % 7 + row_groups)),
    )


def filled(blocks: int, values: int, rng: random.Random) -> bytearray:
    """The bits of a filter with random values, some of which are in other filters, too."""
    bits = bytearray(blocks * 32)
    shared = b"".join(rng.choices(_SHARED, k=values // 2))
    kernels.sbbf_insert(bits, shared + rng.randbytes(8 * (values - values // 2)), values)
    return bits


def hashes(rng: random.Random, count: int) -> bytes:
    """Hashes to look up: half of them may be in a unit."""
    return b"".join(rng.choices(_SHARED, k=count // 2)) + rng.randbytes(8 * (count - count // 2))


def chunk(
    row_group: int,
    bitset: bytes | bytearray | None,
    column: IndexedColumn = IDS,
    state: ChunkState = ChunkState.FILTER,
) -> IndexedChunk:
    """A chunk."""
    return IndexedChunk(row_group=row_group, column=column, state=state, bitset=bitset)


@contextmanager
def opened(path: str | Path) -> Iterator[Index]:
    """An open index."""
    with open_source(str(path)) as source:
        yield Index(source)


def answers(index: Index, looked_up: bytes, column: IndexedColumn = IDS) -> set[tuple[int, int, int]]:
    """The possible triples of hash, file and row group, without duplicates."""
    if column not in index.columns:
        return set()
    found = set()
    for at in range(len(looked_up) // 8):
        units = index.possible(column, looked_up[8 * at : 8 * at + 8])
        entries = [(at, *unit) for unit in units]
        assert len(set(entries)) == len(entries)
        found |= set(entries)
    together = index.possible(column, looked_up)
    assert len(set(together)) == len(together)
    if looked_up:
        assert set(together) == {unit[1:] for unit in found}
    return found


def expected(
    index: Index,
    units: Mapping[tuple[str, int], tuple[ChunkState, bytes | None]],
    looked_up: bytes,
    *,
    least: bool = False,
) -> set[tuple[int, int, int]]:
    """The answers of the filters, folded or replicated to the common size.

    Args:
        index: has the common size and the files' positions.
        units: by path and row group.
        looked_up: the hashes.
        least: units may come from an old index of a smaller size, whose bits were replicated: then the answers at
            every size up to the common one are compared with the index's.
    """
    count, found = len(looked_up) // 8, set()
    seen = answers(index, looked_up) if least else set()
    for (path, row_group), (state, bits) in units.items():
        at = index.files.position(path)
        assert at is not None
        if state is ChunkState.ALWAYS:
            found |= {(n, at, row_group) for n in range(count)}
        elif bits is not None:
            blocks = index.layout(IDS).blocks
            ways = []
            while blocks:
                ways.append(_answers(bits, blocks, looked_up, at, row_group))
                blocks //= 2 if least else 1 << 40
            mine = {entry for entry in seen if entry[1:] == (at, row_group)}
            found |= mine if mine in ways else ways[0]
    return found


def _answers(bits: bytes, blocks: int, looked_up: bytes, at: int, row_group: int) -> set[tuple[int, int, int]]:
    count = len(looked_up) // 8
    out = bytearray(count)
    kernels.sbbf_check(kernels.sbbf_resized(bits, blocks), looked_up, count, out)
    return {(n, at, row_group) for n, found in enumerate(out) if found}


LARGE_FILES: Final = 10_000
LARGE_GROUPS: Final = 10
_POOL: Final = 64


def large_pool() -> list[bytes]:
    """The filters of the large index: row group n has the filter number n modulo their count."""
    rng = random.Random("large")
    return [bytes(filled(16, 250, rng)) for _ in range(_POOL)]


LARGE_END_BYTES: Final = 1500
"""The end of each file in the index: as large as for four row groups of ten columns."""


def write_large(path: str) -> None:
    """Write an index of 100,000 row groups in 10,000 files, with paths and tags like those of stores and the ends of
    the files."""
    rng, pool = random.Random("names"), large_pool()
    with IndexWriter([COLUMN], fpp=0.0001) as writer:
        for number in range(LARGE_FILES):
            name = f"part-{number:05}-{rng.getrandbits(64):016x}.parquet"
            file = IndexedFile(
                path=f"s3://lake/orders/day=2026-{number // 900 + 1:02}/{name}",
                size=rng.randrange(1 << 27, 1 << 28),
                mtime_ns=rng.randrange(1 << 60, 1 << 61),
                tag=f'"{rng.getrandbits(128):032x}"',
                rows=tuple(rng.randrange(900_000, 1_100_000) for _ in range(LARGE_GROUPS)),
            )
            end = packed_end([(file.size - LARGE_END_BYTES, rng.randbytes(LARGE_END_BYTES))])
            chunks = [chunk(at, pool[(number * LARGE_GROUPS + at) % _POOL]) for at in range(LARGE_GROUPS)]
            writer.add(file, chunks, end)
        writer.write(path, overwrite=True)


def pool_hash() -> bytes:
    """A hash that some of the large index's filters have."""
    return _SHARED[0]


def large_answer(pool: list[bytes], value: bytes) -> set[tuple[int, int]]:
    """The files and row groups that may have a hash, by the filters of the large index."""
    out = bytearray(1)
    hits = {at for at, bits in enumerate(pool) if not kernels.sbbf_check(bits, value, 1, out)}
    return {divmod(n, LARGE_GROUPS) for n in range(LARGE_FILES * LARGE_GROUPS) if n % _POOL in hits}
