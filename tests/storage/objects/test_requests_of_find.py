"""The requests that `find` sends for a file in an object store: few, and no more bytes than further ones cost."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.object_stores import SCHEME, MemoryClient
from support.processes import wait_until

import bloomcli
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.finding.lake import Search
from bloomcli.finding.value_file import texts_of
from bloomcli.model.find import FindReport
from bloomcli.report.text_find import lines
from bloomcli.storage.objects.source import GAP_BYTES, TAIL_BYTES

URI: Final = f"{SCHEME}://lake/orders/part-0.parquet"


@functools.cache
def table(rows: int, columns: int, *, ordered: bool = False) -> pa.Table:
    rng = np.random.default_rng(rows + columns)
    ids = np.arange(rows) * 7 if ordered else rng.permutation(rows) * 7
    others = {f"c{number}": rng.random(rows) for number in range(columns)}
    texts = pa.array([f"text {n}" for n in range(1000)]).take(pa.array(np.arange(rows) % 1000))
    return pa.table({"id": ids, "text": texts, **others})


def encoded(data: pa.Table, group: int, **options: Any) -> bytes:
    out = io.BytesIO()
    dictionary = options.pop("dictionary", ["text"])
    blooms = {"id": options.pop("blooms", {"ndv": group, "fpp": 0.001})}
    pq.write_table(
        data,
        out,
        row_group_size=group,
        compression="none",
        use_dictionary=dictionary,
        bloom_filter_options=blooms,
        **options,
    )
    return out.getvalue()


def gets(client: MemoryClient) -> list[tuple[int, int]]:
    """The ranges that were requested."""
    return [(r.offset, r.length) for r in client.requests if r.kind == "GET"]


def hit(client: MemoryClient, data: pa.Table, file: bytes, select: Sequence[str] = (), **options: Any) -> FindReport:
    """Find a row; check it."""
    if not options.pop("stored", False):
        client.store(URI, file)
    at = data.num_rows * 2 // 3
    client.requests.clear()
    found = bloomcli.find(URI, data["id"][at].as_py(), column="id", select=select, **options)
    (row,) = [row for batch in found for row in batch.to_pylist()]
    assert row["row"] == at
    record = data.slice(at, 1).to_pylist()[0]
    assert row["record"] == {name: record[name] for name in data.column_names if not select or name in select}
    assert (found.report.requests, found.report.bytes_downloaded) == (
        len(client.requests),
        sum(length for _, length in gets(client)),
    )
    return found.report


@pytest.mark.parametrize(
    ("groups", "select", "dictionary", "index"),
    [
        (1, ("id",), False, False),
        (10, (), False, False),
        (10, ("id",), ["text", "id"], True),
        (10, (), False, True),
        (10, (), ["text", "id"], False),
    ],
)
def test_a_hit_in_a_small_row_group_takes_a_request_besides_tail_and_filters(
    client: MemoryClient, groups: int, select: tuple[str, ...], dictionary: Any, index: bool
) -> None:
    rows = 20_000
    data = table(groups * rows, 6)
    file = encoded(data, rows, write_page_index=index, dictionary=dictionary)
    assert GAP_BYTES / 2 < len(file) / groups < GAP_BYTES, "a row group takes no longer than a request"
    hit(client, data, file, select)
    tail, *others = gets(client)
    assert tail == (len(file) - TAIL_BYTES, TAIL_BYTES)
    assert len(others) == (1 if groups == 1 else 2), "the filters of one row group lie in the tail"


@pytest.mark.slow
def test_of_large_row_groups_the_pages_with_the_row_are_read_at_once(client: MemoryClient) -> None:
    data = table(600_000, 8, ordered=True)
    file = encoded(data, 300_000, write_page_index=True, data_page_size=64 << 10, blooms={"ndv": 1000, "fpp": 0.1})
    for select in (("id", "c3"), ()):
        client.most_at_once = 0
        columns = len(select) or len(data.column_names)
        many = min(columns, 8) // 2
        client.on_request = lambda _, many=many: (
            client.at_once and wait_until(lambda: client.most_at_once >= many, 2.0)
        )
        report = hit(client, data, file, select)
        assert report.bytes_downloaded is not None
        assert report.bytes_downloaded < TAIL_BYTES + columns * (300 << 10)
        assert len(gets(client)) <= 1 + columns, "each column's pages lie 2.4 MB from the next one's"
        assert client.most_at_once >= many, "they are requested at the same time"


def test_whole_chunks_are_read_where_there_is_no_page_index(client: MemoryClient) -> None:
    data = table(500_000, 3)
    file = encoded(data, 500_000, blooms={"ndv": 500_000, "fpp": 0.01})
    hit(client, data, file)
    _, _, column, *others = gets(client)
    assert column[1] == pytest.approx(4_000_000, rel=0.01), "first the column alone: it may not have the value"
    assert len(others) == 1, "the other chunks lie together"


def test_a_row_group_of_a_false_positive_costs_no_more_than_a_request(client: MemoryClient) -> None:
    data = table(200_000, 20)
    file = encoded(data, 20_000, blooms={"ndv": 20, "fpp": 0.5})  # passes everything
    client.store(URI, file)
    found = bloomcli.find(URI, 700_003, column="id")
    assert list(found) == []
    assert found.report.row_groups_read == 10
    assert found.report.bytes_downloaded is not None
    column = 200_000 * 8
    assert found.report.bytes_downloaded < TAIL_BYTES + column + 10 * GAP_BYTES + 100_000


@pytest.mark.slow
def test_files_that_may_have_a_value_take_the_requests_of_probe(client: MemoryClient) -> None:
    data = table(100_000, 3)
    file = encoded(data, 10_000, blooms={"ndv": 50_000, "fpp": 0.001}, dictionary=False)
    for number in range(20):
        client.store(f"{SCHEME}://lake/many/part-{number}.parquet", file)
    folder = f"{SCHEME}://lake/many/"
    for number in range(20):
        bloomcli.probe(f"{folder}part-{number}.parquet", [7], column="id")
    probed = sorted(gets(client))
    client.requests.clear()
    client.on_request = lambda _: client.at_once and wait_until(lambda: client.most_at_once > 1, 2.0)
    search = Search([folder], Values(texts_of(7)), FindOptions(column="id", maybe=True))
    assert len(list(search.files())) == 20
    assert sorted(gets(client)) == probed
    assert len(probed) == 2 * 20
    assert search.report.requests == len(client.requests)
    assert client.most_at_once > 1


def test_the_report_names_the_requests(client: MemoryClient, tmp_path: Path) -> None:
    data = table(1000, 1)
    file = encoded(data, 1000)
    report = hit(client, data, file)
    assert f"object store: {report.requests} requests, " in "\n".join(lines(report))
    (tmp_path / "f.parquet").write_bytes(file)
    found = bloomcli.find(tmp_path / "f.parquet", 7, column="id")
    assert len(list(found)) == 1
    assert (found.report.requests, found.report.bytes_downloaded) == (None, None)
    assert "object store" not in "\n".join(lines(found.report))


@pytest.mark.parametrize(
    ("select", "dictionary", "page_index"),
    [(("id",), False, False), ((), ["text", "id"], False), ((), False, True)],
)
def test_a_hit_that_an_index_names_takes_two_requests(
    client: MemoryClient, tmp_path: Path, select: tuple[str, ...], dictionary: Any, page_index: bool
) -> None:
    data = table(200_000, 6)
    file = encoded(data, 20_000, write_page_index=page_index, dictionary=dictionary)
    client.store(URI, file)
    index = tmp_path / "lake.bloom-index"
    bloomcli.index_build(URI.rpartition("/")[0], ["id"], output=index)
    report = hit(client, data, file, select, index=index, jobs=1, stored=True)
    assert report.row_groups_possible == report.row_groups_read == 1
    assert len(gets(client)) == 2, "the tail, and the row group's chunks: its filter isn't read"
    client.requests.clear()
    assert list(bloomcli.find(URI, 5, column="id", index=index)) == []
    assert gets(client) == []
