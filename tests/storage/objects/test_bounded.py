"""The bounds of an answer, as they apply to the bytes of a connection."""

from __future__ import annotations

import io

import pytest

from bloomcli.storage.objects import bounded
from bloomcli.storage.objects.bounded import (
    PROGRESS_BYTES_PER_SECOND,
    READ_GRACE_SECONDS,
    AnswerTooLong,
    AnswerTooSlow,
)


class _Connection(io.RawIOBase):
    """Sends `step` bytes per read, each of which takes `seconds` by a clock of its own."""

    def __init__(self, step: int, seconds: float) -> None:
        self.step, self.seconds, self.now = step, seconds, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self.now += self.seconds
        return min(self.step, len(buffer))


def _sent(monkeypatch: pytest.MonkeyPatch, step: int, seconds: float, most: int) -> int:
    """The number of bytes that are read before an error; `most` without one."""
    connection = _Connection(step, seconds)
    monkeypatch.setattr(bounded.time, "monotonic", lambda: connection.now)
    wire = bounded._Wire(connection, READ_GRACE_SECONDS)
    wire.most = most
    while wire.count < most:
        wire.readinto(memoryview(bytearray(step)))
    return wire.count


def test_an_answer_at_the_least_speed_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _sent(monkeypatch, PROGRESS_BYTES_PER_SECOND, 1.0, 10 << 20) == 10 << 20


def test_a_pause_within_the_grace_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _sent(monkeypatch, 1 << 20, READ_GRACE_SECONDS, 2 << 20) == 2 << 20


def test_a_byte_in_a_second_is_too_slow_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnswerTooSlow, match=r"32 bytes of the answer took 31 seconds"):
        _sent(monkeypatch, 1, 1.0, 1000)


def test_the_wait_for_the_first_byte_is_left_to_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _sent(monkeypatch, 10, 1000.0, 10) == 10


def test_a_byte_more_than_allowed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnswerTooLong, match="more than 999 bytes"):
        _sent(monkeypatch, 1000, 0.0, 999)
