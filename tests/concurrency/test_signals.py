"""Signals that end a process unwind it, once, and leave alone what others handle or ignore."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from bloomcli.concurrency.cancellation import Stop, Stopped
from bloomcli.concurrency.signals import STOPS, stop_by_default, terminable


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Every signal has its default action before a test, and afterwards what it had."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOPS}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.mark.parametrize("number", STOPS)
def test_the_first_signal_unwinds_and_a_second_does_not_stop_the_tidying_up(number: signal.Signals) -> None:
    tidied = False
    with pytest.raises(SystemExit) as caught, terminable():
        try:
            os.kill(os.getpid(), number)
        finally:
            for again in STOPS:
                os.kill(os.getpid(), again)
            tidied = True
    assert tidied
    assert caught.value.code == 128 + number
    assert [signal.getsignal(each) for each in STOPS] == [signal.SIG_DFL] * len(STOPS)


def test_what_is_ignored_or_handled_by_others_stays_so() -> None:
    others: list[int] = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: others.append(number))
    with terminable():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
    assert others == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_in_another_thread_signals_are_not_touched() -> None:
    seen: list[object] = []

    def work() -> None:
        with terminable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


def test_a_forked_process_takes_off_its_parents_handlers_but_ignores_what_was_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    stop_by_default()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_work_in_other_threads_goes_on_until_it_is_asked_to_end() -> None:
    stop = Stop()
    stop.check()
    stop.requested = True
    with pytest.raises(Stopped):
        stop.check()
