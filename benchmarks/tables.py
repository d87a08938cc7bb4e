"""Compares `bloom add --table` with the tables' own rewrites, and with `bloom add` on the bare files.

    python benchmarks/tables.py FOLDER [--rows 5000000] [--files 40] [--rounds 3] [--rewrites 1] [--column uuid]

One Spark session with 2 cores (4.1, which `python tests/support/servers/install.py spark-tables` installs) has an
Iceberg table of version 2 and a Delta table with deletion vectors: the rows of `data.py` in 40 files, of which every
fiftieth row is deleted. Measured in the same session, which has run jobs before:

    bloom add --table      one column; `bloom remove --table` restores the files between the rounds
    the commits in it      the seconds within the table format's commit
    bloom add, bare files  the Spark engine on copies of the data files, to another directory
    the table's rewrite    Iceberg: rewrite_data_files of all files with the property set, Delta: OPTIMIZE likewise

Each rewrite has a separate table. Writes RESULTS-TABLES.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

from support import spark_tables  # noqa: E402  the tests' folder is found only now

spark_tables.choose_spark()

import data  # noqa: E402  as above
from machine import machine  # noqa: E402

from bloomcli.commands.options import (  # noqa: E402
    AddOptions,
    RemoveOptions,
    TableOptions,
)
from bloomcli.datasets.engine import plan_files, run_tasks  # noqa: E402
from bloomcli.datasets.spark import SparkEngine  # noqa: E402
from bloomcli.model.dataset import DatasetReport  # noqa: E402
from bloomcli.tables.change import change_table  # noqa: E402
from bloomcli.tables.opening import open_table  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS: Final = HERE / "RESULTS-TABLES.md"
CORES: Final = 2
DELETED: Final = 50
"""One row in this many is deleted."""
FACTOR: Final = 5.0
"""The target: `bloom add --table` is this many times as fast as a rewrite."""
OVERHEAD: Final = 1.3
"""The target: at most this many times as long as bare files and commits."""


@dataclass
class Format:
    """A table format, and the seconds of each way in its rounds."""

    title: str
    properties: str
    using: str
    asking: str
    """The property that requests a filter on the column."""
    rewrite: str
    added: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    rewritten: list[float] = field(default_factory=list)
    files: int = 0
    size: int = 0


FORMATS: Final = (
    Format(
        title="Iceberg",
        using="iceberg",
        properties="'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.distribution-mode'='none'",
        asking="'write.parquet.bloom-filter-enabled.column.{column}'='true'",
        rewrite="call ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
    ),
    Format(
        title="Delta",
        using="delta",
        properties="'delta.enableDeletionVectors'='true'",
        asking="'parquet.bloom.filter.enabled#{column}'='true'",
        rewrite="optimize {table}",
    ),
)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of some work, and its result. No data is waiting to be flushed when it starts."""
    subprocess.run(["sync"], check=True)
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def make(spark: SparkSession, kind: Format, name: str, source: Path, files: int) -> None:
    """Create a table of the rows, in a number of files, with deleted rows."""
    rows = spark.read.parquet(str(source))
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema)
    spark.sql(f"create table {name} ({columns}) using {kind.using} tblproperties ({kind.properties})")
    rows.repartition(files).writeTo(name).append()
    spark.sql(f"delete from {name} where id % {DELETED} = 7")


def add(spark: SparkSession, kind: Format, name: str, column: str) -> DatasetReport:
    """One round of `bloom add --table`. Records its seconds, and those of its commits."""
    engine, within = SparkEngine(spark), [0.0]

    def work() -> DatasetReport:
        table = open_table(spark, name)
        commit = table.commit

        def measured(*arguments: Any) -> int:
            started = time.perf_counter()
            version = commit(*arguments)
            within[0] += time.perf_counter() - started
            return version

        table.commit = measured  # type: ignore[method-assign]
        return change_table(table, engine, AddOptions(columns=[column]), TableOptions(table=name))

    seconds, report = timed(work)
    if report.done != report.files:
        raise SystemExit(f"{name}: {report.done} of {report.files} files done: {report.rows[0]}")
    kind.added.append(seconds)
    kind.commits.append(within[0])
    kind.files = report.files
    kind.size = sum(row.bytes_before or 0 for row in report.rows)
    return report


