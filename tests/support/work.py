"""Counts work, because seconds depend on the machine and its load: pieces of bounded size, and calls of functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTING: Final = Path(__file__).with_name("counting")
"""A folder for PYTHONPATH, with which Python counts pieces."""


def counting(folder: Path | str, held: int | None = None) -> dict[str, str]:
    """The environment of a command whose pieces are counted in a folder.

    With `held`, each of its processes waits after so many pieces until it is cancelled.
    """
    more = {} if held is None else {"COUNTINGHELD": str(held)}
    return os.environ | {"PYTHONPATH": str(COUNTING), "COUNTINGFOLDER": str(folder)} | more


def pieces(folder: Path | str) -> list[int]:
    """The number of pieces of each process that has begun one."""
    return sorted(path.stat().st_size for path in Path(folder).iterdir())


@contextmanager
def java_calls(session: SparkSession) -> Iterator[list[str]]:
    """The commands that Py4J sends to Java within the block: calls of methods, and reads of fields."""
    assert session._jvm is not None
    client = session._jvm._gateway_client
    sent: list[str] = []

    def send(command: str, *args: Any, **options: Any) -> Any:
        sent.append(command)
        return type(client).send_command(client, command, *args, **options)

    client.send_command = send
    try:
        yield sent
    finally:
        del client.send_command


def calls(function: Callable[[], object]) -> int:
    """The number of Python functions that a function calls in this thread, at any depth."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        del frame, arg
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
