"""Cancels work in other threads: only the main thread handles signals, and it can't interrupt compiled code."""

from __future__ import annotations


class Stopped(Exception):
    """The work was cancelled because its caller stopped."""


class Stop:
    """A cancellation flag. Work in other threads checks it after each piece of bounded size."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested = False

    def check(self) -> None:
        """Raise Stopped if cancellation was requested."""
        if self.requested:
            raise Stopped
