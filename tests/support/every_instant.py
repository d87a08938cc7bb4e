"""Run an action at every instant of a piece of work, one instant per run."""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
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


_CALLS: Final = frozenset(number for name, number in dis.opmap.items() if name.startswith("CALL"))


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
        self._counting = counting
        self._act = act
        self._within = within
        self._last: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._measuring = sys.gettrace()  # as coverage does
        if self._counting:
            sys.settrace(self._trace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._measuring)

    def begin(self, *_: object) -> None:
        """Count from now on, if it wasn't `counting` from the start."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._looks_at(frame):
                frame.f_trace, frame.f_trace_opcodes = self._trace, True
                self._last[id(frame)] = dis.opmap["CALL"]  # it waits for the end of one
            frame = frame.f_back
        sys.settrace(self._trace)

    def _looks_at(self, frame: FrameType) -> bool:
        return _read(frame.f_code)[0] in self._within

    def _trace(self, frame: FrameType, event: str, argument: object) -> Callable[..., object] | None:
        del argument
        if not self._looks_at(frame):
            return None
        if frame.f_code.co_name == "__del__" or (frame.f_back and frame.f_back.f_code.co_name == "__del__"):
            return None  # Python drops exceptions raised there
        frame.f_trace_opcodes = True
        if event == "call":
            self._last.pop(id(frame), None)  # of an ended frame: a reference to it would keep its objects alive
            if not _thrown_into(frame):
                self._pass(frame)
        elif event == "opcode":
            if self._last.get(id(frame)) in _CALLS:
                self._pass(frame)
            self._last[id(frame)] = _read(frame.f_code)[1][frame.f_lasti]
        return self._trace

    def _pass(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left == -1:
            self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            sys.settrace(self._measuring)  # nothing is counted after that
            self._act()


@functools.cache
def _read(code: CodeType) -> tuple[str, bytes]:
    """The name of a function's module, and its instructions, of which each look at it makes a copy."""
    return os.path.basename(code.co_filename), code.co_code  # noqa: PTH119


def _thrown_into(frame: FrameType) -> bool:
    """An exception is being thrown into a generator: no instant lies between that and its handlers."""
    caller = frame.f_back
    return (
        caller is not None
        and _read(caller.f_code)[0] == "contextlib.py"
        and caller.f_code.co_name == "__exit__"
        and caller.f_locals.get("typ") is not None
        and bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
    )
