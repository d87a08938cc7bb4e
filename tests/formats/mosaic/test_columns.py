"""The summary of Mosaic's columns, their buckets, statistics, schema and footer."""

from __future__ import annotations

import pytest
from support.golden import MOSAIC

import bloomcli
from bloomcli.formats.mosaic import limits as mosaic_limits

TYPES = MOSAIC / "released_types.mosaic"


def test_bounds_are_joined_over_row_groups() -> None:
    report = bloomcli.inspect(TYPES, columns=["big"], indexes=True)
    (column,) = report.by_column
    assert len(report.index) == report.row_groups == 3
    assert (column.min, column.max) == (report.index[0].min, report.index[-1].max)
    assert column.nulls == sum(entry.nulls or 0 for entry in report.index)
    assert column.values == report.rows


def test_buckets_lie_where_the_footer_says() -> None:
    report = bloomcli.inspect(TYPES, columns=["big"], pages=True, footer=True)
    assert report.footer is not None
    groups = report.footer["index"]["row_groups"]
    wanted = [bucket for group in groups for bucket in group["buckets"] if bucket["bucket"] == 0]
    assert [(p.offset, p.compressed_bytes, p.uncompressed_bytes, p.kind) for p in report.pages] == [
        (b["offset"], b["length"], b["unpacked_length"], b["layout"]) for b in wanted
    ]


def test_the_footer_is_whole() -> None:
    footer = bloomcli.inspect(MOSAIC / "draft_types.mosaic", footer=True).footer
    assert footer is not None
    assert footer["footer"]["version"] == 2
    assert footer["footer"]["offset"] + footer["footer"]["length"] == (MOSAIC / "draft_types.mosaic").stat().st_size
    assert len(footer["schema"]["columns"]) == 11
    filters = [f for group in footer["index"]["row_groups"] for f in group["filters"]]
    assert [f["offset"] for f in filters] == [
        f.offset for f in bloomcli.inspect(MOSAIC / "draft_types.mosaic").filters
    ]


def test_footers_of_very_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosaic_limits, "DUMP_MAX_PARTS", 5)
    with pytest.raises(bloomcli.BloomError, match="more than 5 parts"):
        bloomcli.inspect(TYPES, footer=True)


def test_the_schema_is_in_the_order_of_the_writer() -> None:
    nodes = bloomcli.inspect(TYPES, schema=True).schema_tree
    assert [node.name for node in nodes][:3] == ["whole", "text", "flag"]
    assert {node.depth for node in nodes} == {1}
