"""The requests that commands send for a file in an object store, and what their reports say of them."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import footers
from support.object_stores import SCHEME, MemoryClient, Request
from support.thrift import Fields

import bloomcli
from bloomcli.errors import SourceChanged
from bloomcli.formats.registry import open_file
from bloomcli.report import json as json_report
from bloomcli.report import layout, render, text, text_inspect
from bloomcli.storage.registry import store_of

ROOT = Path(__file__).parents[3]
URI = f"{SCHEME}://lake/orders/part-0.parquet"
GROUPS, ROWS = 4, 100_000


def parquet(*, page_checksum: bool = False) -> bytes:
    """Row groups of four columns; 13 MB."""
    rng = np.random.default_rng(7)
    count = GROUPS * ROWS
    table = pa.table(
        {
            "id": rng.integers(0, 1 << 62, count),
            "a": rng.random(count),
            "b": rng.random(count),
            "c": rng.random(count),
        }
    )
    out = io.BytesIO()
    pq.write_table(
        table, out, row_group_size=ROWS, compression="NONE", use_dictionary=False, write_page_checksum=page_checksum
    )
    return out.getvalue()


@pytest.fixture(scope="module")
def plain() -> bytes:
    """The file without filters."""
    return parquet()


@pytest.fixture(scope="module")
def checksummed() -> bytes:
    """The file with checksums of its pages."""
    return parquet(page_checksum=True)


@pytest.fixture(scope="module")
def filtered(plain: bytes, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file with filters of two columns."""
    path = tmp_path_factory.mktemp("filtered") / "f.parquet"
    path.write_bytes(plain)
    bloomcli.add(path, ["id", "a"], in_place=True)
    return path.read_bytes()


def reads(client: MemoryClient, key: str = "orders/part-0.parquet") -> list[Request]:
    """The reads of the object."""
    return [r for r in client.requests if r.kind == "GET" and r.key == key]


def test_inspect_takes_a_request_for_the_tail_and_one_for_the_filters(
    client: MemoryClient, filtered: bytes, tmp_path: Path
) -> None:
    client.store(URI, filtered)
    (tmp_path / "f").write_bytes(filtered)
    report = bloomcli.inspect(URI)
    assert len(client.requests) == 2
    assert dataclasses.replace(report, path="", **no_traffic()) == dataclasses.replace(
        bloomcli.inspect(tmp_path / "f"), path=""
    )
    filters = sum(f.length or 0 for f in report.filters)
    assert report.requests == 2
    assert report.bytes_downloaded is not None
    assert report.bytes_downloaded < filters * 1.05 + (256 << 10)


def test_lengths_of_texts_that_are_checked_before_arrow_reads_them_are_requested_once(
    client: MemoryClient,
) -> None:
    out = io.BytesIO()
    texts = [f"{number * 7919 % 100_003}" * (number % 9) for number in range(200_000)]
    orc.write_table(pa.table({"id": range(200_000), "text": texts, "other": texts[::-1]}), out, compression="zlib")
    client.store(URI, out.getvalue())
    assert sum(batch.num_rows for batch in bloomcli.find(URI, [150_000], column="id")) == 1
    ranges = sorted((asked.offset, asked.offset + asked.length) for asked in client.requests if asked.length)
    assert len(set(ranges)) == len(ranges)
    again = sum(max(0, end - start) for (_, end), (start, _) in pairwise(ranges))
    assert again < len(out.getvalue()) / 20, "a part of the column that is searched"


def test_the_footer_of_a_few_hundred_columns_and_row_groups_takes_one_request(client: MemoryClient) -> None:
    out = io.BytesIO()
    table = pa.table({f"column_{number}": pa.array(range(40)) for number in range(30)})
    pq.write_table(table, out, row_group_size=1)
    client.store(URI, out.getvalue())
    assert 128 << 10 < int.from_bytes(out.getvalue()[-8:-4], "little") < 256 << 10
    with store_of(URI).open(URI) as source:
        assert open_file(source).row_group_count == 40
    assert len(client.requests) == 1


