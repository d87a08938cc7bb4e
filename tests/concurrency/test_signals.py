"""Signals that end a process raise SystemExit once. Ignored signals and other handlers are unaffected."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from bloomcli.concurrency.signals import STOPS, plain_interrupts, stop_by_default, terminable
from bloomcli.concurrency.threads import Stop, Stopped


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Sets every signal to its default action for a test, and restores it afterwards."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOPS}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.mark.parametrize("number", STOPS)
def test_the_first_signal_raises_and_a_second_does_not_interrupt_the_cleanup(number: signal.Signals) -> None:
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


def test_ignored_signals_and_other_handlers_stay() -> None:
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


def test_a_forked_process_restores_default_handlers_but_keeps_ignored_signals() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    stop_by_default()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_work_in_other_threads_continues_until_a_stop_is_requested() -> None:
    stop = Stop()
    stop.check()
    stop.requested = True
    with pytest.raises(Stopped):
        stop.check()


def test_ctrl_c_raises_keyboard_interrupt_if_pyspark_s_handler_fails() -> None:
    def failing(number: int, frame: object) -> None:
        raise RuntimeError("the connection is in use")

    failing.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, failing)
    try:
        with pytest.raises(KeyboardInterrupt), plain_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        assert signal.getsignal(signal.SIGINT) is failing
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_handler_of_ctrl_c_stays() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # where Spark has run, pyspark's is there
    try:
        with plain_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
