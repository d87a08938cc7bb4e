"""An index of 100,000 row groups in MinIO: written to it, and looked up in at most three requests. And files of large
row groups in real stores: those that an index names aren't opened."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import need
from support.indexes import answers, large_answer, large_pool, pool_hash, write_large
from support.servers import running
from support.servers.faults import Action, Fault
from support.servers.proxy import Recorded
from support.servers.rigs import Rig, rig_of
from support.servers.served import SERVERS, Served, served

from bloomcli.index.reader import END_BYTES, Index
from bloomcli.storage import registry
from bloomcli.storage.registry import open_source
from bloomcli.storage.remote_stores import S3Store

pytestmark = pytest.mark.servers


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A bucket of MinIO, and a proxy through which the store sees it."""
    need(running.installed("minio"), "minio: python tests/support/servers/install.py minio")
    with served("s3") as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setitem(registry.known_stores(), "s3", S3Store())
        yield made


def test_a_lookup_in_100_000_row_groups_and_for_the_footers_takes_at_most_three_requests(lake: Served) -> None:
    path, proxy = lake.place.path("lake.bloom-index"), lake.proxy
    write_large(path, ends=True)
    assert proxy.recorded
    assert lake.place.names() == {"lake.bloom-index"}
    pool = large_pool()
    for value in (pool_hash(), random.Random(1).randbytes(8)):
        expected = large_answer(pool, value)
        proxy.forget()
        with open_source(path) as source:
            found = answers(Index(source), value)
        assert {entry[1:] for entry in found} == expected
        assert 1 <= len(proxy.recorded) <= 3
        assert {request.status for request in proxy.recorded} == {206}
        assert sum(request.received for request in proxy.recorded) < 6 << 20
        proxy.forget()
        with open_source(path, END_BYTES) as source:
            index = Index(source)
            files = sorted({file for _, file, _ in answers(index, value)})
            ends = dict(index.ends(files))
        assert files == sorted({file for file, _ in expected}) == list(ends)
        assert len(proxy.recorded) == (3 if files else 2)
        assert sum(request.received for request in proxy.recorded) < 24 << 20


ROWS = 100_000
"""Rows of a row group, which has 3.2 MB."""


@pytest.fixture(scope="module", params=SERVERS)
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A store behind a proxy."""
    with rig_of(request.param) as found:
        yield found


def ranges(rig: Rig, folder: str) -> list[Recorded]:
    """The answered requests for ranges of the files in a folder, since the proxy forgot."""
    return [r for r in rig.proxy.recorded if r.status == 206 and folder in r.path]


def test_a_hit_in_a_large_row_group_takes_two_requests_and_a_false_positive_one(rig: Rig, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pa.table({name: rng.permutation(3 * ROWS) * 7 for name in ("id", "a", "b", "c")})
    path, folder = tmp_path / "f.parquet", "large"
    pages = rig.name == "s3"
    pq.write_table(table, path, row_group_size=ROWS, compression="none", use_dictionary=False, write_page_index=pages)
    for number in range(2):
        rig.place.put(f"{folder}/part-{number}.parquet", path.read_bytes())
    where, index = rig.place.path(f"{folder}/"), str(tmp_path / "x.bloom-index")
    done = rig.bloom("index", "build", where, "-c", "id", "-o", index, "--fpp", "0.2")
    assert done.code == 0, done.err
    at = ROWS + ROWS // 2
    value, record = str(table["id"][at].as_py()), table.slice(at, 1).to_pylist()[0]
    for options in (("--index", index), ("--index", index, "--select", "id"), ()):
        rig.proxy.forget()
        done = rig.bloom("find", value, where, "-c", "id", "-f", "jsonl", *options)
        assert done.code == 0, done.err
        rows = [json.loads(line) for line in done.out.splitlines()]
        wanted = {"id": record["id"]} if "--select" in options else record
        assert [(row["row"], row["record"]) for row in rows] == [(at, wanted)] * 2
        if options:
            false = int(re.search(r"(\d+) read \(", done.err)[1]) - 2  # type: ignore[index]
            assert len(ranges(rig, folder)) == false + 2 * (1 if "--select" in options else 2)


def test_a_file_that_changed_since_it_was_indexed_is_searched_anew(rig: Rig, tmp_path: Path) -> None:
    rng, tables = np.random.default_rng(4), []
    for number in range(2):
        numbers = rng.permutation(ROWS) * 2 + number
        tables.append(pa.table({"id": numbers, **{name: rng.random(ROWS) for name in ("a", "b", "c")}}))
        pq.write_table(tables[-1], tmp_path / f"{number}.parquet", compression="none", use_dictionary=False)
    old, new = ((tmp_path / f"{number}.parquet").read_bytes() for number in range(2))
    assert len(old) == len(new)
    name, index = "changed/part-0.parquet", str(tmp_path / "x.bloom-index")
    where = rig.place.path("changed/")
    rig.place.put(name, old)
    assert rig.bloom("index", "build", where, "-c", "id", "-o", index).code == 0
    rig.proxy.forget()
    # listed as it was indexed, changed when the column is asked for
    fault = Fault(Action.PASS, kind=_READ[rig.name], at=1, call=lambda: rig.place.put(name, new))
    with rig.proxy.injecting(fault):
        done = rig.bloom("find", str(tables[0]["id"][5].as_py()), where, "-c", "id", "-f", "jsonl", "--index", index)
    assert (done.code, done.out) == (1, ""), done.err
    assert {412, 206} <= {request.status for request in rig.proxy.recorded}
    done = rig.bloom("find", str(tables[1]["id"][5].as_py()), where, "-c", "id", "-f", "jsonl", "--index", index)
    assert done.code == 0, done.err
    assert [json.loads(line)["row"] for line in done.out.splitlines()] == [5]


_READ = {"s3": "GetObject", "azure": "Get Blob", "gcs": "objects.get (media)"}
