"""Asks the filters of many files of this machine, before the files that are left are searched one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from bloomcli.commands.find import Asked
from bloomcli.commands.find_values import Values
from bloomcli.formats.filter_answer import FilterAnswer, LikeFiles
from bloomcli.index.lack import Lack
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import FileEntry
from bloomcli.storage.registry import system_name

if TYPE_CHECKING:
    from bloomcli.concurrency.cancellation import Stop
    from bloomcli.concurrency.threads import Future, Threads
    from bloomcli.finding.pruning import Ruled

_TOGETHER: Final = 64
"""Files that are asked in one call, at most."""


class Piece(NamedTuple):
    """A file to search."""

    item: FileEntry
    indexed: Ruled | Lack | None = None
    """What an index tells of it."""
    asked: Asked | None = None
    """What its filters tell."""


def pieces(
    listed: Sequence[FileEntry], values: Values, threads: Threads, jobs: int, stop: Stop
) -> Iterator[Piece | FilterAnswer]:
    """The files to search, and the answers for those that filters rule out, in the order of the files.

    Args:
        listed: all files.
        values: what is looked for. Files are searched until one tells which filters to ask.
        threads: ask.
        jobs: calls at a time.
        stop: ends them.
    """
    asked: deque[Future[list[Piece | FilterAnswer]]] = deque()
    at = 0
    while at < len(listed) or asked:
        like_files = values.like_files
        if like_files is not None and like_files.together:
            together = max(min((len(listed) - at) // jobs, _TOGETHER), 1)
            while at < len(listed) and len(asked) < jobs:
                asked.append(threads.submit(partial(ask, listed[at : at + together], like_files, stop)))
                at += together
        if asked:
            yield from threads.result(asked.popleft())
        else:
            yield Piece(listed[at])
            at += 1


def ask(items: Sequence[FileEntry], like_files: LikeFiles, stop: Stop) -> list[Piece | FilterAnswer]:
    """Some files to search, and the answers for those that filters rule out, in order. Raises Stopped."""
    found: list[Piece | FilterAnswer] = []
    named = ((item, None if item.problem or item.skipped else system_name(item.path)) for item in items)
    for local, some in groupby(named, lambda one: one[1] is not None):
        files = list(some)
        if not local:
            found += (Piece(item) for item, _ in files)
            continue
        at = 0
        for answer in like_files.ask_all([name for _, name in files if name is not None], stop):
            found.append(answer if answer.ruled_out else Piece(files[at][0], asked=Asked(like_files, answer)))
            at += answer.files
    return found
