"""Times `bloom find` of one value in 1,000 files, and of a million values in 1,000 row groups.

    python benchmarks/find.py [--files 1000] [--repeat 5] [--folder DIR] [--no-spark]

The peers are DuckDB and Spark, which use the same filters for the same query: `SELECT * ... WHERE id = VALUE`. The
programs take turns. Bytes are those of the lake's files: for `bloom` and DuckDB by strace, in a run that isn't timed;
for Spark what its JVM reads (rchar in /proc/PID/io) during a query, after two others. Writes RESULTS-FIND.md.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

import data  # noqa: E402
import duckdb  # noqa: E402
import find_kernel  # noqa: E402
import ways  # noqa: E402
from machine import machine, rounds  # noqa: E402

import bloomcli  # noqa: E402

VALUES: Final = 1_000_000
_HITS: Final = 40
_FILES_OF_MANY: Final = 100
_METADATA: Final = "SELECT * FROM parquet_metadata('{folder}/*.parquet')"
_SQL: Final = "SELECT * FROM '{folder}/*.parquet' WHERE id = {value}"
_READ: Final = re.compile(r"^(?:read|pread64|readv|preadv)\(\d+<([^>]*)>.*= (\d+)$")


class Round(NamedTuple):
    """The seconds of one run."""

    wall: float
    processor: float


@dataclass
class Way:
    """A program, its task, and its rounds."""

    title: str
    run: Callable[[], Round]
    bytes_read: int | None = None
    rounds: list[Round] = field(default_factory=list)

    def wall(self) -> float:
        """The median."""
        return statistics.median(one.wall for one in self.rounds)

    def processor(self) -> float:
        """The median."""
        return statistics.median(one.processor for one in self.rounds)

    def cells(self) -> list[str]:
        """For the table."""
        walls = [one.wall for one in self.rounds]
        size = "" if self.bytes_read is None else f"{self.bytes_read / 1e6:,.1f} MB"
        return [
            self.title,
            f"{self.wall():.3f} ({min(walls):.3f} to {max(walls):.3f})",
            f"{self.processor():.3f}",
            size,
        ]


class Target(NamedTuple):
    """A figure and its limit."""

    title: str
    figure: float
    unit: str
    bound: float
    at_least: bool

    def cells(self) -> list[str]:
        """For the table."""
        met = self.figure >= self.bound if self.at_least else self.figure <= self.bound
        bound = f"{'at least' if self.at_least else 'at most'} {self.bound:g}{self.unit}"
        return [self.title, f"{self.figure:.2f}{self.unit}", bound, "met" if met else "**missed**"]


def _processor(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def command(argv: list[str]) -> Callable[[], Round]:
    """A whole command, Python's start included."""

    def run() -> Round:
        before, started = _processor(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(argv, env=ways.environment(), stdout=subprocess.DEVNULL, check=False)
        wall = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {' '.join(argv)}")
        return Round(wall, _processor(resource.RUSAGE_CHILDREN) - before)

    return run


def call(work: Callable[[], object]) -> Callable[[], Round]:
    """A call in this process, which has imported all modules."""

    def run() -> Round:
        before, started = _processor(resource.RUSAGE_SELF), time.perf_counter()
        work()
        return Round(time.perf_counter() - started, _processor(resource.RUSAGE_SELF) - before)

    return run


def bytes_of(argv: list[str], folder: Path) -> int | None:
    """Bytes of a folder's files that a command reads; None without strace."""
    if shutil.which("strace") is None:
        return None
    with tempfile.TemporaryDirectory() as traces:
        trace = ["strace", "-ff", "-y", "-e", "trace=read,pread64,readv,preadv", "-o", f"{traces}/t", *argv]
        subprocess.run(
            trace, env=ways.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        total = 0
        for path in Path(traces).iterdir():
            with path.open(errors="replace") as lines:
                found = (_READ.match(line) for line in lines)
                total += sum(int(m[2]) for m in found if m and m[1].startswith(f"{folder}/"))
    return total


def bloom(*arguments: object) -> list[str]:
    """A command line of `bloom find`."""
    return ways.python("-m", "bloomcli", "find", *map(str, arguments), "-c", "id", "-q")


class Spark:
    """A session that has run the query twice."""

    def __init__(self, folder: Path, lake: Path, value: int) -> None:
        from support.engines import start_spark

        self.session = start_spark(folder / "spark")
        self._lake, self._value = lake, value
        pid = self.session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        self._process = Path(f"/proc/{pid}")
        self.rows()
        self.rows()

    def rows(self) -> object:
        """The query."""
        found = self.session.read.parquet(str(self._lake)).where(f"id = {self._value}").collect()
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} rows")
        return found

    def _ticks(self) -> float:
        fields = (self._process / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _read(self) -> int:
        return int((self._process / "io").read_text().split()[1])

    def run(self) -> Round:
        """One query: its wall time, and the JVM's processor time."""
        before, started = self._ticks(), time.perf_counter()
        self.rows()
        return Round(time.perf_counter() - started, self._ticks() - before)

    def bytes_read(self) -> int:
        """The bytes that the JVM reads for a query."""
        before = self._read()
        self.rows()
        return self._read() - before

    def stop(self) -> None:
        """End the session."""
        self.session.stop()


def one_value(lake: Path, value: int, index: Path | None, spark: Spark | None) -> dict[str, Way]:
    """The ways to find one value."""
    sql = _SQL.format(folder=lake, value=value)
    query = ways.python("-c", f"import duckdb; duckdb.connect().execute({sql!r}).fetchall()")
    connection = duckdb.connect()
    lines = {"maybe": bloom(value, lake, "--maybe"), "rows": bloom(value, lake, "--format", "jsonl")}
    indexed = None
    if index is not None:
        indexed = Way(
            "`bloomcli.find`, a call, index",
            call(lambda: list(bloomcli.find(lake, value, column="id", index=index))),
        )
        lines |= {f"{name}, index": [*line, "--index", str(index)] for name, line in lines.items()}
    found = {
        name: Way(
            f"`bloom find{' --maybe' * name.startswith('maybe')}`{', index' * ('index' in name)}", command(line)
        )
        for name, line in lines.items()
    }
    found["duckdb"] = Way("DuckDB", command(query))
    found["call"] = Way("`bloomcli.find`, a call", call(lambda: list(bloomcli.find(lake, value, column="id"))))
    if indexed is not None:
        found["call, index"] = indexed
    found["duckdb call"] = Way("DuckDB, a call", call(lambda: connection.execute(sql).fetchall()))
    if spark is not None:
        found["spark"] = Way("Spark, session up, third query", spark.run, spark.bytes_read())
    for name, line in {**lines, "duckdb": query}.items():
        found[name].bytes_read = bytes_of(line, lake)
    return found


def all_filters(lake: Path) -> dict[str, Way]:
    """The ways to read all filters: `inspect` reads their bits, DuckDB only their locations."""
    line = ways.python("-m", "bloomcli", "inspect", str(lake))
    sql = _METADATA.format(folder=lake)
    query = ways.python("-c", f"import duckdb; duckdb.connect().execute({sql!r}).fetchall()")
    return {
        "text": Way("`bloom inspect`", command(line)),
        "json": Way("`bloom inspect --format json`", command([*line, "--format", "json"])),
        "duckdb": Way("DuckDB, `parquet_metadata`", command(query)),
    }


def take_turns(every: list[Way], repeat: int) -> None:
    """Run all ways `repeat` times after once to warm up, each round in another order."""
    for turn in range(repeat + 1):
        at = turn % len(every)
        for way in every[at:] + every[:at]:
            found = way.run()
            if turn:
                way.rounds.append(found)


def ratio(above: Way, below: Way, *, processor: bool = False) -> float:
    """The median of the rounds' ratios."""
    name = "processor" if processor else "wall"
    pairs = zip(above.rounds, below.rounds, strict=True)
    return statistics.median(getattr(a, name) / getattr(b, name) for a, b in pairs)


def targets_of(found: dict[str, Way]) -> list[Target]:
    """The figures of one value."""
    rows, peer = found["rows"], found["duckdb"]
    out = [Target("`find --maybe` without index, whole command", found["maybe"].wall(), " s", 3, at_least=False)]
    if "maybe, index" in found:
        figure = found["maybe, index"].wall()
        out.append(Target("`find --maybe` with index, whole command", figure, " s", 0.3, at_least=False))
        rows_by_index = found["rows, index"]
        out.append(
            Target("rows by index: DuckDB's time, whole commands", ratio(peer, rows_by_index), "×", 3, at_least=True)
        )
        call_by_index = found["call, index"]
        out.append(
            Target(
                "rows by index: DuckDB's time, calls",
                ratio(found["duckdb call"], call_by_index),
                "×",
                3,
                at_least=True,
            )
        )
        if "spark" in found:
            out.append(
                Target(
                    "rows by index: Spark's time, calls", ratio(found["spark"], call_by_index), "×", 20, at_least=True
                )
            )
    out += [
        Target("rows: DuckDB's time, whole commands", ratio(peer, rows), "×", 3, at_least=True),
        Target("rows: DuckDB's time, calls", ratio(found["duckdb call"], found["call"]), "×", 3, at_least=True),
    ]
    if rows.bytes_read is not None and peer.bytes_read is not None:
        out.append(Target("rows: share of DuckDB's bytes", rows.bytes_read / peer.bytes_read, "×", 1, at_least=False))
    if "spark" in found:
        spark = found["spark"]
        out.append(Target("rows: Spark's time, calls", ratio(spark, found["call"]), "×", 20, at_least=True))
        out.append(Target("rows: Spark's time, a whole command", ratio(spark, rows), "×", 20, at_least=True))
        if rows.bytes_read is not None and spark.bytes_read is not None:
            out.append(
                Target("rows: share of Spark's bytes", rows.bytes_read / spark.bytes_read, "×", 1, at_least=False)
            )
    return out


def many_values(lake: Path, scratch: Path) -> Way:
    """A million values, of which 40 exist, in 1,000 row groups."""
    import numpy as np

    part = scratch / "part"
    part.mkdir()
    for path in sorted(lake.glob("*.parquet"))[:_FILES_OF_MANY]:
        (part / path.name).symlink_to(path)
    values = np.random.default_rng(20_261_122).integers(0, 1 << 60, VALUES)
    values[:_HITS] = data.lake_ids(_FILES_OF_MANY // 2)[: _HITS * 1000 : 1000]
    file = scratch / "values.txt"
    file.write_text("\n".join(map(str, values)) + "\n")
    paths = [str(path) for path in sorted(part.iterdir())]
    line = ways.python("-m", "bloomcli", "find", "--values-from", str(file), *paths, "-c", "id", "-q")
    return Way(
        f"`bloom find --values-from`, {VALUES:,} values, 1,000 row groups", command([*line, "--format", "csv"])
    )


def index_of(lake: Path, scratch: Path) -> Path | None:
    """An index of the lake; None if this version of `bloom` has no indexes."""
    index = scratch / "lake.bloom-index"
    line = ways.python("-m", "bloomcli", "index", "build", str(lake), "-c", "id", "-o", str(index))
    done = subprocess.run(line, env=ways.environment(), capture_output=True, check=False)
    return index if done.returncode == 0 else None


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of Markdown."""
    return ["", *("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))]


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bloom-benchmarks")
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    lake = data.lake(options.folder.resolve(), options.files)
    value = int(data.lake_ids(options.files // 2)[43_210])
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spark: Any = None if options.no_spark else Spark(scratch, lake, value)
        if spark is not None:
            stack.callback(spark.stop)
        load = os.getloadavg()[0]
        found = one_value(lake, value, index_of(lake, scratch), spark)
        take_turns(list(found.values()), options.repeat)
        inspected = all_filters(lake)
        take_turns(list(inspected.values()), options.repeat)
        many = many_values(lake, scratch)
        take_turns([many], max(options.repeat // 2, 1))
        kernel = find_kernel.measure(VALUES, options.repeat)
    checks = VALUES * _FILES_OF_MANY * data.LAKE_GROUPS
    targets = [
        *targets_of(found),
        *(
            Target(f"{way.title}: of DuckDB's time", ratio(way, inspected["duckdb"]), "×", 1.5, at_least=False)
            for way in (inspected["text"], inspected["json"])
        ),
        Target(
            "checks a second and core, the whole command", checks / many.processor() / 1e6, " M", 50, at_least=True
        ),
        Target("checks a second and core, filters of 16 KiB", kernel[1].millions, " M", 50, at_least=True),
    ]
    facts = {**machine(), "load": f"{load:.1f} before, {os.getloadavg()[0]:.1f} after"}
    lines = [
        "# Results, find",
        "",
        f"Written by `python benchmarks/find.py`: {rounds(options.repeat)}. {options.files:,} files with "
        f"{options.files * data.LAKE_GROUPS:,} row groups",
        f"of {data.LAKE_ROWS:,} rows, 6 columns, filters of 16 KiB on `id`; warm page cache. One row has the value.",
        "Seconds: wall time, median (range), and processor time, median. Ratios are medians of the rounds.",
        f"A check decides one value in one row group. For {VALUES:,} values, more than a row group has rows, the",
        "column is read and no filter is used; the table of filters below measures the filters alone.",
        *table(["figure", "measured", "target", ""], [list(target.cells()) for target in targets]),
        *table(
            ["program", "seconds", "processor", "bytes read"],
            [way.cells() for way in (*found.values(), *inspected.values(), many)],
        ),
        "",
        "A million hashes, looked up in one filter; processor time. To read: a word of each block by NumPy's `take`.",
        *table(find_kernel.HEAD, [row.cells() for row in kernel]),
        *table(["the machine", ""], [list(fact) for fact in facts.items()]),
    ]
    (HERE / "RESULTS-FIND.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
