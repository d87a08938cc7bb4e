"""`bloom inspect`: of an ordinary file, from start to end, and of a footer with 20,000 column chunks.

    python benchmarks/footers.py [--rows 200000] [--repeat 9] [--folder DIR]

As a script, it writes RESULTS-FOOTERS.md. The peer is DuckDB's `parquet_metadata` of the same
footer, all rows fetched: command against command, and call against call within one process that has imported both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import data  # noqa: E402
import duckdb  # noqa: E402
import ways  # noqa: E402
from machine import machine, rounds  # noqa: E402

import bloomcli  # noqa: E402

HEAD: Final = ["what", "seconds, median (range)", "against", "figure"]
INSPECT_SECONDS: Final = 0.3
CROWDED_RATIO: Final = 1.5
_QUERY: Final = "SELECT * FROM parquet_metadata('{}')"


@dataclass
class Row:
    """One comparison. `figure` is in seconds, or the ratio of the rounds."""

    title: str
    seconds: list[float]
    figure: float
    unit: str
    limit: float | None
    against: str

    def cells(self) -> list[str]:
        """For the table."""
        text = f"{statistics.median(self.seconds):.3f} ({min(self.seconds):.3f} to {max(self.seconds):.3f})"
        return [self.title, text, self.against, f"{self.figure:.2f}{self.unit}"]


def _inspect(file: Path) -> Callable[[], float]:
    return lambda: ways.run(ways.python("-m", "bloomcli", "inspect", str(file)))[0]


def _duckdb_command(file: Path) -> Callable[[], float]:
    code = f'import duckdb; duckdb.connect().execute("{_QUERY.format(file)}").fetchall()'
    return lambda: ways.run(ways.python("-c", code))[0]


def _call(work: Callable[[], object]) -> Callable[[], float]:
    def timed() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return timed


def measure(file: Path, wide: Path, folder: Path, repeat: int) -> list[Row]:
    """Everything in turns, `repeat` rounds after one to warm up."""
    filtered, crowded = folder / "filtered.parquet", folder / "crowded.parquet"
    bloomcli.add(file, ["uuid"], output=filtered)
    bloomcli.add(wide, ["*"], output=crowded)
    connection = duckdb.connect()
    runs: dict[str, Callable[[], float]] = {
        "help": lambda: ways.run(ways.python("-m", "bloomcli", "--help"))[0],
        "inspect": _inspect(filtered),
        "wide": _inspect(wide),
        "wide duckdb": _duckdb_command(wide),
        "wide call": _call(lambda: bloomcli.inspect(wide)),
        "wide call duckdb": _call(lambda: connection.execute(_QUERY.format(wide)).fetchall()),
        "crowded": _inspect(crowded),
        "crowded duckdb": _duckdb_command(crowded),
        "crowded probe": lambda: ways.run(
            ways.python("-m", "bloomcli", "probe", str(crowded), "--column", "column_003", "7")
        )[0],
        "crowded call": _call(lambda: bloomcli.inspect(crowded)),
        "crowded call duckdb": _call(lambda: connection.execute(_QUERY.format(crowded)).fetchall()),
    }
    took: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeat + 1):
        for name, run in runs.items():
            seconds = run()
            if turn:
                took[name].append(seconds)
    connection.close()
    for path in (filtered, crowded):
        path.unlink()

    def alone(title: str, name: str, limit: float | None) -> Row:
        return Row(title, took[name], statistics.median(took[name]), " s", limit, "the whole command")

    def compared(title: str, name: str, peer: str, limit: float | None) -> Row:
        figure = statistics.median(a / b for a, b in zip(took[name], took[peer], strict=True))
        against = f"DuckDB's parquet_metadata, {statistics.median(took[peer]):.3f} s"
        return Row(title, took[name], figure, "×", limit, against)

    return [
        alone("`bloom --help`", "help", None),
        alone("`bloom inspect`, ordinary file", "inspect", INSPECT_SECONDS),
        compared("`bloom inspect`, 20,000 chunks, no filter: commands", "wide", "wide duckdb", 1.0),
        compared("the same: calls in one process", "wide call", "wide call duckdb", 1.0),
        compared(
            "`bloom inspect`, 20,000 chunks, 20,000 filters: commands", "crowded", "crowded duckdb", CROWDED_RATIO
        ),
        alone("`bloom probe` of one value in 100 of these filters", "crowded probe", None),
        compared("20,000 chunks, 20,000 filters: calls", "crowded call", "crowded call duckdb", None),
    ]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="of the ordinary file")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bloom-benchmarks")
    options = parser.parse_args()
    folder = options.folder
    found = {**machine(), "load average": f"{os.getloadavg()[1]:.1f}"}
    rows = measure(data.ordinary(folder, options.rows), data.wide(folder), folder, options.repeat)
    lines = [
        "# Footers",
        "",
        f"Written by `python benchmarks/footers.py`: {rounds(options.repeat)}. The programs take turns; ratios are",
        "medians of the ratios of each round. The page cache is warm.",
        "",
        "| " + " | ".join([*HEAD, "target"]) + " |",
        "|" + "---|" * (len(HEAD) + 1),
    ]
    for row in rows:
        met = "" if row.limit is None else "met" if row.figure <= row.limit else "**missed**"
        target = "" if row.limit is None else f"at most {row.limit:g}{row.unit}: {met}"
        lines.append("| " + " | ".join([*row.cells(), target]) + " |")
    lines += ["", "| the machine | |", "|---|---|", *(f"| {name} | {value} |" for name, value in found.items())]
    (HERE / "RESULTS-FOOTERS.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
