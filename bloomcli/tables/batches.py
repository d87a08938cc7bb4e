"""Groups files into commits, and handles new files that weren't committed or may not have been."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from bloomcli.concurrency.signals import deferred
from bloomcli.errors import BloomError
from bloomcli.tables.base import Table

T = TypeVar("T")

BATCH_BYTES: Final = 64 << 30
BATCH_FILES: Final = 1_000
"""The most bytes and files of a commit, unless the options set a number of files."""
_NAMED: Final = 20
"""The most new files that a remark names."""


def batches(items: Iterable[T], size: Callable[[T], int], every: int | None) -> Iterator[list[T]]:
    """Yield the items of each commit: `every` items, or as many as `BATCH_FILES` and `BATCH_BYTES` allow."""
    batch: list[T] = []
    total = 0
    for item in items:
        full = len(batch) >= (every or BATCH_FILES) or (every is None and total + size(item) > BATCH_BYTES)
        if batch and full:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


def unknown_outcome_remark(new: Sequence[str]) -> str:
    """The remark on new files that may be part of the table."""
    more = len(new) - _NAMED
    names = ", ".join(new[:_NAMED]) + (f" and {more:,} more, which are the output of their rows" if more > 0 else "")
    return f"it isn't known whether a commit has taken place, so that new files stay: {names}"


def remove_new_files(table: Table, new: Collection[str]) -> list[str]:
    """Remove new files that weren't committed, and return those that remain. Signals wait until the end."""
    with deferred():
        try:
            return table.remove_files(new)
        except BloomError:
            return sorted(new)
