"""The commands in hints work, for every format and any name of a column."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets, footers

import bloomcli
from bloomcli.cli import run
from bloomcli.formats.records import format_named
from bloomcli.hints import folding
from bloomcli.model.validate import Finding


def follow(path: Path, finding: Finding) -> int:
    """Do what the hint says."""
    named = re.search("`bloom (.+?)`", finding.hint or "")
    assert named is not None, finding.hint
    return run([*shlex.split(named[1]), str(path), "--in-place"])


@pytest.mark.parametrize("name", ["id", "a,b", "user's", "a b", "x[0]", "*", "$HOME", "ünï"])
def test_the_hint_of_a_wanted_filter_adds_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({name: [1, 2, 3], "other": [1, 2, 3]}), path)
    (finding,) = bloomcli.validate(path, require=["*"], columns=["other"]).findings[:1]
    for wanted in bloomcli.validate(path, require=["*"]).findings:
        assert follow(path, wanted) == 0
    assert finding.id == "filter-required"
    assert bloomcli.validate(path, require=["*"]).findings == ()


def test_the_hint_where_other_row_groups_have_one_replaces_them(tmp_path: Path) -> None:
    """DuckDB writes none where all is null; add to a chunk that has one is an error without --replace."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"k": pa.array([None] * 3 + [*range(6)], pa.int64())}), path, row_group_size=3)
    (none,) = bloomcli.validate(path, require=["k"]).findings
    assert none.hint == "`bloom add --columns k`"
    assert follow(path, none) == 0
    fact = bloomcli.inspect(path).filters[-1]
    data = footers.edited(path.read_bytes(), footers.set_filter(fact.row_group, 0, None, None))
    path.write_bytes(data)
    (part,) = bloomcli.validate(path, require=["k"]).findings
    assert part.hint == "`bloom add --replace --columns k`"
    assert follow(path, part) == 0
    assert bloomcli.validate(path, require=["k"], deep=True).findings == ()


def test_the_hint_of_a_rate_above_the_limit_and_of_a_filter_too_large(tmp_path: Path) -> None:
    for suffix in ("parquet", "orc"):
        path = datasets.write(tmp_path / f"f.{suffix}", 2000)
        bloomcli.add(path, ["id"], in_place=True, fpp=0.2)
        for finding in bloomcli.validate(path, max_fpp=0.01).findings:
            assert finding.id == "filter-fpp"
        assert follow(path, finding) == 0
        assert bloomcli.validate(path, max_fpp=0.01).findings == ()
        bloomcli.add(path, ["id"], in_place=True, fpp=0.000001, replace=True)
        oversized = bloomcli.validate(path, max_oversize=1.5, max_fpp=0.1).findings[0]
        assert oversized.id == "filter-oversized"
        assert follow(path, oversized) == 0
        assert bloomcli.validate(path, max_oversize=1.5, max_fpp=0.1).findings == ()


def test_mosaic_files_take_filters_as_a_draft_only() -> None:
    assert format_named("mosaic").adding("id", "--replace") == "`bloom add --replace --mosaic-draft --columns id`"
    assert format_named("parquet").adding("a,b") == "`bloom add --columns 'a\\,b'`"
    assert folding("id", 0.01) == "`bloom fold --fpp 0.01 --columns id`"
