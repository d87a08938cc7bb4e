"""The bits that an index takes from a Parquet file: from its filters, or from its values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop, Stopped
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import RowGroupBits
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source

ROWS, GROUP = 3000, 1000


def made(path: Path, *, blooms: bool) -> Path:
    table = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    options = {"id": {"ndv": GROUP, "fpp": 0.0001}} if blooms else None
    pq.write_table(table, path, row_group_size=GROUP, use_dictionary=False, bloom_filter_options=options)
    return path


def bits_of(path: Path, column: str, fpp: float = 0.01) -> list[RowGroupBits]:
    with open_source(path) as source:
        file = open_file(source)
        return list(file.row_group_bits(next(c for c in file.columns if c.path == column), fpp, Stop()))


def has(bits: bytes | bytearray | None, number: int) -> bool:
    assert bits is not None
    return SplitBlockFilter(bits).check(kernels.xxh64(number.to_bytes(8, "little")))


def test_a_filter_of_the_file_is_folded_and_the_column_is_not_read(tmp_path: Path) -> None:
    path = made(tmp_path / "a.parquet", blooms=True)
    found, sharp = bits_of(path, "id"), bits_of(path, "id", 1e-9)
    for group, one in enumerate(found):
        assert (one.row_group, one.rows, one.decoded, one.possible) == (group, GROUP, 0, False)
        assert all(has(one.bits, n) for n in range(group * GROUP, (group + 1) * GROUP))
        assert len(one.bits or b"") < len(sharp[group].bits or b"")


def test_a_filter_that_lacks_the_row_groups_own_bounds_is_not_taken(tmp_path: Path) -> None:
    path = made(tmp_path / "a.parquet", blooms=True)
    with open_source(path) as source:
        file = open_file(source)
        facts = next(f for f in file.facts(None) if f.row_group == 1)
    data = bytearray(path.read_bytes())
    start = facts.offset + (facts.header_bytes or 0)
    data[start : start + (facts.bitset_bytes or 0)] = bytes(facts.bitset_bytes or 0)
    path.write_bytes(data)
    first, second, _ = bits_of(path, "id")
    assert (first.decoded, second.decoded > 0) == (0, True)
    assert all(has(second.bits, n) for n in range(GROUP, 2 * GROUP))


def test_a_filter_that_can_not_be_read_is_not_taken(tmp_path: Path) -> None:
    path = made(tmp_path / "a.parquet", blooms=True)
    with open_source(path) as source:
        offset = next(f for f in open_file(source).facts(None) if f.row_group == 0).offset
    data = bytearray(path.read_bytes())
    data[offset : offset + 4] = b"\xff" * 4
    path.write_bytes(data)
    first, second, _ = bits_of(path, "id")
    assert (first.decoded > 0, second.decoded) == (True, 0)
    assert all(has(first.bits, n) for n in range(GROUP))


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    path = made(tmp_path / "a.parquet", blooms=False)
    stop = Stop()
    with open_source(path) as source:
        file = open_file(source)
        found = file.row_group_bits(file.columns[0], 0.01, stop)
        next(found)
        stop.requested = True
        with pytest.raises(Stopped):
            next(found)
