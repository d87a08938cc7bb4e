"""Rules by which the proxy breaks requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from support.servers.messages import Response


class Action(Enum):
    """What happens to a request."""

    PASS = auto()
    """The request is passed on after `call`."""
    ANSWERED = auto()
    """The request is passed on. `call` is called between the store's answer and the client's receipt of it."""
    REFUSE = auto()
    """The connection is reset after half of the request's body; the store gets none of it."""
    LOSE = auto()
    """The store handles the request, and the connection is reset instead of an answer."""
    RESET = auto()
    """The connection is reset in the middle of the answer's body."""
    TRUNCATE = auto()
    """The connection is closed in the middle of the answer's body, without an error."""
    SHORTEN = auto()
    """The client gets half of the answer's body, with a head that fits it."""
    SLOW = auto()
    """The answer's body comes in small pieces, for `seconds`."""
    ERROR_500 = auto()
    ERROR_503 = auto()
    ERROR_429 = auto()
    FORBIDDEN = auto()
    """The store doesn't get the request, and the answer is this error."""
    FAILED_200 = auto()
    """The store doesn't get the request, and the answer is a 200 with an error in its body."""
    CHANGE = auto()
    """The request is passed on, and the client gets the answer that `change` makes of the store's."""
    ENDLESS = auto()
    """The store doesn't get the request. The answer has the status `status` and a body without an end."""
    CONTINUES = auto()
    """The store doesn't get the request. The answer is `100 Continue`, without an end."""
    DRIP = auto()
    """The store doesn't get the request. The answer has the status `status` and a body of single bytes, each after
    `seconds`."""
    OTHER_TAG = auto()
    """The answer's ETag or generation differs from the object's."""


@dataclass
class Fault:
    """A rule: from the n-th request of a kind on, a number of times."""

    action: Action
    kind: str = ""
    """The dialect's name for the kind of request; empty for every kind."""
    at: int = 1
    """The number of the first such request that the rule breaks, from 1."""
    times: int | None = 1
    """The number of requests to break; None for all later ones."""
    call: Callable[[], object] | None = None
    """Called before the request goes to the store; with LOSE and ANSWERED, when the store has answered."""
    change: Callable[[Response, bytes], bytes] | None = None
    """Changes the head of an answer, and returns the body to send."""
    status: int = 200
    seconds: float = 1.0
    seen: int = field(default=0, init=False)
    """Requests of this kind so far."""
    fired: int = field(default=0, init=False)
    """Broken requests so far."""

    def chooses(self, kind: str) -> bool:
        """Count a request. Returns whether the rule breaks it."""
        if self.kind and kind != self.kind:
            return False
        self.seen += 1
        chosen = self.seen >= self.at and (self.times is None or self.seen < self.at + self.times)
        self.fired += chosen
        return chosen
