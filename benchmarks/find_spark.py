"""Measures `bloomcli.spark.find`: a lookup of many ids, compared with Spark's broadcast join, and the time and memory
for millions of values.

    python benchmarks/find_spark.py [--files 60] [--rounds 2] [--many-values 10000000] [--many-files 10000]
                                    [--folder DIR]

Two lakes are searched for 40,000 ids, of which some or all exist. The benchmark lake is that of `find.py`: 1,000
files with 10 row groups of 10,000 rows, 6 columns, Snappy, filters with a rate of one in 100. For 40,000 absent ids,
such a filter has 400 false positives. The lake of large row groups has files of 10 columns and one row group of
700,000 rows, zstd, and filters with a rate of one in a million. If all ids exist, every row group has hundreds,
so that no page can be skipped.

`find` and the join run in turns in one session, `local[2]`, that has run both before; both return whole rows, and
then only the column `id`. Processor seconds are those of all processes of the session. The minimum is measured
in the same run: the time to read and to decompress the pages. The last figure's files have two columns and one row
group of 1,000 rows, with filters for a rate of one in a billion; 0 values skip it.
Writes RESULTS-FIND-SPARK.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

import data  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from machine import machine, rounds  # noqa: E402

from bloomcli import spark as bloom_spark  # noqa: E402
from bloomcli.formats.parquet import codecs, pages  # noqa: E402
from bloomcli.storage.registry import open_source  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDS: Final = 40_000
PRESENT: Final = (40, IDS)
"""The number of ids in the lake."""
ROWS: Final = 700_000
LAKE_FILES: Final = 1_000
"""Files of the benchmark lake."""
LEAST_BYTES: Final = 200 << 20
"""The number of files whose pages are decompressed. All files have the same layout."""
MANY_ROWS: Final = 1_000
"""Rows of a file, which has one row group."""
MANY_STEP: Final = 10_000
"""One row in this many has one of the millions of values."""
FPP: Final = 1e-6
MANY_FPP: Final = 1e-9
MEMORY: Final = "1g"
"""The memory of the session's Java process, which is driver and executors."""
RESULTS: Final = HERE / "RESULTS-FIND-SPARK.md"


def id_of(numbers: np.ndarray) -> np.ndarray:
    """Distinct ids from all files."""
    return numbers * 1_000_003 % (1 << 40)


def lake(folder: Path, files: int, rows: int = ROWS, fpp: float = FPP) -> Path:
    """The lake; made if it doesn't exist."""
    place = folder / f"lake-{files}-{rows}"
    if place.exists():
        return place
    partial = folder / f"lake-{files}-{rows}.partial"
    partial.mkdir(parents=True, exist_ok=True)
    rest = data._batch(np.random.default_rng(17), 0, rows)
    if rows == MANY_ROWS:
        rest = rest.select(["id", "status"])
    for number in range(files):
        ids = id_of(np.arange(number * rows, (number + 1) * rows, dtype=np.int64))
        pq.write_table(
            rest.set_column(0, "id", pa.array(ids)),
            partial / f"{number:05}.parquet",
            row_group_size=rows,
            compression="zstd",
            write_page_index=True,
            bloom_filter_options={"id": {"ndv": rows, "fpp": fpp}},
        )
    return partial.rename(place)


def ids_of_rows(files: int, present: int) -> np.ndarray:
    """40,000 ids: some are in files with large row groups, the others aren't."""
    random = np.random.default_rng(5)
    rows = files * ROWS
    here = id_of(random.choice(rows, present, replace=False).astype(np.int64))
    return np.concatenate([here, id_of(np.arange(rows + 1, rows + 1 + IDS - present, dtype=np.int64))])


