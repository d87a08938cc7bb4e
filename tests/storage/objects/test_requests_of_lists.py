"""The requests that `inspect` sends for an object's pages and index entries."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import orcfiles
from support.object_stores import SCHEME, MemoryClient
from support.processes import wait_until

import bloomcli
from bloomcli.formats.registry import open_file
from bloomcli.model.inspect import InspectReport
from bloomcli.storage import registry

URI = f"{SCHEME}://lake/part-0.parquet"


def parquet(*, groups: int, pages: int, page_rows: int, index: bool) -> bytes:
    """Two columns of 64-bit numbers, not compressed."""
    rows = groups * pages * page_rows
    rng = np.random.default_rng(7)
    table = pa.table({name: rng.integers(0, 1 << 62, rows) for name in "ab"})
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        row_group_size=rows // groups,
        data_page_size=page_rows * 8,
        write_batch_size=page_rows,
        max_rows_per_page=page_rows,
        use_dictionary=False,
        compression="NONE",
        write_page_index=index,
    )
    return out.getvalue()


def listed(client: MemoryClient, data: bytes, tmp_path: Path, column: str) -> InspectReport:
    """The report of an object, which but for its requests is that of a local file."""
    client.store(URI, data)
    report = bloomcli.inspect(URI, columns=[column], pages=True, indexes=True)
    (tmp_path / "local").write_bytes(data)
    local = bloomcli.inspect(tmp_path / "local", columns=[column], pages=True, indexes=True)
    traffic = ("requests", "bytes_downloaded", "bytes_uploaded", "bytes_copied_by_store")
    without = dict.fromkeys(traffic)
    assert dataclasses.replace(report, path="", **without) == dataclasses.replace(local, path="")  # type: ignore[arg-type]
    assert report.requests == len(client.requests)
    return report


@pytest.mark.parametrize("index", [True, False])
def test_a_thousand_pages_take_a_few_requests(client: MemoryClient, tmp_path: Path, index: bool) -> None:
    data = parquet(groups=2, pages=500, page_rows=500, index=index)
    report = listed(client, data, tmp_path, "a")
    assert (len(report.pages), len(report.index)) == (1000, 1000 if index else 0)
    assert not [page.problem for page in report.pages if page.problem]
    assert len(client.requests) <= 4


def test_large_pages_that_the_index_lists_are_not_downloaded(client: MemoryClient, tmp_path: Path) -> None:
    data = parquet(groups=1, pages=4, page_rows=400_000, index=True)
    report = listed(client, data, tmp_path, "a")
    assert [(page.compressed_bytes or 0) >= 3_200_000 for page in report.pages] == [True] * 4
    assert report.bytes_downloaded is not None
    assert report.bytes_downloaded < 300_000
    assert len(client.requests) <= 1 + 4


def test_row_indexes_are_requested_with_the_filters_and_several_at_once(client: MemoryClient, tmp_path: Path) -> None:
    stripes, rows = 25, 1500
    text = np.random.default_rng(7).bytes(stripes * rows * 300).hex()
    table = {"a": range(stripes * rows), "s": [text[at : at + 600] for at in range(0, len(text), 600)]}
    path = orcfiles.write(tmp_path / "f", table, stripe=rows, stride=500, blooms=[1], compression="uncompressed")
    client.store(URI, path.read_bytes())
    with registry.store_of(URI).open(URI) as source:
        file = open_file(source)
        client.on_request = lambda _: client.at_once and wait_until(lambda: client.most_at_once > 3, 2.0)
        entries = list(file.index(next(column for column in file.columns if column.path == "a")))
    assert len(entries) == 3 * stripes
    assert len(client.requests) <= 2 * stripes + 1, "the footer and, together, the row index and the filters"
    assert client.most_at_once > 3
