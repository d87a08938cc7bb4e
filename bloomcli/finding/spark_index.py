"""Looks the values of a search on Spark up in an index: executors don't get files that can't have a value.

If the driver has the values, it looks them up in the index. Otherwise each executor looks up a part of them, and the
driver merges the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from bloomcli.finding.pruning import PartialAnswer, Pruning
from bloomcli.finding.values import Blocks

if TYPE_CHECKING:
    from bloomcli.datasets.spark_find import MapBlocks


def pruning_of(index: str, column: str, map_blocks: MapBlocks) -> Pruning:
    """The answers of an index for the values of a frame. Raises: as `Pruning`."""
    Pruning(index, column, (), ends=False)  # raises if the index doesn't have the column
    return Pruning(index, column, map_blocks(partial(_partial_answers, index=index, column=column)))


def _partial_answers(blocks: Iterable[bytes], index: str, column: str) -> Iterator[PartialAnswer]:
    """Look blocks of values up in an index. Runs on executors or, for few values, on the driver."""
    loaded = Blocks(blocks)
    try:
        for block in loaded.each():
            yield Pruning(index, column, block.values, ends=False).partial_answer
    finally:
        loaded.close()
