"""Compares `bloom validate` with `bloom inspect`, and `--deep` with decoding the column.

    python benchmarks/gate.py [--rows 5000000] [--files 500] [--repeat 5] [--folder DIR] [--quick]

Shallow, of one ordinary file, of many small ones, and of a footer with 20,000 filters. Deep, of one column of the
ordinary file, as Parquet and as ORC, compared with a process that only decodes that column with pyarrow on all cores.
Whole commands take turns, each round in another order. Writes RESULTS-GATE.md and results-gate.json to this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import data  # noqa: E402
import orc  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import run  # noqa: E402
import ways  # noqa: E402
from machine import machine, rounds  # noqa: E402

import bloomcli  # noqa: E402

SHALLOW: Final = 1.25
"""The limit compared with `inspect`, which reads the same bytes: a quarter is for findings and noise."""
DEEP: Final = 1.5
COLUMNS: Final = ("uuid", "id", "status")
HEAD: Final = ["what", "`bloom validate`", "compared with", "ratio", "target", "verdict"]
HOW: Final = """Written by `python benchmarks/gate.py`, which also writes `results-gate.json`.

The programs take turns, each round in another order, with a warm page cache. Seconds are the wall time of whole
commands, including start-up. Decoding means that pyarrow decodes the one column into memory, on all cores. `bloom
validate --deep` also hashes each value, builds the filter again and compares it."""
_DECODE: Final = {
    "parquet": "import pyarrow.parquet as p; p.read_table({file!r}, columns=[{column!r}])",
    "orc": "import pyarrow.orc as o; o.read_table({file!r}, columns=[{column!r}])",
}


@dataclass
class Pair:
    """One comparison: a command of bloom, and its peer."""

    title: str
    limit: float
    ours: list[str]
    theirs: list[str]
    against: str
    took: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    @property
    def figure(self) -> float:
        """The ratio of the rounds, median."""
        return statistics.median(a / b for a, b in zip(self.took, self.peer, strict=True))

    def row(self) -> list[str]:
        """For the table."""
        verdict = "met" if self.figure <= self.limit else "**missed**"
        return [
            self.title,
            _spread(self.took),
            f"{self.against}: {_spread(self.peer)}",
            f"{self.figure:.2f}×",
            f"at most {self.limit:g}×",
            verdict,
        ]


def _spread(took: list[float]) -> str:
    return f"{statistics.median(took):.2f} s ({min(took):.2f} to {max(took):.2f})"


def _bloom(command: str, *arguments: str | Path) -> list[str]:
    return ways.python("-m", "bloomcli", command, *map(str, arguments))


def small_files(folder: Path, count: int) -> Path:
    """A directory of small files, each with a filter."""
    lake = folder / f"small-{count}"
    if not lake.exists():
        partial = folder / f"small-{count}.partial"
        partial.mkdir(parents=True)
        one = folder / "one.parquet"
        for number in range(count):
            ids = pa.array(range(number * 2000, (number + 1) * 2000), pa.int64())
            pq.write_table(pa.table({"id": ids, "name": ids.cast(pa.string())}), one)
            bloomcli.add(one, ["id", "name"], output=partial / f"part-{number:05}.parquet")
        partial.rename(lake)
    return lake


def pairs(folder: Path, rows: int, files: int) -> list[Pair]:
    """Make the files, and list the comparisons."""
    file = folder / f"gate-{rows}.parquet"
    if not file.exists():
        bloomcli.add(data.ordinary(folder, rows), list(COLUMNS), output=file)
    stripes = folder / f"gate-{rows}.orc"
    if not stripes.exists():
        bloomcli.add(orc.as_orc(folder, rows, "zstd"), list(COLUMNS), output=stripes)
    crowded = folder / "gate-crowded.parquet"
    if not crowded.exists():
        bloomcli.add(data.wide(folder), ["*"], output=crowded)
    lake = small_files(folder, files)

    def shallow(title: str, path: Path) -> Pair:
        theirs = _bloom("inspect", path)
        return Pair(f"shallow, {title}", SHALLOW, _bloom("validate", "--no-policy", path), theirs, "`bloom inspect`")

    def deep(path: Path, column: str) -> Pair:
        kind = path.suffix.removeprefix(".")
        decode = ways.python("-c", _DECODE[kind].format(file=str(path), column=column))
        ours = _bloom("validate", "--no-policy", "--deep", "--columns", column, path)
        return Pair(f"deep, `{column}`, {kind}", DEEP, ours, decode, "decoding")

    return [
        shallow("one ordinary file", file),
        shallow(f"{files} small files", lake),
        shallow("20,000 filters in one footer", crowded),
        *(deep(file, column) for column in COLUMNS),
        *(deep(stripes, column) for column in COLUMNS),
    ]


def measure(found: list[Pair], repeat: int) -> None:
    """All pairs in turns, `repeat` rounds after one warm-up round."""
    for turn in range(repeat + 1):
        for pair in found[turn % len(found) :] + found[: turn % len(found)]:
            both = [(pair.took, pair.ours), (pair.peer, pair.theirs)]
            for times, argv in both if turn % 2 else reversed(both):
                os.sync()
                seconds = ways.run(argv)[0]
                if turn:
                    times.append(seconds)
        print(f"  round {turn} of {repeat}", file=sys.stderr, flush=True)


def report(found: list[Pair], rows: int, files: int, repeat: int) -> tuple[str, dict[str, Any]]:
    """The report, and its figures."""
    about = machine()
    text = [
        "# Results, validate",
        HOW,
        f"{rows:,} rows, 10 columns; {files} small files of 2,000 rows; {rounds(repeat)}.",
        run.table(["machine", ""], [[k, v] for k, v in about.items()]),
        run.table(
            ["what", "`bloom validate`", "compared with", "ratio", "target", "verdict"], [p.row() for p in found]
        ),
    ]
    figures = [
        {"what": p.title, "seconds": p.took, "beside": p.against, "their_seconds": p.peer, "ratio": p.figure}
        | {"limit": p.limit, "met": p.figure <= p.limit}
        for p in found
    ]
    return "\n\n".join(text), {"machine": about, "rows": rows, "files": files, "repeat": repeat, "pairs": figures}


def main() -> None:
    """Measure everything, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=data.ROWS)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keeps the generated files; a temporary folder otherwise")
    parser.add_argument("--quick", action="store_true", help="little data, one round: shows that it runs")
    options = parser.parse_args()
    rows, files, repeat = (200_000, 20, 1) if options.quick else (options.rows, options.files, options.repeat)
    with tempfile.TemporaryDirectory(prefix="bloom-benchmarks-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = pairs(folder, rows, files)
        measure(found, repeat)
    text, figures = report(found, rows, files, repeat)
    print(text)
    if not options.quick:
        (HERE / "RESULTS-GATE.md").write_text(text + "\n")
        (HERE / "results-gate.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
