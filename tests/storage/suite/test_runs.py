"""Killed runs and concurrent runs in every store: no bytes are lost, and no temporary files remain."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.stores import Place, append

from bloomcli.errors import BloomError, SourceChanged, UsageError
from bloomcli.storage.base import KeptRange, Pieces
from bloomcli.storage.managed_tables import table_above

OLD = bytes(range(256)) * 20


@pytest.fixture
def lake(writable: Place) -> Place:
    """A directory with one file."""
    writable.put("data.bin", OLD)
    return writable


def test_a_killed_run_leaves_the_file_as_it_was_and_a_sweep_leaves_nothing_else(lake: Place) -> None:
    lake.put(".someone.tmp", b"not ours")
    lake.put("data.bin.tmp", b"not ours")
    before = lake.names()
    lake.leave_by_killed_run("data.bin")
    assert lake.get("data.bin") == OLD
    left = lake.names() - before
    swept = lake.store.sweep_for([lake.store.normal(lake.path("data.bin"))])
    if lake.reports_killed_runs:
        assert len(swept.remaining) == len(swept.remarks) == len(left) > 0
        for remark in swept.remarks:
            lake.end_upload(remark)
    else:
        assert len(swept.removed) >= len(left)
        assert left or not lake.unfinished_shows
        assert not swept.remaining
    assert lake.names() == before
    assert (lake.get(".someone.tmp"), lake.get("data.bin.tmp")) == (b"not ours", b"not ours")
    assert lake.get("data.bin") == OLD
    assert not any(lake.store.sweep_for([lake.store.normal(lake.path("data.bin"))]))


def test_a_run_works_where_another_was_killed(lake: Place) -> None:
    lake.leave_by_killed_run("data.bin")
    append(lake, "data.bin", b"!")
    assert lake.get("data.bin") == OLD + b"!"
    for remark in lake.store.sweep_for([lake.store.normal(lake.path("data.bin"))]).remarks:
        lake.end_upload(remark)
    assert lake.names() == {"data.bin"}


def test_a_sweep_leaves_alone_what_is_being_written(lake: Place) -> None:
    path = lake.store.normal(lake.path("data.bin"))

    def pieces() -> Pieces:
        yield KeptRange(0, len(OLD))
        swept = lake.store.sweep_for([path])
        assert not swept.removed
        assert swept.remaining or not lake.names() - {"data.bin"}, "it is said that somebody is at work"
        yield b"!"
        assert not lake.store.sweep_for([path]).removed

    with lake.store.open(lake.path("data.bin")) as source:
        lake.store.replace(path, pieces(), source=source, overwrite=True)
    assert lake.get("data.bin") == OLD + b"!"


def test_a_sweep_of_a_directory_that_is_not_there_does_nothing(lake: Place) -> None:
    assert not any(lake.store.sweep_for([lake.store.normal(lake.path("nowhere/data.bin"))]))


@pytest.mark.parametrize("makes", [False, True], ids=["change", "make"])
def test_of_two_runs_that_change_or_make_one_file_one_wins_and_the_other_says_so(lake: Place, makes: bool) -> None:
    expected = UsageError if makes else SourceChanged
    for attempt in range(6):
        lake.put("data.bin", OLD)
        target, both = f"new{attempt}.bin" if makes else "data.bin", threading.Barrier(2)

        def run(tail: bytes, target: str = target, both: threading.Barrier = both) -> BloomError | None:
            try:
                append(lake, "data.bin", tail, target=target, overwrite=not makes, during=both.wait)
            except expected as error:
                return error
            return None

        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(run, (b"one", b"other"))
        assert (one is None) != (other is None), "one wins"
        assert lake.get(target) == OLD + (b"one" if one is None else b"other")
    assert lake.names() == {"data.bin", *(f"new{n}.bin" for n in range(6) if makes)}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("_delta_log/0.json", "a Delta table"),
        ("metadata/v1.metadata.json", "an Iceberg table"),
        ("_metadata", "copies of the footers"),
    ],
)
def test_a_table_above_a_file_is_found(writable: Place, name: str, words: str) -> None:
    writable.put("lake/year=2024/data.bin", OLD)
    path = writable.store.normal(writable.path("lake/year=2024/data.bin"))
    assert table_above(writable.store, path) is None
    writable.put(f"lake/{name}", b"{}")
    writable.begin_run()
    table = table_above(writable.store, path)
    assert table is not None
    assert words in table.why_not_changed
