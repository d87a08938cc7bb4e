"""`bloom` on Mosaic files: the option that has to be said, and what people see of the schema and its buckets."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from support.cli import Bloom
from support.mosaicfiles import write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """90 rows in 3 row groups."""
    table = pa.table(
        {"id": range(90), "name": [f"n{i}" for i in range(90)], "at": pa.array(range(90), pa.time32("ms"))}
    )
    return write(tmp_path / "f.mosaic", table, batch=30, num_buckets=2)


def test_other_formats_take_no_notice_of_the_option(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "with.parquet", tmp_path / "without.parquet"]
    assert bloom("add", plain, "--columns", "id", "-o", outs[0], "--mosaic-draft").code == 0
    assert bloom("add", plain, "--columns", "id", "-o", outs[1]).code == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_a_wide_files_details_are_cut_in_the_text_and_whole_in_json(bloom: Bloom, tmp_path: Path) -> None:
    path = write(tmp_path / "wide.mosaic", pa.table({f"c{i:03}": [i] for i in range(100)}))
    text = bloom("inspect", path, "--all").out
    assert "48 more lines in the JSON report" in text
    assert "c099: INT64" not in text
    details = json.loads(bloom("inspect", path, "--format", "json").out)["details"]
    assert len(details) == 108
    assert ["column 99", "c099: INT64, bucket 99"] in details