def bare(spark: SparkSession, kind: Format, paths: list[str], folder: Path, column: str) -> None:
    """One round of `bloom add` on copies of the data files."""
    source, output = folder / "bare", folder / "bare-out"
    for directory in (source, output):
        shutil.rmtree(directory, ignore_errors=True)
    source.mkdir(parents=True)
    for path in paths:
        shutil.copy(path, source)
    engine, options = SparkEngine(spark), AddOptions(columns=[column], output=output)
    seconds, report = timed(lambda: run_tasks(engine, plan_files(engine, [str(source)], options)))
    if report.done != len(paths):
        raise SystemExit(f"{kind.title}: {report.done} of {len(paths)} bare files done")
    kind.bare.append(seconds)


def measure(spark: SparkSession, kind: Format, folder: Path, source: Path, options: argparse.Namespace) -> None:
    """All rounds of a format."""

    def named(name: str) -> str:
        return f"ice.db.{name}" if kind.using == "iceberg" else f"delta.`{folder / 'delta' / name}`"

    name = named("measured")
    make(spark, kind, name, source, options.files)
    before = spark.table(name).count()
    for _ in range(options.rounds):
        report = add(spark, kind, name, options.column)
        bare(spark, kind, [row.path for row in report.rows], folder, options.column)
        removed = change_table(open_table(spark, name), SparkEngine(spark), RemoveOptions(), TableOptions(table=name))
        if removed.done != report.files or spark.table(name).count() != before:
            raise SystemExit(f"{name}: rows or files differ")
    for number in range(options.rewrites):
        other = named(f"rewritten{number}")
        make(spark, kind, other, source, options.files)
        spark.sql(f"alter table {other} set tblproperties ({kind.asking.format(column=options.column)})")
        statement = kind.rewrite.format(table=other.removeprefix("ice."))
        kind.rewritten.append(timed(lambda text=statement: spark.sql(text).collect())[0])


def results(options: argparse.Namespace) -> str:
    """The page of results."""
    here = ", ".join(f"{name} {value}" for name, value in machine().items())
    heads = (
        "",
        "files",
        "MB",
        "`bloom add --table`",
        "commits in it",
        "bare files + commits",
        "ratio",
        "rewrite",
        "",
    )
    lines = [
        "# Tables",
        "",
        f"`python benchmarks/tables.py FOLDER --rows {options.rows} --files {options.files}`, medians. {here}.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for kind in FORMATS:
        added, commits = statistics.median(kind.added), statistics.median(kind.commits)
        plain, rewritten = statistics.median(kind.bare) + commits, statistics.median(kind.rewritten)
        ratio, factor = added / plain, rewritten / added
        lines.append(
            f"| {kind.title} | {kind.files} | {kind.size / 1e6:.0f} | {added:.2f} s | {commits:.2f} s | {plain:.2f} s"
            f" | {ratio:.2f}{' (too slow)' if ratio > OVERHEAD else ''}"
            f" | {rewritten:.2f} s | {factor:.1f} times as fast{' (too few)' if factor < FACTOR else ''} |"
        )
    every = "; ".join(
        f"{kind.title}: add {listed(kind.added)}, bare {listed(kind.bare)}, rewrite {listed(kind.rewritten)}"
        for kind in FORMATS
    )
    return "\n".join([*lines, "", f"Each round, in seconds: {every}.", ""])


def listed(seconds: list[float]) -> str:
    """The seconds of the rounds."""
    return " ".join(f"{value:.2f}" for value in seconds)


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description="Compares bloom add --table with the tables' own rewrites.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=data.ROWS)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rewrites", type=int, default=1)
    parser.add_argument("--column", default="uuid")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if (why := spark_tables.missing()) is not None:
        raise SystemExit(why)
    folder = options.folder.resolve()
    source = data.ordinary(folder / "source", options.rows)
    tables = folder / "tables"
    shutil.rmtree(tables, ignore_errors=True)
    spark = spark_tables.session(tables, cores=CORES, conf={"spark.ui.showConsoleProgress": "false"})
    try:
        for kind in FORMATS:
            measure(spark, kind, tables, source, options)
    finally:
        spark.stop()
    text = results(options)
    options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
