"""Facts about filters that contradict the statistics of their chunks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from support.tables import write

import bloomcli


def test_a_filter_without_a_bound_of_its_chunk_is_not_trusted(tmp_path: Path) -> None:
    path = write(tmp_path / "f", pa.table({"id": [1, 2, 3, 4]}), rows=2, store_schema=False)
    bloomcli.add(path, ["id"], in_place=True)
    facts, _ = bloomcli.inspect(path).filters
    data, size = bytearray(path.read_bytes()), facts.bitset_bytes or 0
    start = facts.offset + (facts.header_bytes or 0)
    data[start : start + size] = b"\1" + bytes(size - 1)
    path.write_bytes(data)
    assert [facts.untrusted is not None for facts in bloomcli.inspect(path).filters] == [True, False]
