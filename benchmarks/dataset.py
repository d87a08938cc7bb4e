"""Compares `bloom add` of many files with rewrites: the local engine with 1 and 2 jobs, Spark with 1 and 2 cores,
and the rewrites of DataFusion (arrow-rs) and Spark.

    python benchmarks/dataset.py [--scale 1.0] [--rounds 3] [--rewrites 1] [--column id] [--folder DIR]

There are 200 files of 5 MB and 4 files of 400 MB (times the scale: fewer small files, smaller large ones), and
10,000 small files to inspect. The programs take turns, each round in another order; Spark's rewrites, which
take longest, run in the first rounds only. `bloom`, `cp` and DataFusion's rewrite are whole commands, Python's
start included. Spark's sessions have run a job before they are measured, and the Spark engine is compared with
the local engine's seconds of the work, without Python's start. `bloom` flushes each file to the disk before it
renames it; Spark doesn't.

`cp` and `sync` of each file, one at a time and two at a time, show how much of the disk's speed a second job can use.
The large files are also copied to memory, if there is room, where the disk has no influence. Writes
RESULTS-DATASET.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

import data  # noqa: E402
import ways  # noqa: E402
from machine import machine  # noqa: E402
from run import Target, delete  # noqa: E402
from ways import FPP, environment  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_A_MEGABYTE: Final = 20_000
SMALL: Final = (200, 5)
LARGE: Final = (4, 400)
INSPECTED: Final = 10_000
OUT: Final = "out"
RESULTS: Final = HERE / "RESULTS-DATASET.md"
MEMORY: Final = Path("/dev/shm")
LOCAL: Final = (
    "bloom, 1 job",
    "bloom, 2 jobs",
    "bloom, 1 job on 1 core",
    "cp and sync, one at a time",
    "cp and sync, two at a time",
    "DataFusion's rewrite, all cores",
)
WAYS: Final = (
    "bloom, 1 job",
    "bloom, 2 jobs",
    "Spark engine, local[1]",
    "Spark engine, local[2]",
    "Spark's rewrite, local[1]",
    "Spark's rewrite, local[2]",
)


@dataclass
class Set:
    """A dataset, and the rounds of each way in seconds."""

    title: str
    folder: Path
    rows: int
    output: Path
    spark: bool = True
    """Whether Spark also processes its files."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of whole commands, or of the work on Spark."""
    inside: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of the local engine's work, without Python's start."""
    cpu: dict[str, list[float]] = field(default_factory=dict)
    """Processor seconds of the local ways, Python's start included."""


def make(folder: Path, files: int, megabytes: float) -> Set:
    """A file and its copies, which have separate blocks on the disk."""
    rows = round(megabytes * ROWS_A_MEGABYTE)
    folder.mkdir(parents=True)
    first = data.ordinary(folder, rows)
    first = first.rename(folder / "00000.parquet")
    for i in range(1, files):
        shutil.copyfile(first, folder / f"{i:05}.parquet")
    size = first.stat().st_size / 1e6
    return Set(f"{files} files of {size:.0f} MB", folder, rows, folder.parent / OUT)


def in_memory(dataset: Set, folder: Path) -> Set:
    """The same files in memory."""
    place = folder / dataset.folder.name
    shutil.copytree(dataset.folder, place)
    return Set(f"{dataset.title}, in memory", place, dataset.rows, folder / OUT, spark=False)


def room_in_memory(dataset: Set) -> bool:
    """Whether the files and their copies fit, and leave half of the space free."""
    need = sum(f.stat().st_size for f in dataset.folder.iterdir())
    return MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 * need


def settle() -> None:
    """Flush all data, so that nothing remains to be written when a way starts."""
    subprocess.run(["sync"], check=True)


