"""The answer of `bloom probe` joins filter and min/max statistics; next to it stands what each says alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom


@pytest.fixture
def full(bloom: Bloom, tmp_path: Path) -> Path:
    """Two row groups with the numbers from 0 and from 1,000, and filters of 32 bytes that say maybe to everything."""
    path = tmp_path / "full.parquet"
    table = pa.table({"id": pa.array(range(2000), pa.int64())})
    pq.write_table(table, tmp_path / "bare", row_group_size=1000, use_dictionary=False)
    assert bloom("add", tmp_path / "bare", "-c", "id", "--max-bytes", "32", "-o", path).code == 0
    return path


def test_a_value_that_min_and_max_rule_out_is_absent_though_the_filter_says_maybe(bloom: Bloom, full: Path) -> None:
    result = bloom("probe", full, "-c", "id", "-5", "-f", "json")
    assert result.code == 1
    assert result.json["absent_everywhere"] is True
    assert {(v["presence"], v["stats_skip"], v["answer"]) for v in result.json["verdicts"]} == {
        ("maybe", True, "absent")
    }
    (totals,) = result.json["totals"]
    assert (totals["presence"], totals["answer"]) == ("maybe", "absent")
    assert (totals["skipped_row_groups"], totals["absent_row_groups"]) == (0, 2)
    assert totals["absent_bytes"] == result.json["total_bytes"]


def test_statistics_that_are_wrong_rule_nothing_out(bloom: Bloom, full: Path) -> None:
    """The filters don't hold their row groups' minimum and maximum: either of the two is wrong."""
    data = bytearray(full.read_bytes())
    for facts in bloom("inspect", full, "-f", "json").json["filters"]:
        start = facts["offset"] + facts["header_bytes"]
        data[start : start + facts["bitset_bytes"]] = bytes(facts["bitset_bytes"])
    full.write_bytes(data)
    result = bloom("probe", full, "-c", "id", "-5", "-f", "json")
    assert result.code == 0
    assert {(v["stats_skip"], v["answer"]) for v in result.json["verdicts"]} == {(True, "can't tell")}
    text = bloom("probe", full, "-c", "id", "-5").out
    assert "doesn't have the row group's own minimum or maximum" in text
