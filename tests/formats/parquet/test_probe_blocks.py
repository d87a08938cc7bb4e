"""A probe that reads only single blocks of a filter has the same result as one that reads the whole filter."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.errors import CorruptFile
from bloomcli.filters.split_block import MaskedSplitBlockFilter, SplitBlockFilter, UnreadFilter, is_sparse
from bloomcli.formats.parquet import bloom_filter
from bloomcli.model.probe import ProbeReport
from bloomcli.storage.local.source import LocalSource

VALUES = [3, 5, 999_999_999, 10**15]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two row groups with filters of a MiB each, and statistics."""
    path = tmp_path_factory.mktemp("blocks") / "f.parquet"
    table = pa.table({"id": np.arange(2000, dtype="int64") * 3})
    pq.write_table(table, path, row_group_size=1000)
    bloomcli.add(path, ["id"], in_place=True, ndv=800_000)
    assert all(f.bitset_bytes == 1 << 20 for f in bloomcli.inspect(path).filters)
    return path


def probed(path: Path) -> ProbeReport | tuple[str, int | None]:
    try:
        return bloomcli.probe(path, VALUES, column="id", explain=True)
    except CorruptFile as error:
        return error.reason, error.offset


def assert_same(path: Path, patched: pytest.MonkeyPatch) -> ProbeReport | tuple[str, int | None]:
    """The report from single blocks, after checking that whole filters give the same."""
    by_blocks = probed(path)
    with patched.context() as whole:
        whole.setattr(bloom_filter, "is_sparse", lambda *_: False)
        assert probed(path) == by_blocks
    return by_blocks


def test_few_blocks_are_read(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = LocalSource._read

    def counted(self: LocalSource, offset: int, length: int) -> bytes:
        read.append(length)
        return whole(self, offset, length)

    monkeypatch.setattr(LocalSource, "_read", counted)
    report = bloomcli.probe(original, VALUES, column="id")
    assert report.row_groups == 2
    assert read.count(32) == 2 * (len(VALUES) + 2), "a block for each value, and for minimum and maximum"
    assert sum(read) < 10_000


def test_answers_are_those_of_whole_filters(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = assert_same(original, monkeypatch)
    assert isinstance(found, ProbeReport)
    assert [v.presence for v in found.verdicts if v.value == "3"] == ["maybe", "absent"]
    assert len(found.verdicts[0].trail[0].present) == 8


def filter_offsets(path: Path) -> list[int]:
    return [f.offset for f in bloomcli.inspect(path).filters]


@pytest.mark.parametrize("at", range(24))
def test_damaged_headers_give_the_same_report(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    data = bytearray(original.read_bytes())
    data[filter_offsets(original)[1] + at] ^= 0x15
    path = tmp_path / "f.parquet"
    path.write_bytes(data)
    assert_same(path, monkeypatch)


def test_a_wrong_length_in_the_metadata_gives_the_same_report(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = original.read_bytes()
    for seed in range(40):
        changed = bytearray(data)
        at = random.Random(seed).randrange(len(data) - 500, len(data) - 8)
        changed[at] ^= 1 << seed % 8
        path = tmp_path / f"{seed}.parquet"
        path.write_bytes(changed)
        assert_same(path, monkeypatch)


@pytest.mark.parametrize("kind", [SplitBlockFilter, MaskedSplitBlockFilter])
def test_blocks_that_are_read_one_by_one_are_the_filters_own(kind: type[SplitBlockFilter]) -> None:
    rng = random.Random(1)
    bits = kind.empty(32 << 6)
    hashes = [rng.getrandbits(64) for _ in range(300)]
    for value in hashes[:100]:
        bits.insert(value)
    reads: list[tuple[int, int]] = []

    def read(at: int, length: int) -> bytes:
        reads.append((at, length))
        return bytes(bits.bitset[at : at + length])

    unread = UnreadFilter(kind, bits.nbytes, read)
    for value in hashes:
        assert unread.check(value) == bits.check(value)
        assert unread.trail(value) == bits.trail(value)
    assert {length for _, length in reads} == {32}


def test_small_filters_and_many_values_read_the_whole_filter() -> None:
    assert not is_sparse(1, 32 << 10)
    assert is_sparse(1, 64 << 10)
    assert not is_sparse(100, 1 << 20)
