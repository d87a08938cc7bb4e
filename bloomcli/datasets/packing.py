"""Packs tasks into parts of similar weight, and orders the tasks of a run, without an object for each task.

Longest processing time first (Graham 1969): the heaviest item goes to the part that is lightest so far. The heaviest
part is then at most 4/3 as heavy as in the best packing.

The largest files start first: a large file that starts last would keep one worker busy while the others wait. If
there are very many files, only the largest are sorted, and the others start in the order of the listing.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from bloomcli.compact import PLAIN_MOST, PositionedItems
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import Status
from bloomcli.storage.registry import store_of

T = TypeVar("T")

_FILE_BYTES: Final = 1 << 20
"""The cost of opening, syncing and renaming a file, in bytes read: it dominates for thousands of tiny files."""

_PART_BYTES: Final = 256 << 20
"""The smallest weight of a part: Spark takes about 70 ms to run a Python task that does nothing."""

_WAVES: Final = (2, 8)
"""Parts for each core, at least and at most. More parts make the last wave shorter and a repeated part smaller."""

_MOST_FILES: Final = 256
"""The most files of a part, so that losing a machine repeats little work."""


def parts_for(items: Sequence[T], size: Callable[[T], int], cores: int, part_bytes: int = _PART_BYTES) -> int:
    """The number of parts: 2 to 8 for each core, so that a part has `part_bytes` or more where possible, and more
    parts where one would have more than 256 files."""
    weights = _weights(items, size)
    least, most = _WAVES
    waves = min(max(sum(weights) // part_bytes // cores, least), most)
    return min(len(items), max(cores * waves, -(-len(items) // _MOST_FILES)))


def pack(items: Sequence[T], size: Callable[[T], int], parts: int) -> list[list[T]]:
    """Pack items into at most `parts` lists, heaviest first, each with its largest item first.

    Args:
        items: the things to pack.
        size: bytes of an item, negative if unknown; such an item counts as an average one.
        parts: the most lists.
    """
    weights = _weights(items, size)
    lists: list[list[T]] = [[] for _ in range(min(parts, len(items)))]
    loads = [(0, i) for i in range(len(lists))]
    for at in sorted(range(len(items)), key=weights.__getitem__, reverse=True):
        load, i = loads[0]
        lists[i].append(items[at])
        heapq.heapreplace(loads, (load + weights[at], i))
    heaviest = sorted(loads, key=lambda entry: (-entry[0], entry[1]))
    return [lists[i] for _, i in heaviest]


def _weights(items: Sequence[T], size: Callable[[T], int]) -> list[int]:
    sizes = [size(item) for item in items]
    known = [s for s in sizes if s >= 0]
    average = sum(known) // len(known) if known else 0
    return [(s if s >= 0 else average) + _FILE_BYTES for s in sizes]


_SORTED_OF_MANY: Final = 4096
"""The number of files that are sorted by size if there are more than `PLAIN_MOST`. No other file is larger."""


class Overview(NamedTuple):
    """Totals that an engine needs before the first task starts, from one pass over all tasks."""

    first: Sequence[int]
    """Positions of the tasks that start first, by descending size."""
    others: bytes
    """A 1 at the position of each other task without a row."""
    open: int
    """The number of tasks without a row."""
    failed: bool
    """The row of some task is a failure."""
    dry_run: bool
    remote: bool
    """Some file is read from or written to a remote store."""
    light: bool
    """All files are in remote stores, and all tasks are light: `Task.is_light`."""
    bytes: int
    """The total size of the files of tasks without a row."""


def overview_of(tasks: Sequence[Task]) -> Overview:
    """Make the overview of tasks."""
    state = bytearray(len(tasks))
    failed = dry_run = remote = False
    light = True
    total = 0

    def sizes() -> Iterator[tuple[int, int]]:
        nonlocal failed, dry_run, remote, light, total
        for i, task in enumerate(tasks):
            dry_run = dry_run or task.dry_run
            remote = remote or any(store_of(path).remote for path in (task.path, task.output) if path is not None)
            if task.row is not None:
                failed = failed or task.row.status is Status.FAILED
                continue
            state[i] = 1
            light = light and task.is_light and store_of(task.path).remote
            total += max(task.size, 0)
            yield -task.size, i

    first = sorted(sizes()) if len(tasks) <= PLAIN_MOST else heapq.nsmallest(_SORTED_OF_MANY, sizes())
    for _, i in first:
        state[i] = 0
    open_ = len(first) + state.count(1)
    return Overview([i for _, i in first], bytes(state), open_, failed, dry_run, remote, light, total)


class OrderedTasks(Mapping[int, Task]):
    """Tasks without a row, by position, in start order. A task object is made when it is looked up."""

    def __init__(self, tasks: Sequence[Task], overview: Overview, threads: Callable[[int], int]) -> None:
        self._tasks, self._overview, self._threads = tasks, overview, threads

    def __getitem__(self, position: int) -> Task:
        task = self._tasks[position]
        return replace(task, threads=self._threads(task.size))

    def __iter__(self) -> Iterator[int]:
        yield from self._overview.first
        position = -1
        while (position := self._overview.others.find(1, position + 1)) >= 0:
            yield position

    def __len__(self) -> int:
        return self._overview.open


class ReceivedTasks(Mapping[int, Task]):
    """Tasks by position, in the order in which they were added."""

    def __init__(self, positions: int) -> None:
        self._order = array("q")
        self._tasks = PositionedItems[Task](positions, shared=("options",))

    def put(self, position: int, task: Task) -> None:
        """Add a task at a position."""
        self._order.append(position)
        self._tasks.put(position, task)

    def __getitem__(self, position: int) -> Task:
        return self._tasks.at(position)

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)
