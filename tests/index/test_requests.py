"""A lookup in 100,000 row groups makes at most three requests to a store, and reads few bytes of a local file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.indexes import (
    COLUMN,
    IDS,
    answers,
    chunk,
    filled,
    large_answer,
    large_pool,
    made,
    pool_hash,
    write_large,
)
from support.object_stores import SCHEME, MemoryClient, MemoryObjects
from support.peak_memory import GIVES_BACK

from bloomcli.index.reader import END_BYTES, Index
from bloomcli.index.writer import IndexWriter
from bloomcli.storage import registry
from bloomcli.storage.registry import LOCAL, open_source
from bloomcli.storage.sources import CountingSource

URI = f"{SCHEME}://lake/lake.bloom-index"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 100,000 row groups."""
    path = tmp_path_factory.mktemp("large") / "lake.bloom-index"
    write_large(str(path))
    return path


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryClient]:
    """The client of a store whose URIs the registry finds."""
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    yield store.client


@pytest.mark.slow
def test_a_lookup_in_100_000_row_groups_and_for_the_footers_takes_three_requests(
    large: Path, client: MemoryClient
) -> None:
    client.store(URI, large.read_bytes())
    pool = large_pool()
    for number in range(5):
        value = random.Random(number).randbytes(8) if number else pool_hash()
        client.requests.clear()
        with open_source(URI) as source:
            index = Index(source)
            found = answers(index, value)
        assert {entry[1:] for entry in found} == large_answer(pool, value)
        assert bool(found) or number
        assert [request.kind for request in client.requests] == ["GET"] * 3
        assert sum(request.length for request in client.requests) < 6 << 20
        client.requests.clear()
        with open_source(URI, END_BYTES) as source:
            index = Index(source)
            files = sorted({file for _, file, _ in answers(index, value)})
            assert [file for file, _ in index.ends(files)] == files
        assert len(client.requests) == (3 if files else 2)
        assert sum(request.length for request in client.requests) < 24 << 20


def test_the_tail_of_a_small_index_has_all_but_the_rows(client: MemoryClient, tmp_path: Path) -> None:
    rng = random.Random(1)
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(1000):
            writer.add(made(number, 10), [chunk(at, filled(16, 10, rng)) for at in range(10)])
        writer.write(str(tmp_path / "index"), overwrite=False)
    client.store(URI, (tmp_path / "index").read_bytes())
    with open_source(URI) as source:
        answers(Index(source), rng.randbytes(8))
    assert len(client.requests) <= 2


@pytest.mark.slow
def test_several_values_are_read_at_once_and_their_requests_are_few(large: Path, client: MemoryClient) -> None:
    client.store(URI, large.read_bytes())
    with open_source(URI) as source:
        answers(Index(source), random.Random(3).randbytes(8 * 6))
    assert len(client.requests) <= 2 + 6


@pytest.mark.slow
def test_on_a_local_disk_a_lookup_reads_the_tables_and_eight_rows(large: Path) -> None:
    with CountingSource(LOCAL.open(str(large))) as source:
        index = Index(source)
        index.units(IDS)
        before = source.bytes_read
        index.possible(IDS, random.Random(2).randbytes(8))
        assert source.bytes_read - before == 8 * index.layout(IDS).stride == 8 * (12504 + 8)
        assert before < 2 << 20


PROGRAM = """
import random, sys, tempfile
import numpy.typing, pyarrow  # their imports aren't counted
sys.path.insert(0, "tests")
from support.indexes import COLUMN, chunk, filled, made
from support.peak_memory import peak, reset
from bloomcli.index import writer as writing
from bloomcli.index.writer import IndexWriter
from bloomcli.storage.registry import open_source
from bloomcli.index.reader import Index
tempfile.tempdir, writing._WINDOW_BYTES = sys.argv[3], 8 << 20
bits = bytes(filled(2048, 52_000, random.Random(1)))
reset()
before, path = peak(), sys.argv[1]
for number in range(2):
    source = open_source(path) if number else None
    old = Index(source) if source else None
    with IndexWriter([COLUMN], fpp=0.01, old=old) as writer:
        if old:
            writer.keep(range(len(old.files)))
        for at in range(int(sys.argv[2])):
            writer.add(made(number * 10_000 + at, 1), [chunk(0, bits)])
        writer.write(path, overwrite=True)
    if source:
        source.close()
print(peak() - before)
"""


@pytest.mark.slow
def test_memory_of_building_and_updating_does_not_grow_with_the_filters(tmp_path: Path) -> None:
    grown = []
    for count in (300, 3000):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / f"{count}.index"), str(count), str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env=os.environ | GIVES_BACK,
        )
        grown.append(int(done.stdout))
    assert (tmp_path / "3000.index").stat().st_size > 380 << 20
    assert grown[1] < grown[0] + (16 << 20), grown
    assert grown[1] < 92 << 20, grown


@pytest.mark.slow
def test_many_values_are_looked_up_in_a_store_as_on_a_disk_with_few_long_requests(
    large: Path, client: MemoryClient
) -> None:
    client.store(URI, large.read_bytes())
    looked_up = random.Random(4).randbytes(8 * 3000)
    with open_source(URI) as source, LOCAL.open(str(large)) as local:
        there, here = Index(source), Index(local)
        assert there.possible(IDS, looked_up) == here.possible(IDS, looked_up)
    assert len(client.requests) <= 2 + 2 * (large.stat().st_size // (16 << 20) + 1)
