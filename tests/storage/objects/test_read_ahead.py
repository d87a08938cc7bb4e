"""Announced ranges: read with few requests, several at once, in bounded memory, and always the right bytes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
from support.processes import wait_until

from bloomcli.errors import SourceChanged
from bloomcli.storage.objects.source import (
    AHEAD_BYTES,
    CONCURRENT,
    GAP_BYTES,
    GAPS_BYTES,
    HELD_BYTES,
    PART_BYTES,
    SMALL_GAP_BYTES,
    ReadAhead,
    merged,
)

MIB = 1 << 20


class Object:
    """Bytes that depend on their offset, and the requests for them."""

    def __init__(self, wait: float = 0.0, fail: Callable[[int], bool] = lambda _: False, together: int = 1) -> None:
        """`together`: a request is answered as soon as that many have come."""
        self.requests: list[tuple[int, int]] = []
        self.at_once = self.most_at_once = 0
        self._wait, self._fail, self._lock = wait, fail, threading.Lock()
        self._together = threading.Barrier(together)

    @staticmethod
    def content(offset: int, length: int) -> bytes:
        first = offset // 8
        words = b"".join(number.to_bytes(8, "little") for number in range(first, (offset + length) // 8 + 1))
        return words[offset % 8 : offset % 8 + length]

    def fetch(self, offset: int, length: int) -> bytes:
        with self._lock:
            self.requests.append((offset, length))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self._together.wait(60)
        time.sleep(self._wait)
        with self._lock:
            self.at_once -= 1
        if self._fail(offset):
            raise SourceChanged("the object changed")
        return self.content(offset, length) if length <= 4096 else bytes(length)


def test_near_ranges_are_one_request_and_far_ones_are_several() -> None:
    near = [(0, 100), (100, 50), (SMALL_GAP_BYTES + 150, 10)]
    assert list(merged(near)) == [(0, SMALL_GAP_BYTES + 160)]
    far = [(0, 100), (GAP_BYTES + 101, 100)]
    assert list(merged(far)) == far
    assert list(merged([])) == []


def test_larger_gaps_are_read_for_fewer_requests_up_to_a_number_of_bytes() -> None:
    gap = GAP_BYTES // 2
    few = [(number * gap, 32) for number in range(5)]
    assert len(list(merged(few))) == 1
    many = [(number * gap, 32) for number in range(1000)]
    requests = list(merged(many))
    assert len(requests) > 900
    assert sum(length for _, length in requests) <= GAPS_BYTES + 32 * 1000 + 32


def test_a_long_range_is_read_in_equal_parts() -> None:
    parts = list(merged([(7, 3 * PART_BYTES + 1)]))
    assert len(parts) == 4
    assert max(length for _, length in parts) - min(length for _, length in parts) < 4
    assert sum(length for _, length in parts) == 3 * PART_BYTES + 1


def test_ranges_that_were_announced_together_are_requested_together() -> None:
    stored = Object(together=CONCURRENT)
    ahead = ReadAhead(stored.fetch)
    ranges = [(number * 10 * MIB, 64) for number in range(3 * CONCURRENT)]
    ahead.announce(ranges)
    for offset, length in ranges:
        assert ahead.read(offset, length) == Object.content(offset, length)
    assert sorted(stored.requests) == ranges
    assert stored.most_at_once == CONCURRENT
    ahead.close()


def test_what_is_not_announced_is_requested_as_it_is_read() -> None:
    stored = Object()
    ahead = ReadAhead(stored.fetch)
    ahead.announce([(1000, 100)])
    assert ahead.read(900, 300) == Object.content(900, 300)
    assert stored.requests == [(900, 100), (1000, 100), (1100, 100)]
    ahead.close()


def test_what_is_held_is_not_requested_again() -> None:
    stored = Object()
    ahead = ReadAhead(stored.fetch)
    ahead.announce([(0, 512)])
    ahead.read(0, 512)
    ahead.announce([(0, 1024)])
    assert ahead.read(0, 1024) == Object.content(0, 1024)
    assert stored.requests == [(0, 512), (512, 512)]
    ahead.close()


def test_memory_is_bounded_whatever_is_announced_and_each_byte_comes_once() -> None:
    stored = Object()
    ahead = ReadAhead(stored.fetch)
    total = 40 * PART_BYTES
    ahead.announce([(0, total)])
    for at in range(0, total, MIB):
        assert len(ahead.read(at, MIB)) == MIB
    assert ahead.peak <= HELD_BYTES
    assert sum(length for _, length in stored.requests) == total
    assert len(stored.requests) == 40
    ahead.close()


def test_the_next_window_is_requested_while_the_current_one_is_used() -> None:
    stored = Object(wait=0.01)
    ahead = ReadAhead(stored.fetch)
    ahead.announce([(0, 8 * PART_BYTES)])
    ahead.read(0, MIB)
    assert wait_until(lambda: len(stored.requests) == 1 + AHEAD_BYTES // PART_BYTES)
    time.sleep(0.1)  # for requests beyond the window
    assert len(stored.requests) == 1 + AHEAD_BYTES // PART_BYTES
    ahead.close()


def test_ranges_may_be_read_in_any_order_and_by_several_threads() -> None:
    stored = Object(wait=0.001)
    ahead = ReadAhead(stored.fetch)
    rng = random.Random(3)
    ranges = [(rng.randrange(200 * MIB), rng.randrange(1, 4000)) for _ in range(300)]
    ahead.announce(ranges)
    wrong: list[int] = []

    def work(seed: int) -> None:
        order = ranges.copy()
        random.Random(seed).shuffle(order)
        for offset, length in order:
            if length <= 4096 and len(ahead.read(offset, length)) != length:
                wrong.append(offset)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not wrong
    assert ahead.peak <= HELD_BYTES
    ahead.close()


def test_an_error_of_a_request_is_that_of_every_reader_of_its_range() -> None:
    stored = Object(fail=lambda offset: offset >= 10 * MIB)
    ahead = ReadAhead(stored.fetch)
    ahead.announce([(0, 10), (10 * MIB, 10), (20 * MIB, 10)])
    assert ahead.read(0, 10) == Object.content(0, 10)
    for offset in (10 * MIB, 10 * MIB, 20 * MIB):
        with pytest.raises(SourceChanged):
            ahead.read(offset, 10)
    ahead.close()


def test_ranges_are_read_where_the_system_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    stored = Object()
    ahead = ReadAhead(stored.fetch)
    ranges = [(number * 10 * MIB, 64) for number in range(20)]
    ahead.announce(ranges)
    for offset, length in reversed(ranges):
        assert ahead.read(offset, length) == Object.content(offset, length)
    ahead.close()


def test_closing_waits_for_requests_that_were_sent_and_sends_no_more() -> None:
    stored = Object(wait=0.05)
    ahead = ReadAhead(stored.fetch)
    ahead.announce([(number * 10 * MIB, 64) for number in range(100)])
    ahead.close()
    sent = len(stored.requests)
    time.sleep(0.15)
    assert len(stored.requests) == sent <= CONCURRENT
