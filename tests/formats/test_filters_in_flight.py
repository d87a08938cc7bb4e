"""Filters are built under a ceiling of memory and written in order, and no job waits forever."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from support.processes import wait_until

from bloomcli import limits
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.filters_in_flight import BuildQueue, Job, in_order

CEILING = 100


class Memory:
    """Counts the bytes that jobs claim to hold."""

    def __init__(self) -> None:
        self.now = self.peak = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        with self._lock:
            self.now += size
            self.peak = max(self.peak, self.now)


@pytest.fixture(autouse=True)
def ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FILTERS_IN_FLIGHT_MAX_BYTES", CEILING)


def run(sizes: list[int], threads: int, *, shrink: Callable[[int], int] = lambda size: size) -> int:
    """Build and write jobs of these sizes. Returns the highest number of bytes held at one time."""
    memory = Memory()

    def build(number: int) -> tuple[int, int]:
        memory.take(sizes[number])
        time.sleep(random.random() / 2000)  # mixes the order up
        left = shrink(sizes[number])
        memory.take(left - sizes[number])
        return number, left

    jobs = [Job(size, partial(build, number)) for number, size in enumerate(sizes)]
    order = []
    with BuildQueue(jobs, threads, lambda built: built[1]) as ahead:
        ahead.start_jobs()
        while ahead:
            number, left = ahead.take()
            order.append(number)
            memory.take(-left)
            ahead.start_jobs()
    assert order == list(range(len(sizes)))
    assert memory.now == 0
    return memory.peak


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_what_is_in_flight_stays_under_the_ceiling_regardless_of_the_sizes(threads: int) -> None:
    mixed = random.Random(3)
    sizes = [mixed.choice((1, 5, 30, 60)) for _ in range(300)]
    assert run(sizes, threads) <= CEILING
    assert run(sizes, threads, shrink=lambda size: size // 2) <= CEILING


def test_one_that_needs_more_than_the_ceiling_is_built_alone() -> None:
    assert run([10, 500, 10, 700, 10, 10], 4) == 700


def test_all_threads_work_as_long_as_there_is_room() -> None:
    together = threading.Barrier(8)
    jobs = [Job(10, partial(together.wait, 20)) for _ in range(8)]
    with BuildQueue(jobs, 8, lambda _: 0) as ahead:
        ahead.start_jobs()
        assert sorted(ahead.take() for _ in range(8)) == list(range(8))


def test_what_waits_to_be_written_counts_and_the_next_one_waits_for_it() -> None:
    begun: list[int] = []
    jobs = [Job(40, partial(begun.append, number)) for number in range(5)]
    with BuildQueue(jobs, 2, lambda _: 40) as ahead:
        ahead.start_jobs()
        ahead.take()
        assert wait_until(lambda: ahead.ready)
        assert ahead.full
        assert begun == [0, 1]
        ahead.start_jobs()  # the first has been written
        ahead.take()
        ahead.take()
        assert begun == [0, 1, 2]


def test_an_error_is_reported_at_once_and_raised_in_its_turn() -> None:
    def broken() -> int:
        raise ValueError("this one")

    with BuildQueue([Job(1, lambda: 7), Job(1, broken), Job(1, lambda: 9)], 2, lambda _: 1) as ahead:
        ahead.start_jobs()
        assert ahead.take() == 7
        with pytest.raises(ValueError, match="this one"):
            ahead.take()
        assert ahead.failed()


def test_a_caller_that_ends_early_ends_the_jobs_that_run() -> None:
    stop, ended = Stop(), threading.Event()

    def endless() -> int:
        while not stop.requested:
            time.sleep(0.001)
        ended.set()
        stop.check()
        return 0

    def caller() -> None:
        for found in in_order([Job(0, lambda: 7), Job(0, endless), Job(0, endless)], 2, stop):
            raise ValueError(f"at {found}")

    with pytest.raises(ValueError, match="at 7"):
        caller()
    assert stop.requested
    assert ended.is_set(), "the threads were waited for"


def test_results_come_in_the_order_of_the_jobs_until_one_fails() -> None:
    def broken() -> int:
        raise ValueError("this one")

    stop, found = Stop(), []
    with pytest.raises(ValueError, match="this one"):
        for one in in_order([*(Job(0, partial(int, n)) for n in range(20)), Job(0, broken)], 3, stop):
            found.append(one)  # noqa: PERF402  the error comes after some
    assert found == list(range(20))
    assert stop.requested