def test_probe_of_large_filters_reads_blocks_and_not_the_filters(
    client: MemoryClient, plain: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "large.parquet"
    path.write_bytes(plain)
    bloomcli.add(path, ["id"], in_place=True, ndv=8_000_000)
    client.store(URI, path.read_bytes())
    report = bloomcli.probe(URI, [42, 43], column="id")
    filters = sum(f.bitset_bytes or 0 for f in bloomcli.inspect(path).filters)
    assert filters > GROUPS * 10 << 20
    assert report.bytes_downloaded is not None
    assert report.bytes_downloaded < filters / 8
    assert report.requests == len(client.requests) <= 1 + 5 * GROUPS
    local = bloomcli.probe(path, [42, 43], column="id", explain=True)
    again = bloomcli.probe(URI, [42, 43], column="id", explain=True)
    assert again.verdicts == local.verdicts


@pytest.mark.parametrize(
    ("ndv", "mib", "most", "lengths"),
    [(800_000, 1, 2, True), (800_000, 1, 2, False), (1_600_000, 2, 2 + GROUPS, False)],
    ids=["small filters", "small filters without lengths", "large filters without lengths"],
)
def test_probe_asks_for_headers_and_blocks_together(
    client: MemoryClient, plain: bytes, tmp_path: Path, ndv: int, mib: int, most: int, *, lengths: bool
) -> None:
    path = tmp_path / "large.parquet"
    path.write_bytes(plain)
    bloomcli.add(path, ["id"], in_place=True, ndv=ndv)
    assert {f.bitset_bytes for f in bloomcli.inspect(path).filters} == {mib << 20}
    if not lengths:  # as parquet-java 1.13 leaves them out

        def leave_out(metadata: Fields) -> None:
            for group in range(GROUPS):
                del footers.meta(metadata, group, 0)[footers.BLOOM_FILTER_LENGTH]

        path.write_bytes(footers.edited(path.read_bytes(), leave_out))
    client.store(URI, path.read_bytes())
    report = bloomcli.probe(URI, [42], column="id")
    assert report.requests == len(client.requests) <= most
    assert bloomcli.probe(path, [42], column="id").verdicts == report.verdicts


def test_add_reads_each_chunk_once_and_nothing_else(client: MemoryClient, checksummed: bytes) -> None:
    data = checksummed
    client.store(URI, data)
    report = bloomcli.add(URI, ["id"], in_place=True)
    metadata = pq.read_metadata(io.BytesIO(data))
    chunks = sum(metadata.row_group(i).column(0).total_compressed_size for i in range(GROUPS))
    body = [r for r in reads(client) if r.offset + r.length < len(data) - (256 << 10)]
    assert sum(r.length for r in body) <= chunks * 1.01
    parts = sum(r.kind in {"PUT", "COPY"} for r in client.requests)
    guards = sum(r.key != "orders/part-0.parquet" for r in client.requests)
    assert len(client.requests) - guards <= GROUPS + parts + 10
    assert report.requests == len(client.requests)
    assert report.bytes_copied_by_store == sum(r.length for r in client.requests if r.kind == "COPY")
    assert report.bytes_uploaded == sum(r.length for r in client.requests if r.kind == "PUT")
    assert bloomcli.validate(URI, deep=True).ok


def test_a_bad_checksum_is_found_while_the_chunk_is_decoded(client: MemoryClient, checksummed: bytes) -> None:
    data = bytearray(checksummed)
    metadata = pq.read_metadata(io.BytesIO(data))
    data[metadata.row_group(2).column(0).data_page_offset + 5000] ^= 1
    client.store(URI, bytes(data))
    with pytest.raises(bloomcli.BloomError, match="checksum in its header"):
        bloomcli.add(URI, ["id"], in_place=True)
    assert client.objects[URI].data == bytes(data)


READING: dict[str, Callable[..., Any]] = {
    "inspect": partial(bloomcli.inspect, URI),
    "dump": partial(bloomcli.dump, URI, column="id"),
    "probe": partial(bloomcli.probe, URI, [42], column="id"),
}
CHANGING: dict[str, Callable[..., Any]] = {
    "fold": partial(bloomcli.fold, URI, fpp=0.3, in_place=True),
    "remove": partial(bloomcli.remove, URI, in_place=True),
    "add": partial(bloomcli.add, URI, ["b"], in_place=True),
    "repair": partial(bloomcli.repair, URI, add=["page-index"], columns=["b"], in_place=True),
}
CHECKING: dict[str, Callable[..., Any]] = {
    "validate": partial(bloomcli.validate, URI, deep=True),
    "repair what is wrong": partial(bloomcli.repair, URI, in_place=True),
}


@pytest.mark.parametrize("name", [*READING, *CHANGING, *CHECKING])
def test_an_object_that_changes_meanwhile_is_never_mixed_with_the_new_one(
    client: MemoryClient, filtered: bytes, name: str
) -> None:
    client.store(URI, filtered)
    command_requests = 0

    def replace_after_the_tail(request: Request) -> None:
        nonlocal command_requests
        if request.kind == "GET" and request.key.endswith("part-0.parquet"):
            command_requests += 1
            if command_requests == 2:
                client.store(URI, filtered[:4] + bytes(len(filtered) - 300_000) + filtered[-299_996:])

    client.on_request = replace_after_the_tail
    with pytest.raises(SourceChanged, match="changed while it was being worked on"):
        {**READING, **CHANGING, **CHECKING}[name]()
    client.on_request = lambda _: None
    assert client.objects[URI].data[4:1000] == bytes(996), "the other writer's object stays"


def no_traffic() -> dict[str, Any]:
    """The fields of a report of a local file."""
    return dict.fromkeys(("requests", "bytes_downloaded", "bytes_uploaded", "bytes_copied_by_store"))


def test_reports_of_local_files_have_no_requests(filtered: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(filtered)
    for report in (
        bloomcli.inspect(path),
        bloomcli.dump(path, column="id"),
        bloomcli.probe(path, [1], column="id"),
        bloomcli.remove(path, dry_run=True),
        bloomcli.gate([path]),
    ):
        assert {name: getattr(report, name) for name in no_traffic()} == no_traffic()
    assert layout.traffic_text(bloomcli.inspect(path)) is None


def test_every_report_of_an_object_has_its_requests(client: MemoryClient, filtered: bytes) -> None:
    client.store(URI, filtered)
    for name, command in {**READING, "validate": partial(bloomcli.gate, [URI]), **CHANGING}.items():
        client.requests.clear()
        report = command()
        assert report.requests == len(client.requests), name
        assert report.bytes_downloaded == sum(r.length for r in client.requests if r.kind == "GET"), name
        assert report.bytes_uploaded == sum(r.length for r in client.requests if r.kind == "PUT"), name
        written = json_report.document(name, report)
        assert written["requests"] == report.requests
        assert written["bytes_copied_by_store"] == report.bytes_copied_by_store


def test_text_reports_name_the_requests(client: MemoryClient, filtered: bytes) -> None:
    client.store(URI, filtered)
    report = bloomcli.inspect(URI)
    out = io.StringIO()
    render.write(text_inspect.inspect(report), out)
    assert f"2 requests, {layout.size(report.bytes_downloaded or 0)} downloaded" in out.getvalue()
    out = io.StringIO()
    render.write(text.change(bloomcli.remove(URI, dry_run=True, in_place=True)), out)
    assert "object store: would take about" in out.getvalue()
    assert "copied by the store" in out.getvalue()


@pytest.mark.parametrize("command", CHANGING)
def test_a_dry_run_estimates_what_the_run_takes(client: MemoryClient, filtered: bytes, command: str) -> None:
    client.store(URI, filtered)
    estimate = CHANGING[command](dry_run=True)
    assert client.objects[URI].data == filtered
    store_of(URI).sweep_for([URI])  # another run begins
    real = CHANGING[command]()
    assert abs(estimate.requests - real.requests) <= 5
    assert abs(estimate.bytes_downloaded - real.bytes_downloaded) <= 0.05 * real.bytes_downloaded + (1 << 20)
    assert estimate.bytes_uploaded >= real.bytes_uploaded * 0.95
    assert estimate.bytes_copied_by_store == real.bytes_copied_by_store


def test_finding_out_whether_there_is_such_an_object_reads_its_tail_once(
    client: MemoryClient, filtered: bytes
) -> None:
    client.store(URI, filtered)
    store = store_of(URI)
    report = bloomcli.inspect(URI)
    assert report.requests == len(client.requests) == 2
    assert report.bytes_downloaded == sum(r.length for r in client.requests)
    assert bloomcli.inspect(URI).requests == 2, "the tail is used once"
    assert store.is_dataset(f"{SCHEME}://lake/orders")
    assert not store.is_dataset(f"{SCHEME}://lake/nothing")
