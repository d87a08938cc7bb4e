"""An index and its lake may lie in different places, and be named in different ways."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc
from support import work
from support.indexed_lakes import parquet, same_rows
from support.processes import wait_until
from support.stores import Place

import bloomcli


@pytest.mark.slow
def test_an_index_in_a_store_and_a_lake_of_this_machine_and_the_other_way_round(place: Place, tmp_path: Path) -> None:
    local = tmp_path / "lake"
    local.mkdir()
    for at in range(3):
        data = parquet(range(at * 100, at * 100 + 100))
        (local / f"{at}.parquet").write_bytes(data)
        place.put(f"lake/{at}.parquet", data)
    for lake, index in ((str(local), place.path("a.idx")), (place.path("lake"), str(tmp_path / "b.idx"))):
        assert bloomcli.index_build(lake, ["id"], output=index).files == 3
        report = same_rows(lake, [150], index)
        assert (report.rows, report.files_unopened, report.files_not_indexed) == (1, 2, 0)
        assert bloomcli.index_update(lake, index).kept == 3
    both = bloomcli.index_build([str(local), place.path("lake")], ["id"], output=tmp_path / "both.idx")
    assert both.files == 6
    assert same_rows([str(local), place.path("lake")], [150], str(tmp_path / "both.idx")).rows == 2


@pytest.mark.slow
def test_orc_files_in_a_store_are_indexed_and_found(place: Place, tmp_path: Path) -> None:
    for at in range(2):
        path = tmp_path / f"{at}.orc"
        orc.write_table(pa.table({"id": range(at * 100, at * 100 + 100), "text": ["x"] * 100}), path)
        place.put(f"lake/{at}.orc", path.read_bytes())
    index = place.path("x.idx")
    report = bloomcli.index_build(place.path("lake"), ["id", "text"], output=index)
    assert (report.files, report.columns_read, report.failed) == (2, 4, 0)
    found = same_rows(place.path("lake"), [150], index)
    assert (found.rows, found.files_unopened, found.files_not_indexed) == (1, 1, 0)


def test_an_index_within_its_lake_is_no_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet(range(100)))
    index = tmp_path / "lake.bloom-index"
    assert bloomcli.index_build(tmp_path, ["id"], output=index).skipped == 0
    report = bloomcli.index_update(tmp_path, index)
    assert (report.kept, report.skipped, report.failed, report.written) == (1, 1, 0, False)
    found = same_rows(str(tmp_path), [7], str(index))
    assert (found.rows, found.failed, found.files_not_indexed) == (1, 0, 0)


def test_one_file_by_many_names_is_indexed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lake").mkdir()
    Path("lake/a.parquet").write_bytes(parquet(range(100)))
    Path("link").symlink_to("lake")
    names = [
        "lake",
        "./lake",
        "lake/a.parquet",
        f"{tmp_path}/lake",
        "link",
        "lake/*.parquet",
        f"file://{tmp_path}/lake",
    ]
    assert bloomcli.index_build(names, ["id"], output="x.idx").files == 1
    assert bloomcli.index_update(["link/"], "x.idx").kept == 1
    found = same_rows(["link/a.parquet"], [7], "x.idx")
    assert (found.rows, found.files_not_indexed) == (1, 0)


@pytest.mark.slow
def test_ctrl_c_leaves_the_old_index_and_nothing_else(tmp_path: Path) -> None:
    lake, index = tmp_path / "lake", tmp_path / "out" / "x.idx"
    counts, temporary = tmp_path / "counts", tmp_path / "temporary"
    for folder in (lake, index.parent, counts, temporary):
        folder.mkdir()
    (lake / "0.parquet").write_bytes(parquet(range(100)))
    bloomcli.index_build(lake, ["id"], output=index)
    before = index.read_bytes()
    for at in range(1, 40):
        (lake / f"{at}.parquet").write_bytes(parquet(range(at, at + 300), blooms=False))
    order = [sys.executable, "-m", "bloomcli", "index", "update", str(lake), "-i", str(index)]
    process = subprocess.Popen(
        order, stderr=subprocess.PIPE, env=work.counting(counts, 3) | {"TMPDIR": str(temporary)}
    )
    assert wait_until(lambda: sum(work.pieces(counts)) >= 3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode in {130, -signal.SIGINT}, said
    assert b"Traceback" not in said
    assert index.read_bytes() == before
    assert list(temporary.iterdir()) == []
    assert list(index.parent.iterdir()) == [index]
