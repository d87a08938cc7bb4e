"""Helpers for tests of `trial`: files in which readers lose rows, and the rows of a report."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import bloomcli
from bloomcli.model.trial import ReaderTrial, TrialReport

FAST = {"values": 4, "runs": 1}
"""Options for trials whose times don't matter."""

NO_JAVA = ["duckdb", "datafusion", "pyarrow", "polars", "chdb"]
"""The readers without Java."""


def zeros(path: Path) -> Path:
    """A file in which DataFusion and Spark lose the rows with -0.0: another writer's filters don't contain +0.0."""
    values = [-5.0, -0.0, 5.0] * 100
    table = pa.table({"c": values, "n": list(range(300))})
    options = {"c": {"ndv": 3}}
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, bloom_filter_options=options)
    return path


def halves(path: Path) -> Path:
    """A file of FLOAT16 without filters. With filters, DuckDB loses all rows of a lookup."""
    values = pa.array([number % 50 + 0.5 for number in range(300)], pa.float32()).cast(pa.float16())
    pq.write_table(pa.table({"c": values}), path, row_group_size=100)
    return path


def orders(path: Path, rows: int = 20_000, *, filters: bool = False) -> Path:
    """A file of ten row groups with ids that minimum and maximum can't exclude."""
    chance = random.Random(3)
    ids = [chance.randrange(10**9) for _ in range(rows)]
    table = pa.table({"id": ids, "name": [f"user {number % 5000}" for number in ids], "at": list(range(rows))})
    pq.write_table(table, path, row_group_size=rows // 10, use_dictionary=False)
    if filters:
        bloomcli.add(path, ["id"], in_place=True)
    return path


def of(report: TrialReport, name: str) -> ReaderTrial:
    """The row of a reader."""
    (found,) = [reader for reader in report.readers if reader.reader == name]
    return found


def trial(path: Path, *columns: str, readers: Any = NO_JAVA, **options: Any) -> TrialReport:
    """A fast trial of columns."""
    return bloomcli.trial(path, columns=columns, readers=readers, **{**FAST, **options})
