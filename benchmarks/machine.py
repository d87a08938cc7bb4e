"""The machine that figures belong to, and how often they were measured, as every table of results says it."""

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
    """How many rounds were measured, in words."""
    return f"{repeat} {'round' if repeat == 1 else 'rounds'} after one warm-up round"


def machine() -> dict[str, str]:
    """What the figures belong to."""
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
