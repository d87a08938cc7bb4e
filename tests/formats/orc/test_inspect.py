"""inspect on ORC files: single filters, their sums, and the bytes that are read for them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from support import orcfiles
from support.orcfiles import BLOOM_FILTER_UTF8
from support.sources import CountingSource

import bloomcli


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
