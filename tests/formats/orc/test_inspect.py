"""inspect on ORC files: single filters, their sums, and the bytes that are read for them."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import pytest
from support import orcfiles
from support.orcfiles import BLOOM_FILTER_UTF8
from support.sources import CountingSource

import bloomcli


def test_a_summary_is_by_column_and_kind(tmp_path: Path) -> None:
    table = {"a": range(45), "s": [f"text {i}" for i in range(45)]}
    path = orcfiles.write(tmp_path / "plain", table, stripe=20, stride=10)
    bloomcli.add(path, ["a", "s"], output=tmp_path / "f", kind="both", fpp=0.02)
    report = bloomcli.inspect(tmp_path / "f")
    assert (report.format, report.rows, report.row_groups, report.stripes, report.columns) == ("orc", 45, 5, 3, 2)
    assert report.created_by is not None
    assert report.created_by.startswith("ORC C++")
    kinds = ["BLOOM_FILTER", "BLOOM_FILTER_UTF8"]
    assert [(s.column, s.encoding) for s in report.summary] == [(c, k) for c in ("a", "s") for k in kinds]
    for summary in report.summary:
        facts = [f for f in report.filters if (f.column, f.encoding) == (summary.column, summary.encoding)]
        assert (summary.filters, summary.unreadable, summary.problem) == (5, 0, None) == (len(facts), 0, None)
        assert [(f.stripe, f.row_group) for f in facts] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
        assert summary.bitset_bytes == sum(f.bitset_bytes or 0 for f in facts) == report.filter_bytes // 4
        assert summary.bits == (facts[0].bitset_bytes or 0) * 8
        assert summary.hash_functions == facts[0].hash_functions
        rates = [f.fpp or 0 for f in facts]
        assert (summary.fpp, summary.max_fpp) == (pytest.approx(sum(rates) / 5), max(rates))
        assert summary.ndv_estimate == pytest.approx(9, abs=1)
        assert summary.asked_fpp == pytest.approx(math.exp(-(summary.bits or 0) / 10 * math.log(2) ** 2))
        assert {f.hash for f in facts} == {"WANG" if summary.column == "a" else "MURMUR3"}


@pytest.mark.parametrize(("columns", "compression"), [([], "uncompressed"), (["int*", "st.y"], "zlib")], ids=str)
def test_inspect_reads_the_tail_the_stripe_footers_and_the_filters_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str], compression: str
) -> None:
    layout = {"stripe": 25} if compression == "uncompressed" else {"compression": compression}
    path = orcfiles.write(tmp_path / "f", orcfiles.everything(90), blooms=range(40), **layout)
    source = CountingSource(path)
    monkeypatch.setattr(import_module("bloomcli.commands.inspect"), "open_source", lambda _: source)
    report = bloomcli.inspect(path, columns=columns)
    file = orcfiles.split(path)
    size = path.stat().st_size
    wanted = {f.column for f in report.filters}
    expected = {(size - 4, 4), (size - 256, 256)}
    footer = file.postscript.footer_length
    expected.add((size - 1 - path.read_bytes()[-1] - footer, footer))
    for part in file.stripes:
        at = part.info.offset
        for stream in part.footer.streams:
            kind = stream.kind
            if kind == BLOOM_FILTER_UTF8 and (not columns or stream.column in chosen_ids(path, wanted)):
                expected.add((at, stream.length))
            at += stream.length
        expected.add((at, part.info.footer_length))
    assert len(source.reads) == len(set(source.reads))
    assert set(source.reads) == expected


def test_inspect_reads_each_row_index_that_it_lists_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"a": range(45), "s": [f"text {i}" for i in range(45)]}
    path = orcfiles.write(tmp_path / "f", table, stripe=20, stride=10)
    source = CountingSource(path)
    monkeypatch.setattr(import_module("bloomcli.commands.inspect"), "open_source", lambda _: source)
    assert len(bloomcli.inspect(path, columns=["a"], indexes=True).index) == 5
    assert len(source.reads) == len(set(source.reads))


def chosen_ids(path: Path, names: set[str]) -> set[int]:
    from bloomcli.formats.orc.file import OrcFile
    from bloomcli.storage.registry import open_source

    with open_source(path) as source:
        return {t.id for t in OrcFile(source).footer.types if t.path in names}
