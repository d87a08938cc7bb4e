"""Times `bloom advise` on a lake of many files.

    python benchmarks/advise.py FOLDER [--files 10000]

The files are written to FOLDER once: 8 columns, 2 row groups of 1,000 rows. `RESULTS-ADVISE.md` has the results.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bloomcli

ROWS: Final = 2000


def table(chance: np.random.Generator, number: int) -> pa.Table:
    """One file's rows."""
    start = number * ROWS
    return pa.table(
        {
            "id": chance.integers(0, 1 << 60, ROWS),
            "at": np.arange(start, start + ROWS),
            "country": chance.integers(0, 100, ROWS),
            "user": [f"u{value:08x}" for value in chance.integers(0, 1 << 31, ROWS)],
            "amount": chance.integers(0, 10**6, ROWS),
            "status": chance.integers(0, 4, ROWS),
            "session": chance.integers(0, 10**9, ROWS),
            "price": chance.normal(size=ROWS).round(2),
        }
    )


def write(folder: Path, files: int) -> None:
    """Write the missing files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = folder / f"{number:05}.parquet"
        if not path.exists():
            pq.write_table(table(np.random.default_rng(number), number), path, row_group_size=ROWS // 2)


def seconds_of_processor() -> float:
    """Processor seconds of this process and its workers."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Write the lake, and advise on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    chosen = parser.parse_args()
    write(chosen.folder, chosen.files)
    started, before = time.perf_counter(), seconds_of_processor()
    report = bloomcli.advise(chosen.folder)
    print(f"{report.files} files, {report.row_groups} row groups, {len(report.columns)} columns")
    print(f"{report.sampled_row_groups} row groups sampled")
    print(f"{time.perf_counter() - started:.1f} s, {seconds_of_processor() - before:.1f} s of processor time")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
