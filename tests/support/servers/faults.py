"""What the proxy does to requests that a rule chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto


class Action(Enum):
    """What happens to a request."""

    PASS = auto()
    """Nothing, after `call` was called."""
    ANSWERED = auto()
    """Nothing, but `call` is called when the store has answered, before the client has the answer."""
    REFUSE = auto()
    """The connection is reset after half of the request's body; the store gets none of it."""
    LOSE = auto()
    """The store does it, and the connection is reset instead of its answer."""
    RESET = auto()
    """The connection is reset in the middle of the answer's body."""
    TRUNCATE = auto()
    """The connection is closed in the middle of the answer's body, without an error."""
    SHORTEN = auto()
    """Half of the answer's body comes, and the head says that this is all."""
    SLOW = auto()
    """The answer's body comes in drips, for `seconds`."""
    ERROR_500 = auto()
    ERROR_503 = auto()
    ERROR_429 = auto()
    FORBIDDEN = auto()
    """The store gets nothing of it, and the answer is this error."""
    FAILED_200 = auto()
    """The store gets nothing of it, and the answer is a 200 with an error in its body."""
    OTHER_TAG = auto()
    """The answer has another ETag, or generation, than the object."""


@dataclass
class Fault:
    """A rule: from the n-th request of a kind on, a number of times."""

    action: Action
    kind: str = ""
    """The kind of request, as the dialect calls it; empty for every kind."""
    at: int = 1
    """Which of them is the first."""
    times: int | None = 1
    """How many of them; None for all that follow."""
    call: Callable[[], object] | None = None
    """Called before the request goes to the store; with LOSE and ANSWERED, when the store has answered."""
    seconds: float = 1.0
    seen: int = field(default=0, init=False)
    """Requests of this kind so far."""
    fired: int = field(default=0, init=False)
    """How many of them the action happened to."""

    def chooses(self, kind: str) -> bool:
        """Count a request; whether the action is for it."""
        if self.kind and kind != self.kind:
            return False
        self.seen += 1
        chosen = self.seen >= self.at and (self.times is None or self.seen < self.at + self.times)
        self.fired += chosen
        return chosen
