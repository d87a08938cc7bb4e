"""Cancels work in other threads. Only the main thread handles signals, and it can't interrupt compiled code."""

from __future__ import annotations

from dataclasses import dataclass


class Stopped(Exception):
    """The work was cancelled because its caller has stopped."""


@dataclass(slots=True)
class Stop:
    """A cancellation flag. Work in other threads checks it after each piece of bounded size."""

    requested: bool = False

    def check(self) -> None:
        """Raise Stopped if cancellation was requested."""
        if self.requested:
            raise Stopped
