"""Damage and a limit are rows in the lists of pages and entries; the golden reports have those of the fixtures."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.golden import FIXTURES

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.model.inspect import InspectReport

FILE = FIXTURES / "spark_pages.parquet"
"""Two row groups of several pages, with page indexes."""


def listed(path: Path) -> InspectReport:
    """The report with pages and indexes."""
    return bloomcli.inspect(path, columns=["id"], pages=True, indexes=True)


def test_a_damaged_header_is_a_row_and_other_row_groups_stay(tmp_path: Path) -> None:
    pages = [page for page in listed(FILE).pages if page.row_group == 0]
    data = bytearray(FILE.read_bytes())
    data[pages[2].offset : pages[2].offset + 8] = b"\xff" * 8
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(data)
    found = listed(broken).pages
    assert [page.problem is None for page in found if page.row_group == 0] == [True, True, False]
    bad = next(page for page in found if page.problem is not None)
    assert bad.offset == pages[2].offset
    assert [page for page in found if page.row_group == 1] == [p for p in listed(FILE).pages if p.row_group == 1]


def test_arrows_row_groups_without_rows_have_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), path)
    assert listed(path).pages == ()


def test_lists_end_at_their_limit_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_limits, "PAGES_LISTED_MAX", 3)
    report = listed(FILE)
    assert [page.problem for page in report.pages] == [None] * 3 + ["not listed: pages after the first 3"]
    assert [entry.problem for entry in report.index] == [None] * 3 + ["not listed: entries after the first 3"]


@pytest.mark.parametrize("columns", [[], ["*"]])
def test_pages_are_of_one_column(columns: list[str]) -> None:
    with pytest.raises(UsageError, match="--pages is for one column"):
        bloomcli.inspect(FILE, columns=columns, pages=True)
