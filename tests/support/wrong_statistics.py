"""Builds files with wrong statistics."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def lying(path: Path, *, blooms: bool) -> Path:
    """A file whose statistics and page index say that its ids, 1000 to 1999, are 5000 to 5999."""
    options = {"id": {"ndv": 1000, "fpp": 0.001}} if blooms else None
    table = pa.table({"id": pa.array(range(1000, 2000), pa.int64())})
    pq.write_table(
        table, path, use_dictionary=False, compression="none", write_page_index=True, bloom_filter_options=options
    )
    data = path.read_bytes()
    body = 4 + 1000 * 8 + 64  # after the page
    tail = data[body:]
    for low, high in ((1000, 5000), (1999, 5999)):
        assert struct.pack("<q", low) in tail
        tail = tail.replace(struct.pack("<q", low), struct.pack("<q", high))
    path.write_bytes(data[:body] + tail)
    return path
