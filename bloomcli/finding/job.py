"""What a task of a search on executors does: its files, and what is searched in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

from bloomcli.commands.find import IndexedRowGroups
from bloomcli.commands.find_options import FindOptions
from bloomcli.datasets.packing import parts_for
from bloomcli.datasets.record_shape import Shape
from bloomcli.model.find import FileFound

if TYPE_CHECKING:
    import pyarrow as pa

_PART_BYTES: Final = 1 << 30
"""The least size of a part: of most files little is read."""


class DeletedRows(Protocol):
    """The rows of a data file that its table has deleted."""

    def kept(self, rows: pa.Int64Array, record: pa.StructArray) -> pa.BooleanArray:
        """Of each row, by its number in the file, whether the table has it.

        Args:
            rows: numbers of rows in the file.
            record: the same rows, with the columns of `Job.read`.
        """


@dataclass(frozen=True, slots=True)
class FileWork:
    """A file of a search."""

    path: str
    walked: bool = False
    deleted: DeletedRows | None = None
    constants: Mapping[str, str | None] | None = None
    """The texts of the file's partition, by the partition columns' names."""
    found: FileFound | None = None
    """What is known of the file before it is opened."""
    indexed: IndexedRowGroups | None = None
    """The row groups that may have a value, by an index; None: all."""
    indexed_column: str | None = None
    """The column by which the index knows these row groups, where only the file tells whether it is the table's."""

    @property
    def plain(self) -> bool:
        """Nothing but its path is known of it, and a search finds all of its rows as they are in the table."""
        known = self.found is not None or self.indexed is not None or self.indexed_column is not None
        return not (known or self.deleted is not None or self.constants)

    def __reduce__(self) -> tuple[type[FileWork], tuple[object, ...]]:
        """Tasks have thousands of files: what dataclasses do in place of this takes five times as long."""
        rest = (self.deleted, self.constants, self.found, self.indexed, self.indexed_column)
        return FileWork, (self.path, self.walked, *(rest if any(one is not None for one in rest) else ()))


@dataclass(frozen=True, slots=True)
class Job:
    """What is searched in all files."""

    options: FindOptions
    shape: Shape | None = None
    """The columns of `record`; None: as the file has them."""
    read: Shape | None = None
    """The same, and the columns that deletes need."""
    of_table: bool = False
    why_not_lacking: str | None = None
    """Why a file that lacks the searched column can't be searched; None where its rows are null there."""
    typed: bool = False
    """`value` has the type of the frame's values, instead of being their text."""


Part = tuple[tuple[FileWork, ...], Job]
"""The files of a task, and what is searched in them."""


def parts_of(files: Sequence[FileWork], sizes: Sequence[int], job: Job, cores: int) -> list[Part]:
    """Files in their order, in parts of similar size.

    Args:
        files: the files.
        sizes: of each its bytes; negative where they aren't known.
        job: what is searched in all of them.
        cores: tasks that run at a time.
    """
    if not files:
        return []
    items = list(zip(files, sizes, strict=True))
    count = parts_for(items, itemgetter(1), cores, _PART_BYTES)
    whole = sum(max(size, 0) + 1 for size in sizes)
    parts: list[list[FileWork]] = [[] for _ in range(count)]
    done = 0
    for file, size in items:
        parts[min(done * count // whole, count - 1)].append(file)
        done += max(size, 0) + 1
    return [(tuple(part), job) for part in parts if part]
