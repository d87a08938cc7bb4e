"""What an index says of the files that Spark searches: those that can't have a value aren't given to executors.

The driver asks the index where it has the values. Else executors do, each for some of the values, and the driver sums
up which row groups may have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bloomcli.finding.job import FileWork
from bloomcli.finding.pruning import PartialAnswer, Pruning
from bloomcli.finding.values import Blocks
from bloomcli.index.no_answer import NoAnswer
from bloomcli.model.find import FileFound
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import FileEntry

if TYPE_CHECKING:
    from bloomcli.datasets.spark_find import MapBlocks
    from bloomcli.model.names import ColumnNames


class PrunedFiles(NamedTuple):
    """The files of a search, by an index."""

    files: list[FileWork]
    """Those that the index rules out have their `found`."""
    unopened: int
    """How many it rules out."""
    no_answers: dict[str, NoAnswer]
    """Why the index says nothing of a file, by its path."""


class IndexColumn(NamedTuple):
    """The column of an index that is searched."""

    path: str
    """As files name it."""
    certain: bool = True
    """All files name it so. Else each file is opened to see whether it does: a table finds columns by field ids."""


def column_of(names: ColumnNames | None, column: str) -> IndexColumn:
    """The column of an index for a column of a table, or of files (`names` is None)."""
    if names is None:
        return IndexColumn(column)
    for one in names.columns:
        if one.path == column:
            paths = one.physical or (column,)
            return IndexColumn(paths[0] if one.field_id is None else column, one.field_id is None and len(paths) == 1)
    return IndexColumn(column, certain=False)


def pruned_files(
    pruning: Pruning, files: Sequence[FileWork], listed: Sequence[FileEntry], column: IndexColumn, *, maybe: bool
) -> PrunedFiles:
    """What an index says of files.

    Args:
        pruning: its answers.
        files: of a search.
        listed: the same.
        column: which is searched.
        maybe: no file is opened that the index knows.
    """
    result = PrunedFiles([], 0, {})
    unopened = 0
    for file, item in zip(files, listed, strict=True):
        if file.found is not None:
            result.files.append(file)
            continue
        ruled = pruning.of(item)
        if isinstance(ruled, NoAnswer):
            result.no_answers[file.path] = ruled
            result.files.append(file)
        elif not column.certain:
            result.files.append(replace(file, indexed=ruled.indexed, indexed_column=column.path))
        elif ruled.possible and not maybe:
            result.files.append(replace(file, indexed=ruled.indexed))
        else:
            unopened += 1
            possible = tuple(sorted(ruled.possible))
            found = FileFound(path=file.path, row_groups=ruled.row_groups, row_groups_possible=possible)
            result.files.append(replace(file, found=found))
    return result._replace(unopened=unopened)


def pruning_of(index: str, column: str, map_blocks: MapBlocks) -> Pruning:
    """The answers of an index for the values of a frame. Raises: as `Pruning`."""
    Pruning(index, column, (), ends=False)  # it is an index of the column
    return Pruning(index, column, map_blocks(partial(_partial_answers, index=index, column=column)))


def _partial_answers(blocks: Iterable[bytes], index: str, column: str) -> Iterator[PartialAnswer]:
    """What an index says of values. Runs where the values are."""
    held = Blocks(blocks)
    try:
        for block in held.each():
            yield Pruning(index, column, block.values, ends=False).partial_answer
    finally:
        held.close()
