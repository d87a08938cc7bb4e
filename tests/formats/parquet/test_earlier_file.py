"""Files in a store that only appends to whole objects: the old file stays complete, and is restored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers
from support.footers import claims, stripped
from support.tables import write

import bloomcli
from bloomcli.cli import run
from bloomcli.storage.local.store import LocalStore


@pytest.fixture(autouse=True)
def appending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat local files as those of such a store."""
    monkeypatch.setattr(LocalStore, "appends_only", lambda *_: True)


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(300), pa.int64()),
            "name": [f"n{i % 37}" if i % 5 else None for i in range(300)],
            "price": [i / 4 for i in range(300)],
        }
    )


@pytest.fixture(params=[False, True], ids=["", "page_index"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return write(tmp_path / "data.parquet", table(), rows=100, write_page_index=request.param)


def test_an_added_filter_lies_behind_the_whole_old_file(path: Path) -> None:
    before = path.read_bytes()
    report = bloomcli.add(path, ["id", "price"], in_place=True)
    after = path.read_bytes()
    assert after.startswith(before)
    assert stripped(after) == footers.split(before)[1]
    assert min(offset for _, _, offset, _ in claims(after)) == len(before)
    assert report.bytes_copied == len(before)
    assert report.bytes_unreclaimed == len(before) - len(footers.split(before)[0])
    assert bloomcli.validate(path, deep=True).findings == ()
    assert pq.read_table(path).equals(table())


def test_remove_gives_the_old_file_back_after_fold_too(path: Path) -> None:
    before = path.read_bytes()
    bloomcli.add(path, ["id"], in_place=True, ndv=100_000)
    bloomcli.fold(path, in_place=True, fpp=0.1)
    assert bloomcli.validate(path, deep=True).findings == ()
    bloomcli.remove(path, in_place=True)
    assert path.read_bytes() == before


def test_a_replaced_filter_stays_unused_and_is_counted(path: Path) -> None:
    before = path.read_bytes()
    bloomcli.add(path, ["id"], in_place=True)
    first = path.read_bytes()
    report = bloomcli.add(path, ["id"], in_place=True, replace=True)
    assert path.read_bytes().startswith(first)
    body = len(footers.split(first)[0])
    filters = sum(length for _, _, _, length in claims(first))
    assert report.bytes_unreclaimed == len(first) - body + filters
    bloomcli.remove(path, in_place=True)
    assert path.read_bytes() == before


def test_a_dry_run_reports_the_size_with_the_old_footer(path: Path) -> None:
    report = bloomcli.add(path, ["id"], dry_run=True)
    bloomcli.add(path, ["id"], in_place=True)
    assert report.bytes_copied <= path.stat().st_size <= report.bytes_after


def test_the_report_says_why_bytes_are_unused(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["add", str(path), "-c", "id", "--in-place"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "stay in the file, unused: the old footer, as this store appends to whole objects only" in said


def test_bytes_that_only_look_like_an_earlier_file_are_kept(path: Path) -> None:
    """The filters' bytes are preceded by a magic that ends no footer."""
    bloomcli.add(path, ["id"], in_place=True)
    data = path.read_bytes()
    start = min(offset for _, _, offset, _ in claims(data))
    path.write_bytes(data[: start - 8] + b"\xff\xff\xff\x7fPAR1" + data[start:])
    damaged = path.read_bytes()
    bloomcli.remove(path, in_place=True)
    after = path.read_bytes()
    assert after[:start] == damaged[:start]
    assert pq.read_table(path).equals(table())
