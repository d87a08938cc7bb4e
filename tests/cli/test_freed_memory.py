"""A command keeps the memory that it frees, because the kernel clears what it gives again."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.golden import FIXTURES

FAULTS: Final = """
import resource, sys
from bloomcli.cli import bloom
if sys.argv[1:]:
    bloom(["inspect", *sys.argv[1:]], standalone_mode=False)
for turn in range(8):  # a chunk's window, dictionary and values, which are freed together
    if turn == 3:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    parts = [bytearray(3 << 20) for _ in range(3)]
    del parts
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc's")
def test_a_command_keeps_the_memory_of_a_column_chunk_for_the_next_one() -> None:
    def faults(*file: Path) -> int:
        run = subprocess.run([sys.executable, "-c", FAULTS, *file], capture_output=True, check=True)
        return int(run.stderr)

    assert faults(FIXTURES / "spark_types.parquet") < 100 < 5000 < faults()