def locally(command: str, folder: Path, *args: object, cores: set[int] | None = None) -> dict[str, Any]:
    """Run `bloom` as a process, and return its report."""
    argv = [sys.executable, "-m", "bloomcli", command, folder, *args, "--format", "json"]
    done = subprocess.run(
        list(map(str, argv)),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=None if cores is None else partial(os.sched_setaffinity, 0, cores),
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def jobs(dataset: Set, way: str, count: int, column: str, cores: set[int] | None = None) -> float:
    """Seconds of `bloom add` with the local engine, from start to end."""
    args = ("--columns", column, "--fpp", FPP, "-o", dataset.output, "--jobs", count)
    started = time.perf_counter()
    report = locally("add", dataset.folder, *args, cores=cores)
    seconds = time.perf_counter() - started
    dataset.inside.setdefault(way, []).append(float(report["seconds"]))
    return seconds


def arrow_rs(dataset: Set, column: str) -> float:
    """Seconds of a process that rewrites file after file with DataFusion, each on all cores."""
    return ways.run(
        ways.command("datafusion", dataset.folder, dataset.output, column, -(-dataset.rows // data.GROUPS))
    )[0]


def copies(dataset: Set, side_by_side: int) -> float:
    """Seconds of `cp` and `sync` of each file."""
    files = sorted(map(str, dataset.folder.iterdir()))
    dataset.output.mkdir()
    script = 'to=$1; shift; for f in "$@"; do cp "$f" "$to" && sync "$to/${f##*/}" || exit 1; done'
    parts = [files[i::side_by_side] for i in range(side_by_side)]
    started = time.perf_counter()
    running = [subprocess.Popen(["sh", "-c", script, "sh", str(dataset.output), *part]) for part in parts]
    codes = [process.wait() for process in running]
    seconds = time.perf_counter() - started
    if any(codes):
        raise SystemExit("cp or sync failed")
    return seconds


def used() -> float:
    """Processor seconds of the processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def session(folder: Path, cores: int) -> Iterator[SparkSession]:
    """A session with this number of cores, and memory for its rewrites."""
    from support.engines import start_spark

    started = start_spark(folder, f"local[{cores}]")
    try:
        yield started
    finally:
        started.stop()


def engine(spark: SparkSession, dataset: Set, output: Path, column: str) -> float:
    """Seconds of the Spark engine."""
    from bloomcli.commands.options import AddOptions
    from bloomcli.datasets.engine import choose_engine, plan_files

    started = time.perf_counter()
    chosen = choose_engine(session=spark)
    options = AddOptions(columns=(column,), fpp=FPP, output=output)
    report = chosen.run(plan_files(chosen, [str(dataset.folder)], options))
    seconds = time.perf_counter() - started
    if report.done != report.files:
        raise SystemExit(f"only {report.done} of {report.files} files were done")
    return seconds


def rewrite(spark: SparkSession, dataset: Set, output: Path, column: str) -> float:
    """Seconds of Spark's own rewrite, with the filter."""
    started = time.perf_counter()
    (
        spark.read.parquet(str(dataset.folder))
        .write.option("compression", "zstd")
        .option(f"parquet.bloom.filter.enabled#{column}", "true")
        .option(f"parquet.bloom.filter.expected.ndv#{column}", str(dataset.rows))
        .option(f"parquet.bloom.filter.fpp#{column}", str(FPP))
        .option("parquet.bloom.filter.max.bytes", str(128 << 20))
        .parquet(str(output))
    )
    return time.perf_counter() - started


def measure(sets: list[Set], folder: Path, rounds: int, rewrites: int, column: str) -> None:
    """Run all ways in turns."""

    def once(dataset: Set, way: str, work: Callable[[], float]) -> None:
        settle()
        before = used()
        seconds = work()
        dataset.seconds.setdefault(way, []).append(seconds)
        if way in LOCAL:
            dataset.cpu.setdefault(way, []).append(used() - before)
        print(f"{dataset.title}: {way}: {seconds:.2f} s", flush=True)
        delete(dataset.output)

    warm = make(folder / "warm", 4, 1)
    output = warm.output
    one_core = {min(os.sched_getaffinity(0))}
    alone: list[Callable[[Set], float]] = [
        lambda d: jobs(d, LOCAL[0], 1, column),
        lambda d: jobs(d, LOCAL[1], 2, column),
        lambda d: jobs(d, LOCAL[2], 1, column, one_core),
        lambda d: copies(d, 1),
        lambda d: copies(d, 2),
        lambda d: arrow_rs(d, column),
    ]

    def local_turn(turn: int) -> None:
        pairs = list(zip(LOCAL, alone, strict=True))
        for dataset in sets:
            for way, work in pairs[:: -1 if turn % 2 else 1]:
                once(dataset, way, partial(work, dataset))

    def spark_turn(cores: int, works: list[tuple[str, Callable[..., float]]]) -> None:
        with session(folder / f"spark{cores}", cores) as spark:
            for _, work in works:
                work(spark, warm, output, column)
                delete(output)
            for dataset in sets:
                for title, work in works if dataset.spark else []:
                    once(dataset, title, partial(work, spark, dataset, dataset.output, column))

    jobs(warm, LOCAL[1], 2, column)
    delete(output)
    for i in range(rounds):
        turns: list[Callable[[], None]] = [partial(local_turn, i)]
        for cores in (1, 2):
            works: list[tuple[str, Callable[..., float]]] = [(WAYS[1 + cores], engine)]
            works += [(WAYS[3 + cores], rewrite)] if i < rewrites else []
            turns.append(partial(spark_turn, cores, works))
        for turn in turns[i % 3 :] + turns[: i % 3]:
            turn()


def inspect(folder: Path, files: int, rounds: int) -> list[float]:
    """Files a second, of small files with filters."""
    import bloomcli

    lake = folder / "inspected"
    dataset = make(lake, 1, 0.005)
    first = dataset.folder / "00000.parquet"
    bloomcli.add(first, ["id", "uuid"], in_place=True)
    for i in range(1, files):
        place = lake / f"part={i % 100}"
        place.mkdir(exist_ok=True)
        shutil.copyfile(first, place / f"{i:05}.parquet")
    settle()
    rates = []
    for _ in range(rounds):
        report = locally("inspect", lake)
        rates.append(report["files"] / report["seconds"])
        print(f"inspect: {rates[-1]:,.0f} files/s", flush=True)
    return rates


def ratio(above: list[float], below: list[float]) -> float:
    """Ratio of medians: ways may have different numbers of rounds."""
    return statistics.median(above) / statistics.median(below)


def targets(sets: list[Set], rates: list[float]) -> list[Target]:
    """The targets and the figures."""
    one, two, engine1, engine2, spark1, spark2 = WAYS
    found = []
    alone = LOCAL[2:]
    for s in sets:
        t, inside = s.seconds, s.inside
        peer = ratio(t[LOCAL[5]], t[two])
        found.append(Target(s.title, peer, "×", 5, True, "2 jobs faster than DataFusion's rewrite, whole commands"))
        of_one_core, of_copies = (ratio(t[a], t[b]) for a, b in ((alone[0], two), (alone[1], alone[2])))
        note = f"2 jobs faster than 1 ({of_one_core:.2f}× than 1 on 1 core; `cp` and `sync`: {of_copies:.2f}×)"
        second_job = Target(s.title, ratio(t[one], t[two]), "×", 1.6, True, note)
        if not s.spark:
            found.append(second_job)
            continue
        found += [
            Target(s.title, ratio(*pair), "×", limit, at_least, f"Spark engine {what}")
            for limit, at_least, what, pair in (
                (5, True, "faster than Spark's rewrite, 1 core", (t[spark1], t[engine1])),
                (5, True, "faster than Spark's rewrite, 2 cores", (t[spark2], t[engine2])),
                (1.3, False, "relative to the local one, 1 core", (t[engine1], inside[one])),
                (1.3, False, "relative to the local one, 2 cores", (t[engine2], inside[two])),
            )
        ]
        found.append(second_job)
    rate = statistics.median(rates)
    return [*found, Target("inspect", rate, " files/s", 500, True, "small files, all cores")]


def spread(values: list[float] | None) -> str:
    """Median and range."""
    return "" if not values else f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def table(rows: list[list[str]]) -> str:
    """A Markdown table with even columns; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def report(sets: list[Set], rates: list[float], args: argparse.Namespace, load: str) -> str:
    """RESULTS-DATASET.md."""
    head = ["", *(s.title for s in sets)]
    body = [[way, *(spread(s.seconds.get(way)) for s in sets)] for way in dict.fromkeys((*LOCAL, *WAYS))]
    cpu = [[way, *(spread(s.cpu.get(way)) for s in sets)] for way in LOCAL]
    after = Path("/proc/loadavg").read_text().split()[1] if Path("/proc/loadavg").exists() else "unknown"
    facts = {**machine(), "load average before": load, "load average at the end, of 5 minutes": after}
    found = targets(sets, rates)
    return f"""# Results for datasets

Written by `python benchmarks/dataset.py --scale {args.scale:g} --rounds {args.rounds} --rewrites {args.rewrites}`.

The table compares `bloom add` of a 1% filter for the column `{args.column}` (10 columns, zstd) with the
rewrites of the same files by DataFusion and by Spark, with that filter. Seconds are the median and the range:
of whole commands, and on Spark of the work in sessions that have run a job before. The Spark engine is compared
with the local engine's seconds of the work, without Python's start. The page cache is warm. `bloom` flushes
each file to the disk before it renames it; the rewrites don't. The files of a set are copies of one file.

One job uses more than one core, because columns are decoded while bytes are copied. A second job can only use
what is left of the cores and of the disk. To show how much that is, the tables include a job on one core, and
`cp` with `sync` of each file, one at a time and two at a time.

{table([["machine", ""], *([k, v] for k, v in facts.items())])}

## Targets

{table([["what", "target", "figure", "verdict", ""], *(t.row() for t in found)])}

## Seconds

{table([head, *body])}

## Processor seconds

These figures include Python's start. They depend least on other load on the machine.

{table([head, *cpu])}

`bloom inspect` of {args.inspected:,} small files with two filters each: {statistics.median(rates):,.0f} files/s.
"""


def main() -> None:
    """Make the files, run all ways, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rewrites", type=int, default=1)
    parser.add_argument("--column", default="id")
    parser.add_argument("--folder", type=Path, help="where the files go; a temporary directory by default")
    args = parser.parse_args()
    args.inspected = max(round(INSPECTED * min(args.scale * 4, 1)), 100)
    load = Path("/proc/loadavg").read_text().split()[0] if Path("/proc/loadavg").exists() else "unknown"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.folder, prefix="bloom-dataset-")))
        sets = [
            make(folder / "small", max(round(SMALL[0] * args.scale), 4), SMALL[1]),
            make(folder / "large", LARGE[0], LARGE[1] * args.scale),
        ]
        if room_in_memory(sets[1]):
            memory = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY, prefix="bloom-dataset-"))
            sets.append(in_memory(sets[1], Path(memory)))
        rates = inspect(folder, args.inspected, args.rounds)
        measure(sets, folder, args.rounds, max(args.rewrites, 1), args.column)
    RESULTS.write_text(report(sets, rates, args, load))
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
