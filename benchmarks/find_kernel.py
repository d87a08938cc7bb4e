"""Times the kernel that looks up many hashes in a filter, and compares it with only reading the filter's blocks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bloomcli import kernels

HEAD: Final = [
    "filter",
    "ns a check, as find sorts them",
    "million checks a second",
    "ns, in random order",
    "ns to read, sorted",
    "ns to read, random",
]
_KIB: Final = (2, 16, 128, 1024, 8192, 65536)


class Row(NamedTuple):
    """The best rounds for one size, in nanoseconds per hash."""

    kib: int
    sorted_check: float
    random_check: float
    sorted_read: float
    random_read: float

    @property
    def millions(self) -> float:
        """Checks per second, in the order in which `find` makes them."""
        return 1000 / self.sorted_check

    def cells(self) -> list[str]:
        """For the table."""
        return [
            f"{self.kib:,} KiB",
            f"{self.sorted_check:.2f}",
            f"{self.millions:,.0f}",
            *(f"{ns:.2f}" for ns in (self.random_check, self.sorted_read, self.random_read)),
        ]


def measure(values: int, repeat: int) -> list[Row]:
    """All sizes, in turns, in processor time; half of a filter's bits are set."""
    random = np.random.default_rng(7)
    hashes = random.integers(0, 1 << 64, values, dtype=np.uint64)
    ordered = np.sort(hashes)
    best = {kib: [float("inf")] * 4 for kib in _KIB}
    for _ in range(repeat + 1):
        for kib, figures in best.items():
            bits = random.integers(0, 1 << 64, kib << 7, dtype=np.uint64)
            for at, work in enumerate(_works(bits, (ordered, hashes))):
                started = time.thread_time()
                work()
                figures[at] = min(figures[at], (time.thread_time() - started) / values * 1e9)
    return [Row(kib, *figures) for kib, figures in best.items()]


def _works(bits: np.ndarray, orders: tuple[np.ndarray, np.ndarray]) -> list[Callable[[], object]]:
    """Both checks, and both reads."""
    packed = memoryview(bits).cast("B")
    blocks = np.uint64(bits.nbytes // 32)
    places = [
        ((((order >> np.uint64(32)) * blocks) >> np.uint64(32)) * np.uint64(4)).astype(np.int64) for order in orders
    ]
    out, flags = np.empty(len(orders[0]), dtype=np.uint64), bytearray(len(orders[0]))
    return [
        *(
            lambda order=order: kernels.sbbf_check(packed, memoryview(order).cast("B"), len(order), flags)
            for order in orders
        ),
        *(lambda place=place: np.take(bits, place, out=out, mode="clip") for place in places),
    ]
