"""Parquet files for indexes, and results of `find` with and without an index."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import bloomcli

Rows = list[tuple[str, int, bytes]]


def parquet(
    numbers: Iterable[Any], *, kind: pa.DataType | None = None, blooms: bool = True, group: int = 100
) -> bytes:
    """A file with row groups and the columns `id` and `other`."""
    values = list(numbers)
    table = pa.table({"id": pa.array(values, kind or pa.int64()), "other": [f"o{n}" for n in range(len(values))]})
    options = {"id": {"ndv": group, "fpp": 0.001}} if blooms else None
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group, compression="none", bloom_filter_options=options)
    return sink.getvalue()


def rows(path: str | Sequence[str], values: Any, **options: Any) -> tuple[Rows, Any]:
    """The rows that `find` returns (path, number, value), and its report."""
    found = bloomcli.find(path, values, column="id", select=["id"], **options)
    given = [(row["path"], row["row"], row["value"]) for batch in found for row in batch.to_pylist()]
    return given, found.report


def same_rows(path: str | Sequence[str], values: Any, index: str) -> Any:
    """Check that an index changes no row and no error. Returns the report with the index."""
    without, plain = rows(path, values)
    found, report = rows(path, values, index=index)
    assert found == without
    assert [e.path for e in report.errors] == [e.path for e in plain.errors]
    return report
