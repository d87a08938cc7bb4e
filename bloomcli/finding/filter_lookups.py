"""Looks values up in the filters of many local files, before the remaining files are searched one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.commands.find_values import Values
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.filter_lookup import FilterAnswer, FilterLookup
from bloomcli.index.reader import NoAnswer
from bloomcli.storage.base import FileEntry
from bloomcli.storage.registry import system_name

if TYPE_CHECKING:
    from bloomcli.commands.find import IndexedRowGroups
    from bloomcli.concurrency.threads import Future, Threads

_BATCH_FILES: Final = 64
"""Most files of one call of compiled code."""


class FileToSearch(NamedTuple):
    """A file to search."""

    item: FileEntry
    indexed: IndexedRowGroups | NoAnswer | None = None
    """The answer of an index for the file, or why it has none; None without an index."""
    answer: FilterAnswer | None = None
    """The answer of the file's filters; None before they are read."""


def files_to_search(
    listed: Sequence[FileEntry], values: Values, threads: Threads, jobs: int, stop: Stop
) -> Iterator[FileToSearch | FilterAnswer]:
    """Yield the files to search, and the answers for those that filters rule out, in the files' order.

    Args:
        listed: all files.
        values: the values to find. The search of a first file sets `values.filter_lookup`.
        threads: run the calls of compiled code.
        jobs: calls at a time.
        stop: cancels them.
    """
    waiting: deque[Future[list[FileToSearch | FilterAnswer]]] = deque()
    at = 0
    while at < len(listed) or waiting:
        filter_lookup = values.filter_lookup
        if filter_lookup is not None and filter_lookup.can_batch:
            count = max(min((len(listed) - at) // jobs, _BATCH_FILES), 1)
            while at < len(listed) and len(waiting) < jobs:
                waiting.append(threads.submit(partial(look_up, listed[at : at + count], filter_lookup, stop)))
                at += count
        if waiting:
            yield from threads.result(waiting.popleft())
        else:
            yield FileToSearch(listed[at])
            at += 1


def look_up(items: Sequence[FileEntry], filter_lookup: FilterLookup, stop: Stop) -> list[FileToSearch | FilterAnswer]:
    """Look the values up in the filters of files: the files to search, and the answers for the others, in order.

    Raises Stopped.
    """
    result: list[FileToSearch | FilterAnswer] = []
    named_items = ((item, None if item.problem or item.skipped else system_name(item.path)) for item in items)
    for local, group in groupby(named_items, lambda pair: pair[1] is not None):
        files = list(group)
        if not local:
            result += (FileToSearch(item) for item, _ in files)
            continue
        at = 0
        for answer in filter_lookup.look_up_all([name for _, name in files if name is not None], stop):
            result.append(answer if answer.ruled_out else FileToSearch(files[at][0], answer=answer))
            at += answer.files
    return result
