"""A file of the reference tests, by parquet-mr 1.11: one string column, filters without bloom_filter_length."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.model.file import Presence


@pytest.fixture(scope="module")
def path(corpus: Path) -> Path:
    return corpus / "data_index_bloom_encoding_stats.parquet"


def test_inspect_takes_the_length_from_the_header(path: Path) -> None:
    (fact,) = bloomcli.inspect(path).filters
    assert fact.problem is None
    assert (fact.column, fact.physical, fact.logical) == ("String", "BYTE_ARRAY", "STRING")
    assert fact.bitset_bytes is not None
    assert fact.header_bytes is not None
    assert fact.length == fact.header_bytes + fact.bitset_bytes
    assert (fact.hash, fact.algorithm, fact.compression) == ("XXHASH", "BLOCK", "UNCOMPRESSED")
    distinct = len(set(pq.read_table(path)["String"].to_pylist()))
    assert fact.ndv_estimate == pytest.approx(distinct, rel=0.1)


def test_every_value_that_arrow_reads_may_be_there_and_others_are_absent(path: Path) -> None:
    stored = pq.read_table(path)["String"].to_pylist()
    assert {"Hello"} <= set(stored)
    absent = [f"{value} not" for value in stored]
    presence = {total.value: total.presence for total in bloomcli.probe(path, stored + absent).totals}
    assert {presence[value] for value in stored} == {Presence.MAYBE}
    assert {presence[value] for value in absent} == {Presence.ABSENT}
