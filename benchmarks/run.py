"""Compares `bloom add` with other programs: a table of seconds and ratios, and whether the targets are met.

    python benchmarks/run.py [--rows 5000000] [--repeat 5] [--folder DIR] [--quick]

The programs take turns, each round in another order, so that other load on the machine affects all of them
alike. The page cache is warm. Before a program starts, its last output is deleted and all dirty pages are
written, so that no program waits for another's output. `bloom add` flushes its output to the disk before it
renames it (fsync); the others don't, so `cp` is also shown with a `sync` of the copy. Ratios are medians of the
ratios of each round. Writes RESULTS.md and results.json to this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import data  # noqa: E402
import footers  # noqa: E402
import kernels as speeds  # noqa: E402
import ways  # noqa: E402
from machine import machine, rounds  # noqa: E402

import bloomcli  # noqa: E402

COLUMNS: Final = {
    "uuid": "string, all values distinct",
    "id": "int64, all values distinct",
    "status": "string, 1,000 values, dictionary-encoded",
}
FASTER: Final = 6.0
WITHIN: Final = 1.0
HOW: Final = """Written by `python benchmarks/run.py`, which also writes `results.json`.

The programs take turns. Seconds are the wall time of a whole command in a process of its own, from start to end,
also for `cp` and for decoding. For Spark, they are the time of the job in a running session. All targets compare
whole commands. *Inside* excludes the start of the interpreter and the imports. The page cache is warm, and no
written data is waiting to be flushed when a program starts. `bloom add` flushes its output to the disk before it
renames it; the others don't, so `cp` is also shown with a `sync` of the copy. A peer counts only if every row group
that it wrote has the filter. arro3 and ClickHouse write filters for all columns or for none, DuckDB for the columns
that it dictionary-encodes. DataFusion may change the order of the rows."""
_QUICK_ROWS: Final = 200_000
_SPARK_GROUPS: Final = 2  # here it writes a file with one row group per task
_OURS: Final = ("bloom", "call")
_ALONE: Final = ("cp", "cp+sync", "decode")


@dataclass
class Timing:
    """The seconds of one way's rounds. `inside` leaves out the interpreter's start and imports; empty if unknown."""

    wall: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)

    def text(self) -> str:
        """Median and range."""
        return f"{statistics.median(self.wall):.2f} ({min(self.wall):.2f} to {max(self.wall):.2f})"


@dataclass
class Target:
    """A target of the project, and the measured figure."""

    title: str
    figure: float
    unit: str
    limit: float
    at_least: bool
    what: str

    @property
    def met(self) -> bool:
        """Whether the figure meets the limit."""
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def row(self) -> list[str]:
        """For the table of targets."""
        bound = "at least" if self.at_least else "at most"
        verdict = "met" if self.met else "**missed**"
        return [self.title, f"{bound} {self.limit:g}{self.unit}", f"{self.figure:.2f}{self.unit}", verdict, self.what]


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def delete(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def warm(file: Path) -> None:
    """Read the file once, so that it is in the page cache."""
    with file.open("rb") as opened:
        while opened.read(1 << 22):
            pass


def filters_of(output: Path, column: str) -> tuple[str, bool]:
    """The filters that a way wrote for the column, and whether every row group has one."""
    files = sorted(output.glob("*.parquet")) if output.is_dir() else [output]
    reports = [bloomcli.inspect(file, columns=[column]) for file in files]
    groups = sum(report.row_groups for report in reports)
    found = [facts for report in reports for facts in report.filters if facts.problem is None]
    if not found:
        return "no filter", False
    rate = statistics.mean(facts.fpp or 0.0 for facts in found)
    size = sum(facts.bitset_bytes or 0 for facts in found)
    return f"{len(found)} of {groups} row groups, {size / 2**20:.2f} MiB, FPP {rate:.2%}", len(found) == groups


def measure_column(
    file: Path, folder: Path, column: str, repeat: int, spark: ways.SparkSessionWay
) -> tuple[dict[str, Timing], dict[str, tuple[str, bool]]]:
    """All ways for one column: timings, and the filters that each wrote."""
    names = [*ways.COMMANDS, "spark"]
    timings = {name: Timing() for name in names}
    wrote: dict[str, tuple[str, bool]] = {}
    rows = bloomcli.inspect(file).rows
    group = -(-rows // data.GROUPS)
    for turn in range(repeat + 1):  # the first round isn't counted: it warms up caches and the JVM
        warm(file)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            output = folder / f"{name}.out"
            delete(output)
            os.sync()
            if name == "spark":
                inside = wall = spark.rewrite(file, output, column, -(-rows // _SPARK_GROUPS))
            else:
                wall, printed = ways.run(ways.command(name, file, output, column, group))
                inside = ways.inside(name, printed, wall)
            if turn:
                timings[name].wall.append(wall)
                if inside is not None:
                    timings[name].inside.append(inside)
            elif name in ways.WRITERS:
                wrote[name] = filters_of(output, column)
            delete(output)
        print(f"  {column}, round {turn} of {repeat}", file=sys.stderr, flush=True)
    return timings, wrote


def fastest(timings: dict[str, Timing], names: Iterable[str]) -> str:
    """The way with the smallest median."""
    return min(names, key=lambda name: statistics.median(timings[name].wall))


def peer_target(column: str, timings: dict[str, Timing], peers: Sequence[str], limit: float) -> list[Target]:
    """The ratio to the fastest peer that wrote the filter; empty if no peer did."""
    if not peers:
        return []
    peer = fastest(timings, peers)
    figure = ratio(timings[peer].wall, timings["bloom"].wall)
    return [Target(f"add, {column}", figure, "×", limit, True, f"faster than {ways.TITLES[peer]}")]


def within_targets(column: str, timings: dict[str, Timing]) -> list[Target]:
    """The target: at most the seconds of the slower of copying the file and decoding the column."""
    found = []
    for title, copy in (("whole commands", "cp"), ("whole commands, both flushed", "cp+sync")):
        slower = max((copy, "decode"), key=lambda name: statistics.median(timings[name].wall))
        figure = ratio(timings["bloom"].wall, timings[slower].wall)
        what = f"{title}: relative to {ways.TITLES[slower]}"
        found.append(Target(f"add, {column}", figure, "×", WITHIN, False, what))
    return found


def column_targets(column: str, timings: dict[str, Timing], wrote: dict[str, tuple[str, bool]]) -> list[Target]:
    """The targets for one column."""
    peers = [name for name in ways.PEERS if wrote.get(name, ("", False))[1]]
    return [*peer_target(column, timings, peers, FASTER), *within_targets(column, timings)]


def column_rows(timings: dict[str, Timing], wrote: dict[str, tuple[str, bool]]) -> list[list[str]]:
    """One column's table."""
    bloom = timings["bloom"].wall
    return [
        [
            ways.TITLES[name],
            timing.text(),
            f"{statistics.median(timing.inside):.2f}" if timing.inside else "",
            f"{ratio(timing.wall, bloom):.2f}×",
            wrote[name][0] if name in wrote else "",
        ]
        for name, timing in sorted(timings.items(), key=lambda item: (item[0] in _ALONE, item[0] not in _OURS))
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (head, *rows)
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main() -> None:
    """Measure everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=data.ROWS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keeps the generated files; a temporary folder otherwise")
    parser.add_argument("--quick", action="store_true", help="little data, one round: shows that it runs")
    options = parser.parse_args()
    rows, repeat = (_QUICK_ROWS, 1) if options.quick else (options.rows, options.repeat)
    with tempfile.TemporaryDirectory(prefix="bloom-benchmarks-") as temporary:
        text, figures = measure(options.folder or Path(temporary), Path(temporary), rows, repeat)
    print(text)
    if not options.quick:
        (HERE / "RESULTS.md").write_text(text + "\n")
        (HERE / "results.json").write_text(json.dumps(figures, indent=2) + "\n")


def measure(folder: Path, scratch: Path, rows: int, repeat: int) -> tuple[str, dict[str, object]]:
    """The whole run: the report, and its figures."""
    file, wide = data.ordinary(folder, rows), data.wide(folder)
    targets: list[Target] = []
    results: dict[str, object] = {}
    parts: list[str] = []
    spark = ways.SparkSessionWay(scratch)
    try:
        for column, kind in COLUMNS.items():
            timings, wrote = measure_column(file, scratch, column, repeat, spark)
            targets += column_targets(column, timings, wrote)
            results[column] = {
                name: asdict(timing) | {"wrote": wrote.get(name, ("", False))[0]} for name, timing in timings.items()
            }
            head = ["program", "seconds, median (range)", "inside", "relative to `bloom add`", "filter written"]
            parts.append(f"## A filter on `{column}` ({kind})\n\n{table(head, column_rows(timings, wrote))}")
    finally:
        spark.stop()
    found = footers.measure(file, wide, scratch, repeat)
    results["footers"] = [asdict(row) for row in found]
    parts.append("## Footers\n\n" + table(footers.HEAD, [row.cells() for row in found]))
    targets += [Target(r.title, r.figure, r.unit, r.limit, False, r.against) for r in found if r.limit is not None]
    parts.append(_kernels(results, targets, repeat))
    about = machine()
    lines = [
        "# Results",
        HOW,
        f"{rows:,} rows, 10 columns, {file.stat().st_size / 1e6:,.0f} MB of zstd Parquet in {data.GROUPS} "
        f"row groups; filters of {ways.FPP:.0%}; {rounds(repeat)}.",
        table(["machine", ""], [[k, v] for k, v in about.items()]),
        "## Targets\n\n" + table(["what", "target", "figure", "verdict", ""], [t.row() for t in targets]),
        *parts,
    ]
    verdicts = [asdict(target) | {"met": target.met} for target in targets]
    figures = {"machine": about, "rows": rows, "repeat": repeat, "targets": verdicts, "seconds": results}
    return "\n\n".join(lines), figures


def _kernels(results: dict[str, object], targets: list[Target], repeat: int) -> str:
    measured = speeds.measure(2_000_000 if repeat > 1 else 200_000, max(2 * repeat, 3))
    results["kernels"] = [row._asdict() for row in measured]
    targets += [
        Target(
            row.title, row.ns, " ns", row.target, False, f"per value; memcpy of the same bytes {row.memcpy_ns:.2f} ns"
        )
        for row in measured
        if row.target is not None
    ]
    rows = [[r.title, f"{r.ns:.2f}", f"{r.memcpy_ns:.2f}", f"{r.ns / r.memcpy_ns:.1f}×"] for r in measured]
    return "## Kernels, nanoseconds per value on one core\n\n" + table(["kernel", "ns", "memcpy", "ratio"], rows)


if __name__ == "__main__":
    main()
