"""Times each kernel in nanoseconds per value, on one core, with a memcpy of the same bytes in the same run.

    python benchmarks/kernels.py [--values 2000000] [--repeat 9]

The rounds are interleaved: every kernel once, then every kernel again; the best of each is shown. Values
come in pages of 20,000 as they do in a file, so that the hashes in between stay in the cache.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bloomcli import kernels

_PAGE: Final = 20_000
_STRING: Final = 36


class Case(NamedTuple):
    """One kernel: its call for one run of values, the bytes that it reads, and its target."""

    title: str
    work: Callable[[], Any]
    values: int
    memcpy: int
    """Bytes that the memcpy copies."""
    target: float | None
    """Nanoseconds per value."""


class Measured(NamedTuple):
    """The best round of one kernel. All figures except `target` are in nanoseconds per value."""

    title: str
    ns: float
    memcpy_ns: float
    target: float | None

    @property
    def met(self) -> bool:
        """Whether the figure is within the target; true without a target."""
        return self.target is None or self.ns <= self.target


def _pages(data: np.ndarray, width: int, hash_page: Callable[[memoryview, int, bytearray], object]) -> None:
    view = memoryview(data).cast("B")
    out = bytearray(_PAGE * 8)
    step = _PAGE * width
    for at in range(0, len(view), step):
        page = view[at : at + step]
        hash_page(page, len(page) // width, out)


def _fixed(width: int) -> Callable[[memoryview, int, bytearray], object]:
    return lambda page, count, out: kernels.hash_plain_fixed(page, width, count, out, every=True)


def _plain(page: memoryview, count: int, out: bytearray) -> None:
    kernels.hash_plain_binary(page, 0, True, out, count, count, True)


def cases(values: int) -> list[Case]:
    """Every kernel over `values` random values."""
    random = np.random.default_rng(7)
    ints = random.integers(0, 1 << 62, values, dtype=np.int64)
    small = random.integers(0, 1 << 31, values, dtype=np.int32)
    strings = np.empty((values, 4 + _STRING), dtype=np.uint8)
    strings[:, :4] = np.frombuffer(_STRING.to_bytes(4, "little"), dtype=np.uint8)
    strings[:, 4:] = random.integers(48, 123, (values, _STRING), dtype=np.uint8)
    text = strings.reshape(-1)
    hashes = bytearray(random.integers(0, 1 << 63, values, dtype=np.uint64).tobytes())
    answers = bytearray(values)
    found = [
        Case("hash int32", lambda: _pages(small, 4, _fixed(4)), values, values * 4, 3.0),
        Case("hash int64", lambda: _pages(ints, 8, _fixed(8)), values, values * 8, 3.0),
        Case("hash 36-byte strings", lambda: _pages(text, 4 + _STRING, _plain), values, values * 40, 12.0),
    ]
    for mebibytes, target in ((2, 8.0), (32, None)):
        bits = bytearray(mebibytes << 20)
        found += [
            Case(
                f"insert, {mebibytes} MB filter",
                lambda bits=bits: kernels.sbbf_insert(bits, hashes, values),
                values,
                values * 8,
                target,
            ),
            Case(
                f"check, {mebibytes} MB filter",
                lambda bits=bits: kernels.sbbf_check(bits, hashes, values, answers),
                values,
                values * 8,
                None,
            ),
        ]
    bits = bytearray(2 << 20)
    kernels.sbbf_insert(bits, hashes, values)
    blocks = len(bits) // 32
    found += [
        Case("stats, a block", lambda: kernels.sbbf_stats(bits), blocks, len(bits), None),
        Case("fold, a block", lambda: kernels.sbbf_resized(bits, blocks // 2), blocks, len(bits), None),
    ]
    return found


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(values: int, repeat: int) -> list[Measured]:
    """Run everything `repeat` times, in turns, on one core."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    try:
        every = cases(values)
        source = np.ones(max(c.memcpy for c in every), dtype=np.uint8)
        copy = np.zeros_like(source)
        best = [[float("inf"), float("inf")] for _ in every]
        for _ in range(repeat + 1):  # the first round warms the memory up, and is rarely the best
            for case, figures in zip(every, best, strict=True):
                figures[0] = min(figures[0], _seconds(case.work))
                size = case.memcpy
                figures[1] = min(figures[1], _seconds(lambda size=size: np.copyto(copy[:size], source[:size])))
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
    return [
        Measured(c.title, work / c.values * 1e9, memcpy / c.values * 1e9, c.target)
        for c, (work, memcpy) in zip(every, best, strict=True)
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    print(f"{'kernel':24}{'ns':>8}{'memcpy':>9}{'ratio':>8}{'target':>8}")
    for row in measure(options.values, options.repeat):
        verdict = "" if row.target is None else f"{row.target:8.0f}  {'met' if row.met else 'MISSED'}"
        print(f"{row.title:24}{row.ns:8.2f}{row.memcpy_ns:9.2f}{row.ns / row.memcpy_ns:8.1f}{verdict}")


if __name__ == "__main__":
    main()
