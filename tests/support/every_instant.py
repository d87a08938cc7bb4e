"""Run an action at every instant of a piece of work, one instant per run."""

from __future__ import annotations

import dis
import inspect
import os
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final, NoReturn, Self

WRITING: Final = (
    "atomic.py",
    "renewing.py",
    "temporary.py",
    "exchange.py",
    "locks.py",
    "signals.py",
    "copying.py",
    "contextlib.py",
)
"""The modules that replace files."""


def interrupt() -> NoReturn:
    """Ctrl-C."""
    raise KeyboardInterrupt


class Instant:
    """Within the block, runs an action at the n-th instant. Instants are the start of a function, and the return of a
    call before its result is stored. Between two instants there is at most one system call.
    """

    def __init__(
        self,
        number: int,
        act: Callable[[], object] = interrupt,
        within: tuple[str, ...] = WRITING,
        *,
        counting: bool = True,
    ) -> None:
        self.left = number
        """Instants that remain; negative after the action."""
        self.place = ""
        self.counting = counting
        """Whether the part of the work whose instants count has begun."""
        self._act = act
        self._within = within
        self._last: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._measuring = sys.gettrace()  # as coverage does
        sys.settrace(self._trace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._measuring)

    def begin(self, *_: object) -> None:
        """Count from now on."""
        self.counting = True

    def _trace(self, frame: FrameType, event: str, argument: object) -> Callable[..., object] | None:
        del argument
        if os.path.basename(frame.f_code.co_filename) not in self._within:  # noqa: PTH119
            return None
        if frame.f_code.co_name == "__del__" or (frame.f_back and frame.f_back.f_code.co_name == "__del__"):
            return None  # Python drops exceptions raised there
        frame.f_trace_opcodes = True
        if event == "call":
            self._last.pop(id(frame), None)  # of an ended frame: a reference to it would keep its objects alive
            if not _thrown_into(frame):
                self._pass(frame)
        elif event == "opcode":
            before = self._last.get(id(frame))
            if before is not None and dis.opname[before].startswith("CALL"):
                self._pass(frame)
            self._last[id(frame)] = frame.f_code.co_code[frame.f_lasti]
        return self._trace

    def _pass(self, frame: FrameType) -> None:
        if not self.counting:
            return
        self.left -= 1
        if self.left == -1:
            self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            self._act()


def _thrown_into(frame: FrameType) -> bool:
    """An exception is being thrown into a generator: no instant lies between that and its handlers."""
    caller = frame.f_back
    return (
        caller is not None
        and os.path.basename(caller.f_code.co_filename) == "contextlib.py"  # noqa: PTH119
        and caller.f_code.co_name == "__exit__"
        and caller.f_locals.get("typ") is not None
        and bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
    )
