"""A file to run `bloom` on, in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli


@pytest.fixture(autouse=True)
def _one_process(one_process: None) -> None:
    """Let commands on many files work in this process, unless --jobs is given."""


def table(rows: int = 3000) -> pa.Table:
    """Orders: an integer key, a group with strings, a dictionary column, a float, a flag."""
    return pa.table(
        {
            "id": pa.array(range(0, rows * 7, 7), pa.int64()),
            "user": pa.array([{"email": f"user{i}@example.org", "name": f"n{i % 50}"} for i in range(rows)]),
            "status": pa.array(["new", "paid", "sent"] * (rows // 3)).dictionary_encode(),
            "score": pa.array([i / 8 - 5 for i in range(rows)]),
            "ok": pa.array([i % 2 == 0 for i in range(rows)]),
        }
    )


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 orders in 3 row groups, without filters."""
    path = tmp_path_factory.mktemp("cli") / "orders.parquet"
    pq.write_table(table(), path, row_group_size=1000)
    return path


@pytest.fixture(scope="session")
def filtered(plain: Path) -> Path:
    """The same file with filters on id and user.email."""
    path = plain.with_name("filtered.parquet")
    bloomcli.add(plain, ["id", "user.email"], output=path)
    return path
