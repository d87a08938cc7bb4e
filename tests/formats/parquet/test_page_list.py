"""Page headers and page indexes are listed as pyarrow wrote them; damage is reported as a row."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.model.inspect import InspectReport

ROWS = 3000
NAMES = pa.array([f"user{i:05d}" if i % 10 else None for i in range(ROWS)])


@pytest.fixture(params=["1.0", "2.0"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file of 3,000 rows in 2 row groups, in pages of about 200 values, with indexes and checksums."""
    table = pa.table({"id": pa.array(range(ROWS)), "name": NAMES, "kind": pa.array(["a", "b", "c"] * (ROWS // 3))})
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        row_group_size=ROWS // 2,
        data_page_size=2000,
        write_batch_size=100,
        use_dictionary=["kind"],
        write_page_index=True,
        write_page_checksum=True,
        data_page_version=request.param,
    )
    return tmp_path / "a.parquet"


def listed(path: Path, column: str = "name") -> InspectReport:
    """The report with pages and indexes."""
    return bloomcli.inspect(path, columns=[column], pages=True, indexes=True)


@pytest.mark.parametrize("column", ["id", "name", "kind"])
def test_pages_fill_their_chunks_and_have_the_checksums_of_their_bytes(path: Path, column: str) -> None:
    report = listed(path, column)
    meta = pq.read_metadata(path)
    index = meta.schema.names.index(column)
    data = path.read_bytes()
    for group in range(2):
        chunk = meta.row_group(group).column(index)
        pages = [page for page in report.pages if page.row_group == group]
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        assert pages[0].offset == start
        at = start
        for page in pages:
            assert page.problem is None
            assert page.offset == at
            body = at + (page.header_bytes or 0)
            at = body + (page.compressed_bytes or 0)
            assert page.crc == f"{zlib.crc32(data[body:at]):08x}"
        assert at == start + chunk.total_compressed_size
        of_data = [page for page in pages if page.kind.startswith("DATA_PAGE")]
        assert sum(page.values or 0 for page in of_data) == ROWS // 2
        if of_data[0].kind == "DATA_PAGE_V2":
            assert sum(page.nulls or 0 for page in of_data) == chunk.statistics.null_count
            assert sum(page.rows or 0 for page in of_data) == ROWS // 2
    assert ("DICTIONARY_PAGE" in {page.kind for page in report.pages}) == (column == "kind")


def test_index_entries_are_the_pages_and_have_the_bounds_of_their_rows(path: Path) -> None:
    report = listed(path)
    pages = [page for page in report.pages if page.kind.startswith("DATA_PAGE")]
    assert len(report.index) == len(pages) > 8
    assert [entry.offset for entry in report.index] == [page.offset for page in pages]
    for group in range(2):
        entries = [entry for entry in report.index if entry.row_group == group]
        assert [entry.page for entry in entries] == list(range(len(entries)))
        starts = [*(entry.first_row or 0 for entry in entries), ROWS // 2]
        for entry, start, end in zip(entries, starts, starts[1:], strict=False):
            rows = NAMES[group * ROWS // 2 + start : group * ROWS // 2 + end].to_pylist()
            known = [row for row in rows if row is not None]
            assert (entry.min, entry.max) == (min(known), max(known))
            assert entry.nulls == len(rows) - len(known)
            assert entry.boundary_order == "ASCENDING"


def test_a_damaged_header_is_a_row_and_other_row_groups_stay(path: Path, tmp_path: Path) -> None:
    pages = [page for page in listed(path).pages if page.row_group == 0]
    data = bytearray(path.read_bytes())
    data[pages[2].offset : pages[2].offset + 8] = b"\xff" * 8
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(data)
    found = listed(broken).pages
    assert [page.problem is None for page in found if page.row_group == 0] == [True, True, False]
    bad = next(page for page in found if page.problem is not None)
    assert bad.offset == pages[2].offset
    assert [page for page in found if page.row_group == 1] == [p for p in listed(path).pages if p.row_group == 1]


def test_arrows_row_groups_without_rows_have_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"name": NAMES[:0]}), path)
    assert listed(path).pages == ()


def test_lists_end_at_their_limit_and_say_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_limits, "PAGES_LISTED_MAX", 3)
    report = listed(path)
    assert [page.problem for page in report.pages] == [None] * 3 + ["not listed: pages after the first 3"]
    assert [entry.problem for entry in report.index] == [None] * 3 + ["not listed: entries after the first 3"]


@pytest.mark.parametrize("columns", [[], ["id", "name"]])
def test_pages_are_of_one_column(path: Path, columns: list[str]) -> None:
    with pytest.raises(UsageError, match="--pages is for one column"):
        bloomcli.inspect(path, columns=columns, pages=True)


def test_files_without_indexes_have_no_entries(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet", write_page_index=False)
    assert listed(tmp_path / "a.parquet", "a").index == ()
