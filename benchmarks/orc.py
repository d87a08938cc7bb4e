"""ORC: compares `bloom add` with the engines' rewrites: seconds, ratios, and whether the target is met.

    python benchmarks/orc.py [--rows 5000000] [--repeat 5] [--folder DIR] [--codec zstd] [--quick]

The same data as in run.py, as ORC by pyarrow (stripes of 64 MiB, row groups of 10,000 rows), and the same rules:
the ways take turns, each round in another order, the page cache is warm, and no data is waiting to be flushed when
a way starts. Writes RESULTS-ORC.md and results-orc.json to this folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import ways  # noqa: E402

COLUMNS: Final = {"uuid": "string, all values distinct", "id": "int64, all values distinct"}
FASTER: Final = 5.0
HOW: Final = """Written by `python benchmarks/orc.py`, which also writes `results-orc.json`.

The programs take turns. Seconds are the wall time of a whole command in a process of its own, from start to end,
also for `cp` and for decoding. For Spark, they are the time of the job in a running session. All targets compare
whole commands. *Inside* excludes the start of the interpreter and the imports. The page cache is warm, and no
written data is waiting to be flushed when a program starts. `bloom add` flushes its output to the disk before it
renames it; the others don't, so `cp` is also shown with a `sync` of the copy."""
_QUICK_ROWS: Final = 200_000


def pyarrow_rewrite(file: str, output: str, column: str, codec: str) -> None:
    """Read the file and write it again, with filters."""
    from pyarrow import orc

    table = orc.read_table(file)
    wanted = [table.schema.get_field_index(column) + 1]  # column 0 is the root; these schemas are flat
    orc.write_table(table, output, compression=codec, bloom_filter_columns=wanted, bloom_filter_fpp=ways.FPP)


def decode(file: str, output: str, column: str, codec: str) -> None:
    """Decode the one column, and write nothing."""
    del output, codec
    from pyarrow import orc

    orc.read_table(file, columns=[column])


def call(file: str, output: str, column: str, codec: str) -> None:
    """The call behind `bloom add`, in a process that has imported its modules."""
    del codec
    ways.bloomcli_add(file, output, column, 0)


PROCESSES: Final[dict[str, Callable[[str, str, str, str], None]]] = {
    "call": call,
    "pyarrow": pyarrow_rewrite,
    "decode": decode,
}
IMPORTS: Final = {
    "call": ("bloomcli.commands.add", "bloomcli.formats.orc.file"),
    "pyarrow": ("pyarrow.orc",),
    "decode": ("pyarrow.orc",),
}
COMMANDS: Final = ("bloom", "cp", "cp+sync", *PROCESSES)
PEERS: Final = ("pyarrow", "spark")
"""Ways to write ORC files with filters. arrow-rs and DuckDB have no ORC writer, ClickHouse writes ORC without
filters, and PyORC makes a Python object of each value."""


def command(way: str, file: Path, output: Path, column: str, codec: str) -> list[str]:
    """The command line of a way."""
    if way in PROCESSES:
        return ways.python(str(Path(__file__).resolve()), way, str(file), str(output), column, codec)
    return ways.command(way, file, output, column)


def spark_rewrite(session: Any, file: Path, output: Path, column: str, codec: str) -> float:
    """Seconds of one job."""
    started = time.perf_counter()
    (
        session.read.orc(str(file))
        .write.mode("overwrite")
        .option("compression", codec)
        .option("orc.bloom.filter.columns", column)
        .option("orc.bloom.filter.fpp", str(ways.FPP))
        .orc(str(output))
    )
    return time.perf_counter() - started


def as_orc(folder: Path, rows: int, codec: str) -> Path:
    """run.py's ordinary file as ORC; made if it doesn't exist."""
    import data
    import pyarrow.parquet as pq
    from pyarrow import orc

    path = folder / f"ordinary-{rows}-{codec}.orc"
    if not path.exists():
        partial = path.with_suffix(".partial")
        with pq.ParquetFile(data.ordinary(folder, rows)) as source, orc.ORCWriter(partial, compression=codec) as out:
            for group in range(source.num_row_groups):
                out.write(source.read_row_group(group))
        partial.rename(path)
    return path


