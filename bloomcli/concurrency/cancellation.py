"""How work in other threads is told to end: the main thread handles signals, and can't interrupt compiled code."""

from __future__ import annotations

from dataclasses import dataclass


class Stopped(Exception):
    """Work was given up because whoever asked for it has stopped."""


@dataclass(slots=True)
class Stop:
    """Asks work in other threads to end, which looks at it after each bounded piece."""

    asked: bool = False

    def check(self) -> None:
        """Raise Stopped once that was asked for."""
        if self.asked:
            raise Stopped
