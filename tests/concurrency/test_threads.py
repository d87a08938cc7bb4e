"""A pool of threads cancels work that hasn't started, and works if the system refuses to start threads; and the ends
of pipes are closed even where the system reports an error."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Final

import pytest
from conftest import ROOT
from support.processes import wait_until

from bloomcli.concurrency import close_pipe, threads
from bloomcli.concurrency.threads import Stopped, Threads


def test_work_starts_in_order_of_submission_and_result_raises_its_error() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        return 100 // number

    with Threads(1, "test") as threads:
        futures = [threads.submit(lambda n=n: work(n)) for n in (5, 0, 4)]  # type: ignore[misc]
        assert threads.result(futures[0]) == 20
        with pytest.raises(ZeroDivisionError):
            threads.result(futures[1])
        assert threads.result(futures[2]) == 25
    assert begun == [5, 0, 4]
    assert not threads.refused


@pytest.mark.parametrize("most", [0, 1, 3])
def test_map_returns_results_in_order_and_raises_the_first_error(most: int) -> None:
    with Threads(most, "test") as threads:
        assert threads.map(lambda n: n * n, range(50)) == [n * n for n in range(50)]
        with pytest.raises(ZeroDivisionError):
            threads.map(lambda n: 1 // n, [1, 0, 2])


def test_close_cancels_work_that_has_not_started() -> None:
    release, done = threading.Event(), []
    with Threads(1, "test") as threads:
        threads.submit(release.wait)
        waiting = threads.submit(lambda: done.append(1))
        threading.Timer(0.05, release.set).start()
    with pytest.raises(Stopped):
        waiting.result()
    assert done == []
    assert not [t for t in threading.enumerate() if t.name.startswith("test-")]


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_fewer_threads_do_all_the_work_and_without_any_the_waiting_thread_does_it(
    allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, started = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("test-"):
            if len(started) >= allowed:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with Threads(5, "test") as threads:
        futures = [threads.submit(lambda n=n: (n, threading.current_thread())) for n in range(50)]  # type: ignore[misc]
        results = [threads.result(future) for future in futures]
    assert [number for number, _ in results] == list(range(50))
    workers = {thread for _, thread in results}
    assert workers <= set(started) if allowed else workers == {threading.current_thread()}
    assert threads.refused


INTERRUPTED = """
import random, signal, sys
from bloomcli.concurrency.threads import Threads

class Interrupt(Exception): pass

def interrupt(*_):
    raise Interrupt

signal.signal(signal.SIGINT, interrupt)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
rng, hit = random.Random(1), 0
for _ in range(600):
    threads = Threads(2, "test")
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 0.0015))
            while True:
                futures = [threads.submit(lambda n=n: n) for n in range(12)]
                assert [threads.result(future) for future in futures] == list(range(12))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        hit += 1
    threads.close()
print(hit)
"""


@pytest.mark.slow
def test_a_pool_closes_wherever_a_signal_interrupts_the_submitting_thread() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "600\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.001])
def test_a_thread_that_starts_late_and_the_waiting_thread_share_the_work(
    pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_START_SECONDS", 0)
    before = threading.active_count()
    for _ in range(50):
        with Threads(3, "late") as pool:
            futures = [pool.submit(lambda n=n: time.sleep(pause) or n) for n in range(20)]
            assert [pool.result(future) for future in futures] == list(range(20))
    assert wait_until(lambda: threading.active_count() <= before)


NO_MEMORY: Final = """
import os, threading
from multiprocessing import Pipe
threading._start_new_thread = lambda *args, **kwargs: 1  # until CPython 3.12
threading._start_joinable_thread = lambda *args, **kwargs: None
from bloomcli.concurrency import close_pipe, threads
threads._START_SECONDS = 0.1
mine, theirs = Pipe()
"""
STARTING: Final = {
    "a worker process": """
from bloomcli.datasets import workers
mine.send([])
mine.close()
workers._serve(theirs, [], None, os.getppid(), 1)
""",
    "a reader's process": """
from bloomcli.trials import process
process.messages = lambda job: iter(())
mine.send(None)
process.serve(os.dup(theirs.fileno()))
""",
    "a progress bar": """
from bloomcli.cli import output
assert not output._bars().live.auto_refresh
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", STARTING.values(), ids=STARTING)
def test_a_thread_for_which_no_memory_is_left_is_not_waited_for(program: str) -> None:
    """Such a thread ends before it says that it has started, as one does that never runs."""
    done = subprocess.run(
        [sys.executable, "-c", NO_MEMORY + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_was_not_written_and_a_reader_that_is_gone_leave_no_end_open() -> None:
    read, write = os.pipe()
    pipe = os.fdopen(write, "wb")
    pipe.write(b"a request")
    os.close(read)
    close_pipe(pipe)  # its last write fails
    assert pipe.closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(write)
