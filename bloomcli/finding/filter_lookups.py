"""Looks values up in the filters of many local files, before the remaining files are searched one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Final

from bloomcli.commands.find_values import Values
from bloomcli.concurrency.threads import Future, Stop, Threads
from bloomcli.errors import BloomError
from bloomcli.finding.search_files import FileWork
from bloomcli.formats.filter_lookup import FilterAnswer, FilterLookup
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import open_source, system_name
from bloomcli.storage.sources import check_not_written

_BATCH_FILES: Final = 64
"""Most files of one call of compiled code."""


def files_to_search(
    files: Sequence[FileWork], values: Values, threads: Threads, jobs: int, stop: Stop, *, decodes: bool = True
) -> Iterator[FileWork | FilterAnswer]:
    """Yield the files to search, and the answers for those that filters rule out, in the files' order.

    Args:
        files: all files.
        values: the values to find. The search of a first file sets `values.filter_lookup`.
        threads: run the calls of compiled code.
        jobs: calls at a time.
        stop: cancels them.
        decodes: whether to decode the column of files that may have a value, if `FilterAnswer.decoded` can.
    """
    waiting: deque[Future[list[FileWork | FilterAnswer]]] = deque()
    at = 0
    while at < len(files) or waiting:
        filter_lookup = values.filter_lookup
        if filter_lookup is not None and filter_lookup.can_batch:
            count = max(min((len(files) - at) // jobs, _BATCH_FILES), 1)
            while at < len(files) and len(waiting) < jobs:
                waiting.append(
                    threads.submit(partial(look_up, files[at : at + count], filter_lookup, stop, decodes=decodes))
                )
                at += count
        if waiting:
            yield from threads.result(waiting.popleft())
        else:
            yield files[at]
            at += 1


def look_up(
    files: Sequence[FileWork], filter_lookup: FilterLookup, stop: Stop, *, decodes: bool = True
) -> list[FileWork | FilterAnswer]:
    """Look the values up in the filters of files: the files to search, and the answers for the others, in order.

    `decodes`: as in `files_to_search`. Raises Stopped.
    """
    result: list[FileWork | FilterAnswer] = []
    named_files = ((file, None if file.found is not None else system_name(file.path)) for file in files)
    for local, group in groupby(named_files, lambda pair: pair[1] is not None):
        some = list(group)
        if not local:
            result += (file for file, _ in some)
            continue
        at = 0
        for answer in filter_lookup.look_up_all([name for _, name in some if name is not None], stop):
            file = some[at][0]
            if decodes and answer.may_match is not None:
                stop.check()
                answer = _decoded(file.path, answer)
            result.append(answer if answer.ruled_out else file._replace(answer=answer))
            at += answer.files
    return result


def _decoded(path: str, answer: FilterAnswer) -> FilterAnswer:
    """`FilterAnswer.decoded`; the same answer if the file can't be opened or changes, which its search reports."""
    with suppress(BloomError), convert_os_errors(path), open_source(path) as source:
        if answer.stamp == (source.size, source.fingerprint.mtime_ns):
            decoded_answer = answer.decoded(source)
            check_not_written(source)
            return decoded_answer
    return answer