def ids_of_lake(present: int) -> np.ndarray:
    """40,000 ids, of which a number is spread over the benchmark lake; the others are random."""
    random = np.random.default_rng(1 << 40)  # differs from the seeds of the files
    whole = data.LAKE_GROUPS * data.LAKE_ROWS
    chosen = np.sort(random.choice(LAKE_FILES * whole, present, replace=False))
    here = [data.lake_ids(int(file))[chosen[chosen // whole == file] % whole] for file in np.unique(chosen // whole)]
    return np.concatenate([*here, random.integers(0, 1 << 60, IDS - present)])


def wanted(spark: SparkSession, ids: np.ndarray) -> DataFrame:
    """A frame of ids."""
    return spark.createDataFrame(pa.table({"wanted": ids})).cache()


class Took(NamedTuple):
    """The wall-clock and processor seconds of a way."""

    seconds: float
    processor: float


def measured(work: Callable[[], int]) -> tuple[Took, int]:
    """Its seconds and its rows."""
    started, before = time.perf_counter(), processor_seconds()
    found = work()
    return Took(time.perf_counter() - started, processor_seconds() - before), found


def counted(frame: DataFrame) -> int:
    """The number of rows of a frame whose columns are all computed.

    The hashes are summed: Spark turns `count(hash(...))`, which is never null, into `count(1)`, and then a join
    reads only the column that it joins on.
    """
    from pyspark.sql.functions import count, hash, lit, sum  # noqa: A004

    return int(frame.select(count(lit(1)), sum(hash(*frame.columns))).collect()[0][0])


def compared(
    spark: SparkSession, place: Path, ids: np.ndarray, present: int, repeat: int, columns: Sequence[str]
) -> dict[str, Took]:
    """The costs of both ways, in turns, for rows of these columns; without columns, of all."""
    from pyspark.sql.functions import broadcast

    values = wanted(spark, ids)
    values.count()

    def by_bloom() -> int:
        return counted(bloom_spark.find(spark, str(place), values, column="id", select=columns))

    def by_join() -> int:
        table = spark.read.parquet(str(place))
        return counted(table.select(*columns or "*").join(broadcast(values), table.id == values.wanted))

    ways = {"bloom_spark.find": by_bloom, "broadcast join": by_join}
    took: dict[str, list[Took]] = {way: [] for way in ways}
    for turn in range(repeat + 1):
        for way in sorted(ways, reverse=bool(turn % 2)):
            one, rows = measured(ways[way])
            assert rows == present, (way, rows)
            print(f"{present} present, {columns or 'all columns'}, round {turn}, {way}: {one}", flush=True)
            if turn:
                took[way].append(one)
    values.unpersist()
    return {way: Took(*map(statistics.median, zip(*found, strict=True))) for way, found in took.items()}


def _resident(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("VmRSS")), 0)


def _below(pid: int) -> Iterator[int]:
    """The descendants of a process."""
    try:
        children = [int(p) for task in Path(f"/proc/{pid}/task").iterdir()
                    for p in (task / "children").read_text().split()]  # fmt: skip
    except OSError:
        return
    for child in children:
        yield child
        yield from _below(child)


class _Processor(threading.Thread):
    """Processor seconds of this process and its descendants. The seconds of Spark's workers are lost when they end,
    so processes are sampled ten times per second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ticks: dict[tuple[int, str], int] = {}
        self.start()

    def run(self) -> None:
        """Sample the processes."""
        while True:
            self.look()
            time.sleep(0.1)

    def look(self) -> float:
        """The seconds until now."""
        for pid in (os.getpid(), *_below(os.getpid())):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])
        return sum(list(self._ticks.values())) / os.sysconf("SC_CLK_TCK")


_PROCESSOR: Final = _Processor()


def processor_seconds() -> float:
    """Processor seconds of this process and its descendants, including ended ones."""
    return _PROCESSOR.look()


@contextmanager
def watched() -> Iterator[dict[str, int]]:
    """The greatest resident bytes of this process, of Java, and of each Python worker."""
    peaks = {"driver's Python": 0, "Java": 0, "a Python worker": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peaks["driver's Python"] = max(peaks["driver's Python"], _resident(os.getpid()))
            for pid in _below(os.getpid()):
                try:
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                except OSError:
                    continue
                key = "Java" if name == "java" else "a Python worker"
                peaks[key] = max(peaks[key], _resident(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def many(spark: SparkSession, place: Path, files: int, count: int) -> dict[str, Any]:
    """Seconds and memory for millions of values."""
    from pyspark.sql.functions import col

    values = spark.range(count).select((col("id") * MANY_STEP * 1_000_003 % (1 << 40)).alias("wanted"))
    with watched() as peaks:
        took, found = measured(
            lambda: bloom_spark.find(spark, str(place), values, column="id", select=["id"]).count()
        )
    assert found == min(-(-files * MANY_ROWS // MANY_STEP), count), found
    return {"seconds": took.seconds, "processor": took.processor, "rows": found, **peaks}


def least(place: Path, columns: Sequence[str]) -> float:
    """Processor seconds to read and to decompress the pages of columns (none: of all). This is the minimum for `find`
    if each page has a row to find."""
    files, done, looked_at, whole = sorted(place.iterdir()), 0, 0, 0.0
    for file in files:
        metadata = pq.ParquetFile(file).metadata
        with open_source(str(file)) as source:
            for group in range(metadata.num_row_groups):
                for number in range(metadata.num_columns):
                    chunk = metadata.row_group(group).column(number)
                    if not columns or chunk.path_in_schema in columns:
                        whole += _least_of(source, chunk)
        done, looked_at = done + file.stat().st_size, looked_at + 1
        if done >= LEAST_BYTES:
            break
    return whole * len(files) / looked_at


def _least_of(source: Any, chunk: Any) -> float:
    """The same for a chunk."""
    started = time.process_time()
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    packed, done = source.read_at(at, chunk.total_compressed_size), 0
    whole = time.process_time() - started
    while done < len(packed):
        header = pages.parse(packed, done, len(packed))
        done += header.size
        size = header.required("compressed_page_size")
        page = memoryview(packed)[done : done + size]
        started = time.process_time()
        codecs.decompress(chunk.compression, page, header.required("uncompressed_page_size"))
        whole += time.process_time() - started
        done += size
    return whole


def scan(spark: SparkSession, place: Path) -> Took:
    """Spark's cost of reading all columns: the minimum for a join of whole rows."""
    from pyspark.sql.functions import count, lit

    def read() -> int:
        table = spark.read.parquet(str(place))
        return int(table.agg(count(lit(1)), *(count(column) for column in table.columns)).collect()[0][0])

    return measured(read)[0]


def session(folder: Path) -> SparkSession:
    """The measured session."""
    from pyspark.sql import SparkSession
    from support.engines import java_home

    os.environ["JAVA_HOME"] = str(java_home(folder, short=True))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", MEMORY).config("spark.local.dir", str(folder / "spark"))
    return builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR").getOrCreate()


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--many-values", type=int, default=10_000_000)
    parser.add_argument("--many-files", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    lines = ["# Find on Spark: results", "", *(f"- {key}: {value}" for key, value in machine().items()), ""]
    with tempfile.TemporaryDirectory() as temporary:
        folder, files = given.folder or Path(temporary), given.files
        small = (
            f"{LAKE_FILES:,} files with {data.LAKE_GROUPS} row groups of {data.LAKE_ROWS:,} rows, 6 columns, Snappy"
        )
        large = f"{files:,} files with one row group of {ROWS:,} rows, 10 columns, zstd"
        lakes = (
            (f"The benchmark lake: {small}", data.lake(folder, LAKE_FILES), ids_of_lake),
            (f"Large row groups: {large}", lake(folder, files), lambda present: ids_of_rows(files, present)),
        )
        for title, place, ids in lakes:
            spark = session(Path(temporary))
            took = {
                (present, columns): compared(spark, place, ids(present), present, given.rounds, columns)
                for columns in ((), ("id",))
                for present in PRESENT
            }
            lines += _compared(
                title, given.rounds, took, {c: least(place, c) for c in ((), ("id",))}, scan(spark, place)
            )
            spark.stop()
        if given.many_values:
            place = lake(folder, given.many_files, MANY_ROWS, MANY_FPP)
            spark = session(Path(temporary))
            found = many(spark, place, given.many_files, given.many_values)
            lines += _many(given.many_values, given.many_files, found)
            spark.stop()
    RESULTS.write_text("\n".join(lines))


def _compared(
    title: str,
    repeat: int,
    ways: dict[tuple[int, tuple[str, ...]], dict[str, Took]],
    pages: dict[tuple[str, ...], float],
    whole: Took,
) -> list[str]:
    lines = [
        f"## {title}",
        "",
        f"{IDS:,} ids, `local[2]`, {MEMORY} for Java, median of {rounds(repeat)}, load {os.getloadavg()[1]:.0f}.",
        "",
        "| ids in the lake | columns | find | broadcast join | times as fast | processor seconds | of least |",
        "|---|---|---|---|---|---|---|",
    ]
    for (present, columns), took in ways.items():
        mine, other = took["bloom_spark.find"], took["broadcast join"]
        floor = f"{mine.processor / pages[columns]:.1f} times {pages[columns]:.2f} s" if present == IDS else ""
        lines.append(
            f"| {present:,} | {', '.join(columns) or 'all'} | {mine.seconds:.2f} s | {other.seconds:.2f} s |"
            f" {other.seconds / mine.seconds:.1f} | {mine.processor:.2f} s against {other.processor:.2f} s,"
            f" {other.processor / mine.processor:.1f} times | {floor} |"
        )
    lines += [
        "",
        "Least: the processor seconds to read and to decompress the pages of these columns, once each,",
        "with cramjam or zstandard.",
        f"Spark's scan of all columns takes {whole.seconds:.1f} s and {whole.processor:.1f} processor seconds.",
        "",
    ]
    return lines


def _many(values: int, files: int, found: dict[str, Any]) -> list[str]:
    seconds, processor, rows = (found.pop(name) for name in ("seconds", "processor", "rows"))
    return [
        f"{values:,} values against {files:,} files ({values * files:,} checks of a value in a row group), of which"
        f" {rows:,} rows have one: {seconds:.0f} s, {processor:.0f} processor seconds. Greatest resident memory:",
        "",
        *(f"- {what}: {size / 2**20:,.0f} MiB" for what, size in found.items()),
        "",
    ]


if __name__ == "__main__":
    main()
