"""Measures the peak memory of bloom while it changes a file with more filters than memory should hold.

    python benchmarks/memory.py FOLDER [--row-groups 32] [--columns 8] [--values 2000000] [--output FILE]

The file has integers that are all different, uncompressed, so that each column chunk gets a filter of the full size
(4 MiB for 2 million values at 1 %); its row groups are equal. At the sizes above it has 3.8 GiB and gets 1 GiB of
filters. Each command runs in a separate process, as a user starts it. Its peak is the largest resident set that the
system counted for it (`wait4`), with the interpreter and the libraries. Linux starts to count before the program is
loaded: a small process starts the command, because this one has loaded numpy by then.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BOUND: Final = 300_000_000
"""The limit of a command's memory for any file, in bytes."""

_THREADS: Final = (1, 2, 8, 64)


STARTER: Final = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)
"""


class Peak(NamedTuple):
    """One command, measured."""

    what: str
    threads: int
    bytes: int
    seconds: float
    processor: float
    output: int


def make(folder: Path, groups: int, columns: int, values: int) -> Path:
    """The file; made if it doesn't exist."""
    path = folder / f"filters-{groups}x{columns}x{values}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        numbers = np.arange(values, dtype=np.int64) * 1_000_003
        table = pa.table({f"c{i}": numbers + i for i in range(columns)})
        with pq.ParquetWriter(partial, table.schema, compression="none", use_dictionary=False) as writer:
            for _ in range(groups):
                writer.write_table(table, row_group_size=values)
        partial.rename(path)
    return path


def measure(what: str, threads: int, arguments: Sequence[object], output: Path) -> Peak:
    """Run one command; raises RuntimeError if it fails."""
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bloomcli", *map(str, arguments), "-o", str(output)]
    started = time.perf_counter()
    starter = subprocess.run(
        [sys.executable, "-S", "-E", "-c", STARTER, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds = time.perf_counter() - started
    code, peak, processor = starter.stdout.split()
    if code != "0":
        raise RuntimeError(f"{' '.join(command)}: exit code {code}")
    return Peak(what, threads, int(peak), seconds, float(processor), output.stat().st_size)


def measure_all(path: Path, folder: Path, columns: int) -> list[Peak]:
    """Every command that writes, on the file and on its outputs."""
    out, loose, changed = (folder / name for name in ("added.parquet", "loose.parquet", "changed.parquet"))
    peaks = [measure("add -c c0", 2, ["add", path, "-c", "c0", "--threads", 2], out)]
    everything = f"add -c '*' ({columns} columns)"
    peaks += [measure(everything, n, ["add", path, "-c", "*", "--threads", n], out) for n in _THREADS]
    peaks.append(measure("add -c '*' --replace", 2, ["add", out, "-c", "*", "--replace", "--threads", 2], changed))
    peaks.append(measure("remove", 1, ["remove", out], changed))
    changed.unlink()
    measure("add --fpp 0.0001", 2, ["add", path, "-c", "*", "--fpp", "0.0001", "--threads", 2], loose)
    peaks.append(measure("fold --fpp 0.01", 1, ["fold", loose, "--fpp", "0.01"], changed))
    for file in (out, loose, changed):
        file.unlink(missing_ok=True)
    return peaks


def table(path: Path, peaks: Sequence[Peak]) -> str:
    """The figures as Markdown."""
    size = path.stat().st_size
    lines = [
        f"{path.name}: {size / (1 << 30):.2f} GiB",
        "",
        "| command | threads | peak memory | wall | processor | output |",
        "|:--|--:|--:|--:|--:|--:|",
        *(
            f"| `{p.what}` | {p.threads} | {p.bytes / 1e6:.0f} MB | {p.seconds:.1f} s | {p.processor:.1f} s "
            f"| {p.output / (1 << 30):.2f} GiB |"
            for p in peaks
        ),
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table; return 1 if a command took more than the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--row-groups", type=int, default=32)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--values", type=int, default=2_000_000, help="a row group")
    parser.add_argument("--output", type=Path, help="write the table there too")
    options = parser.parse_args()
    path = make(options.folder, options.row_groups, options.columns, options.values)
    peaks = measure_all(path, options.folder, options.columns)
    text = table(path, peaks)
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n")
    return int(any(p.bytes > BOUND for p in peaks))


if __name__ == "__main__":
    sys.exit(main())
