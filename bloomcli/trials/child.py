"""The process of a reader: runs a job's lookups one after the other, and sends each outcome."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Final

from bloomcli import limits
from bloomcli.concurrency.threads import start
from bloomcli.datasets.spark_session import first_line
from bloomcli.errors import BloomError
from bloomcli.trials.process import Completion, Job, Message, Outcome, Progress, TrialColumn, TrialFile
from bloomcli.trials.readers import named
from bloomcli.trials.readers.base import Lookup, Reader
from bloomcli.trials.values import LookupValue

_ERROR_MOST: Final = 400
"""Characters of a reader's error that are shown."""


def serve(descriptor: int) -> None:
    """Receive a job on a connection, and send its messages. This process ends when the other end of the connection
    closes."""
    with Connection(descriptor) as connection:
        job: Job = connection.recv()
        start(threading.Thread(target=_end_with, args=(connection,), daemon=True))  # else `send` fails then
        for message in messages(job):
            connection.send(message)


def _end_with(connection: Connection) -> None:
    """End this process when the other end of the connection closes, even during a lookup."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os._exit(1)


def messages(job: Job) -> Iterator[Message]:
    """Start the reader and run the lookups. Any error of the reader becomes a message."""
    started = time.monotonic()
    try:
        reader = named([job.reader])[0].reader()
    except BloomError as error:
        yield Completion(error.reason, error.hint)
        return
    except Exception as error:  # noqa: BLE001  an error of any type is the reader's, and is reported
        yield Completion(_text(error))
        return
    yield Progress("")
    begun: set[tuple[str, bool]] = set()
    for place in job.order():
        file = job.files[place[0]]
        column = file.columns[place[1]]
        value = column.values[place[2]]
        kind = (column.column.path, value.present)
        if job.seconds is not None and time.monotonic() - started > job.seconds and kind in begun:
            break
        begun.add(kind)
        yield from _outcome(reader, file, column, value, job.runs, place)
    reader.close()
    yield Completion()


def _outcome(
    reader: Reader,
    file: TrialFile,
    column: TrialColumn,
    lookup_value: LookupValue,
    runs: int,
    place: tuple[int, int, int],
) -> Iterator[Message]:
    name = f"{column.column.path} = {lookup_value.literal}"
    counted = None
    whole = lookup_value.rows <= limits.TRIAL_ROWS_COMPARED
    yield Progress(f"{name} without filters")
    try:
        without = reader.look_up(_lookup(file, column, lookup_value, filters=False, whole=whole))
    except Exception as error:  # noqa: BLE001
        counted = _text(error)
        whole = False
        try:  # the reader may be unable to read another column of the file
            without = reader.look_up(_lookup(file, column, lookup_value, filters=False, whole=whole))
        except Exception as other:  # noqa: BLE001
            yield Outcome(*place, _text(other), None)
            return
    yield Progress(f"{name} with filters")
    lookups = [_lookup(file, column, lookup_value, filters=filters, whole=whole) for filters in (False, True)]
    try:
        found = reader.look_up(lookups[True])
        seconds = []
        for run in range(runs):
            yield Progress(name)
            # one directly after the other, and every other time the one with filters first
            order = (True, False) if run % 2 else (False, True)
            taken = {filters: reader.seconds(lookups[filters]) for filters in order}
            seconds.append((taken[False], taken[True]))
    except Exception as error:  # noqa: BLE001
        yield Outcome(*place, without, _text(error), counted=counted)
        return
    yield Outcome(*place, without, found, tuple(seconds), counted)


def _lookup(file: TrialFile, column: TrialColumn, lookup_value: LookupValue, *, filters: bool, whole: bool) -> Lookup:
    switched = file.comparison == "switch"
    return Lookup(
        path=file.with_filters if filters else file.without_filters,
        format=file.format,
        names=column.names,
        in_variant=column.in_variant,
        value=lookup_value.value,
        filters=filters or not switched,
        whole=whole,
    )


def _text(error: Exception) -> str:
    """The first line of a reader's error, without the stack traces that Java adds."""
    text = first_line(error)[:_ERROR_MOST]
    return text if " " in text else f"{type(error).__name__} {text}"
