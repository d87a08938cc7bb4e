"""Which of the values of a search were found: their rows and files, and those that weren't found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles

import bloomcli
from bloomcli.cli import run as cli
from bloomcli.datasets import value_blocks as blocks
from bloomcli.finding import found_values
from bloomcli.finding.value_file import values_given

if TYPE_CHECKING:
    from bloomcli.model.find import FindReport

FILES = 12


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("found")
    for file in range(FILES):
        numbers = range(file * 100, file * 100 + 150)
        pq.write_table(
            pa.table(
                {
                    "id": list(numbers),
                    "name": ["everywhere" if n % 50 == 0 else f"n{n}" for n in numbers],
                    "real": [float("nan") if n % 50 == 0 else n / 2 for n in numbers],
                    "even": [n % 2 == 0 for n in numbers],
                    "tags": [[n, n + 1, n] for n in numbers],
                }
            ),
            folder / f"{file:02}.parquet",
            row_group_size=70,
        )
    return folder


def report_of(path: Path, values: Any, **options: Any) -> FindReport:
    found = bloomcli.find(path, values, **options)
    for _ in found:
        pass
    return found.report


def counts(report: FindReport) -> dict[str, tuple[int, int]]:
    return {one.value: (one.rows, one.files) for one in report.by_value}


def test_each_value_has_its_rows_and_files_and_the_others_are_missing(lake: Path) -> None:
    report = report_of(lake, [5, 120, 99_999, -1, 120], column="id", select=["id"])
    assert counts(report) == {"5": (1, 1), "120": (2, 2), "99999": (0, 0), "-1": (0, 0)}
    assert report.by_value[1].paths == (str(lake / "00.parquet"), str(lake / "01.parquet"))
    assert (report.values, report.values_found, report.values_missing, report.missing) == (5, 2, 2, ("99999", "-1"))


def test_the_files_of_a_value_are_all_counted_and_the_first_ten_are_named(lake: Path) -> None:
    (one,) = report_of(lake, "everywhere", column="name").by_value
    assert (one.rows, one.files, len(one.paths)) == (36, FILES, 10)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("id", ["42", "042", "0x2a", "9999"], {"42": (1, 1), "042": (1, 1), "0x2a": (1, 1), "9999": (0, 0)}),
        ("real", ["1.5", "1.50", "nan", "NaN"], {"1.5": (1, 1), "1.50": (1, 1), "nan": (36, 12), "NaN": (36, 12)}),
        ("real", ["0.0", "-0.0"], {"0.0": (0, 0), "-0.0": (0, 0)}),
        ("even", ["true", "1", "0"], {"true": (900, 12), "1": (900, 12), "0": (900, 12)}),
    ],
)
def test_values_that_are_written_differently_and_are_equal_are_all_found(
    lake: Path, column: str, values: list[str], expected: dict[str, tuple[int, int]]
) -> None:
    assert counts(report_of(lake, values, column=column, select=[column])) == expected


def test_many_equal_values_are_all_found(lake: Path) -> None:
    values = [f"{n}" for n in range(300)] + [f"{n:04}" for n in range(300)] + ["-5", "-05", "00000"]
    report = report_of(lake, values, column="id", select=["id"])
    found = counts(report)
    assert all(found[f"{n}"] == found[f"{n:04}"] != (0, 0) for n in range(300))
    assert (found["00000"], report.missing) == ((1, 1), ("-5", "-05"))


def test_every_value_of_a_list_counts(lake: Path) -> None:
    values = [5, 6, 7, 1249, 1250, 1251, 1252]
    expected = {
        str(value): sum(
            value in tags for file in sorted(lake.iterdir()) for tags in pq.read_table(file)["tags"].to_pylist()
        )
        for value in values
    }
    report = report_of(lake, values, column="tags.list.element", select=["id"])
    assert {one.value: one.rows for one in report.by_value} == expected
    assert report.missing == ("1251", "1252")
    assert expected["6"] == 2
    assert report.rows < sum(expected.values())


def test_every_value_of_an_orc_list_counts(tmp_path: Path) -> None:
    """Lists of more values than are decoded at a time continue in the next part."""
    long = list(range(40_000))
    orc.write_table(
        pa.table({"tags": pa.array([[1, 2], long, [2, 50_000]], pa.list_(pa.int64()))}), tmp_path / "a.orc"
    )
    report = report_of(tmp_path, [1, 2, 39_999, 50_000, 60_000], column="tags._elem")
    assert {one.value: one.rows for one in report.by_value} == {
        "1": 2,
        "2": 3,
        "39999": 1,
        "50000": 1,
        "60000": 0,
    }


def test_equal_values_of_a_mosaic_file_are_found(tmp_path: Path) -> None:
    file = mosaicfiles.write(tmp_path / "a.mosaic", pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    assert counts(report_of(file, ["2", "02", "9"], column="id")) == {"2": (1, 1), "02": (1, 1), "9": (0, 0)}


def test_more_than_a_thousand_values_are_not_counted_one_by_one(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_values, "_MERGED", 10)
    report = report_of(lake, pa.array(range(-3000, 200)), column="id", select=["id"])
    assert (report.values_found, report.values_missing, report.by_value) == (200, 3000, ())
    assert report.missing == tuple(map(str, range(-3000, -2000)))


def test_a_limit_leaves_open_which_values_are_missing(lake: Path) -> None:
    report = report_of(lake, [5, 120, 99_999], column="id", limit=1)
    assert (counts(report), report.values_found, report.values_missing) == ({"5": (1, 1)}, 1, None)


def test_the_report_says_which_values_were_found(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    values = [word for value in range(-20, 20) for word in ("-v", str(value))]
    assert cli(["find", *values, str(lake), "-c", "id", "--select", "id"]) == 0
    err = capfd.readouterr().err
    assert "\nvalues: 20 of 40 found; not found: -20, -19, -18, -17, -16, -15, -14, -13, -12, -11, and 10 more" in err
    assert cli(["find", "-v", "7", "-v", "120", "-v", "-1", str(lake), "-c", "id", "-f", "paths"]) == 0
    err = capfd.readouterr().err
    assert "\nvalues: 2 of 3 found; not found: -1\n  7: 1 row in 1 file: " in err
    assert "\n  120: 2 rows in 2 files: " in err
    assert cli(["find", "-v", "7", "-v", "-1", str(lake), "-c", "id", "--maybe"]) == 0
    assert "\nvalues:" not in capfd.readouterr().err


def test_an_index_doesn_t_change_what_is_found(lake: Path, tmp_path: Path) -> None:
    index = tmp_path / "ids.bloom-index"
    bloomcli.index_build(lake, ["id"], output=index)
    options: dict[str, Any] = {"column": "id", "select": ["id"]}
    values = [5, "05", 120, 99_999]
    with_index, without = report_of(lake, values, index=index, **options), report_of(lake, values, **options)
    assert with_index.files_unopened > 0
    assert with_index.by_value == without.by_value
    assert counts(without)["05"] == (1, 1)


def test_blocks_of_values_on_executors_find_the_same(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with a list that has values of several blocks, and equal values in several blocks."""
    from bloomcli.commands.options import FindOptions
    from bloomcli.finding.found_values import FoundValues
    from bloomcli.finding.search_files import FileWork, Job
    from bloomcli.finding.work import search

    monkeypatch.setattr(blocks, "BLOCK_VALUES", 2)
    values = pa.array(["5", "005", "6", "7", "2000"])
    options = FindOptions(column="tags.list.element").checked()
    found = FoundValues(values_given(values))
    pieces = [blocks.packed(values[at : at + 1].cast(pa.large_binary())) for at in range(len(values))]
    rows = [
        item
        for item in search(((FileWork(str(lake / "00.parquet")),), Job(options)), blocks.Blocks(pieces))
        if isinstance(item, pa.RecordBatch)
    ]
    assert len(list(found.counted("0", iter(rows)))) == len(rows)
    assert {one.value: one.rows for one in found.report(complete=True)["by_value"]} == {
        "5": 2,
        "005": 2,
        "6": 2,
        "7": 2,
        "2000": 0,
    }
