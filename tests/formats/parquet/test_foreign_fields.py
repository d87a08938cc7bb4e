"""Fields with a known number and another type are skipped, as by readers (Dremio's files of 2019)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from conftest import ROOT
from support import footers

import bloomcli
from bloomcli.model.file import Presence

FILE = ROOT / "fixtures" / "parquet" / "dict-page-offset-zero.parquet"


def test_a_list_where_the_filters_length_is_today_is_skipped() -> None:
    assert bloomcli.inspect(FILE).filters == ()
    assert bloomcli.validate(FILE, deep=True).findings == ()
    assert bloomcli.probe(FILE, ["1552"], column="l_partkey").totals[0].presence is Presence.NO_FILTER
    assert bloomcli.remove(FILE, dry_run=True).changes == ()


def test_a_filter_takes_the_place_of_the_list(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bloomcli.add(FILE, ["l_partkey"], output=out)
    assert bloomcli.validate(out, deep=True).findings == ()
    assert pq.read_table(out).equals(pq.read_table(FILE))
    values = {str(value) for value in pq.read_table(FILE)["l_partkey"].to_pylist()}
    assert values
    assert {t.presence for t in bloomcli.probe(out, sorted(values), column="l_partkey").totals} == {Presence.MAYBE}
    before, after = (footers.tree(path.read_bytes()) for path in (FILE, out))
    for metadata in (before, after):
        for field in (footers.BLOOM_FILTER_OFFSET, footers.BLOOM_FILTER_LENGTH):
            footers.meta(metadata, 0, 0).pop(field, None)
    assert before == after
