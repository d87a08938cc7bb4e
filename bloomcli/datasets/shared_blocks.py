"""Blocks of values that the tasks of a Spark job share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class SharedBlocks:
    """Blocks of values that are broadcast. All tasks of a job in a Python worker share this object, until the worker
    runs a task of another job.

    Args:
        blocks: the blocks.

    Attributes:
        made: a cache that tasks fill for the following tasks. It isn't pickled.
    """

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._blocks = blocks
        self.made: Any = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._blocks)

    def __reduce__(self) -> tuple[type[SharedBlocks], tuple[Sequence[bytes]]]:
        return SharedBlocks, (self._blocks,)
