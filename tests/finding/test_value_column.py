"""find's values from a column: of CSV and Parquet files, of series and data frames."""

from __future__ import annotations

import io
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.cli import run as cli
from bloomcli.errors import UsageError
from bloomcli.finding.value_file import values_given, values_of


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    file = tmp_path / "lake.parquet"
    pq.write_table(pa.table({"user_id": pa.array([1, 7, 42], pa.int64()), "code": ["001", "007", "a,b"]}), file)
    return file


def texts(path: Path, column: str | None = None, searched: str = "user_id") -> list[str]:
    return [text.decode() for text in values_of(str(path), column, searched).texts.to_pylist()]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_column_of_csv_is_taken_as_text(tmp_path: Path, mark: str, end: str, start: str) -> None:
    rows = [["name", "user_id"], ['"a, ""b"""', "007"], ['"two\nlines"', "42"], ["", ""], ["c", '"1"']]
    file = tmp_path / "ids.csv"
    file.write_text(start + end.join(mark.join(row) for row in rows), newline="")
    assert texts(file, "user_id") == ["007", "42", "1"]
    assert texts(file, "name") == ['a, "b"', "two\nlines", "c"]


def test_a_column_of_csv_may_be_the_only_one_or_have_any_suffix(tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text("user_id\n1\n2\n")
    assert texts(file, "user_id") == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("user_id\n1\n2\n", "--values-column user_id"),
        ("id\n1\n", "--values-column id"),
        ("user_id\nabc\n", "--values-column user_id"),
        ("name,user_id\nx,1\n", "--values-column user_id"),
        ('"id"\n"1"\n', "--values-column id"),
    ],
)
def test_a_csv_header_is_no_value(tmp_path: Path, text: str, hint: str) -> None:
    file = tmp_path / "ids.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match="it is a table with a header") as error:
        texts(file)
    assert hint in str(error.value.hint)


@pytest.mark.parametrize("text", ["1\n2\n", "abc\ndef\n", "user_id", "-1.5\n2"])
def test_a_csv_without_a_header_has_a_value_on_each_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ids.csv"
    file.write_text(text)
    assert texts(file) == text.splitlines()


