"""The summary of a column, its streams, its row index and its merged filters agree with the file's values."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyarrow import orc
from support.golden import ORC

import bloomcli
from bloomcli.formats.orc import footer
from bloomcli.formats.orc import limits as orc_limits

JAVA = ORC / "java_types.orc"
READ = ("tiny", "small", "whole", "big", "text", "label", "cents")


def test_streams_fill_the_stripes() -> None:
    """Those of all columns, with the struct's and the stripes' footers, are the bytes between the stripes' ends."""
    report = bloomcli.inspect(JAVA, footer=True)
    assert report.footer is not None
    stripes = report.footer["footer"]["stripes"]
    taken = [0] * len(stripes)
    for column in bloomcli.inspect(JAVA).by_column:
        for stream in bloomcli.inspect(JAVA, columns=[column.column], pages=True).pages:
            assert stream.stripe is not None
            stripe = stripes[stream.stripe]
            assert stripe["offset"] <= stream.offset
            assert stream.offset + (stream.compressed_bytes or 0) <= (
                stripe["offset"] + stripe["index_length"] + stripe["data_length"]
            )
            taken[stream.stripe] += stream.compressed_bytes or 0
    for stripe, size in zip(stripes, taken, strict=True):
        assert 0.9 < size / (stripe["index_length"] + stripe["data_length"]) <= 1


def test_row_index_entries_have_the_bounds_of_their_rows() -> None:
    report = bloomcli.inspect(JAVA, columns=["big"], indexes=True, footer=True)
    assert report.footer is not None
    stride = report.footer["footer"]["row_index_stride"]
    values = orc.read_table(JAVA).column("big")
    at = 0
    for stripe, info in enumerate(report.footer["footer"]["stripes"]):
        entries = [entry for entry in report.index if entry.stripe == stripe]
        end = at + info["number_of_rows"]
        for entry in entries:
            rows = values[at : min(at + stride, end)]
            found = pc.min_max(rows)
            assert (entry.min, entry.max) == (str(found["min"].as_py()), str(found["max"].as_py()))
            assert entry.values == len(rows) - rows.null_count
            assert entry.has_nulls == bool(rows.null_count)
            assert entry.positions
            at += len(rows)
    assert at == len(values)


def test_joined_filters_have_the_bits_of_all_row_groups() -> None:
    report = bloomcli.inspect(JAVA, columns=["big"], indexes=True)
    assert {merged.stripe for merged in report.merged_filters} == {0, 1}
    for merged in report.merged_filters:
        groups = [f for f in report.filters if (f.stripe, f.encoding) == (merged.stripe, merged.encoding)]
        together = 0
        for facts in groups:
            dump = bloomcli.dump(JAVA, column="big", row_group=facts.row_group, stripe=merged.stripe)
            together |= int.from_bytes(dump.bitset, "big")
        assert merged.filters == len(groups)
        assert merged.set_bits == together.bit_count()
        assert merged.bits == groups[0].bitset_bytes * 8  # type: ignore[operator]
        assert merged.fpp == pytest.approx((together.bit_count() / merged.bits) ** (merged.hash_functions or 0))


def test_unknown_fields_of_messages_have_their_numbers() -> None:
    footer = bloomcli.inspect(ORC / "java_encrypted.orc", footer=True).footer
    assert footer is not None
    variant = footer["footer"]["encryption"]["variants"][0]
    assert variant["root"] == 2
    assert variant["2"] == 0
    assert variant["3"] == {"hex": variant["3"]["hex"]}
    assert footer["footer"]["types"][2]["attributes"][0] == {"key": "encrypt", "value": "pii"}
    assert footer["postscript"]["magic"] == "ORC"
    assert footer["metadata"]["stripe_statistics"][0]["column_statistics"][1]["int_statistics"]["maximum"] == 99


def test_footers_of_very_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footer.orc_limits, "DUMP_MAX_PARTS", 50)
    with pytest.raises(bloomcli.BloomError, match="more than 50 parts"):
        bloomcli.inspect(JAVA, footer=True)


def test_lists_of_entries_end_at_their_limit_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_limits, "ENTRIES_LISTED_MAX", 2)
    found = bloomcli.inspect(JAVA, columns=["big"], indexes=True).index
    assert [entry.problem for entry in found] == [None, None, "not listed: entries after the first 2"]


def test_a_damaged_row_index_is_a_row(tmp_path: Path) -> None:
    pages = bloomcli.inspect(JAVA, columns=["big"], pages=True).pages
    stream = next(page for page in pages if page.kind == "ROW_INDEX")
    data = bytearray(JAVA.read_bytes())
    data[stream.offset : stream.offset + 3] = b"\xff" * 3
    (tmp_path / "a.orc").write_bytes(data)
    found = bloomcli.inspect(tmp_path / "a.orc", columns=["big"], indexes=True).index
    assert found[0].problem is not None
    assert all(entry.problem is None and entry.stripe == 1 for entry in found[1:])


def test_the_schema_has_column_ids_and_types() -> None:
    nodes = bloomcli.inspect(JAVA, schema=True).schema_tree
    assert [node.id for node in nodes] == list(range(len(nodes)))
    assert (nodes[0].type, nodes[0].depth) == ("struct", 0)
    assert {node.path for node in nodes if node.column is not None} >= set(READ)
