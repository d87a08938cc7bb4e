"""Memory is bounded by batches and filters, not by the file or the row group: measured as peak resident size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MIB = 1 << 20
ROOT = Path(__file__).parents[2]

PROGRAM = """
import resource, sys
import pyarrow  # what decompresses; its own size is not the question
from bloomcli.cli import run
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code = run(sys.argv[1:])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(code, after - before, file=sys.stderr)
"""


def growth(*args: object) -> int:
    """Bytes by which a command's peak resident size is above that of the interpreter with its libraries."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, args)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    code, kilobytes = done.stderr.split()
    assert code == "0"
    return int(kilobytes) * 1024


def write(path: Path, rows: int) -> Path:
    """One row group of `rows` rows: random integers and random 36-byte strings, 44 bytes a row."""
    random = np.random.default_rng(7)
    text = random.integers(97, 122, (rows, 36), np.uint8).tobytes()
    offsets = np.arange(0, 36 * rows + 1, 36, np.int32)
    strings = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))
    table = pa.table({"i": random.integers(-(1 << 60), 1 << 60, rows), "s": strings})
    pq.write_table(table, path, row_group_size=rows, use_dictionary=False, compression="zstd")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("command", ["add", "validate"])
def test_memory_does_not_grow_with_the_row_group(command: str, tmp_path: Path) -> None:
    small, large = write(tmp_path / "small.parquet", 250_000), write(tmp_path / "large.parquet", 4_000_000)
    assert pq.ParquetFile(large).num_row_groups == 1
    assert large.stat().st_size > 100 * MIB
    peaks = []
    for path in (small, large):
        out = path.with_suffix(".out")
        arguments: list[object] = ["add", path, "-c", "i,s", "--ndv", "100000", "-o", out, "--threads", "2"]
        peak = growth(*arguments)
        if command == "validate":
            peak = growth("validate", out, "--deep")
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 12 * MIB, peaks
    assert peaks[1] < 40 * MIB, peaks
