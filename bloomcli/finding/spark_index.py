"""Prunes the files of a search on Spark by an index: executors don't get files that can't have a value.

If the driver has the values, it looks them up in the index. Otherwise each executor looks up a part of them, and the
driver merges the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bloomcli.finding.job import FileWork
from bloomcli.finding.pruning import PartialAnswer, Pruning
from bloomcli.finding.values import Blocks
from bloomcli.index.reader import NoAnswer
from bloomcli.model.find import FileFound
from bloomcli.model.schema import ColumnNames
from bloomcli.storage.base import FileEntry

if TYPE_CHECKING:
    from bloomcli.datasets.spark_find import MapBlocks


class PrunedFiles(NamedTuple):
    """The files of a search with the answers of an index."""

    files: list[FileWork]
    """All files; `found` is set for those that needn't be opened."""
    unopened: int
    """Number of files that needn't be opened."""
    no_answers: dict[str, NoAnswer]
    """By path, why the index has no answer for a file."""


class IndexColumn(NamedTuple):
    """The column to look up in an index."""

    path: str
    """The column's path in files."""
    certain: bool = True
    """Whether all files use this path. If not, each file is opened to check: a table finds columns by field ids."""


def column_of(names: ColumnNames | None, column: str) -> IndexColumn:
    """The column to look up in an index, for a column of a table or, if `names` is None, of files."""
    if names is None:
        return IndexColumn(column)
    for table_column in names.columns:
        if table_column.path == column:
            paths = table_column.physical or (column,)
            return IndexColumn(
                paths[0] if table_column.field_id is None else column,
                table_column.field_id is None and len(paths) == 1,
            )
    return IndexColumn(column, certain=False)


def pruned_files(
    pruning: Pruning, files: Sequence[FileWork], listed: Sequence[FileEntry], column: IndexColumn, *, maybe: bool
) -> PrunedFiles:
    """Add the answers of an index to the files of a search.

    Args:
        pruning: the answers.
        files: the files.
        listed: the entries of the same files.
        column: the column that was looked up.
        maybe: don't open files for which the index has an answer.
    """
    result = PrunedFiles([], 0, {})
    unopened = 0
    for file, item in zip(files, listed, strict=True):
        if file.found is not None:
            result.files.append(file)
            continue
        answer = pruning.of(item)
        if isinstance(answer, NoAnswer):
            result.no_answers[file.path] = answer
            result.files.append(file)
        elif not column.certain:
            result.files.append(replace(file, indexed=answer, indexed_column=column.path))
        elif answer.row_groups and not maybe:
            result.files.append(replace(file, indexed=answer))
        else:
            unopened += 1
            possible = tuple(sorted(answer.row_groups))
            found = FileFound(path=file.path, row_groups=answer.total, row_groups_possible=possible)
            result.files.append(replace(file, found=found))
    return result._replace(unopened=unopened)


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
