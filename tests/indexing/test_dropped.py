"""Files that `index update` drops: it reports their number and the reason, and a path without files drops none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import Bloom
from support.indexed_lakes import parquet, same_rows
from support.stores import Place

import bloomcli
from bloomcli.model.index import IndexReport

pytestmark = pytest.mark.usefixtures("one_process")
"""Indexes that workers build are in test_places.py."""


@pytest.fixture
def lake(place: Place) -> Place:
    """Two directories with three files each, and an index of both."""
    for at, folder in enumerate(("a", "b")):
        for file in range(3):
            start = at * 1000 + file * 100
            place.put(f"lake/{folder}/{file}.parquet", parquet(range(start, start + 100)))
    bloomcli.index_build(place.path("lake"), ["id"], output=place.path("x.idx"))
    return place


def updated(lake: Place, *names: str, **options: bool) -> IndexReport:
    return bloomcli.index_update([lake.path(name) for name in names], lake.path("x.idx"), **options)


def dropped(report: IndexReport) -> tuple[int, int, int, int, int]:
    return (
        report.dropped,
        report.dropped_gone,
        report.dropped_unnamed,
        report.dropped_failed,
        report.kept_unseen,
    )


def test_files_that_are_gone_unnamed_or_failed_are_distinguished(lake: Place) -> None:
    lake.remove("lake/a/0.parquet")
    lake.put("lake/a/1.parquet", b"PAR1")
    report = updated(lake, "lake/a", dry_run=True)
    assert (report.written, dropped(report)) == (False, (5, 1, 3, 1, 0))
    report = updated(lake, "lake/a")
    assert (report.written, report.files, report.kept, dropped(report)) == (True, 1, 1, (5, 1, 3, 1, 0))


@pytest.mark.parametrize("typo", ["lake/c", "lake/c/", "lake/c/0.parquet", "lake/c/*.parquet"])
def test_a_path_without_files_drops_none(lake: Place, typo: str) -> None:
    lake.remove("lake/a/0.parquet")
    report = updated(lake, "lake/a", typo)
    assert (report.written, report.kept, dropped(report)) == (False, 2, (0, 0, 0, 0, 4))
    assert report.paths_unseen == (lake.path(typo),)
    lake.put("lake/a/9.parquet", parquet(range(9000, 9100)))
    report = updated(lake, "lake/a", typo)
    assert (report.written, report.files, report.added, dropped(report)) == (True, 7, 1, (0, 0, 0, 0, 4))
    found = same_rows(lake.path("lake"), [7, 150, 1150, 9050], lake.path("x.idx"))
    assert (found.rows, found.files_not_indexed, found.files_changed) == (3, 0, 0)


def test_a_typo_alone_never_empties_an_index(lake: Place) -> None:
    before = lake.get("x.idx")
    for typo in ("lake/c", "lake/c/", "lake/c/*.parquet", "lake/a/9.parquet"):
        try:
            report = updated(lake, typo)
        except bloomcli.BloomError:
            continue
        assert (report.written, report.exit_code) == (False, 3)
    assert lake.get("x.idx") == before


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        (["lake"], 1),
        (["lake/a", "lake/b"], 1),
        (["lake/*/*.parquet"], 1),
        (["lake/[ab]"], 1),
        (["lake/[!b]", "lake/b"], 1),
        (["lake/?/[1-2].parquet", "lake/b"], 0),
    ],
)
def test_a_file_that_is_gone_is_known_by_directories_and_patterns(lake: Place, names: list[str], gone: int) -> None:
    lake.remove("lake/a/0.parquet")
    report = updated(lake, *names)
    assert dropped(report) == (1, gone, 1 - gone, 0, 0)


def test_nothing_is_dropped_where_no_index_is_written(lake: Place) -> None:
    for file in range(3):
        lake.put(f"lake/a/{file}.parquet", b"PAR1")
    report = updated(lake, "lake/a")
    assert (report.written, dropped(report)) == (False, (0, 0, 0, 0, 0))
    lake.remove("lake/b/0.parquet")
    report = updated(lake, "lake", fail_fast=True)
    assert (report.written, dropped(report)) == (False, (0, 0, 0, 0, 0))


def test_the_command_says_what_it_drops_and_why(
    bloom: Bloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        for file in range(2):
            Path(folder, f"{file}.parquet").write_bytes(parquet(range(file * 100, file * 100 + 100)))
    assert bloom("index", "build", "a", "b", "-c", "id", "-o", "x.idx").code == 0
    typo = bloom("index", "update", "a", "bb", "-i", "x.idx")
    assert typo.out.splitlines() == [
        "x.idx: not written, it stays as it was",
        "2 unchanged, 0 dropped",
        "2 files not found and not dropped: there is no file in bb",
        "1 file failed and isn't in the index: `find` searches it itself",
    ]
    assert typo.code == 3
    report = bloom("index", "update", "a", "-i", "x.idx", "--dry-run").out.splitlines()
    assert report[1:] == [
        "2 unchanged, 2 would be dropped: 2 not named by the paths",
        "an update needs all paths of the index: it drops the files that they don't name",
    ]
    Path("a/0.parquet").unlink()
    done = json.loads(bloom("index", "update", "a", "-i", "x.idx", "--format", "json").out)
    found = [done[f"dropped{why}"] for why in ("", "_gone", "_unnamed", "_failed")]
    assert (found, done["kept_unseen"], done["paths_unseen"]) == ([3, 1, 2, 0], 0, [])
