"""The tasks of a run in the order in which they start, without an object for each.

Largest files come first: one that starts last would keep one worker busy while the others wait. Of very many files
only the largest are sorted, and the others start in the order in which they are listed.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bloomcli.compact import PLAIN_MOST, PositionedItems
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import Status
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.registry import store_of

_SORTED_OF_MANY: Final = 4096
"""Files that are sorted by size where there are more than `PLAIN_MOST`. None of the others is larger."""


class Overview(NamedTuple):
    """What an engine has to know of all tasks before the first one starts: one pass over them."""

    first: Sequence[int]
    """Positions of the tasks that start first, the largest first."""
    others: bytes
    """A 1 at the position of each task that starts later."""
    open: int
    """Tasks without a row."""
    failed: bool
    """A task has the row of a failure."""
    dry_run: bool
    remote: bool
    """A file lies in a store whose answers take time, or is to be written there."""
    light: bool
    """All files lie in such stores, and are only looked at: `Task.is_light`."""
    bytes: int
    """Bytes of the files of tasks without a row."""


def overview_of(tasks: Sequence[Task]) -> Overview:
    """Look at all tasks."""
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
    """Tasks without a row by their positions, in the order in which they start. Each is made when it is looked up."""

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
    """Tasks by their positions, in the order in which they were added."""

    def __init__(self, positions: int) -> None:
        self._order = array("q")
        self._tasks = PositionedItems[Task](positions, shared=("options",))

    def put(self, position: int, task: Task) -> None:
        """Add the task of a position."""
        self._order.append(position)
        self._tasks.put(position, task)

    def __getitem__(self, position: int) -> Task:
        return self._tasks.at(position)

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)
