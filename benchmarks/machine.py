"""Describes the machine and the number of rounds, for the tables of results."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import bloomcli

_PEERS: Final = ("pyarrow", "duckdb", "datafusion", "arro3-io", "chdb", "pyspark", "numpy")


def rounds(repeat: int) -> str:
    """The number of rounds, in words."""
    return f"{repeat} {'round' if repeat == 1 else 'rounds'} after one warm-up round"


def machine() -> dict[str, str]:
    """The machine and the versions that were measured."""
    model, memory = platform.processor() or platform.machine(), 0.0
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "CPU": model,
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": platform.system(),
        "Python": platform.python_version(),
        "bloomcli": bloomcli.__version__,
        **{name: version(name) for name in _PEERS},
    }
