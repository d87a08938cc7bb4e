"""`bloom` on Mosaic files: the option that has to be said, and what people see of the schema and its buckets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.cli import Bloom
from support.golden import MOSAIC, ROOT
from support.mosaicfiles import write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """90 rows in 3 row groups."""
    table = pa.table(
        {"id": range(90), "name": [f"n{i}" for i in range(90)], "at": pa.array(range(90), pa.time32("ms"))}
    )
    return write(tmp_path / "f.mosaic", table, batch=30, num_buckets=2)


def test_add_writes_version_2_only_on_request(bloom: Bloom, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mosaic"
    refused = bloom("add", path, "--columns", "id", "-o", out)
    assert refused.code == 2
    assert "released Mosaic readers (paimon-mosaic 0.2.0) refuse version 2" in refused.err
    assert "hint: say --mosaic-draft" in refused.err
    assert not out.exists()
    done = bloom("add", path, "--columns", "id,name", "-o", out, "--mosaic-draft")
    assert done.code == 0
    assert "6 filters added" in done.out
    assert bloom("validate", out, "--deep", "--require", "id,name").code == 0
    assert bloom("probe", out, "--column", "id", "1000").code in {0, 1}
    assert bloom("remove", out, "--in-place").code == 0
    assert out.read_bytes() == path.read_bytes()


def test_other_formats_take_no_notice_of_the_option(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "with.parquet", tmp_path / "without.parquet"]
    assert bloom("add", plain, "--columns", "id", "-o", outs[0], "--mosaic-draft").code == 0
    assert bloom("add", plain, "--columns", "id", "-o", outs[1]).code == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_a_column_that_can_have_no_filter_exits_with_4(bloom: Bloom, path: Path) -> None:
    result = bloom("add", path, "--columns", "at", "--dry-run", "--mosaic-draft")
    assert result.code == 4
    assert "column at is TIME(3): the draft has no filters for such values" in result.err


def test_inspect_shows_version_schema_and_buckets(bloom: Bloom) -> None:
    shown = bloom("inspect", MOSAIC / "draft_types.mosaic", "--all").out
    for text in (
        "2, the draft with filters",
        "ZSTD",
        "big: INT64, bucket 0",
        "bucket 0 monolithic, 1871 of 3768 bytes at 0",
        "statistics of text, tiny, whole, wide",
        "18, 8.1 KiB (46.9 % of the file)",
    ):
        assert text in shown
    document = json.loads(bloom("inspect", MOSAIC / "released_plain.mosaic", "--format", "json").out)
    details = dict(document["details"])
    assert (details["version"], details["compression"]) == ("1", "NONE")
    assert details["column names"] == "byte-pair encoded, 23 rules"
    assert details["columns as written"].startswith("oil_temperature_celsius, fan_temperature_celsius")
    assert details["column 0"] == "air_temperature_celsius: INT64, bucket 0"


def test_a_wide_files_details_are_cut_in_the_text_and_whole_in_json(bloom: Bloom, tmp_path: Path) -> None:
    path = write(tmp_path / "wide.mosaic", pa.table({f"c{i:03}": [i] for i in range(100)}))
    text = bloom("inspect", path, "--all").out
    assert "48 more lines in the JSON report" in text
    assert "c099: INT64" not in text
    details = json.loads(bloom("inspect", path, "--format", "json").out)["details"]
    assert len(details) == 108
    assert ["column 99", "c099: INT64, bucket 99"] in details


def test_looking_at_a_file_imports_neither_pyarrow_nor_the_package() -> None:
    path = str(MOSAIC / "draft_types.mosaic")
    commands = [["inspect", path], ["probe", path, "7", "-c", "big"], ["validate", path], ["fold", path, "--dry-run"]]
    program = f"import sys; from bloomcli.cli import run; [run(command) for command in {commands!r}]; "
    program += "print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert "bloomcli.formats.mosaic.file" in done.stderr.split()
    assert not {"pyarrow", "mosaic", "numpy", "rich"} & set(done.stderr.split())
