"""What asks work in other threads to end: compiled code can't be interrupted, so that it is looked at in between."""

from __future__ import annotations

from dataclasses import dataclass


class Stopped(Exception):
    """Work was given up because whoever asked for it has stopped."""


@dataclass(slots=True)
class Stop:
    """Asked for by one thread, obeyed by others: between chunks of a stream, and between batches of values."""

    asked: bool = False

    def check(self) -> None:
        """Raise Stopped once that was asked for."""
        if self.asked:
            raise Stopped