def test_a_column_of_parquet_is_taken_with_nulls_left_out(tmp_path: Path) -> None:
    file = tmp_path / "ids"
    table = pa.table(
        {
            "id": pa.array([1, None, 3], pa.int16()),
            "user": [{"code": "007"}, None, {"code": "x"}],
            "tags": [["a"], [], ["b", None]],
            "money": pa.array([Decimal("1.50"), None, None], pa.decimal128(9, 2)),
            "flag": [True, False, None],
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    pq.write_table(table, file)
    assert texts(file, "id") == ["1", "3"]
    assert texts(file, "user.code") == ["007", "x"]
    assert texts(file, "tags.list.element") == ["a", "b"]
    assert texts(file, "money") == ["1.50"]
    assert texts(file, "flag") == ["true", "false"]
    assert texts(file, "kind") == ["u", "v", "u"]
    with pytest.raises(UsageError, match="one of 6 columns: id, user") as error:
        texts(file)
    assert "--values-column id" in str(error.value.hint)
    with pytest.raises(UsageError, match="no column 'idd'") as error:
        texts(file, "idd")
    assert "did you mean id?" in str(error.value.hint)
    pq.write_table(table.select(["id"]), file)
    assert texts(file) == ["1", "3"]
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UsageError, match="can't be read as Parquet"):
        texts(file)


def test_what_is_no_csv_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "ids.csv"
    for text, message in (
        (b"id,id\n1,2\n", "2 columns 'id'"),
        (b"id,b\n1,2\n3\n", "can't be read as CSV"),
        (b"id,b\n\xff,2\n", "can't be read as CSV"),
        (b"", "no column 'id'"),
        (b"id,b\n,2\n", "has no values"),
    ):
        file.write_bytes(text)
        with pytest.raises(UsageError, match=message):
            texts(file, "id")


def test_the_command_line_takes_a_column(
    lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "requests.csv"
    file.write_text("user_id,code\n7,007\n42,nothing\n")
    at = ["--values-from", str(file), "--values-column"]
    assert cli(["find", *at, "user_id", str(lake), "-c", "user_id", "-f", "csv", "--select", "code"]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == [
        f"{lake},,0,1,7,007",
        f'{lake},,0,2,42,"a,b"',
    ]
    assert cli(["find", *at, "code", str(lake), "-c", "code", "-f", "paths"]) == 0
    assert "1 of 2 found; not found: nothing" in capfd.readouterr().err
    assert cli(["probe", str(lake), "-c", "user_id", *at, "user_id"]) == 0
    assert cli(["find", "7", str(lake), "-c", "user_id", "--values-column", "user_id"]) == 2
    assert "names a column of --values-from's file" in capfd.readouterr().err
    for data in (file.read_bytes(), lake.read_bytes()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert cli(["find", "--values-from", "-", "--values-column", "user_id", str(lake), "-c", "user_id"]) == 0


COLUMNS = [
    pa.array([7, None, 9]),
    pa.chunked_array([[7], [None, 9]]),
    pl.Series([7, None, 9]),
    pd.Series([7, None, 9]),
    pd.Series([7, None, 9], dtype="Int64"),
    pd.DataFrame({"a": [7, 9]}),
    pl.DataFrame({"a": [7, 9]}),
    pa.table({"a": [7, 9]}),
    pa.record_batch({"a": [7, 9]}),
]


@pytest.mark.parametrize("values", COLUMNS)
def test_series_frames_and_arrow_data_are_values(lake: Path, values: Any) -> None:
    found = bloomcli.find(lake, values, column="user_id")
    assert [row["record"]["user_id"] for batch in found for row in batch.to_pylist()] == [7]
    assert found.report.values_missing == 1


def test_a_frame_in_place_of_the_paths_is_an_error(lake: Path) -> None:
    for frame in (pa.table({"id": [1]}), pd.DataFrame({"id": [1]}), pl.DataFrame({"id": [1]})):
        with pytest.raises(UsageError, match=f"path takes a path or several paths, not a {type(frame).__name__}"):
            bloomcli.find(frame, str(lake), column="id")  # type: ignore[arg-type]


def test_a_column_of_a_frame_is_named() -> None:
    for frame in (
        pd.DataFrame({"a": [1], "b": ["x"]}),
        pl.DataFrame({"a": [1], "b": ["x"]}),
        pa.table({"a": [1], "b": ["x"]}),
    ):
        assert values_given(frame, "b").texts.to_pylist() == [b"x"]
        with pytest.raises(UsageError, match="one of 2 columns: a, b"):
            values_given(frame)
        with pytest.raises(UsageError, match="no column 'c'"):
            values_given(frame, "c")
    assert values_given(pd.Series(["x", "y"], dtype="category")).count == 2
    assert values_given(pl.Series(["x", "y"])).texts.to_pylist() == [b"x", b"y"]
    with pytest.raises(UsageError, match="values_column is for a data frame"):
        values_given([1], "a")


@pytest.mark.parametrize("values", COLUMNS)
def test_probe_takes_the_same_columns(lake: Path, values: Any) -> None:
    totals = bloomcli.probe(lake, values, column="user_id").totals
    assert [float(total.value) for total in totals] == [7, 9]
    (row,) = bloomcli.probe([lake], values, column="user_id").rows
    assert [float(total.value) for total in row.totals or ()] == [7, 9]


def test_probe_takes_a_named_column_and_single_values_of_pandas(lake: Path) -> None:
    frame = pl.DataFrame({"a": [7], "b": ["x"]})
    assert [t.value for t in bloomcli.probe(lake, frame, column="user_id", values_column="a").totals] == ["7"]
    with pytest.raises(UsageError, match="one of 2 columns: a, b"):
        bloomcli.probe(lake, frame, column="user_id")
    with pytest.raises(UsageError, match="values_column is for a data frame"):
        bloomcli.probe(lake, 7, column="user_id", values_column="a")
    with pytest.raises(UsageError, match="no values to probe"):
        bloomcli.probe(lake, pa.array([], pa.int64()), column="user_id")
    assert values_given(pd.Timestamp("2024-02-29")).texts.to_pylist() == [b"2024-02-29T00:00:00"]
    assert values_given(pd.Series([UUID(int=5), None])).texts.to_pylist() == [str(UUID(int=5)).encode()]


NAIVE = pd.Series(pd.to_datetime(["2024-02-29", None]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array(["2024-02-29"], "datetime64[s]"), ["2024-02-29T00:00:00"]),
        (NAIVE.to_numpy(), ["2024-02-29T00:00:00"]),
        (np.array(["a", None], object), ["a"]),
        (np.array(5), ["5"]),
        (np.float32(0.5), ["0.5"]),
        (np.array([2**63, "a"], object), [str(2**63), "a"]),
        (pd.Series([2**63, -1], dtype=object), [str(2**63), "-1"]),
        (pd.DataFrame([["a"]]), ["a"]),
    ],
)
def test_arrays_of_numpy_and_objects_are_values(values: Any, expected: list[str]) -> None:
    assert [text.decode() for text in values_given(values).texts.to_pylist()] == expected


def test_what_has_no_text_or_no_clear_column_is_refused() -> None:
    months = pd.Series(pd.period_range("2026-01", "2026-02", freq="M"))
    for values in (months, pa.array([[1]]), pd.Series([["a"]]), np.array([[1]])):
        with pytest.raises(UsageError):
            values_given(values)
    for frame in (pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])):
        with pytest.raises(UsageError, match="2 columns 'a'"):
            values_given(frame, "a")
    with pytest.raises(UsageError) as lazy:
        values_given(pl.LazyFrame({"a": [1]}), "a")
    assert lazy.value.hint == "collect() it"
