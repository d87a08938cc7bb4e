"""`bloom repair` from the command line: reports, exit codes, many files."""

from __future__ import annotations

import csv
import io
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets, footers
from support.cli import Bloom
from support.golden import ORC, WRITERS
from support.thrift import I64, Fields
from support.wrong_structures import KINDS

from bloomcli.formats.parquet import repair
from bloomcli.formats.parquet.bloom_filter import Filters

NAN = WRITERS / "polars_1.38.1_nan.parquet"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with several pages, and no page index."""
    table = pa.table({"id": range(3000), "name": [f"n{i}" for i in range(3000)]})
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        data_page_size=4096,
        write_batch_size=100,
        max_rows_per_page=300,
        use_dictionary=False,
    )
    return tmp_path / "a.parquet"


def test_the_report_says_what_a_lookup_reads_and_what_is_left_out(bloom: Bloom, tmp_path: Path) -> None:
    half = pa.table({"ts": pa.array([0] * 900, pa.timestamp("ns")), "id": range(900)})
    pq.write_table(half, tmp_path / "in", use_deprecated_int96_timestamps=True)
    done = bloom("repair", tmp_path / "in", "--add", "page-index", "--add", "statistics", "--in-place")
    assert "a lookup reads" in done.out
    assert "2 offset indexes added, 1 column index added" in done.out
    assert "left out: column index of ts, its type has no defined order" in done.out
    pq.write_table(pa.table({"f": [math.nan] * 9}), tmp_path / "nan", write_statistics=False)
    planned = bloom("repair", tmp_path / "nan", "--add", "page-index", "--add", "statistics", "--dry-run").out
    assert "not where a page has no value but NaN" in planned
    done = bloom("repair", tmp_path / "nan", "--add", "statistics", "-o", tmp_path / "out")
    assert "no bounds: its values are all NaN" in done.out
    assert "what " not in planned + done.out, "nothing is or was wrong"


def test_csv_and_json_have_each_structure(bloom: Bloom, path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(bloom("repair", path, "--add", "page-index", "-n", "-f", "csv").out)))
    assert [(row["column"], row["structure"], row["action"]) for row in rows] == [
        (column, structure, "add") for column in ("id", "name") for structure in ("offset_index", "column_index")
    ]
    report = bloom("repair", path, "--add", "page-index", "--in-place", "-f", "json").json
    assert [one["pages"] for one in report["structures"]] == [10] * 4
    assert report["changes"] == []
    first = next(one for one in report["structures"] if one["structure"] == "column_index")
    assert first["lookup_bytes"] * 10 <= first["page_bytes"]


def test_many_files_are_repaired_and_those_without_need_are_skipped(bloom: Bloom, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 3)
    shutil.copy(NAN, lake / "nan.parquet")
    shutil.copy(min(ORC.glob("*.orc")), lake / "other.orc")
    mended = bloom("repair", lake, "--in-place")
    assert mended.code == 0
    assert "repair: 5 files: 1 done, 4 skipped" in mended.out
    assert "1 structure," in mended.out
    assert "skipped 3 files: there is nothing to mend" in mended.out
    assert "skipped 1 file: only Parquet files can be repaired" in mended.out
    added = bloom("repair", lake, "--add", "page-index,statistics", "--in-place", "-f", "json").json
    assert (added["done"], added["skipped"]) == (4, 1)
    assert {row["structures"] for row in added["rows"] if row["status"] == "done"} != {0}
    again = bloom("repair", lake, "--add", "page-index,statistics", "--in-place", "-f", "json").json
    assert (again["done"], again["skipped"]) == (0, 5)
    assert datasets.temporary(lake) == []


def test_each_file_of_many_is_read_once_to_be_mended(
    bloom: Bloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, read = tmp_path / "lake", []
    lake.mkdir()
    for name in ("a", "b", "c"):
        shutil.copy(NAN, lake / f"{name}.parquet")

    def counted(filters: Filters, *rest: Any) -> Any:
        read.append(Path(filters.source.path).stem)
        return measured(filters, *rest)

    measured = repair.measured
    monkeypatch.setattr(repair, "measured", counted)
    for options, done in ((["--dry-run"], 0), (["-o", tmp_path / "out"], 3), (["--in-place"], 3)):
        assert bloom("repair", lake, *options, "-f", "json").json["done"] == done
        assert sorted(read) == ["a", "b", "c"]
        read.clear()


def test_outputs_of_an_earlier_run_are_kept_or_made_again(bloom: Bloom, tmp_path: Path) -> None:
    lake, out = datasets.plain(tmp_path / "lake", 2), tmp_path / "out"
    args = ("repair", lake, "--add", "page-index", "-o", out)
    assert bloom(*args, "-f", "json").json["done"] == 2
    first = datasets.digests(out)
    assert "the output is there already" in bloom(*args).out
    name = min(first)
    shutil.copy(lake / name, out / name)
    assert bloom(*args, "-f", "json").json["done"] == 1
    assert datasets.digests(out) == first


def test_a_second_run_knows_its_own_output_whatever_was_mended(bloom: Bloom, tmp_path: Path) -> None:
    lake, out = tmp_path / "lake", tmp_path / "out"
    lake.mkdir()
    one_each = {(kind.rule, kind.severity): kind for kind in KINDS}
    for number, kind in enumerate(one_each.values()):
        (lake / f"{number}.parquet").write_bytes(kind.file)
    args = ("repair", lake, "-c", "*", "-o", out, "-f", "json")
    first, second = bloom(*args).json, bloom(*args).json
    assert first["done"] >= 8
    assert (second["done"], second["failed"]) == (0, first["failed"])


def test_a_wrong_number_of_rows_is_set_right_though_one_column_is_chosen(bloom: Bloom, path: Path) -> None:
    def fewer(metadata: Fields) -> None:
        metadata[footers.ROW_GROUPS][1].values[0][3] = (I64, 2999)

    before = path.read_bytes()
    footers.edit_file(path, path, fewer)
    report = bloom("repair", path, "--columns", "id", "--in-place", "-f", "json").json
    assert {one["action"] for one in report["structures"]} == {"replace"}
    assert "num_rows is 2999, and the pages have 3000 rows" in str(report["structures"])
    assert path.read_bytes() == before
    assert bloom("repair", path, "--in-place").code == 0


def test_a_chunk_that_is_said_to_have_no_values_gets_their_number_and_keeps_its_indexes(
    bloom: Bloom, path: Path
) -> None:
    def empty(metadata: Fields) -> None:
        footers.meta(metadata, 0, 0)[footers.NUM_VALUES] = (I64, 0)

    bloom("repair", path, "--add", "page-index", "--in-place")
    before = path.read_bytes()
    footers.edit_file(path, path, empty)
    report = bloom("repair", path, "--columns", "id", "--in-place", "-f", "json").json
    assert {one["structure"]: one["action"] for one in report["structures"]} == {"num_rows": "replace"}
    assert path.read_bytes() == before
