"""bloom find in ORC and Mosaic files, and in lakes of several formats."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.cli import Bloom

VALUE = 25_000_000_000
"""Of the sixth row of the Mosaic file."""


@pytest.fixture
def mixed(tmp_path: Path, fixtures: Path) -> Path:
    """A lake of files of all formats, with the column `big` in each."""
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "c.mosaic").write_bytes((fixtures / "mosaic/released_types.mosaic").read_bytes())
    value = VALUE
    table = pa.table({"big": pa.array([1, value, None], pa.int64()), "text": ["a", "b", "c"]})
    pq.write_table(table, lake / "a.parquet")
    orc.write_table(table, lake / "b.orc")
    (lake / "value").write_text(f"{value}\n")
    return lake


def test_one_command_finds_in_files_of_all_formats(mixed: Path, bloom: Bloom, tmp_path: Path) -> None:
    order = ("find", "--values-from", mixed / "value", mixed, "-c", "big")
    done = bloom(*order, "-f", "jsonl", "--select", "big,text")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(Path(r["path"]).name, r["stripe"], r["row_group"], r["row"]) for r in rows] == [
        ("a.parquet", None, 0, 1),
        ("b.orc", 0, 0, 1),
        ("c.mosaic", None, 0, 5),
    ]
    for form in ("csv", "parquet"):
        out = tmp_path / f"hits.{form}"
        assert bloom(*order, "-f", form, "-o", out, "--select", "big,text").code == 0
    table = pq.read_table(tmp_path / "hits.parquet")
    assert table.column("stripe").to_pylist() == [None, 0, None]
    assert [path.rsplit("/", 1)[1] for path in bloom(*order, "--files-only").out.split()] == [
        "a.parquet",
        "b.orc",
        "c.mosaic",
    ]
    maybe = bloom(*order, "--maybe", "-f", "jsonl")
    files = {Path(f["path"]).name: f for f in map(json.loads, maybe.out.splitlines())}
    assert (files["b.orc"]["stripes"], files["a.parquet"]["stripes"]) == ([0], None)


def test_the_same_error_of_many_files_is_reported_once(bloom: Bloom, tmp_path: Path) -> None:
    for number in range(5):
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{number}.parquet")
    orc.write_table(pa.table({"id": [1]}), tmp_path / "o.orc")
    done = bloom("find", "1", tmp_path, "-c", "nope")
    assert done.code == 2
    assert done.err.count("no column 'nope'") == 1
    assert f"{tmp_path}/0.parquet: no column 'nope'; the same in 5 more files" in done.err


def test_files_of_other_columns_are_an_error_that_names_both_files_and_the_columns(
    bloom: Bloom, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    first, second = lake / "a.parquet", lake / "b.parquet"
    pq.write_table(pa.table({"id": [1], "total": [2], "day": ["x"]}), first)
    pq.write_table(pa.table({"id": [1], "total": [2], "note": ["y"]}), second)
    for form in ("csv", "parquet"):
        done = bloom("find", "1", lake, "-c", "id", "-f", form, "-o", tmp_path / "out")
        assert done.code == 4
        assert f"{second}: its columns aren't those of the first file with rows, {first}: " in done.err
        assert ": it lacks day, and it also has note; the search ends here, and its output isn't complete" in done.err
        assert "--select" in done.err
        assert [path.name for path in tmp_path.iterdir()] == ["lake"]
    pq.write_table(pa.table({"day": ["y"], "total": ["many"], "id": [1]}), second)
    done = bloom("find", "1", lake, "-c", "id", "-f", "parquet", "-o", tmp_path / "out")
    assert done.code == 4
    assert f"{first}: total is string, and int64 there; the search ends here" in done.err


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (2, "the pages have 0 values, the metadata 1000"),
        (6, "the page header has no data_page_header_v2"),
    ],
    ids=["INDEX_PAGE, which Arrow passes over", "DATA_PAGE_V2, without its structure"],
)
def test_a_found_row_whose_record_ends_early_is_an_error(
    bloom: Bloom, tmp_path: Path, kind: int, reason: str
) -> None:
    path = tmp_path / "a.parquet"
    numbers = list(range(1000))
    pq.write_table(pa.table({"id": numbers, "other": numbers}), path, use_dictionary=False, compression="none")
    at = pq.ParquetFile(path).metadata.row_group(0).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    assert data[at : at + 2] == b"\x15\x00"  # the page's type, DATA_PAGE
    data[at + 1] = kind
    path.write_bytes(data)
    done = bloom("find", "7", path, "-c", "id")
    assert (done.code, done.out) == (3, "")
    assert f": {reason} (at row_groups[0].columns[1], byte " in done.err


def test_text_is_not_written_to_a_file_named_as_another_format(tmp_path: Path, bloom: Bloom) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    for form in ("csv", "jsonl", "parquet"):
        target = tmp_path / f"hits.{form}"
        refused = bloom("find", "1", tmp_path / "a.parquet", "-c", "id", "-o", target)
        assert (refused.code, target.exists()) == (2, False)
        assert f"hint: --format {form}" in refused.err
