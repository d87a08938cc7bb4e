"""Blocks of values that the tasks of a Spark job share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class SharedBlocks:
    """Blocks of values that are broadcast. All tasks of a job that a Python worker runs have the same object, which
    Spark removes from the worker when that runs a task of another job.

    Args:
        blocks: of values.

    Attributes:
        made: what a task made of them, for the next ones. It isn't pickled.
    """

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._blocks = blocks
        self.made: Any = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._blocks)

    def __reduce__(self) -> tuple[type[SharedBlocks], tuple[Sequence[bytes]]]:
        return SharedBlocks, (self._blocks,)