def filters_of(output: Path, column: str) -> str:
    """The filters that a way wrote for the column: one for every row group, or an error."""
    import bloomcli

    files = sorted(output.glob("*.orc")) if output.is_dir() else [output]
    reports = [bloomcli.inspect(file, columns=[column]) for file in files]
    found = [facts for report in reports for facts in report.filters if facts.problem is None]
    groups = sum(report.row_groups for report in reports)
    assert len(found) == groups > 0, f"{len(found)} filters in {groups} row groups of {output}"
    rate = statistics.mean(facts.fpp or 0.0 for facts in found)
    size = sum(facts.bitset_bytes or 0 for facts in found)
    return f"{groups} row groups, {size / 2**20:.2f} MiB, FPP {rate:.2%}"


def measure(folder: Path, scratch: Path, rows: int, repeat: int, codec: str) -> tuple[str, dict[str, object]]:
    """The whole run: the report, and its figures."""
    import run
    from machine import machine, rounds

    file = as_orc(folder, rows, codec)
    names = [*COMMANDS, "spark"]
    targets: list[run.Target] = []
    results: dict[str, object] = {}
    parts: list[str] = []
    spark = ways.SparkSessionWay(scratch)
    try:
        for column, kind in COLUMNS.items():
            timings = {name: run.Timing() for name in names}
            wrote: dict[str, tuple[str, bool]] = {}
            for turn in range(repeat + 1):  # the first round isn't counted: it warms up caches and the JVM
                run.warm(file)
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    output = scratch / f"{name}.out"
                    run.delete(output)
                    os.sync()
                    if name == "spark":
                        inside = wall = spark_rewrite(spark.session, file, output, column, codec)
                    else:
                        wall, printed = ways.run(command(name, file, output, column, codec))
                        inside = ways.inside(name, printed, wall)
                    if turn:
                        timings[name].wall.append(wall)
                        if inside is not None:
                            timings[name].inside.append(inside)
                    elif name in ways.WRITERS:
                        wrote[name] = filters_of(output, column), True
                    run.delete(output)
                print(f"  {column}, round {turn} of {repeat}", file=sys.stderr, flush=True)
            targets += run.peer_target(column, timings, PEERS, FASTER)
            targets += run.within_targets(column, timings)
            results[column] = {n: asdict(t) | {"wrote": wrote.get(n, ("", False))[0]} for n, t in timings.items()}
            head = ["program", "seconds, median (range)", "inside", "relative to `bloom add`", "filters written"]
            parts.append(f"## Filters on `{column}` ({kind})\n\n{run.table(head, run.column_rows(timings, wrote))}")
    finally:
        spark.stop()
    about = machine()
    text = [
        "# Results, ORC",
        HOW,
        f"{rows:,} rows, 10 columns, {file.stat().st_size / 1e6:,.0f} MB of {codec} ORC by ORC C++; filters of "
        f"{ways.FPP:.0%}; {rounds(repeat)}.",
        run.table(["machine", ""], [[k, v] for k, v in about.items()]),
        "## Targets\n\n" + run.table(["what", "target", "figure", "verdict", ""], [t.row() for t in targets]),
        *parts,
    ]
    verdicts = [asdict(target) | {"met": target.met} for target in targets]
    figures = {"machine": about, "rows": rows, "repeat": repeat, "targets": verdicts, "seconds": results}
    return "\n\n".join(text), figures


def main() -> None:
    """Run one way, or measure everything and write it down."""
    if len(sys.argv) > 1 and sys.argv[1] in PROCESSES:
        way, *arguments = sys.argv[1:]
        for module in IMPORTS[way]:
            importlib.import_module(module)
        started = time.perf_counter()
        PROCESSES[way](*arguments)
        print(json.dumps({"seconds": time.perf_counter() - started}))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keeps the generated files; a temporary folder otherwise")
    parser.add_argument("--codec", choices=["zstd", "zlib"], default="zstd")
    parser.add_argument("--quick", action="store_true", help="little data, one round: shows that it runs")
    options = parser.parse_args()
    rows, repeat = (_QUICK_ROWS, 1) if options.quick else (options.rows, options.repeat)
    with tempfile.TemporaryDirectory(prefix="bloom-benchmarks-") as temporary:
        folder = options.folder or Path(temporary)
        text, figures = measure(folder, Path(temporary), rows, repeat, options.codec)
    print(text)
    if not options.quick:
        (HERE / "RESULTS-ORC.md").write_text(text + "\n")
        (HERE / "results-orc.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
