"""Times an index of filters: building it, looking up one value, and looking up a million values.

    python benchmarks/index.py [--values 1000000] [--repeat 3]

The checks per second are values times row groups, on one core, warm. A memcpy of the bytes that the lookups read,
8 rows for each value, is timed in the same run. The lookups read them from the processor's cache.
The builds read the same column of files of each format. Writes RESULTS-INDEX.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import machine

import bloomcli
from bloomcli import kernels
from bloomcli.index.reader import Index
from bloomcli.index.writer import IndexWriter
from bloomcli.model.index import ChunkState, ColumnType, IndexedChunk, IndexedColumn, IndexedFile
from bloomcli.storage.registry import open_source
from bloomcli.storage.sources import CountingSource

IDS = IndexedColumn(path="id", type=ColumnType(physical="INT64"))
_GROUPS = 10
"""Row groups of a file."""
_INDEXES = ((1000, 4096), (10_000, 512), (100_000, 64))
"""Row groups, and blocks of their filters: indexes of 128 and 192 MiB."""
_CHECKS = 2_000_000_000
"""Values times row groups, at most."""
_FILES, _ROWS = 8, 500_000
_VALUES_PER_BLOCK = 25
"""Values of a filter, so that its rate is about 1 %."""


@dataclass(frozen=True)
class Build:
    """An index of files of one format."""

    name: str
    row_groups: int
    bytes_decoded: int
    index_bytes: int
    seconds: float
    processor: float


@dataclass(frozen=True)
class Figures:
    """The measured figures."""

    row_groups: int
    values: int
    filter_bytes: int
    single_bytes: int
    """Bytes to open the index and to look one value up, in `single_reads` reads."""
    single_reads: int
    build_seconds: float
    index_bytes: int
    single_ms: float
    """Milliseconds to open the index and to look one value up."""
    any_seconds: float
    """Seconds for all values, with the row groups that may have any of them."""
    memcpy_seconds: float

    @property
    def checks_per_second(self) -> float:
        """Values times row groups per second."""
        return self.values * self.row_groups / self.any_seconds

    @property
    def memcpy_checks_per_second(self) -> float:
        """The same for only copying the rows."""
        return self.values * self.row_groups / self.memcpy_seconds


def build(path: str, row_groups: int, blocks: int) -> float:
    """Write an index of filters with random values. Returns the seconds."""
    rng = np.random.default_rng(17)
    pool = []
    for _ in range(min(row_groups, 64)):
        bits = bytearray(blocks * 32)
        hashes = rng.integers(0, 1 << 63, blocks * _VALUES_PER_BLOCK, np.int64).astype(np.uint64) * 2
        kernels.sbbf_insert(bits, hashes.view(np.uint8), len(hashes))
        pool.append(bytes(bits))
    started = time.perf_counter()
    with IndexWriter([IDS.path], fpp=0.01) as writer:
        for first in range(0, row_groups, _GROUPS):
            numbers = range(first, min(first + _GROUPS, row_groups))
            chunks = [
                IndexedChunk(row_group=at - first, column=IDS, state=ChunkState.FILTER, bitset=pool[at % len(pool)])
                for at in numbers
            ]
            writer.add(IndexedFile(path=f"part-{first:06}.parquet", size=1, rows=(1,) * len(numbers)), chunks)
        writer.write(path, overwrite=True)
    return time.perf_counter() - started


def lookups(path: str, values: int, repeat: int, build_seconds: float = 0.0) -> Figures:
    """Look values up in an index; each figure is the best of some rounds."""
    rng = np.random.default_rng(18)
    hashes = rng.integers(0, 1 << 63, values, np.int64).astype(np.uint64).tobytes()
    single = anything = copied = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        with CountingSource(open_source(path)) as source:
            Index(source).possible(IDS, hashes[:8])
            counted = source.bytes_read
        single = min(single, time.perf_counter() - started)
        with open_source(path) as source:
            index = Index(source)
            size = index.layout(IDS).filter_bytes
            started = time.perf_counter()
            index.possible(IDS, hashes)
            anything = min(anything, time.perf_counter() - started)
            row_groups, touched = index.facts().row_groups, values * 8 * index.layout(IDS).width
        copied = min(copied, _memcpy(touched))
    index_bytes, reads = Path(path).stat().st_size, _reads(path, hashes[:8])
    return Figures(
        row_groups,
        values,
        size,
        counted,
        reads,
        build_seconds,
        index_bytes,
        single * 1000,
        anything,
        copied,
    )


def _reads(path: str, value: bytes) -> int:
    """The number of reads to open an index and to look a value up."""
    with open_source(path) as source, mock.patch.object(source, "read_at", wraps=source.read_at) as read:
        Index(source).possible(IDS, value)
        return read.call_count


def _memcpy(nbytes: int) -> float:
    """Seconds to copy this number of bytes within memory."""
    size = min(nbytes, 256 << 20)
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)
    started = time.perf_counter()
    np.copyto(target, source)
    return (time.perf_counter() - started) * nbytes / size


def builds(folder: Path, repeat: int) -> list[Build]:
    """Build an index of the same column in files of each format; each figure is the best of some rounds."""
    rng = np.random.default_rng(19)
    table = pa.table({"id": rng.integers(0, 1 << 62, _ROWS), "text": [f"text {n % 1000}" for n in range(_ROWS)]})
    sketch = {"id": {"ndv": _ROWS // _GROUPS, "fpp": 0.01}}
    group = _ROWS // _GROUPS
    ways: dict[str, Callable[[Path], object]] = {
        "Parquet with filters": lambda path: pq.write_table(
            table, path, row_group_size=group, bloom_filter_options=sketch
        ),
        "Parquet without": lambda path: pq.write_table(table, path, row_group_size=group),
        "ORC with filters": lambda path: orc.write_table(
            table, path, bloom_filter_columns=[0], bloom_filter_fpp=0.01
        ),
        "ORC without": lambda path: orc.write_table(table, path),
        "Mosaic without": lambda path: _write_mosaic(table, path),
    }
    found = []
    for name, write in ways.items():
        lake = folder / name
        lake.mkdir()
        for file in range(_FILES):
            write(lake / f"{file}.{name.split()[0].lower()}")
        wall = cpu = float("inf")
        for _ in range(repeat):
            started, used = time.perf_counter(), _used()
            report = bloomcli.index_build(lake, ["id"], output=folder / f"{name}.idx", overwrite=True, jobs=1)
            wall, cpu = min(wall, time.perf_counter() - started), min(cpu, _used() - used)
        found.append(Build(name, report.row_groups, report.bytes_decoded, report.bytes or 0, wall, cpu))
    return found


def _write_mosaic(table: pa.Table, path: Path) -> None:
    import mosaic

    with path.open("wb") as opened, mosaic.MosaicWriter(opened, table.schema, mosaic.WriterOptions()) as rows:
        for batch in table.to_batches(_ROWS // _GROUPS):
            rows.write(batch)


def _used() -> float:
    """Processor seconds of this process and of its ended children."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def report(lookups: list[Figures], built: list[Build], repeat: int, load: str) -> str:
    """RESULTS-INDEX.md."""
    lines = [
        "# Results, index",
        "",
        f"Written by `python benchmarks/index.py`: the best of {repeat} rounds, warm page cache, one core.",
        "",
        f"Filters with random values at a rate of about 0.01, row groups in files of {_GROUPS}. One value: the index",
        "is opened and read, too.",
        "",
        "| row groups | size of a filter | index | written | one value | bytes read | reads | values | any of them |"
        " checks a second | memcpy of the rows |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {f.row_groups:,} | {f.filter_bytes >> 10} KiB | {f.index_bytes >> 20} MiB | {f.build_seconds:.2f} s |"
        f" {f.single_ms:.1f} ms | {f.single_bytes / 1e3:.0f} kB | {f.single_reads} | {f.values:,} |"
        f" {f.any_seconds:.2f} s | {f.checks_per_second / 1e6:,.0f} M |"
        f" {f.memcpy_checks_per_second / 1e6:,.0f} M |"
        for f in lookups
    ]
    lines += [
        "",
        f"`index build -c id` of {_FILES} files with {_ROWS:,} random integers each, {_GROUPS} row groups in a file,",
        "and a text column. The writers of ORC and Mosaic files choose larger row groups. Rows",
        "of bits have 16 bytes at least: fewer than 64 row groups take as much as 64. Processor time is that",
        "of this process; Mosaic's decoder is another one, whose time is in the seconds.",
        "",
        "| files | row groups, stripes | read of the column | index | seconds | processor |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {b.name} | {b.row_groups:,} | {b.bytes_decoded / 1e6:.1f} MB | {b.index_bytes / 1e6:.1f} MB |"
        f" {b.seconds:.2f} | {b.processor:.2f} |"
        for b in built
    ]
    lines += ["", "| the machine |  |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in {**machine.machine(), "load": load}.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    before, figures = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory() as directory:
        for row_groups, blocks in _INDEXES:
            path = f"{directory}/lake.bloom-index"
            seconds = build(path, row_groups, blocks)
            values = min(options.values, _CHECKS // row_groups)
            figures.append(lookups(path, values, options.repeat, seconds))
        built = builds(Path(directory), options.repeat)
    text = report(figures, built, options.repeat, f"{before:.1f} before, {os.getloadavg()[0]:.1f} after")
    (Path(__file__).parent / "RESULTS-INDEX.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
